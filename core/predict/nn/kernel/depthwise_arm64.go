//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// maxTaps is the maximum number of taps of a kernel in assembly. The generic code computes
// larger kernels.
const maxTaps = 128

// depthwiseU8 computes all rows of 16 channels at a time in assembly. The generic code computes the remaining channels.
func depthwiseU8(dst, src []uint8, d *Depthwise, w *DepthwiseS8, q *Requant) {
	taps := w.KH * w.KW
	if Levels.Current() == cpu.Generic || taps == 0 || taps > maxTaps {
		depthwiseU8Generic(dst, src, d, w, 0, q)
		return
	}
	args := rowArgs{
		step: d.SrcStride, next: d.StrideX * w.C, out: w.C, width: d.Width, rows: d.Rows, srcStep: d.SrcStep, dstStep: d.DstStep,
		lo: int(q.Lo), hi: int(q.Hi), zero: int(q.Zero), clamp: q.clamps(),
	}
	dots := Levels.Current() != cpu.NEON
	three := 0 // stride of a 3×3 kernel with adjacent columns; 0: another kernel
	var offsets [maxTaps + 3]int
	at := func(tap int) int { return tap/w.KW*d.SrcStride + tap%w.KW*d.DilationX*w.C }
	switch {
	case dots && w.KH == 3 && w.KW == 3 && d.DilationX == 1 && (d.StrideX == 1 || d.StrideX == 2):
		three = d.StrideX
	case dots:
		for g, group := range w.groups {
			for i, tap := range group {
				offsets[g*4+i] = at(max(tap, 0))
			}
		}
		args.taps, args.count = &offsets[0], len(w.groups)
	default:
		for t := range taps {
			offsets[t] = at(t)
		}
		args.taps, args.count = &offsets[0], (taps+2)/3
	}
	end := w.C / panel * panel
	for c := 0; c < end; c += panel {
		args.src, args.dst = unsafe.Pointer(&src[c]), unsafe.Pointer(&dst[c])
		args.bias, args.scale, args.lift = unsafe.Pointer(&q.Bias[c]), unsafe.Pointer(&q.Scale[c]), unsafe.Pointer(&w.lift[c])
		if dots {
			args.w = unsafe.Pointer(&w.quads[c*len(w.groups)*4])
		} else {
			args.w = unsafe.Pointer(&w.words[c*args.count*3])
		}
		runDepthwise(dots, three, args.ptr())
	}
	if end < w.C {
		depthwiseU8Generic(dst, src, d, w, end, q)
	}
}

func runDepthwise(dots bool, three int, p *byte) {
	switch {
	case three == 1:
		depthwiseU8Three1DotProd(p)
	case three == 2:
		depthwiseU8Three2DotProd(p)
	case dots:
		depthwiseU8TapsDotProd(p)
	default:
		depthwiseU8TapsNEON(p)
	}
}
