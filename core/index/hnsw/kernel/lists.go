package kernel

import "unsafe"

// NoRow ends a list of rows that is shorter than its room.
const NoRow = ^uint32(0)

const vectorWords = 8 // 32-bit words that the assembly compares at once

// Lists is a growing array of short lists of row numbers, each with room for the same number of
// them, in flat chunks like [Vectors]. A list's words lie together, NoRow after the last.
type Lists struct {
	room, stride int // words
	rows         int
	chunks       []unsafe.Pointer
}

// NewLists returns an empty array of lists of up to room rows.
func NewLists(room int) *Lists {
	return &Lists{room: room, stride: (room + vectorWords - 1) / vectorWords * vectorWords}
}

// At returns the room of a list, to read and to write.
func (l *Lists) At(row uint32) []uint32 {
	if int(row) >= l.rows {
		panic("kernel: list out of range")
	}
	at := unsafe.Add(l.chunks[row>>chunkShift], 4*int(row&(chunkRows-1))*l.stride)
	return unsafe.Slice((*uint32)(at), l.room)
}

// Bytes is the memory held, in bytes.
func (l *Lists) Bytes() int { return 4*l.rows*l.stride + cap(l.chunks)*int(unsafe.Sizeof(uintptr(0))) }

// Grow makes at least rows lists exist; new ones are empty.
func (l *Lists) Grow(rows int) {
	for l.rows < rows {
		switch {
		case l.rows == 0:
			l.chunks, l.rows = append(l.chunks, l.chunk(firstRows)), firstRows
		case l.rows < chunkRows:
			n := l.rows * l.stride
			to := l.chunk(2 * l.rows)
			copy(unsafe.Slice((*uint32)(to), n), unsafe.Slice((*uint32)(l.chunks[0]), n))
			l.chunks[0] = to
			l.rows *= 2
		default:
			l.chunks = append(l.chunks, l.chunk(chunkRows))
			l.rows += chunkRows
		}
	}
}

// chunk returns n empty lists, aligned to a line.
func (l *Lists) chunk(n int) unsafe.Pointer {
	b := make([]uint32, n*l.stride+line/4-1)
	for i := range b {
		b[i] = NoRow
	}
	skip := -uintptr(unsafe.Pointer(&b[0])) % line / 4
	return unsafe.Pointer(&b[skip])
}

// Fetch asks the caches for a list that will be read soon. Where there are no such means it does nothing.
func (l *Lists) Fetch(row uint32) { fetch(unsafe.Pointer(unsafe.SliceData(l.At(row)))) }

// Find returns the place in rows of the first whose list has x, or −1. x is not NoRow.
func (l *Lists) Find(rows []uint32, x uint32) int {
	if len(rows) == 0 {
		return -1
	}
	checkRows(rows, l.rows)
	return l.find(rows, x)
}
