//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// block is the number of bytes or columns that the elementwise assembly processes at a time.
const block = 16

func addU8(dst, y, r []uint8, p *Add) {
	if Levels.Current() == cpu.Generic {
		addU8Generic(dst, y, r, p)
		return
	}
	args := elementArgs{
		scaleX: bits(p.ScaleY), scaleY: bits(p.ScaleR), zeroX: int(p.ZeroY), zeroY: int(p.ZeroR),
		lo: int(p.Lo), hi: int(p.Hi), zero: int(p.Zero),
	}
	at := len(dst) / block * block
	if at > 0 {
		args.dst, args.x, args.y, args.n = unsafe.Pointer(&dst[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&r[0]), at/block
		addU8NEON(args.ptr())
	}
	if at < len(dst) {
		var a, b [block]uint8
		copy(a[:], y[at:])
		copy(b[:], r[at:])
		args.dst, args.x, args.y, args.n = unsafe.Pointer(&a), unsafe.Pointer(&a), unsafe.Pointer(&b), 1
		addU8NEON(args.ptr())
		copy(dst[at:], a[:])
	}
}

func addF32(dst, a, b []float32) { addF32Generic(dst, a, b) }

func sumRowsU8(dst []uint32, src []uint8, lds, rows int) {
	c := 0
	if Levels.Current() != cpu.Generic {
		args := elementArgs{n: rows, step: lds}
		for ; c+block <= len(dst); c += block {
			args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
			sumRowsU8NEON(args.ptr())
		}
	}
	if c < len(dst) {
		sumRowsU8Generic(dst[c:], src[c:], lds, rows)
	}
}

func sumRowsF32(dst, src []float32, lds, rows int) { sumRowsF32Generic(dst, src, lds, rows) }
