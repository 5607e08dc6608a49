//go:build !purego

package kernel

import (
	"math"
	"unsafe"
)

//go:generate go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//go:generate go run ./asm -level avx2 -out kernel_avx2_amd64.s -stubs stubs_avx2_amd64.go -pkg kernel

// tileArgs is what a product's assembly reads: fields of 8 bytes in the order of
// the arg… constants of asm/main.go.
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
}

func (t *tileArgs) ptr() *byte { return (*byte)(unsafe.Pointer(t)) }

func bits(v float32) uint64 { return uint64(math.Float32bits(v)) }

// tileFunc computes args.tiles tiles of a fixed height and width, one below the other.
type tileFunc struct {
	height int
	run    [2]func(*byte) // one panel wide, two panels wide
}

// block splits m rows into runs of tiles, tallest first, and calls run with the
// first row of each.
func block(fs []tileFunc, m, width int, args *tileArgs, at func(row int)) {
	row := 0
	for _, f := range fs {
		if n := (m - row) / f.height; n > 0 {
			at(row)
			args.tiles = n
			f.run[width-1](args.ptr())
			row += n * f.height
		}
	}
}
