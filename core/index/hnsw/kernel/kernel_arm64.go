//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// args holds the operands of the assembly: fields of 8 bytes in the order of the arg…
// constants of asm/arm64/main.go.
type args struct {
	dst, rows unsafe.Pointer
	n         int
	codes     unsafe.Pointer // of the query: bytes, or int16 for dots
	high, low unsafe.Pointer // tables of chunks
	meta      unsafe.Pointer
	blocks    int // lines of a row, or blocks of eight words of a list
	stride    int // bytes of a row
	offset    int // of the query, or the word to find
	weight    unsafe.Pointer
	found     int // place of the word, or −1
}

func (a *args) ptr() *byte { return (*byte)(unsafe.Pointer(a)) }

func (v *Vectors) distances(dst []uint32, z *Query, rows []uint32) {
	weight := z.weight()
	a := args{
		dst: unsafe.Pointer(&dst[0]), rows: unsafe.Pointer(&rows[0]), n: len(rows), codes: unsafe.Pointer(&z.codes[0]),
		high: v.high.first(), meta: unsafe.Pointer(&v.meta[0]), blocks: v.high.stride / line, stride: v.high.stride,
		offset: int(z.offset), weight: unsafe.Pointer(&weight),
	}
	if Levels.Now() == cpu.DotProd {
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

func fetch(list unsafe.Pointer) { fetchNEON((*byte)(list)) }
