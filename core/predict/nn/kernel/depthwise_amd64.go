//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// maxTaps is the maximum number of taps of a kernel in assembly. The generic code computes
// larger kernels.
const maxTaps = 128

// rowOffsets holds the byte offset of each tap from the first input of an output.
type rowOffsets [maxTaps]int

func (o *rowOffsets) set(i, tap, kw int, args *rowArgs) {
	o[i] = tap/kw*args.step + tap%kw*args.col
}

// depthwiseChunk is the maximum number of input bytes that one pass over the channels covers. They must fit in a part of the L2 cache,
// because the pass reads them again for every block of channels.
const depthwiseChunk = 256 << 10

// eachChunk calls f for runs of output rows, with the offsets of a run's first input and output and its number of rows. An element has size
// bytes.
func (d *Depthwise) eachChunk(size int, f func(src, dst, rows int)) {
	rows := max(1, depthwiseChunk/max(1, d.SrcStep*size))
	for y := 0; y < d.Rows; y += rows {
		f(y*d.SrcStep, y*d.DstStep, min(rows, d.Rows-y))
	}
}

// args returns arguments with the geometry of d for c channels of size bytes each.
func (d *Depthwise) args(c, size int) rowArgs {
	return rowArgs{
		step: d.SrcStride * size, col: d.DilationX * c * size, next: d.StrideX * c * size, out: c * size,
		width: d.Width, rows: d.Rows, srcStep: d.SrcStep * size, dstStep: d.DstStep * size,
	}
}

func depthwiseF32(dst, src []float32, d *Depthwise, w *DepthwiseF32, lo, hi float32) {
	taps := w.KH * w.KW
	if Levels.Current() == cpu.Generic || taps == 0 || taps > maxTaps {
		depthwiseF32Generic(dst, src, d, w, 0, lo, hi)
		return
	}
	args := d.args(w.C, 4)
	args.count, args.lo, args.hi = taps, bits(lo), bits(hi)
	var offsets rowOffsets
	three := w.KH == 3 && w.KW == 3
	if !three {
		for t := range taps {
			offsets.set(t, t, w.KW, &args)
		}
		args.taps = &offsets[0]
	}
	block := 64
	switch {
	case Levels.Current() == cpu.AVX2:
		block = 8
	case three:
		block = 32
	}
	c := 0
	d.eachChunk(4, func(s, o, rows int) {
		args.rows = rows
		n := 0
		for c = 0; c < w.C; c += n {
			n = block
			if Levels.Current() == cpu.AVX2 && w.C-c < n {
				break
			}
			if Levels.Current() != cpu.AVX2 && w.C-c <= 16 {
				n = 16
			}
			args.mask = 1<<min(n, w.C-c) - 1
			args.src, args.dst = unsafe.Pointer(&src[s+c]), unsafe.Pointer(&dst[o+c])
			args.w, args.bias = unsafe.Pointer(&w.w[c]), unsafe.Pointer(&w.Bias[c])
			runDepthwiseF32(three, n, args.ptr())
		}
	})
	if c < w.C {
		depthwiseF32Generic(dst, src, d, w, c, lo, hi)
	}
}

func runDepthwiseF32(three bool, channels int, p *byte) {
	switch {
	case three && channels == 32:
		depthwiseF32Threex32AVX512(p)
	case three && channels == 16:
		depthwiseF32Threex16AVX512(p)
	case three:
		depthwiseF32Threex8AVX2(p)
	case channels == 64:
		depthwiseF32Tapsx64AVX512(p)
	case channels == 16:
		depthwiseF32Tapsx16AVX512(p)
	default:
		depthwiseF32Tapsx8AVX2(p)
	}
}

func depthwiseU8(dst, src []uint8, d *Depthwise, w *DepthwiseS8, q *Requant) {
	taps := w.KH * w.KW
	if Levels.Current() == cpu.Generic || taps == 0 || taps > maxTaps {
		depthwiseU8Generic(dst, src, d, w, 0, q)
		return
	}
	args := d.args(w.C, 1)
	args.lo, args.hi, args.zero = uint64(q.Lo), bits(float32(int32(q.Hi)-q.Zero)), int(q.Zero)
	if Levels.Current() == cpu.AVX512VNNI {
		depthwiseU8AVX512(dst, src, d, w, q, args)
		return
	}
	depthwiseU8AVX2(dst, src, d, w, q, args)
}

func depthwiseU8AVX2(dst, src []uint8, d *Depthwise, w *DepthwiseS8, q *Requant, args rowArgs) {
	columns := hasColumns(w.KH, w.KW) && d.DilationX == 1 && (d.StrideX == 1 || d.StrideX == 2)
	args.count = len(w.couples)
	var offsets rowOffsets
	if !columns {
		for i, pair := range w.couples {
			for half, t := range pair {
				offsets.set(2*i+half, max(t, 0), w.KW, &args)
			}
		}
		args.taps = &offsets[0]
	}
	c := 0
	d.eachChunk(1, func(s, o, rows int) {
		args.rows = rows
		for c = 0; c+16 <= w.C; c += 16 {
			args.src, args.dst = unsafe.Pointer(&src[s+c]), unsafe.Pointer(&dst[o+c])
			args.w = unsafe.Pointer(&w.pairs[c/16*args.count*32])
			args.bias, args.scale = unsafe.Pointer(&q.Bias[c]), unsafe.Pointer(&q.Scale[c])
			if columns {
				runColumns(w.KH, d.StrideX, args.ptr())
			} else {
				depthwiseU8Tapsx16AVX2(args.ptr())
			}
		}
	})
	if c < w.C {
		depthwiseU8Generic(dst, src, d, w, c, q)
	}
}

func runColumns(side, stride int, p *byte) {
	switch {
	case side == 3 && stride == 1:
		depthwiseU8Columns3Stride1AVX2(p)
	case side == 3:
		depthwiseU8Columns3Stride2AVX2(p)
	case stride == 1:
		depthwiseU8Columns5Stride1AVX2(p)
	default:
		depthwiseU8Columns5Stride2AVX2(p)
	}
}

func depthwiseU8AVX512(dst, src []uint8, d *Depthwise, w *DepthwiseS8, q *Requant, args rowArgs) {
	var offsets rowOffsets
	args.count = len(w.groups)
	three := 0 // stride of a 3×3 kernel with adjacent columns; 0: another kernel
	if w.KH == 3 && w.KW == 3 && d.DilationX == 1 && (d.StrideX == 1 || d.StrideX == 2) {
		three = d.StrideX
	} else {
		for g, group := range w.groups {
			for i, t := range group {
				offsets.set(g*4+i, max(t, 0), w.KW, &args)
			}
		}
		args.taps = &offsets[0]
	}
	var bias [16]int32
	var scale [16]float32
	d.eachChunk(1, func(s, o, rows int) {
		args.rows = rows
		for c, lanes := 0, 0; c < w.C; c += 16 * lanes {
			lanes = blockLanes(w.C - c)
			args.src, args.dst = unsafe.Pointer(&src[s+c]), unsafe.Pointer(&dst[o+c])
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
	})
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
