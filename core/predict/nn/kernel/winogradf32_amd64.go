//go:build !purego

package kernel

import (
	"math"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// winogradColumns is the maximum number of output channels in one pass, so that the 16 products of a row of tiles stay in the L2 cache.
const winogradColumns = 128

// winogradF32Args holds the arguments of the transforms: fields of 8 bytes in the order of the wf… constants in asm/winogradf32.go.
type winogradF32Args struct {
	src    unsafe.Pointer
	step   int // bytes between input rows
	dst    unsafe.Pointer
	ldd    int // bytes between outputs
	row    int // bytes between output rows
	place  unsafe.Pointer
	next   int // bytes from one place to the next
	width  int // bytes of a place
	tiles  int
	bias   unsafe.Pointer
	lo, hi uint64
}

// packWinogradF32 transforms the weights w (n, 3, 3, c): U = G·g·Gᵀ, in float64. It returns nil at the generic
// level, and if n or c is not a multiple of 8.
func packWinogradF32(w []float32, n, c int) []winogradF32 {
	if Levels.Current() == cpu.Generic || n%8 != 0 || c%8 != 0 {
		return nil
	}
	var blocks []winogradF32
	for j := 0; j < n; j += winogradColumns {
		cols := min(winogradColumns, n-j)
		var places [16][]float32
		for k := range places {
			places[k] = make([]float32, cols*c)
		}
		for i := range cols * c {
			from := w[(j*9+i/c*9)*c+i%c:]
			var g [3][3]float64
			for t := range 9 {
				g[t/3][t%3] = float64(from[t*c])
			}
			for k, v := range winogradWeightsF32(&g) {
				places[k][i] = float32(v)
			}
		}
		var block winogradF32
		for k, u := range places {
			block[k] = *PackConvF32(u, nil, cols, 1, c)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// winogradWeightsF32 returns G·g·Gᵀ.
func winogradWeightsF32(g *[3][3]float64) (u [16]float64) {
	expand := func(a, b, c float64) [4]float64 { return [4]float64{a, (a + b + c) / 2, (a - b + c) / 2, c} }
	var rows [4][3]float64
	for x := range 3 {
		for i, v := range expand(g[0][x], g[1][x], g[2][x]) {
			rows[i][x] = v
		}
	}
	for i, r := range rows {
		for j, v := range expand(r[0], r[1], r[2]) {
			u[4*i+j] = v
		}
	}
	return u
}

// Scratch returns the number of elements of scratch that ConvRowsF32 needs for rows of m outputs, or 0 if it needs no scratch.
func (w *PackedF32) Scratch(m int) int {
	if w.winograd == nil || m < 2 {
		return 0
	}
	return 16 * ((m + 1) / 2) * (w.K/9 + min(w.N, winogradColumns))
}

func convRowsF32(dst []float32, ldd int, src []float32, stepX, srcStride, m int, r *Rows, w *PackedF32, lo, hi float32, scratch []float32) {
	c := w.K / 9
	size := w.Scratch(m)
	if size == 0 || len(scratch) < size || Levels.Current() == cpu.Generic || r.Rows < 2 || stepX != c || r.SrcStep != srcStride {
		convRowsF32Direct(dst, ldd, src, stepX, srcStride, m, r, w, lo, hi)
		return
	}
	tiles := (m + 1) / 2
	in, products := scratch[:16*tiles*c], scratch[16*tiles*c:size]
	inf := float32(math.Inf(1))
	for y := 0; y < r.Rows; y += 2 {
		y := min(y, r.Rows-2)
		args := winogradF32Args{step: srcStride * 4, ldd: ldd * 4, row: r.DstStep * 4, lo: bits(lo), hi: bits(hi)}
		args.next, args.width = tiles*c*4, c*4
		eachWinogradTile(m, func(x, tile, n int) {
			args.src, args.place, args.tiles = unsafe.Pointer(&src[y*srcStride+x*c]), unsafe.Pointer(&in[tile*c]), n
			winogradF32InAVX2((*byte)(unsafe.Pointer(&args)))
		})
		for b := range w.winograd {
			block, from := &w.winograd[b], b*winogradColumns
			cols := block[0].N
			for k := range block {
				gemmF32(products[k*tiles*cols:], cols, in[k*tiles*c:], c, 0, tiles, &block[k], nil, 0, -inf, inf)
			}
			args.next, args.width, args.bias = tiles*cols*4, cols*4, unsafe.Pointer(&w.Bias[from])
			eachWinogradTile(m, func(x, tile, n int) {
				args.dst, args.place, args.tiles = unsafe.Pointer(&dst[y*r.DstStep+x*ldd+from]), unsafe.Pointer(&products[tile*cols]), n
				winogradF32OutAVX2((*byte)(unsafe.Pointer(&args)))
			})
		}
	}
}

// eachWinogradTile calls f for runs of n tiles, of two outputs each, that begin at output x. tile is the index of the first tile. If m is
// odd, the last tile begins one output earlier and computes that output again.
func eachWinogradTile(m int, f func(x, tile, n int)) {
	f(0, 0, m/2)
	if m%2 == 1 {
		f(m-2, m/2, 1)
	}
}
