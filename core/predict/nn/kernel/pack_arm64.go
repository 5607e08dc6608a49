//go:build !purego

package kernel

import "slices"

// neonProduct holds the weights of a product for the levels of arm64, besides those in fours.
type neonProduct struct {
	eights  []int8  // (⌈N/16⌉, Segs·seg8, 16, 8), zero beyond N and Seg
	lift    []int32 // (⌈N/32⌉·32) 128·Sum, for products of bytes less 128
	extreme bool    // whether a weight is -128
}

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
}

// neonDepthwise holds the weights of a depthwise convolution for the levels of arm64, besides the bytes.
type neonDepthwise struct {
	words []int16 // (⌊C/16⌋, KH·KW, 16)
	lift  []int32 // (C) 128·Sum, for products of bytes less 128
}

func (p *neonDepthwise) packNEON(w *DepthwiseS8) {
	taps := w.KH * w.KW
	p.lift = make([]int32, w.C)
	for c, sum := range w.Sum {
		p.lift[c] = 128 * sum
	}
	p.words = make([]int16, w.C/panel*taps*panel)
	for c := range w.C / panel * panel {
		for t := range taps {
			p.words[(c/panel*taps+t)*panel+c%panel] = int16(w.w[t*w.C+c])
		}
	}
}
