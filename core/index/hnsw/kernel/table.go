package kernel

import "unsafe"

const (
	line       = 64 // bytes of a cache line
	chunkShift = 12
	chunkRows  = 1 << chunkShift
	firstRows  = 64 // rows of the first chunk in the beginning
)

// table is a growing array of rows of bytes in chunks of 4096 rows that never move. The first one doubles up to that size.
// A chunk is aligned to a line.
type table struct {
	stride int // bytes of a row
	rows   int
	chunks []unsafe.Pointer // first bytes of the chunks
}

// at returns the first byte of a row.
func (t *table) at(row uint32) unsafe.Pointer {
	if int(row) >= t.rows {
		panic("kernel: row out of range")
	}
	return unsafe.Add(t.chunks[row>>chunkShift], int(row&(chunkRows-1))*t.stride)
}

// first returns the address of the list of chunks. It panics if the table has no chunk.
func (t *table) first() unsafe.Pointer { return unsafe.Pointer(&t.chunks[0]) }

// grow extends the table to at least rows rows. It sets the bytes of new rows to fill.
func (t *table) grow(rows int, fill byte) {
	for t.rows < rows {
		switch {
		case t.rows == 0:
			t.chunks, t.rows = append(t.chunks, t.chunk(firstRows, fill)), firstRows
		case t.rows < chunkRows:
			n := t.rows * t.stride
			to := t.chunk(2*t.rows, fill)
			copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(t.chunks[0]), n))
			t.chunks[0] = to
			t.rows *= 2
		default:
			t.chunks = append(t.chunks, t.chunk(chunkRows, fill))
			t.rows += chunkRows
		}
	}
}

func (t *table) chunk(rows int, fill byte) unsafe.Pointer {
	b := make([]byte, rows*t.stride+line-1)
	if fill != 0 {
		b[0] = fill
		for n := 1; n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}
	skip := -uintptr(unsafe.Pointer(&b[0])) % line
	return unsafe.Pointer(&b[skip])
}
