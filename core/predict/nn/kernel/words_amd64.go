//go:build !purego

package kernel

import (
	"slices"
	"sync"
	"unsafe"
)

// wordChunk is the number of activations, of two bytes each, that stay in cache while a product with AVX2 goes through the
// panels of the weights: a quarter of an L2 cache of 512 KB.
const wordChunk = 64 << 10

// words is the scratch memory of a product with AVX2, which multiplies words: rows of activations, one
// panel of weights and, if an add follows, the add's first operands.
type words struct {
	rows, panel []uint16
	sums        []uint8
}

var wordsPool = sync.Pool{New: func() any { return &words{rows: make([]uint16, wordChunk+panel)} }}

// wordProduct computes a byte product with AVX2. Its fields are the arguments of ConvRowsU8.
type wordProduct struct {
	dst               []uint8
	ldd               int
	src               []uint8
	lda, segStride, m int
	r                 *Rows
	w                 *PackedS8
	q                 *Requant
}

// depth returns the number of words in a row of widened activations.
func (p *wordProduct) depth() int { return p.w.Segs * p.w.seg4 * 4 }

// chunk returns the number of rows of n words that fit into wordChunk: a multiple of the tallest tile, and at least one tile.
func chunk(n int) int { return max(wordChunk/n/heightsAVX2[0], 1) * heightsAVX2[0] }

// run computes the product.
func (p *wordProduct) run() {
	s := wordsPool.Get().(*words)
	defer wordsPool.Put(s)
	total, step := p.m*p.r.Rows, chunk(p.depth())
	for i := 0; i < total; i += step {
		n := min(step, total-i)
		p.widen(s, i, n)
		p.multiply(s, i, n)
	}
}

// runAdd computes the product of one row of outputs. It applies add to each chunk while the chunk is in cache.
func (p *wordProduct) runAdd(add *Add) {
	s := wordsPool.Get().(*words)
	defer wordsPool.Put(s)
	n := p.w.N
	step := min(chunk(p.depth()), chunk(n))
	s.sums = slices.Grow(s.sums[:0], min(step, p.m)*n)[:min(step, p.m)*n]
	one := *p
	one.dst, one.ldd = s.sums, n
	for i := 0; i < p.m; i += step {
		rows := min(step, p.m-i)
		p.widen(s, i, rows)
		one.multiply(s, 0, rows)
		if p.ldd == n && add.LDR == n {
			addU8(p.dst[i*n:][:rows*n], s.sums, add.R[i*n:], add)
			continue
		}
		for row := range rows {
			addU8(p.dst[(i+row)*p.ldd:][:n], s.sums[row*n:], add.R[(i+row)*add.LDR:], add)
		}
	}
}

// at returns the index in src of the first input of result i. i counts results through all rows.
func (p *wordProduct) at(i int) int { return i/p.m*p.r.SrcStep + i%p.m*p.lda }

// widen sets s.rows to the widened inputs of results from to from+n-1.
func (p *wordProduct) widen(s *words, from, n int) {
	w, depth := p.w, p.depth()
	s.rows = slices.Grow(s.rows[:0], n*depth+panel)[:n*depth+panel]
	blocks := (w.Seg + panel - 1) / panel
	args := tileArgs{lda: p.lda, segStep: p.segStride, segs: w.Segs, k: blocks, ldc: w.seg4 * 8}
	need := (w.Segs-1)*p.segStride + blocks*panel
	for i := from; i < from+n; {
		at, to := p.at(i), s.rows[(i-from)*depth:]
		rows := min(from+n-i, p.m-i%p.m)
		for rows > 0 && at+(rows-1)*p.lda+need > len(p.src) {
			rows--
		}
		if rows > 0 {
			args.a, args.c, args.tiles = unsafe.Pointer(&p.src[at]), unsafe.Pointer(&to[0]), rows
			widenRowsAVX2(args.ptr())
			i += rows
			continue
		}
		// Complete blocks of 16 bytes would exceed src.
		for seg := range w.Segs {
			for t, v := range p.src[at+seg*p.segStride:][:w.Seg] {
				to[seg*w.seg4*4+t] = uint16(v)
			}
		}
		i++
	}
}

// multiply computes results from to from+n-1. Their widened inputs are in s.rows.
func (p *wordProduct) multiply(s *words, from, n int) {
	w, q, depth := p.w, p.q, p.depth()
	s.panel = slices.Grow(s.panel[:0], depth*panel)[:depth*panel]
	args := tileArgs{
		k: w.Segs * w.seg4, lda: depth * 2, bStep: w.panelBytes(),
		lo: uint64(q.Lo), hi: bits(float32(int32(q.Hi) - q.Zero)), zero: int(q.Zero),
	}
	width := p.m // number of consecutive results at equal distances
	if p.r.DstStep == p.m*p.ldd {
		width = p.m * p.r.Rows
	}
	for j := 0; j < w.N; j += panel {
		args.b, args.c = unsafe.Pointer(&w.b[j/panel*w.panelBytes()]), unsafe.Pointer(&s.panel[0])
		widenPanelAVX2(args.ptr())
		args.b = unsafe.Pointer(&s.panel[0])
		if w.N-j < panel {
			p.edge(s, &args, from, n, j)
			return
		}
		args.bias, args.scale, args.ldc = unsafe.Pointer(&q.Bias[j]), unsafe.Pointer(&q.Scale[j]), p.ldd
		for i := from; i < from+n; {
			rows := min(from+n-i, width-i%width)
			to := p.dst[i/width*p.r.DstStep+i%width*p.ldd+j:]
			tilesU8.block(rows, panel, &args, func(row int) {
				args.a, args.c = unsafe.Pointer(&s.rows[(i-from+row)*depth]), unsafe.Pointer(&to[row*p.ldd])
			})
			i += rows
		}
	}
}

// edgeRows is the number of rows of a narrow last panel that edge computes at a time, in a buffer: AVX2 cannot mask bytes.
const edgeRows = 30

// edge computes the same results as multiply for column j and the later ones: less than a panel.
func (p *wordProduct) edge(s *words, args *tileArgs, from, n, j int) {
	var bias [panel]int32
	var scale [panel]float32
	var out [edgeRows * panel]uint8
	cols := p.w.N - j
	copy(bias[:], p.q.Bias[j:p.w.N])
	copy(scale[:], p.q.Scale[j:p.w.N])
	args.bias, args.scale, args.ldc = unsafe.Pointer(&bias), unsafe.Pointer(&scale), panel
	for i := 0; i < n; i += edgeRows {
		rows := min(edgeRows, n-i)
		tilesU8.block(rows, cols, args, func(row int) {
			args.a, args.c = unsafe.Pointer(&s.rows[(i+row)*p.depth()]), unsafe.Pointer(&out[row*panel])
		})
		for row := range rows {
			y, x := (from+i+row)/p.m, (from+i+row)%p.m
			copy(p.dst[y*p.r.DstStep+x*p.ldd+j:][:cols], out[row*panel:])
		}
	}
}
