//go:build !purego

package kernel

import (
	"math"
	"slices"
)

// neonProduct holds the weights of a product for the levels of arm64, besides those in fours.
type neonProduct struct {
	eights  []int8  // (⌈N/16⌉, Segs·seg8, 16, 8), zero beyond N and Seg: for level i8mm
	lift    []int32 // (⌈N/32⌉·32) 128·Sum, for products of bytes less 128
	extreme bool    // whether a weight is -128

	// Level neon takes blocks of 8 columns, and in each segment steps of 32 weights, then one of 16 and one of 8 if they are left.
	blocks []int8 // (⌈N/8⌉, Segs, seg8·64): steps of (8, 32), (8, 16) and (8, 8), zero beyond N and Seg

	// A word takes four products of a step at once if it cannot overflow. Bit p is set if this is so for columns 2p and 2p+1.
	chains []uint8 // (⌈N/8⌉, Segs, ⌊seg8/4⌋+1), 16 behind the last step
}

// maxChain is the largest sum of the sizes of weights whose products with bytes less 128 fit into a word.
const maxChain = math.MaxInt16 / 128

// seg8 returns the groups of eight per segment, the last one filled up with zero.
func (w *PackedS8) seg8() int { return (w.Seg + 7) / 8 }

func (p *neonProduct) packNEON(w *PackedS8, from []int8) {
	seg8 := w.seg8()
	size := w.Segs * seg8 * panel * 8
	p.eights = make([]int8, (w.N+panel-1)/panel*size)
	p.lift = make([]int32, (w.N+2*panel-1)/(2*panel)*2*panel)
	p.extreme = slices.Contains(from, -128)
	for j := range w.N {
		p.lift[j] = 128 * w.Sum[j]
		col := p.eights[j/panel*size+j%panel*8:]
		for s := range w.Segs {
			for t, v := range from[j*w.K+s*w.Seg:][:w.Seg] {
				col[(s*seg8+t/8)*panel*8+t%8] = v
			}
		}
	}
	blocks := (w.N + 7) / 8
	p.blocks, p.chains = make([]int8, blocks*w.Segs*seg8*64), make([]uint8, 0, blocks*w.Segs*(seg8/4+1))
	for b := range blocks {
		for s := range w.Segs {
			block := p.blocks[(b*w.Segs+s)*seg8*64:][:seg8*64]
			for c := range min(8, w.N-8*b) {
				packColumn(block, from[(8*b+c)*w.K+s*w.Seg:][:w.Seg], c)
			}
			for ; len(block) >= 8*32; block = block[8*32:] {
				p.chains = append(p.chains, chainsOf(block[:8*32]))
			}
			p.chains = append(p.chains, 16)
		}
	}
}

// packColumn puts a segment of column c into a block of 8.
func packColumn(block, from []int8, c int) {
	for _, size := range []int{32, 16, 8} {
		for ; len(block) >= 8*size; block = block[8*size:] {
			n := min(size, len(from))
			copy(block[c*size:], from[:n])
			from = from[n:]
		}
	}
}

// chainsOf returns the byte in chains of a step (8, 32).
func chainsOf(step []int8) (pairs uint8) {
	for pair := range 4 {
		fits := true
		for lane := range 16 {
			sum := 0
			for i := range 4 {
				sum += abs(step[pair*64+lane/8*32+8*i+lane%8])
			}
			fits = fits && sum <= maxChain
		}
		if fits {
			pairs |= 1 << pair
		}
	}
	return pairs
}

func abs(v int8) int { return max(int(v), -int(v)) }

// neonDepthwise holds the weights of a depthwise convolution for the levels of arm64, besides the bytes.
type neonDepthwise struct {
	words []int16 // (⌊C/16⌋, ⌈KH·KW/3⌉·3, 16)
	lift  []int32 // (C) 128·Sum, for products of bytes less 128
}

func (p *neonDepthwise) packNEON(w *DepthwiseS8) {
	taps := w.KH * w.KW
	p.lift = make([]int32, w.C)
	for c, sum := range w.Sum {
		p.lift[c] = 128 * sum
	}
	padded := (taps + 2) / 3 * 3
	p.words = make([]int16, w.C/panel*padded*panel)
	for c := range w.C / panel * panel {
		for t := range taps {
			p.words[(c/panel*padded+t)*panel+c%panel] = int16(w.w[t*w.C+c])
		}
	}
}
