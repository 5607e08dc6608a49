//go:build wasip1 && lent

package kernel

import (
	"runtime"
	"unsafe"
)

//go:wasmimport kernel pack_room
func packRoom(kind, n, k, segs int32) int32

//go:wasmimport kernel pack
func hostPack(kind int32, w *int8, n, k, segs int32, room *byte) int32

//go:wasmimport kernel unpack
func hostUnpack(handle int32)

// lease refers to weights that the host packed.
type lease struct {
	handle int32  // 0: the host packed no weights
	room   []byte // guest memory in which the host stores the packed weights; may be empty
}

// packBoth makes this package also pack weights that the host packed. Tests set it to compare the results of both.
var packBoth bool

// alone reports whether this package must pack the weights.
func (l *lease) alone() bool { return l.handle == 0 || packBoth }

// packAtHost asks the host to pack w. If the host refuses, l.handle is 0. A cleanup frees the packed weights once the garbage collector
// finds owner unreachable.
func packAtHost[O any](owner *O, l *lease, kind packing, w []int8, n, k, segs int) {
	if n <= 0 || k <= 0 {
		return
	}
	l.room = make([]byte, packRoom(int32(kind), int32(n), int32(k), int32(segs)))
	l.handle = hostPack(int32(kind), &w[0], int32(n), int32(k), int32(segs), unsafe.SliceData(l.room))
	if l.handle == 0 {
		l.room = nil
		return
	}
	runtime.AddCleanup(owner, func(l lease) { hostUnpack(l.handle) }, *l)
}
