//go:build !purego

package kernel

import (
	"math"
	"unsafe"
)

// lines computes a byte product with AVX-512: r.Rows rows of m results each. The fields are arguments of ConvRowsU8.
type lines struct {
	dst, a         []uint8
	ldd, lda, segs int // elements between results, between the inputs of results, between segments
	m              int
	r              *Rows
	w              *PackedS8
	q              *Requant
}

// run computes the product. The generic code computes results at the end of a whose last group of four bytes would exceed a.
func (l *lines) run() {
	rows := l.r.Rows
	for rows > 0 && l.safe(rows-1) < l.m {
		rows--
	}
	args := l.args()
	if l.q.packs(l.w.N) {
		args.form = formPacked
	}
	l.tiles(args, 0, rows, l.m)
	for y := rows; y < l.r.Rows; y++ {
		safe := l.safe(y)
		l.tiles(args, y, 1, safe)
		if safe < l.m {
			d, x := y*l.r.DstStep+safe*l.ldd, y*l.r.SrcStep+safe*l.lda
			gemmU8Generic(l.dst[d:], l.ldd, l.a[x:], l.lda, l.segs, l.m-safe, l.w, l.q)
		}
	}
}

// safe returns the number of results of row y that the tiles can compute without reading past a.
func (l *lines) safe(y int) int { return safeRows(len(l.a)-y*l.r.SrcStep, l.lda, l.segs, l.m, l.w) }

// runAdd computes the product of one row and the residual add.
func (l *lines) runAdd(add *Add) {
	if l.w.Seg%4 != 0 || add.ZeroY != l.q.Zero {
		gemmAddGeneric(l.dst, l.ldd, l.a, l.lda, l.segs, l.m, l.w, l.q, add)
		return
	}
	args := l.args()
	sum := addArgs{
		scaleY: bits(add.ScaleY), scaleR: bits(add.ScaleR), loY: bits(float32(int32(l.q.Lo) - l.q.Zero)), zeroR: int(add.ZeroR),
		lo: uint64(add.Lo), hi: bits(float32(int32(add.Hi) - add.Zero)), zero: int(add.Zero),
	}
	args.form, args.add, args.residual, args.ldr = formAdd, &sum, add.R, add.LDR
	l.tiles(args, 0, 1, l.m)
}

func (l *lines) args() tileArgs {
	args := byteArgs(l.lda, l.segs, l.w)
	args.ldc = l.ldd
	args.lo, args.hi, args.zero = uint64(l.q.Lo), bits(float32(int32(l.q.Hi)-l.q.Zero)), int(l.q.Zero)
	return args
}

// packs reports whether saturation alone clamps the results of n columns as q requires: Lo is 0, Hi is 255 and all absolute scales are
// below 1. Then no product of a sum and a scale overflows an int32.
func (q *Requant) packs(n int) bool {
	const one, sign = 0x3f800000, 1 << 31
	var top uint32
	for _, s := range q.Scale[:n] {
		top = max(top, math.Float32bits(s)&^sign)
	}
	return top < one && q.Lo == 0 && q.Hi == 255
}

// tiles computes the first m results of rows y to y+rows-1. It works in blocks of rows, or of results of a single row,
// whose inputs fit in the L2 cache. Inside a block it computes one tile's width of columns at a time.
func (l *lines) tiles(args tileArgs, y, rows, m int) {
	const wide = 2 * panel
	at := max(1, gemmChunk/max(1, l.r.SrcStep))
	width := m
	if rows <= 1 {
		width = max(gemmChunk/l.w.K/14, 1) * 14
	}
	for ; rows > 0; y, rows = y+at, rows-at {
		for i := 0; i < m; i += width {
			for j := 0; j < l.w.N; j += wide {
				l.column(args, y, min(at, rows), i, min(width, m-i), j, min(wide, l.w.N-j))
			}
		}
	}
}

// column computes results i to i+m-1 of rows y to y+rows-1 in columns j to j+cols-1. It covers the results with tiles, the tallest first.
func (l *lines) column(args tileArgs, y, rows, i, m, j, cols int) {
	size := l.w.panelBytes()
	args.b = unsafe.Pointer(&l.w.b[j/panel*size])
	args.next = unsafe.Pointer(&l.w.b[min((j+cols)/panel*size, len(l.w.b)-1)])
	args.setColumns(cols)
	args.bias, args.scale = unsafe.Pointer(&l.q.Bias[j]), unsafe.Pointer(&l.q.Scale[j])
	args.rows = rows
	for _, h := range heights {
		n := m / h
		if n == 0 {
			continue
		}
		args.tiles = n
		args.a = unsafe.Pointer(&l.a[y*l.r.SrcStep+i*l.lda])
		args.c = unsafe.Pointer(&l.dst[y*l.r.DstStep+i*l.ldd+j])
		if args.add != nil {
			args.res = unsafe.Pointer(&args.residual[i*args.ldr+j])
		}
		args.rowA, args.rowC = l.r.SrcStep-n*h*l.lda, l.r.DstStep-n*h*l.ldd
		runU8(h, (cols+panel-1)/panel, args.ptr())
		i, m = i+n*h, m-n*h
	}
}
