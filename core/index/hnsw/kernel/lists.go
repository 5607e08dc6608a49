package kernel

import "unsafe"

// NoRow ends a list of rows that is not full.
const NoRow = ^uint32(0)

const vectorBytes = 32 // bytes of a list that the assembly compares at once

// Lists is a growing array of short lists of row numbers, all with the same capacity, in flat chunks like [Vectors]. The words of a list
// are contiguous, with NoRow after the last.
type Lists struct {
	room int // capacity of a list in words
	table
}

// NewLists returns an empty array of lists of up to room rows.
func NewLists(room int) *Lists {
	return &Lists{room, table{stride: (4*room + vectorBytes - 1) / vectorBytes * vectorBytes}}
}

// At returns the words of a list up to its capacity, to read and to write.
func (l *Lists) At(row uint32) []uint32 { return unsafe.Slice((*uint32)(l.at(row)), l.room) }

// Grow extends the array to at least rows lists. New lists are empty, that is full of NoRow.
func (l *Lists) Grow(rows int) { l.grow(rows, 0xff) }

// Fetch prefetches a list that will be read soon. On targets without prefetching it does nothing.
func (l *Lists) Fetch(row uint32) { fetch(unsafe.Pointer(unsafe.SliceData(l.At(row)))) }

// Find returns the index in rows of the first row whose list has x, or −1. x must not be NoRow.
func (l *Lists) Find(rows []uint32, x uint32) int {
	checkRows(rows, l.rows)
	if isGeneric(rows) {
		return l.findGeneric(rows, x)
	}
	return l.find(rows, x)
}
