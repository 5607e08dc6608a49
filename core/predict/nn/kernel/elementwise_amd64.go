//go:build !purego

package kernel

import (
	"math"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// addBlock is the number of bytes in a block of the quantised add.
const addBlock = 64

func addU8(dst, y, r []uint8, p *Add) {
	if Levels.Current() == cpu.Generic {
		addU8Generic(dst, y, r, p)
		return
	}
	args := elementArgs{
		scaleX: bits(p.ScaleY), scaleY: bits(p.ScaleR), zeroX: int(p.ZeroY), zeroY: int(p.ZeroR),
		lo: uint64(p.Lo), hi: bits(float32(int32(p.Hi) - p.Zero)), zero: int(p.Zero),
	}
	at := len(dst) / addBlock * addBlock
	if at > 0 {
		args.dst, args.x, args.y = unsafe.Pointer(&dst[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&r[0])
		args.addBlocks(at / addBlock)
	}
	if at < len(dst) {
		var a, b [addBlock]uint8
		copy(a[:], y[at:])
		copy(b[:], r[at:])
		args.dst, args.x, args.y = unsafe.Pointer(&a), unsafe.Pointer(&a), unsafe.Pointer(&b)
		args.addBlocks(1)
		copy(dst[at:], a[:])
	}
}

// addBlocks runs the add over n blocks of addBlock bytes.
func (e *elementArgs) addBlocks(n int) {
	if Levels.Current() == cpu.AVX2 {
		e.n = n * addBlock / 32
		addU8AVX2(e.ptr())
		return
	}
	e.n = n
	addU8AVX512(e.ptr())
}

// addF32 adds blocks of 16 floats with AVX-512 and of 8 with AVX2. The AVX-512 code also clamps, so its bounds are infinite.
func addF32(dst, a, b []float32) {
	n := len(dst)
	if blocks := n / 8; Levels.Current() == cpu.AVX2 && blocks > 0 {
		args := elementArgs{dst: unsafe.Pointer(&dst[0]), x: unsafe.Pointer(&a[0]), y: unsafe.Pointer(&b[0]), n: blocks}
		addF32AVX2(args.ptr())
		dst, a, b = dst[8*blocks:], a[8*blocks:], b[8*blocks:]
	}
	if Levels.Current() != cpu.AVX512VNNI || n == 0 {
		addF32Generic(dst, a, b)
		return
	}
	inf := float32(math.Inf(1))
	args := elementArgs{
		dst: unsafe.Pointer(&dst[0]), x: unsafe.Pointer(&a[0]), y: unsafe.Pointer(&b[0]), n: (n + panel - 1) / panel,
		mask: 1<<((n-1)%panel+1) - 1, lo: bits(-inf), hi: bits(inf),
	}
	addF32AVX512(args.ptr())
}

// sumBlock is the number of columns that one call of the AVX-512 assembly sums. AVX2 sums half as many.
const sumBlock = 64

func sumRowsU8(dst []uint32, src []uint8, lds, rows int) {
	args := elementArgs{n: rows, step: lds}
	c := 0
	switch Levels.Current() {
	case cpu.AVX512VNNI:
		for ; c < len(dst); c += sumBlock {
			args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
			args.mask = 1<<min(len(dst)-c, sumBlock) - 1
			sumRowsU8AVX512(args.ptr())
		}
		return
	case cpu.AVX2:
		for ; c+sumBlock/2 <= len(dst); c += sumBlock / 2 {
			args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
			sumRowsU8AVX2(args.ptr())
		}
	}
	if c < len(dst) {
		sumRowsU8Generic(dst[c:], src[c:], lds, rows)
	}
}

func sumRowsF32(dst, src []float32, lds, rows int) {
	args := elementArgs{n: rows, step: lds * 4}
	c := 0
	switch Levels.Current() {
	case cpu.AVX512VNNI:
		for ; c < len(dst); c += sumBlock {
			args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
			args.mask = 1<<min(len(dst)-c, sumBlock) - 1
			sumRowsF32AVX512(args.ptr())
		}
		return
	case cpu.AVX2:
		for ; c+sumBlock/2 <= len(dst); c += sumBlock / 2 {
			args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
			sumRowsF32AVX2(args.ptr())
		}
	}
	if c < len(dst) {
		sumRowsF32Generic(dst[c:], src[c:], lds, rows)
	}
}
