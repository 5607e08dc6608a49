package kernel

import "unsafe"

// NoRow ends a list of rows that is shorter than its room.
const NoRow = ^uint32(0)

const vectorBytes = 32 // of a list that the assembly compares at once

// Lists is a growing array of short lists of row numbers, each with room for the same number of
// them, in flat chunks like [Vectors]. A list's words lie together, NoRow after the last.
type Lists struct {
	room int // words
	table
}

// NewLists returns an empty array of lists of up to room rows.
func NewLists(room int) *Lists {
	return &Lists{room, table{stride: (4*room + vectorBytes - 1) / vectorBytes * vectorBytes}}
}

// At returns the room of a list, to read and to write.
func (l *Lists) At(row uint32) []uint32 { return unsafe.Slice((*uint32)(l.at(row)), l.room) }

// Bytes is the memory held, in bytes.
func (l *Lists) Bytes() int { return l.bytes() }

// Grow makes at least rows lists exist; new ones are empty, that is full of NoRow.
func (l *Lists) Grow(rows int) { l.grow(rows, 0xff) }

// Fetch asks the caches for a list that will be read soon. Where there are no such means it does nothing.
func (l *Lists) Fetch(row uint32) { fetch(unsafe.Pointer(unsafe.SliceData(l.At(row)))) }

// Find returns the place in rows of the first whose list has x, or −1. x is not NoRow.
func (l *Lists) Find(rows []uint32, x uint32) int {
	checkRows(rows, l.rows)
	if isGeneric(rows) {
		return l.findGeneric(rows, x)
	}
	return l.find(rows, x)
}
