//go:build !purego

package kernel

import "unsafe"

// maxTaps is the largest kernel the assembly takes; larger ones are left to the
// generic code.
const maxTaps = 128

func depthwiseF32(dst, src []float32, srcStride, width, strideX, dilationX int, w *DepthwiseF32, lo, hi float32) {
	taps := w.KH * w.KW
	if level != AVX512VNNI || taps == 0 || taps > maxTaps {
		depthwiseF32Generic(dst, src, srcStride, width, strideX, dilationX, w, lo, hi)
		return
	}
	args := rowArgs{
		step: srcStride * 4, col: dilationX * w.C * 4, next: strideX * w.C * 4, out: w.C * 4,
		width: width, count: taps, lo: bits(lo), hi: bits(hi),
	}
	three := w.KH == 3 && w.KW == 3
	block := 32
	var offsets [maxTaps]int
	if !three {
		block = 64
		for t := range taps {
			offsets[t] = t/w.KW*args.step + t%w.KW*args.col
		}
		args.taps = &offsets[0]
	}
	for c, n := 0, 0; c < w.C; c += n {
		if n = block; w.C-c <= 16 {
			n = 16
		}
		args.mask = 1<<min(n, w.C-c) - 1
		args.src, args.dst = unsafe.Pointer(&src[c]), unsafe.Pointer(&dst[c])
		args.w, args.bias = unsafe.Pointer(&w.w[c]), unsafe.Pointer(&w.Bias[c])
		switch p := args.ptr(); {
		case three && n == 32:
			depthwiseF32Threex32AVX512(p)
		case three:
			depthwiseF32Threex16AVX512(p)
		case n == 64:
			depthwiseF32Tapsx64AVX512(p)
		default:
			depthwiseF32Tapsx16AVX512(p)
		}
	}
}

func depthwiseU8(dst, src []uint8, srcStride, width, strideX, dilationX int, w *DepthwiseS8, q *Requant) {
	if level != AVX512VNNI || len(w.groups) == 0 || len(w.groups)*4 > maxTaps {
		depthwiseU8Generic(dst, src, srcStride, width, strideX, dilationX, w, q)
		return
	}
	args := rowArgs{
		step: srcStride, col: dilationX * w.C, next: strideX * w.C, out: w.C, width: width, count: len(w.groups),
		lo: uint64(q.Lo), hi: bits(float32(int32(q.Hi) - q.Zero)), zero: int(q.Zero),
	}
	var offsets [maxTaps]int
	three := 0 // the stride, where the kernel is 3x3 and its columns touch
	if w.KH == 3 && w.KW == 3 && dilationX == 1 && (strideX == 1 || strideX == 2) {
		three = strideX
	} else {
		for g, group := range w.groups {
			for i, t := range group {
				t = max(t, 0)
				offsets[g*4+i] = t/w.KW*args.step + t%w.KW*args.col
			}
		}
		args.taps = &offsets[0]
	}
	var bias [16]int32
	var scale [16]float32
	for c, lanes := 0, 0; c < w.C; c += 16 * lanes {
		lanes = blockLanes(w.C - c)
		args.src, args.dst = unsafe.Pointer(&src[c]), unsafe.Pointer(&dst[c])
		args.w = unsafe.Pointer(&w.quads[c*len(w.groups)*4])
		args.bias, args.scale = unsafe.Pointer(&q.Bias[c]), unsafe.Pointer(&q.Scale[c])
		args.mask = 1<<min(16, w.C-c) - 1
		if w.C-c < 16 {
			copy(bias[:], q.Bias[c:w.C])
			copy(scale[:], q.Scale[c:w.C])
			args.bias, args.scale = unsafe.Pointer(&bias), unsafe.Pointer(&scale)
		}
		runDepthwiseU8(three, lanes, args.ptr())
	}
}

func runDepthwiseU8(three, lanes int, p *byte) {
	switch three*8 + lanes {
	case 4:
		depthwiseU8Tapsx64AVX512(p)
	case 2:
		depthwiseU8Tapsx32AVX512(p)
	case 1:
		depthwiseU8Tapsx16AVX512(p)
	case 8 + 4:
		depthwiseU8Three1x64AVX512(p)
	case 8 + 2:
		depthwiseU8Three1x32AVX512(p)
	case 8 + 1:
		depthwiseU8Three1x16AVX512(p)
	case 16 + 4:
		depthwiseU8Three2x64AVX512(p)
	case 16 + 2:
		depthwiseU8Three2x32AVX512(p)
	case 16 + 1:
		depthwiseU8Three2x16AVX512(p)
	}
}
