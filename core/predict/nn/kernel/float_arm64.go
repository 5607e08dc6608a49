//go:build !purego

package kernel

import (
	"math"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// floatBits returns the bits of a float32 bound for a field that the assembly reads.
func floatBits(v float32) int { return int(math.Float32bits(v)) }

func gemmF32(dst []float32, ldd int, a []float32, lda, segStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	if Levels.Current() == cpu.Generic || w.K == 0 {
		gemmF32Generic(dst, ldd, a, lda, segStride, m, w, res, ldr, lo, hi)
		return
	}
	args := tileArgs{lda: lda * 4, segStep: segStride * 4, segs: w.Segs, k: w.Seg / 4, tail: w.Seg % 4}
	var bias [panel]float32
	var tmp [edgeRows * panel]float32
	chunk := max(1, gemmChunk/(4*w.K)/4) * 4
	for i := 0; i < m; i += chunk {
		rows := min(chunk, m-i)
		for j := 0; j < w.N; j += panel {
			args.b = unsafe.Pointer(&w.b[j*w.K])
			if j+panel <= w.N {
				args.bias, args.ldc, args.zero = unsafe.Pointer(&w.Bias[j]), ldd*4, ldr*4
				args.lo, args.hi = floatBits(lo), floatBits(hi)
				args.blockF32(rows, func(row int) {
					args.a, args.c = unsafe.Pointer(&a[(i+row)*lda]), unsafe.Pointer(&dst[(i+row)*ldd+j])
					if args.lift = nil; res != nil {
						args.lift = unsafe.Pointer(&res[(i+row)*ldr+j])
					}
				})
				continue
			}
			cols := copy(bias[:], w.Bias[j:])
			args.bias, args.ldc, args.lift = unsafe.Pointer(&bias), panel*4, nil
			args.lo, args.hi = floatBits(float32(math.Inf(-1))), floatBits(float32(math.Inf(1)))
			for r := 0; r < rows; r += edgeRows {
				n := min(edgeRows, rows-r)
				args.blockF32(n, func(row int) {
					args.a, args.c = unsafe.Pointer(&a[(i+r+row)*lda]), unsafe.Pointer(&tmp[row*panel])
				})
				for row := range n {
					out := dst[(i+r+row)*ldd+j:][:cols]
					for c, v := range tmp[row*panel:][:cols] {
						if res != nil {
							v += res[(i+r+row)*ldr+j+c]
						}
						out[c] = clamp(v, lo, hi)
					}
				}
			}
		}
	}
}

// blockF32 does for float products what block does for byte products.
func (t *tileArgs) blockF32(m int, at func(row int)) {
	row := 0
	for _, height := range tileHeights {
		if n := (m - row) / height; n > 0 {
			t.tiles = n
			at(row)
			switch height {
			case 4:
				gemmF32Tile4x16NEON(t.ptr())
			case 2:
				gemmF32Tile2x16NEON(t.ptr())
			default:
				gemmF32Tile1x16NEON(t.ptr())
			}
			row += n * height
		}
	}
}

// depthwiseF32 computes all rows of 16 channels at a time in assembly. The generic code computes the remaining channels.
func depthwiseF32(dst, src []float32, d *Depthwise, w *DepthwiseF32, lo, hi float32) {
	taps := w.KH * w.KW
	if Levels.Current() == cpu.Generic || taps == 0 || taps > maxTaps {
		depthwiseF32Generic(dst, src, d, w, 0, lo, hi)
		return
	}
	var offsets [maxTaps]int
	for t := range taps {
		offsets[t] = 4 * (t/w.KW*d.SrcStride + t%w.KW*d.DilationX*w.C)
	}
	args := rowArgs{
		next: 4 * d.StrideX * w.C, out: 4 * w.C, width: d.Width, rows: d.Rows, srcStep: 4 * d.SrcStep, dstStep: 4 * d.DstStep,
		taps: &offsets[0], count: taps, lo: floatBits(lo), hi: floatBits(hi),
	}
	end := w.C / panel * panel
	for c := 0; c < end; c += panel {
		args.src, args.dst = unsafe.Pointer(&src[c]), unsafe.Pointer(&dst[c])
		args.w, args.bias = unsafe.Pointer(&w.w[c]), unsafe.Pointer(&w.Bias[c])
		depthwiseF32TapsNEON(args.ptr())
	}
	if end < w.C {
		depthwiseF32Generic(dst, src, d, w, end, lo, hi)
	}
}
