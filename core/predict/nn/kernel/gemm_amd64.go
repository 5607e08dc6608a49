//go:build !purego

package kernel

import (
	"math"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// gemmChunk is the number of bytes of a that stay in cache while a product goes through the panels of the weights.
const gemmChunk = 128 << 10

// columnMasks contains the masks for AVX2: the mask of n columns begins at index 16-n.
var columnMasks = [2 * panel]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// panelsPerTile returns the width of a tile of this level in panels.
func panelsPerTile() int {
	if Levels.Current() == cpu.AVX512VNNI {
		return 2
	}
	return 1
}

// eachPanels calls f for blocks of rows that stay in cache (a row of a has rowBytes)
// and, inside each block, for every tile's width of columns. A call covers rows i to
// i+rows-1 and columns j to j+cols-1.
func eachPanels(m, n, rowBytes int, f func(i, rows, j, cols int)) {
	wide := panelsPerTile() * panel
	chunk := max(gemmChunk/rowBytes/14, 1) * 14
	for i := 0; i < m; i += chunk {
		for j := 0; j < n; j += wide {
			f(i, min(chunk, m-i), j, min(wide, n-j))
		}
	}
}

// setColumns sets the masks for a tile of cols columns.
func (t *tileArgs) setColumns(cols int) {
	t.mask = 1<<cols - 1
	t.maskVec = nil
	if cols < panel {
		t.maskVec = unsafe.Pointer(&columnMasks[panel-cols])
	}
}

func gemmF32(dst []float32, ldd int, a []float32, lda, segStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	if Levels.Current() == cpu.Generic || w.K == 0 {
		gemmF32Generic(dst, ldd, a, lda, segStride, m, w, res, ldr, lo, hi)
		return
	}
	args := tileArgs{
		lda: lda * 4, segStep: segStride * 4, segs: w.Segs, k: w.Seg, bStep: w.K * panel * 4,
		ldc: ldd * 4, lo: bits(lo), hi: bits(hi), rows: 1,
	}
	if res != nil {
		args.ldr = ldr * 4
	}
	eachPanels(m, w.N, w.K*4, func(i, rows, j, cols int) {
		args.b = unsafe.Pointer(&w.b[j*w.K])
		args.next = unsafe.Pointer(&w.b[min((j+cols)*w.K, len(w.b)-1)])
		args.bias = unsafe.Pointer(&w.Bias[j])
		args.setColumns(cols)
		tilesF32.block(rows, cols, &args, func(row int) {
			args.a = unsafe.Pointer(&a[(i+row)*lda])
			args.c = unsafe.Pointer(&dst[(i+row)*ldd+j])
			if res != nil {
				args.res = unsafe.Pointer(&res[(i+row)*ldr+j])
			}
		})
	})
}

// safeRows returns the number of rows, at most m, that the assembly can compute. The assembly reads complete groups of four bytes and must
// not read past the end of a, which holds n bytes.
func safeRows(n, lda, segStride, m int, w *PackedS8) int {
	if Levels.Current() == cpu.Generic || w.K == 0 {
		return 0
	}
	if w.Seg%4 == 0 {
		return m
	}
	need := (w.Segs-1)*segStride + w.seg4*4
	for m > 0 && (m-1)*lda+need > n {
		m--
	}
	return m
}

func byteArgs(lda, segStride int, w *PackedS8) tileArgs {
	return tileArgs{lda: lda, segStep: segStride, segs: w.Segs, k: w.seg4, bStep: w.panelBytes(), rows: 1}
}

func gemmU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant) {
	if w.K == 0 || Levels.Current() == cpu.Generic {
		gemmU8Generic(dst, ldd, a, lda, segStride, m, w, q)
		return
	}
	gemmRowsU8(dst, ldd, a, lda, segStride, m, &Rows{Rows: 1}, w, q)
}

func gemmAddU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant, add *Add) {
	switch {
	case w.K > 0 && Levels.Current() == cpu.AVX512VNNI:
		l := lines{dst, a, ldd, lda, segStride, m, &Rows{Rows: 1}, w, q}
		l.runAdd(add)
	case w.K > 0 && Levels.Current() == cpu.AVX2:
		p := wordProduct{dst, ldd, a, lda, segStride, m, &Rows{Rows: 1}, w, q}
		p.runAdd(add)
	default:
		gemmAddGeneric(dst, ldd, a, lda, segStride, m, w, q, add)
	}
}

func gemmRowsU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, r *Rows, w *PackedS8, q *Requant) {
	switch {
	case w.canTile(lda, segStride, m, r):
		winogradU8(dst, ldd, a, lda, segStride, m, r, w, q)
	case w.K > 0 && Levels.Current() == cpu.AVX512VNNI:
		l := lines{dst, a, ldd, lda, segStride, m, r, w, q}
		l.run()
	case w.K > 0 && Levels.Current() == cpu.AVX2:
		p := wordProduct{dst, ldd, a, lda, segStride, m, r, w, q}
		p.run()
	default:
		gemmRowsGeneric(dst, ldd, a, lda, segStride, m, r, w, q)
	}
}

// noBias is the bias of zeros for gemvU16's tiles. It is as wide as one tile.
var noBias [2 * panel]int32

// gemvU16 splits a into low and high bytes. They are the two rows of one exact product, which gemvU16 then combines.
func gemvU16(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	const maxBytes = 4096
	k4 := w.seg4 * 4
	if Levels.Current() == cpu.Generic || w.K == 0 || 2*k4 > maxBytes || w.K > math.MaxInt32/(255*128) {
		gemvU16Generic(dst, a, w, bias)
		return
	}
	var bytes [maxBytes]uint8
	for k, v := range a {
		bytes[k] = uint8(v)
		bytes[k4+k] = uint8(v >> 8)
	}
	const widest = 2 * panel
	var acc [2 * widest]int32
	args := byteArgs(k4, 0, w)
	args.a, args.c, args.ldc = unsafe.Pointer(&bytes), unsafe.Pointer(&acc), 4*widest
	args.bias, args.tiles = unsafe.Pointer(&noBias), 1
	wide := panelsPerTile() * panel
	for j := 0; j < w.N; j += wide {
		cols := min(wide, w.N-j)
		args.b = unsafe.Pointer(&w.b[j/panel*w.panelBytes()])
		args.setColumns(cols)
		args.sums(cols)
		for c := range cols {
			dst[j+c] = int64(acc[c]) + int64(acc[widest+c])<<8
			if bias != nil {
				dst[j+c] += int64(bias[j+c])
			}
		}
	}
}
