//go:build !purego && (amd64 || arm64)

package kernel

import "unsafe"

// Sizes of the scratch for transformed windows in elements: the distance between two of the 36 places (as in the generators of the
// assembly), and the number of elements in use at each place.
const (
	winogradStep = (1024 + 64) / 2
	winogradRoom = 1024 / 2
)

// winogradArgs are the arguments of the assembly: fields of 8 bytes in the order of the wi… constants of asm/winograd.go and of
// asm/arm64/winograd.go.
type winogradArgs struct {
	src         unsafe.Pointer
	row         int // bytes between rows of src
	c, pitch    int
	tiles       int
	v, u        unsafe.Pointer
	uStep       int // bytes between panels
	m           unsafe.Pointer
	dst         unsafe.Pointer
	ldd         int // bytes between outputs
	dstStep     int // bytes between rows of outputs
	bias, scale unsafe.Pointer
	lo, hi      uint64
	zero        int
	form        int      // AVX-512: a tileForm; NEON: 0 if the bounds are 0 and 255, else 1
	_           [64]byte // zeros, for NEON
}

func (w *winogradArgs) ptr() *byte { return (*byte)(unsafe.Pointer(w)) }

// canTile reports whether winogradU8 can compute the product: w has transformed weights, and the windows are 3×3 at stride 1 with room for
// a tile.
func (w *PackedS8) canTile(lda, segStride, m int, r *Rows) bool {
	_, cols := winogradKernel()
	return w.winograd != nil && cols > 0 && w.N%cols == 0 && 3*lda == w.Seg && segStride == r.SrcStep && m >= 4 && r.Rows >= 4
}

// winogradU8 computes gemmRowsU8 by tiles of 4×4 outputs. The direct product computes the outputs that are left in each row, and the
// rows that are left.
func winogradU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, r *Rows, w *PackedS8, q *Requant) {
	var v [36 * winogradStep]int16
	var products [36 * winogradMuls]int32
	args := winogradArgs{
		row: segStride, c: lda, pitch: 2 * lda, v: unsafe.Pointer(&v), uStep: 36 * lda * panel * 2, m: unsafe.Pointer(&products),
		ldd: ldd, dstStep: r.DstStep, lo: uint64(q.Lo), zero: int(q.Zero),
	}
	args.bound(q, w.N)
	wide, rows := m/4*4, r.Rows/4*4
	for y := 0; y < rows; y += 4 {
		for x := 0; x < wide; x += 4 * args.tiles {
			args.tiles = min(winogradRoom/lda, (wide-x)/4)
			args.src, args.dst = unsafe.Pointer(&a[y*r.SrcStep+x*lda]), unsafe.Pointer(&dst[y*r.DstStep+x*ldd])
			args.transform()
			args.panels(w, q)
		}
	}
	rest := Rows{Rows: rows, DstStep: r.DstStep, SrcStep: r.SrcStep}
	if wide < m {
		gemmRowsU8(dst[wide*ldd:], ldd, a[wide*lda:], lda, segStride, m-wide, &rest, w, q)
	}
	if rest.Rows = r.Rows - rows; rest.Rows > 0 {
		gemmRowsU8(dst[rows*r.DstStep:], ldd, a[rows*r.SrcStep:], lda, segStride, m, &rest, w, q)
	}
}

// panels multiplies the transformed tiles by all columns, in groups of the size that a kernel processes at once.
func (w winogradArgs) panels(by *PackedS8, q *Requant) {
	n, v, dst := w.tiles, w.v, w.dst
	tiles, cols := winogradKernel()
	groups := (n + tiles - 1) / tiles
	for j := 0; j < by.N; j += cols {
		w.u, w.bias, w.scale = unsafe.Pointer(&by.winograd[j*36*w.c]), unsafe.Pointer(&q.Bias[j]), unsafe.Pointer(&q.Scale[j])
		for g := range groups {
			i := g * n / groups
			w.tiles = (g+1)*n/groups - i
			w.v, w.dst = unsafe.Add(v, i*w.pitch), unsafe.Add(dst, j+4*i*w.ldd)
			w.run(cols)
		}
	}
}
