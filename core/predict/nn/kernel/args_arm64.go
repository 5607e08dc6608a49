//go:build !purego

package kernel

import (
	"math"
	"unsafe"
)

// tileArgs holds the arguments of the assembly of a product: fields of 8 bytes in the order of
// the arg… constants in asm/arm64/tile.go.
type tileArgs struct {
	a, b, c           unsafe.Pointer
	bias, lift, scale unsafe.Pointer
	lda               int // bytes between rows of a
	segStep           int // bytes between segments
	segs              int
	k                 int // steps of 16 bytes per segment
	tail              int // groups of weights after these steps
	bStep             int // bytes between panels
	ldc               int // bytes between rows
	tiles             int
	lo, hi            int
	zero              int
	clamp             int              // 1 unless lo is 0 and hi is 255
	chains            unsafe.Pointer   // neonProduct.chains of the columns (level neon)
	rows              int              // rows of outputs, of tiles tiles each (level neon)
	srcStep           int              // bytes between the first inputs of output rows
	dstStep           int              // bytes between output rows
	_                 [2 * panel]int32 // memory for the first values of the accumulators
}

func (t *tileArgs) ptr() *byte { return (*byte)(unsafe.Pointer(t)) }

// rowArgs holds the arguments of the assembly of depthwise rows: fields of 8 bytes in the order
// of the row… constants in asm/arm64/depthwise.go.
type rowArgs struct {
	src, dst, w, bias, scale unsafe.Pointer
	step                     int // bytes between input rows
	next                     int // bytes between the first inputs of neighbouring outputs
	out                      int // bytes between outputs
	width                    int // outputs in a row
	rows                     int
	srcStep                  int // bytes between the first inputs of output rows
	dstStep                  int // bytes between output rows
	taps                     *int
	count                    int // bytes: groups of three taps (level neon) or of four (SDOT); floats: taps
	lo, hi                   int
	zero                     int
	clamp                    int // 1 unless lo is 0 and hi is 255
	lift                     unsafe.Pointer
	_                        [panel]int32 // memory for the first values of the accumulators
}

func (r *rowArgs) ptr() *byte { return (*byte)(unsafe.Pointer(r)) }

// elementArgs holds the arguments of the elementwise assembly: fields of 8 bytes in the
// order of the el… constants in asm/arm64/elementwise.go.
type elementArgs struct {
	dst, x, y      unsafe.Pointer
	n              int // blocks or rows
	step           int // bytes between rows
	scaleX, scaleY uint64
	zeroX, zeroY   int
	lo, hi         int
	zero           int
}

func (e *elementArgs) ptr() *byte { return (*byte)(unsafe.Pointer(e)) }

// clamps returns 0 if Lo is 0 and Hi is 255, and 1 otherwise.
func (q *Requant) clamps() int {
	if q.Lo == 0 && q.Hi == 255 {
		return 0
	}
	return 1
}

func bits(v float32) uint64 { return uint64(math.Float32bits(v)) }
