//go:build !purego

package kernel

import (
	"math"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

// gemmChunk is the approximate number of bytes of a that a product multiplies by all panels of the weights while they are in the cache.
const gemmChunk = 128 << 10

// tileColumns returns the number of columns of a tile at the current level.
func tileColumns() int {
	switch Levels.Current() {
	case cpu.DotProd:
		return 2 * panel
	case cpu.I8MM:
		return panel
	}
	return panel / 2
}

// setColumns points the assembly at the weights of column j and later ones. A tile of two panels reads the last panel twice.
func (t *tileArgs) setColumns(w *PackedS8, j int) {
	t.lift = unsafe.Pointer(&w.lift[j])
	if Levels.Current() == cpu.DotProd {
		t.k, t.tail, t.bStep = w.seg4/4, w.seg4%4, w.panelBytes()
		t.b = unsafe.Pointer(&w.b[j/panel*t.bStep])
		if j+panel >= w.N {
			t.bStep = 0
		}
		return
	}
	seg8 := w.seg8()
	if Levels.Current() == cpu.NEON {
		t.tail = seg8 % 4
		t.b, t.chains = unsafe.Pointer(&w.blocks[j*w.Segs*seg8*8]), unsafe.Pointer(&w.chains[j/8*w.Segs*(seg8/4+1)])
		return
	}
	t.k, t.tail = seg8/2, seg8%2
	t.b = unsafe.Pointer(&w.eights[j/panel*w.Segs*seg8*panel*8])
}

// safeRows returns the number of the m rows that assembly may read. Assembly reads whole groups of bytes, and must not read beyond the end
// of a, which has n bytes.
func safeRows(n, lda, segStride, m int, w *PackedS8) int {
	if Levels.Current() == cpu.Generic || w.K == 0 {
		return 0
	}
	size := w.seg4 * 4
	if Levels.Current() != cpu.DotProd {
		size = w.seg8() * 8
	}
	if size == w.Seg {
		return m
	}
	need := (w.Segs-1)*segStride + size
	for m > 0 && (m-1)*lda+need > n {
		m--
	}
	return m
}

// edgeRows is the number of rows of a narrow last panel that gemmRowsU8 computes into a temporary buffer at once.
const edgeRows = 32

func gemmU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant) {
	gemmRowsU8(dst, ldd, a, lda, segStride, m, &Rows{Rows: 1}, w, q)
}

func gemmRowsU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, r *Rows, w *PackedS8, q *Requant) {
	if w.canTile(lda, segStride, m, r) {
		winogradU8(dst, ldd, a, lda, segStride, m, r, w, q)
		return
	}
	safe := safeRows(len(a)-(r.Rows-1)*r.SrcStep, lda, segStride, m, w) // safe in the last of r.Rows, and so in each
	if safe < m {
		for y := range r.Rows {
			gemmU8Generic(dst[y*r.DstStep+safe*ldd:], ldd, a[y*r.SrcStep+safe*lda:], lda, segStride, m-safe, w, q)
		}
	}
	args := tileArgs{
		lda: lda, segStep: segStride, segs: w.Segs, lo: int(q.Lo), hi: int(q.Hi), zero: int(q.Zero), clamp: q.clamps(),
		srcStep: r.SrcStep, dstStep: r.DstStep,
	}
	var bias [panel]int32
	var scale [panel]float32
	var tmp [edgeRows * panel]uint8
	w.eachBlock(r.Rows, safe, func(from, rows, x, m, j, cols int) {
		args.setColumns(w, j)
		aligned := cols%min(panel, tileColumns()) == 0
		if aligned {
			args.bias, args.scale, args.ldc = unsafe.Pointer(&q.Bias[j]), unsafe.Pointer(&q.Scale[j]), ldd
		} else {
			copy(bias[:], q.Bias[j:j+cols])
			copy(scale[:], q.Scale[j:j+cols])
			args.bias, args.scale, args.ldc = unsafe.Pointer(&bias), unsafe.Pointer(&scale), panel
		}
		args.rows = 1
		if aligned && Levels.Current() == cpu.NEON {
			args.rows = rows
		}
		for y := from; y < from+rows; y += args.rows {
			in, out := a[y*r.SrcStep+x*lda:], dst[y*r.DstStep+x*ldd+j:]
			if aligned {
				args.block(m, cols, w.extreme, func(row int) {
					args.a, args.c = unsafe.Pointer(&in[row*lda]), unsafe.Pointer(&out[row*ldd])
				})
				continue
			}
			for i := 0; i < m; i += edgeRows {
				n := min(edgeRows, m-i)
				args.block(n, panel, w.extreme, func(row int) {
					args.a, args.c = unsafe.Pointer(&in[(i+row)*lda]), unsafe.Pointer(&tmp[row*panel])
				})
				for row := range n {
					copy(out[(i+row)*ldd:][:cols], tmp[row*panel:])
				}
			}
		}
	})
}

// eachBlock calls f for blocks of rows of m outputs whose inputs stay in cache and, inside each, for every tile's width of columns. A
// block begins with row from, and in each row with output x and column j. If a tile of two panels does not fit, it has one panel.
func (w *PackedS8) eachBlock(rows, m int, f func(from, rows, x, m, j, cols int)) {
	if m == 0 {
		return
	}
	high, wide := max(1, gemmChunk/(w.K*m)), max(1, gemmChunk/w.K/12)*12
	for y := 0; y < rows; y += high {
		for x := 0; x < m; x += wide {
			cols := 0
			for j := 0; j < w.N; j += cols {
				cols = min(tileColumns(), w.N-j)
				if cols > panel && cols < 2*panel {
					cols = panel
				}
				f(y, min(high, rows-y), x, min(wide, m-x), j, cols)
			}
		}
	}
}

// block computes m rows of cols columns, in runs of tiles of the same height, the tallest first. at sets the pointers of t for the first
// row of each run.
func (t *tileArgs) block(m, cols int, extreme bool, at func(row int)) {
	row := 0
	for _, height := range heights(cols) {
		if n := (m - row) / height; n > 0 {
			t.tiles = n
			at(row)
			t.run(height, cols, extreme)
			row += n * height
		}
	}
}

// heights returns the possible heights of tiles of cols columns, tallest first.
func heights(cols int) []int {
	switch {
	case Levels.Current() == cpu.NEON:
		return tileHeights[1:]
	case cols > panel:
		return pairHeights[:]
	}
	return tileHeights[:]
}

var (
	tileHeights = [...]int{4, 2, 1}
	pairHeights = [...]int{3, 2, 1}
)

// run computes t.tiles tiles of height rows and cols columns.
func (t *tileArgs) run(height, cols int, extreme bool) {
	switch {
	case Levels.Current() == cpu.I8MM:
		runI8MM(height, t.ptr())
	case Levels.Current() == cpu.NEON:
		runNEON(height, extreme, t.ptr())
	case cols > panel:
		runDots2(height, t.ptr())
	default:
		runDots(height, t.ptr())
	}
}

func runDots2(height int, p *byte) {
	switch height {
	case 3:
		gemmU8Tile3x32DotProd(p)
	case 2:
		gemmU8Tile2x32DotProd(p)
	default:
		gemmU8Tile1x32DotProd(p)
	}
}

func runDots(height int, p *byte) {
	switch height {
	case 4:
		gemmU8Tile4x16DotProd(p)
	case 2:
		gemmU8Tile2x16DotProd(p)
	default:
		gemmU8Tile1x16DotProd(p)
	}
}

func runI8MM(height int, p *byte) {
	switch height {
	case 4:
		gemmU8Tile4x16I8MM(p)
	case 2:
		gemmU8Tile2x16I8MM(p)
	default:
		gemmU8Tile1x16I8MM(p)
	}
}

func runNEON(height int, extreme bool, p *byte) {
	switch {
	case extreme && height == 2:
		gemmU8Wide2x8NEON(p)
	case extreme:
		gemmU8Wide1x8NEON(p)
	case height == 2:
		gemmU8Tile2x8NEON(p)
	default:
		gemmU8Tile1x8NEON(p)
	}
}

func gemmAddU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant, add *Add) {
	gemmAddGeneric(dst, ldd, a, lda, segStride, m, w, q, add)
}

// noBias is the bias of a product whose bias is added later. It is as wide as one tile.
var noBias [2 * panel]int32

// gemvU16 splits a into its low and high bytes, and multiplies both by w as two rows of one exact product.
func gemvU16(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	const maxBytes = 4096
	k8 := w.seg8() * 8
	if Levels.Current() == cpu.Generic || w.K == 0 || 2*k8 > maxBytes || w.K > math.MaxInt32/(255*128) {
		gemvU16Generic(dst, a, w, bias)
		return
	}
	var bytes [maxBytes]uint8
	for k, v := range a {
		bytes[k] = uint8(v)
		bytes[k8+k] = uint8(v >> 8)
	}
	const widest = 2 * panel
	var acc [2 * widest]int32
	args := tileArgs{
		a: unsafe.Pointer(&bytes), c: unsafe.Pointer(&acc), ldc: 4 * widest, lda: k8, segs: 1, tiles: 1, rows: 1,
		bias: unsafe.Pointer(&noBias),
	}
	wide := tileColumns()
	for j := 0; j < w.N; j += wide {
		args.setColumns(w, j)
		args.sums()
		for c := range min(wide, w.N-j) {
			dst[j+c] = int64(acc[c]) + int64(acc[widest+c])<<8
			if bias != nil {
				dst[j+c] += int64(bias[j+c])
			}
		}
	}
}

// sums computes a tile of two rows. Its results are the int32 sums, not bytes.
func (t *tileArgs) sums() {
	switch Levels.Current() {
	case cpu.DotProd:
		gemmI32Tile2x32DotProd(t.ptr())
	case cpu.I8MM:
		gemmI32Tile2x16I8MM(t.ptr())
	default:
		gemmI32Wide2x8NEON(t.ptr())
	}
}
