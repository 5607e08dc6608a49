//go:build wasip1 && lent

package kernel

import "unsafe"

// wasm/README.md describes the imports. The host reads a table of chunks in the guest's memory: each pointer has eight bytes, and
// the host reads the lower four.

//go:wasmimport kernel distances
//go:noescape
func hostDistances(dst *uint32, codes *int8, stride, offset int32, weight float32, rows *uint32, n int32, high, meta unsafe.Pointer, total int32)

//go:wasmimport kernel dots
//go:noescape
func hostDots(dst *int64, full *int16, stride int32, rows *uint32, n int32, high, low unsafe.Pointer, total int32)

func (v *Vectors) distances(dst []uint32, z *Query, rows []uint32) {
	hostDistances(&dst[0], &z.codes[0], int32(v.high.stride), z.offset, z.weight(), &rows[0], int32(len(rows)),
		v.high.first(), unsafe.Pointer(&v.meta[0]), int32(v.high.rows))
}

func (v *Vectors) dots(dst []int64, z *Query, rows []uint32) {
	hostDots(&dst[0], &z.full[0], int32(v.high.stride), &rows[0], int32(len(rows)),
		v.high.first(), v.low.first(), int32(v.high.rows))
}

func (l *Lists) find(rows []uint32, x uint32) int { return l.findGeneric(rows, x) }

func split(h []int8, l []uint8, q []int16) (sum int32, s Squares) { return splitGeneric(h, l, q) }

func fetch(unsafe.Pointer) {}
