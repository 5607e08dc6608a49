//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

//go:generate go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//go:generate go run ./asm -level avx2 -out kernel_avx2_amd64.s -stubs stubs_avx2_amd64.go -pkg kernel

// args holds the arguments of the assembly. Its fields have 8 bytes each, in the order of the arg… constants in asm/main.go.
type args struct {
	dst, rows unsafe.Pointer
	n         int
	codes     unsafe.Pointer // the query's high bytes, or its int16 for dots
	high, low unsafe.Pointer // tables of chunks
	meta      unsafe.Pointer
	blocks    int            // 64-byte lines of a row
	stride    int            // bytes of a row
	offset    int            // offset of the query
	weight    unsafe.Pointer // address of the query's float32 weight
}

func (a *args) ptr() *byte { return (*byte)(unsafe.Pointer(a)) }

func (v *Vectors) distances(dst []uint32, z *Query, rows []uint32) {
	weight := z.weight()
	a := args{
		dst: unsafe.Pointer(&dst[0]), rows: unsafe.Pointer(&rows[0]), n: len(rows), codes: unsafe.Pointer(&z.codes[0]),
		high: v.high.first(), meta: unsafe.Pointer(&v.meta[0]), blocks: v.high.stride / line, stride: v.high.stride,
		offset: int(z.offset), weight: unsafe.Pointer(&weight),
	}
	if Levels.Current() == cpu.AVX512VNNI {
		switch a.blocks {
		case 2:
			distances2AVX512(a.ptr())
		case 4:
			distances4AVX512(a.ptr())
		default:
			distancesAVX512(a.ptr())
		}
		return
	}
	switch a.blocks {
	case 1:
		distances1AVX2(a.ptr())
	case 2:
		distances2AVX2(a.ptr())
	case 4:
		distances4AVX2(a.ptr())
	default:
		distancesAVX2(a.ptr())
	}
}

func (v *Vectors) dots(dst []int64, z *Query, rows []uint32) {
	a := args{
		dst: unsafe.Pointer(&dst[0]), rows: unsafe.Pointer(&rows[0]), n: len(rows), codes: unsafe.Pointer(&z.full[0]),
		high: v.high.first(), low: v.low.first(), blocks: v.high.stride / line, stride: v.high.stride,
	}
	if Levels.Current() == cpu.AVX512VNNI {
		dotsAVX512(a.ptr())
		return
	}
	dotsAVX2(a.ptr())
}

// findArgs holds the arguments of find's assembly, in the order of the find… constants in asm/avx2.go.
type findArgs struct {
	rows   unsafe.Pointer
	n      int
	chunks unsafe.Pointer
	blocks int // number of registers that a list fills, with eight numbers each
	stride int // bytes of a list
	x      int // number to find
}

func (l *Lists) find(rows []uint32, x uint32) int {
	a := findArgs{
		rows: unsafe.Pointer(&rows[0]), n: len(rows), chunks: l.first(),
		blocks: l.stride / vectorBytes, stride: l.stride, x: int(x),
	}
	return findAVX2((*byte)(unsafe.Pointer(&a)))
}

// splitArgs holds the arguments of split's assembly, in the order of the split… constants in asm/avx2.go.
type splitArgs struct {
	high, low, q unsafe.Pointer
	blocks       int // groups of 32 elements
	sums         unsafe.Pointer
}

func split(h []int8, l []uint8, q []int16) (sum int32, s Squares) {
	if Levels.Current() == cpu.Generic {
		return splitGeneric(h, l, q)
	}
	_, _ = h[len(q)-1], l[len(q)-1]
	var lanes struct {
		high    [8]int32
		squares [4]int64
		rests   [8]uint32
	}
	a := splitArgs{
		high: unsafe.Pointer(&h[0]), low: unsafe.Pointer(&l[0]), q: unsafe.Pointer(&q[0]), blocks: len(q) / 32, sums: unsafe.Pointer(&lanes),
	}
	splitAVX2((*byte)(unsafe.Pointer(&a)))
	for i := range lanes.high {
		sum += lanes.high[i]
		s.Rest += int64(lanes.rests[i])
	}
	for _, x := range lanes.squares {
		s.All += x
	}
	return sum, s
}

func fetch(list unsafe.Pointer) { fetchSSE((*byte)(list)) }
