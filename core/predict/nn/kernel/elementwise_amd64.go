//go:build !purego

package kernel

import "unsafe"

// addBlock is how many bytes the quantised add takes at a time.
const addBlock = 64

func addU8(dst, y, r []uint8, p *Add) {
	if level != AVX512VNNI {
		addU8Generic(dst, y, r, p)
		return
	}
	args := elementArgs{
		scaleX: bits(p.ScaleY), scaleY: bits(p.ScaleR), zeroX: int(p.ZeroY), zeroY: int(p.ZeroR),
		lo: uint64(p.Lo), hi: bits(float32(int32(p.Hi) - p.Zero)), zero: int(p.Zero),
	}
	if args.n = len(dst) / addBlock; args.n > 0 {
		args.dst, args.x, args.y = unsafe.Pointer(&dst[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&r[0])
		addU8AVX512(args.ptr())
	}
	if at := args.n * addBlock; at < len(dst) {
		var a, b [addBlock]uint8
		copy(a[:], y[at:])
		copy(b[:], r[at:])
		args.n, args.dst, args.x, args.y = 1, unsafe.Pointer(&a), unsafe.Pointer(&a), unsafe.Pointer(&b)
		addU8AVX512(args.ptr())
		copy(dst[at:], a[:])
	}
}

// floatArgs covers n floats in blocks of 16.
func floatArgs(dst, a []float32, lo, hi float32) elementArgs {
	n := len(dst)
	return elementArgs{
		dst: unsafe.Pointer(&dst[0]), x: unsafe.Pointer(&a[0]), n: (n + panel - 1) / panel,
		mask: 1<<((n-1)%panel+1) - 1, lo: bits(lo), hi: bits(hi),
	}
}

func addF32(dst, a, b []float32, lo, hi float32) {
	if level != AVX512VNNI || len(dst) == 0 {
		addF32Generic(dst, a, b, lo, hi)
		return
	}
	args := floatArgs(dst, a, lo, hi)
	args.y = unsafe.Pointer(&b[0])
	addF32AVX512(args.ptr())
}

func clampF32(dst, a []float32, lo, hi float32) {
	if level != AVX512VNNI || len(dst) == 0 {
		clampF32Generic(dst, a, lo, hi)
		return
	}
	args := floatArgs(dst, a, lo, hi)
	clampF32AVX512(args.ptr())
}

// sumBlock is how many columns one call of the sums takes.
const sumBlock = 64

func sumRowsU8(dst []uint32, src []uint8, lds, rows int) {
	if level != AVX512VNNI {
		sumRowsU8Generic(dst, src, lds, rows)
		return
	}
	args := elementArgs{n: rows, step: lds}
	for c := 0; c < len(dst); c += sumBlock {
		args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
		args.mask = 1<<min(len(dst)-c, sumBlock) - 1
		sumRowsU8AVX512(args.ptr())
	}
}

func sumRowsF32(dst, src []float32, lds, rows int) {
	if level != AVX512VNNI {
		sumRowsF32Generic(dst, src, lds, rows)
		return
	}
	args := elementArgs{n: rows, step: lds * 4}
	for c := 0; c < len(dst); c += sumBlock {
		args.dst, args.x = unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c])
		args.mask = 1<<min(len(dst)-c, sumBlock) - 1
		sumRowsF32AVX512(args.ptr())
	}
}
