//go:build !purego

package kernel

import "github.com/sightline-dev/sightline/core/cpu"

// This file calls the assembly of tiles by name. With function values every argument
// struct would escape to the heap.

// tiles selects the product kernels for one type of result.
type tiles uint8

const (
	tilesF32 tiles = iota
	tilesU8
)

// heights returns the tile heights of the current level, the tallest first and 1 last.
func (t tiles) heights() []int {
	if Levels.Current() == cpu.AVX2 {
		return heightsAVX2[:]
	}
	return heights[:]
}

var (
	heights     = [...]int{14, 7, 4, 2, 1}
	heightsAVX2 = [...]int{6, 4, 2, 1}
)

// block computes m rows of cols columns in runs of tiles, the tallest first. at sets
// the pointers of args for the first row of each run.
func (t tiles) block(m, cols int, args *tileArgs, at func(row int)) {
	row := 0
	for _, h := range t.heights() {
		if n := (m - row) / h; n > 0 {
			at(row)
			args.tiles = n
			t.run(h, (cols+panel-1)/panel, args)
			row += n * h
		}
	}
}

// run computes args.tiles tiles of the given height. width is 1 or 2 panels.
func (t tiles) run(height, width int, args *tileArgs) {
	p := args.ptr()
	if Levels.Current() == cpu.AVX2 {
		runAVX2(t, height, p)
		return
	}
	if t == tilesF32 {
		runF32(height, width, p)
		return
	}
	runU8(height, width, p)
}

// sums computes a tile of two rows and stores the int32 sums.
func (t *tileArgs) sums(cols int) {
	switch {
	case Levels.Current() == cpu.AVX2:
		gemmI32Tile2x16AVX2(t.ptr())
	case cols > panel:
		gemmI32Tile2x32AVX512(t.ptr())
	default:
		gemmI32Tile2x16AVX512(t.ptr())
	}
}

func runAVX2(t tiles, height int, p *byte) {
	switch {
	case t == tilesF32 && height == 6:
		gemmF32Tile6x16AVX2(p)
	case t == tilesF32 && height == 4:
		gemmF32Tile4x16AVX2(p)
	case t == tilesF32 && height == 2:
		gemmF32Tile2x16AVX2(p)
	case t == tilesF32:
		gemmF32Tile1x16AVX2(p)
	case height == 6:
		gemmU8Tile6x16AVX2(p)
	case height == 4:
		gemmU8Tile4x16AVX2(p)
	case height == 2:
		gemmU8Tile2x16AVX2(p)
	default:
		gemmU8Tile1x16AVX2(p)
	}
}

func runF32(height, width int, p *byte) {
	switch height*2 + width {
	case 14*2 + 2:
		gemmF32Tile14x32AVX512(p)
	case 14*2 + 1:
		gemmF32Tile14x16AVX512(p)
	case 7*2 + 2:
		gemmF32Tile7x32AVX512(p)
	case 7*2 + 1:
		gemmF32Tile7x16AVX512(p)
	case 4*2 + 2:
		gemmF32Tile4x32AVX512(p)
	case 4*2 + 1:
		gemmF32Tile4x16AVX512(p)
	case 2*2 + 2:
		gemmF32Tile2x32AVX512(p)
	case 2*2 + 1:
		gemmF32Tile2x16AVX512(p)
	case 1*2 + 2:
		gemmF32Tile1x32AVX512(p)
	case 1*2 + 1:
		gemmF32Tile1x16AVX512(p)
	}
}

func runU8(height, width int, p *byte) {
	switch height*2 + width {
	case 14*2 + 2:
		gemmU8Tile14x32AVX512(p)
	case 14*2 + 1:
		gemmU8Tile14x16AVX512(p)
	case 7*2 + 2:
		gemmU8Tile7x32AVX512(p)
	case 7*2 + 1:
		gemmU8Tile7x16AVX512(p)
	case 4*2 + 2:
		gemmU8Tile4x32AVX512(p)
	case 4*2 + 1:
		gemmU8Tile4x16AVX512(p)
	case 2*2 + 2:
		gemmU8Tile2x32AVX512(p)
	case 2*2 + 1:
		gemmU8Tile2x16AVX512(p)
	case 1*2 + 2:
		gemmU8Tile1x32AVX512(p)
	case 1*2 + 1:
		gemmU8Tile1x16AVX512(p)
	}
}
