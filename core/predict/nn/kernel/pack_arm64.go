//go:build !purego

package kernel

import (
	"math"
	"slices"
)

// neonProduct holds the weights of a product for the levels of arm64, in addition to PackedS8.b.
type neonProduct struct {
	eights  []int8  // (⌈N/16⌉, Segs·seg8, 16, 8), zero beyond N and Seg; for level i8mm
	lift    []int32 // (⌈N/32⌉·32) 128·Sum: corrects for bytes minus 128
	extreme bool    // a weight is -128

	// Level neon reads blocks of 8 columns. A segment has steps of 32 weights, then one of 16 and one of 8 if they remain.
	blocks []int8 // (⌈N/8⌉, Segs, seg8·64): steps of (8, 32), (8, 16) and (8, 8), zero beyond N and Seg

	// A word sums all four products of a step if it cannot overflow. Bit p is set if this holds for columns 2p and 2p+1.
	chains []uint8 // (⌈N/8⌉, Segs, ⌊seg8/4⌋+1), 16 after the last step
}

// maxChain is the maximum sum of absolute weights for which the sum of their products with bytes minus 128 fits into an int16.
const maxChain = math.MaxInt16 / 128

// seg8 returns the number of groups of eight weights per segment. Zeros pad the last group.
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

// packColumn copies from, a segment of column c, into a block of 8 columns.
func packColumn(block, from []int8, c int) {
	for _, size := range []int{32, 16, 8} {
		for ; len(block) >= 8*size; block = block[8*size:] {
			n := min(size, len(from))
			copy(block[c*size:], from[:n])
			from = from[n:]
		}
	}
}

// chainsOf returns the byte in chains for a step of (8, 32) weights.
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

// neonDepthwise holds the weights of a depthwise convolution for the levels of arm64, in addition to DepthwiseS8's bytes.
type neonDepthwise struct {
	words []int16 // (⌊C/16⌋, ⌈KH·KW/3⌉·3, 16)
	lift  []int32 // (C) 128·Sum: corrects for bytes minus 128
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
