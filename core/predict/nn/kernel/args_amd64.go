//go:build !purego

package kernel

import (
	"math"
	"unsafe"
)

//go:generate go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//go:generate go run ./asm -level avx2 -out kernel_avx2_amd64.s -stubs stubs_avx2_amd64.go -pkg kernel

// tileArgs are the arguments of a product's assembly. Each field has 8 bytes; the order is that of the arg… constants of asm/main.go.
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
	maskVec      unsafe.Pointer // AVX2: sixteen dwords, or nil for all columns
	next         unsafe.Pointer // AVX-512: the panels to fetch meanwhile

	// AVX-512 alone.
	rows       int // of outputs, of that many tiles each
	rowA, rowC int // bytes from behind a row's last tile to the next row
	form       tileForm
	add        *addArgs // of formAdd
	residual   []uint8  // likewise: what res points into
}

// tileForm is how a tile stores its sums.
type tileForm int

// The forms of asm/main.go.
const (
	formClamp  tileForm = iota // clamped to Lo and Hi
	formPacked                 // Lo is 0, Hi 255, and no result overflows an int32: packing clamps
	formAdd                    // clamped, then added to bytes of res
)

// addArgs is a residual add as tiles read it: fields of 8 bytes in the order of the add… constants of asm/main.go.
type addArgs struct {
	scaleY, scaleR uint64
	loY            uint64 // the clamp before the sum, less the zero point
	zeroR          int
	lo, hi         uint64
	zero           int
}

func (t *tileArgs) ptr() *byte { return (*byte)(unsafe.Pointer(t)) }

func bits(v float32) uint64 { return uint64(math.Float32bits(v)) }

// rowArgs are the arguments of a depthwise row's assembly. Each field has 8 bytes; the order is that of the row… constants of
// asm/depthwise512.go.
type rowArgs struct {
	src, dst, w, bias, scale unsafe.Pointer
	step                     int // bytes between input rows
	col                      int // bytes between the columns of the kernel
	next                     int // bytes between the inputs of neighbouring outputs
	out                      int // bytes between outputs, and between taps of float weights
	width                    int // outputs in a row
	rows                     int
	srcStep                  int // bytes between the inputs of rows of outputs
	dstStep                  int // bytes between rows of outputs
	mask                     int // one bit per channel
	taps                     *int
	count                    int // taps, or groups of four
	lo, hi                   uint64
	zero                     int
}

func (r *rowArgs) ptr() *byte { return (*byte)(unsafe.Pointer(r)) }

// elementArgs are the arguments of the elementwise assembly. Each field has 8 bytes; the order is that of the el… constants of
// asm/elementwise512.go.
type elementArgs struct {
	dst, x, y      unsafe.Pointer
	n              int // blocks, rows or elements
	step           int // bytes between rows
	mask           int // one bit per element
	scaleX, scaleY uint64
	zeroX, zeroY   int
	lo, hi         uint64
	zero           int
}

func (e *elementArgs) ptr() *byte { return (*byte)(unsafe.Pointer(e)) }
