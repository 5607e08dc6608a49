//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// args holds the arguments of the assembly. Its fields have 8 bytes each, in the order of the arg… constants in asm/arm64/main.go.
type args struct {
	dst, rows unsafe.Pointer
	n         int
	codes     unsafe.Pointer // the query's high bytes, or its int16 for dots
	high, low unsafe.Pointer // tables of chunks
	meta      unsafe.Pointer
	blocks    int            // 64-byte lines of a row; of a list, groups of eight numbers
	stride    int            // bytes of a row
	offset    int            // offset of the query; for find, the number to find
	weight    unsafe.Pointer // address of the query's float32 weight
	found     int            // result of find: index in rows, or −1
}

func (a *args) ptr() *byte { return (*byte)(unsafe.Pointer(a)) }

func (v *Vectors) distances(dst []uint32, z *Query, rows []uint32) {
	weight := z.weight()
	a := args{
		dst: unsafe.Pointer(&dst[0]), rows: unsafe.Pointer(&rows[0]), n: len(rows), codes: unsafe.Pointer(&z.codes[0]),
		high: v.high.first(), meta: unsafe.Pointer(&v.meta[0]), blocks: v.high.stride / line, stride: v.high.stride,
		offset: int(z.offset), weight: unsafe.Pointer(&weight),
	}
	if Levels.Current() == cpu.DotProd {
		distancesDotProd(a.ptr())
		return
	}
	distancesNEON(a.ptr())
}

func (v *Vectors) dots(dst []int64, z *Query, rows []uint32) {
	a := args{
		dst: unsafe.Pointer(&dst[0]), rows: unsafe.Pointer(&rows[0]), n: len(rows), codes: unsafe.Pointer(&z.full[0]),
		high: v.high.first(), low: v.low.first(), stride: v.high.stride,
	}
	dotsNEON(a.ptr())
}

func (l *Lists) find(rows []uint32, x uint32) int {
	a := args{
		rows: unsafe.Pointer(&rows[0]), n: len(rows), high: l.first(), blocks: l.stride / vectorBytes, stride: l.stride,
		offset: int(x), found: -1,
	}
	findNEON(a.ptr())
	return a.found
}

func split(h []int8, l []uint8, q []int16) (sum int32, s Squares) { return splitGeneric(h, l, q) }

func fetch(list unsafe.Pointer) { fetchNEON((*byte)(list)) }
