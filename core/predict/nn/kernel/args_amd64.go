//go:build !purego

package kernel

import (
	"math"
	"unsafe"
)

//go:generate go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//go:generate go run ./asm -level avx2 -out kernel_avx2_amd64.s -stubs stubs_avx2_amd64.go -pkg kernel

// tileArgs holds the arguments of the assembly of a product. Each field has 8 bytes. The order matches the arg… constants in asm/main.go.
type tileArgs struct {
	a, b, c, res unsafe.Pointer
	bias, scale  unsafe.Pointer
	lda          int // bytes between rows of a
	segStep      int // bytes between segments
	segs         int
	k            int // steps per segment: elements, or groups of four bytes
	bStep        int // bytes between panels
	ldc, ldr     int // bytes between rows
	tiles        int
	mask         int // one bit per column
	lo, hi       uint64
	zero         int
	maskVec      unsafe.Pointer // sixteen dwords, all ones where a column exists; nil: all columns (AVX2)
	next         unsafe.Pointer // the following panels, to prefetch (AVX-512)

	// The remaining fields are for AVX-512 only.
	rows       int // rows of outputs, of tiles tiles each
	rowA, rowC int // bytes from the end of a row's last tile to the next row's first tile, in a and in c
	form       tileForm
	add        *addArgs // constants of the residual add, for formAdd
	residual   []uint8  // slice that res points into, for formAdd
}

// tileForm selects how a tile stores its sums.
type tileForm int

// The values of tileForm. They match the form… constants in asm/main.go.
const (
	formClamp  tileForm = iota // clamped to Lo and Hi
	formPacked                 // Lo is 0, Hi 255, and no result overflows an int32: packing clamps
	formAdd                    // clamped, then added to bytes of res
)

// addArgs holds the constants of a residual add for the assembly: fields of 8 bytes in the order of the add… constants in asm/main.go.
type addArgs struct {
	scaleY, scaleR uint64
	loY            uint64 // lower bound before the sum, minus the zero point
	zeroR          int
	lo, hi         uint64
	zero           int
}

func (t *tileArgs) ptr() *byte { return (*byte)(unsafe.Pointer(t)) }

func bits(v float32) uint64 { return uint64(math.Float32bits(v)) }

// rowArgs holds the arguments of the assembly of depthwise rows. Each field has 8 bytes. The order matches the row… constants in
// asm/depthwise512.go.
type rowArgs struct {
	src, dst, w, bias, scale unsafe.Pointer
	step                     int // bytes between input rows
	col                      int // bytes between the columns of the kernel
	next                     int // bytes between the first inputs of neighbouring outputs
	out                      int // bytes between outputs, and between taps of float weights
	width                    int // outputs in a row
	rows                     int
	srcStep                  int // bytes between the first inputs of output rows
	dstStep                  int // bytes between output rows
	mask                     int // one bit per channel
	taps                     *int
	count                    int // taps (float32), groups of four taps (AVX-512) or pairs of taps (AVX2)
	lo, hi                   uint64
	zero                     int
}

func (r *rowArgs) ptr() *byte { return (*byte)(unsafe.Pointer(r)) }

// elementArgs holds the arguments of the elementwise assembly. Each field has 8 bytes. The order matches the el… constants in
// asm/elementwise512.go.
type elementArgs struct {
	dst, x, y      unsafe.Pointer
	n              int // blocks or rows
	step           int // bytes between rows
	mask           int // one bit per column, or per float of the last block
	scaleX, scaleY uint64
	zeroX, zeroY   int
	lo, hi         uint64
	zero           int
}

func (e *elementArgs) ptr() *byte { return (*byte)(unsafe.Pointer(e)) }
