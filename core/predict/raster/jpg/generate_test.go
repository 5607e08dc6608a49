package jpg

import (
	"fmt"
	"math/rand/v2"
)

// sampling names the sampling factors of a picture's components.
type sampling struct {
	name string
	hv   []byte
}

// samplings are the sampling factors that image/jpeg accepts, some of them in an unusual notation.
var samplings = []sampling{
	{"grey", []byte{0x11}},
	{"grey 4:2", []byte{0x42}},
	{"4:4:4", []byte{0x11, 0x11, 0x11}},
	{"4:4:4 2x1", []byte{0x21, 0x21, 0x21}},
	{"4:2:2", []byte{0x21, 0x11, 0x11}},
	{"4:2:0", []byte{0x22, 0x11, 0x11}},
	{"4:2:2 tall", []byte{0x22, 0x12, 0x12}},
	{"4:4:0", []byte{0x12, 0x11, 0x11}},
	{"4:4:0 wide", []byte{0x22, 0x21, 0x21}},
	{"4:1:1", []byte{0x41, 0x11, 0x11}},
	{"4:1:0", []byte{0x42, 0x11, 0x11}},
	{"4:2:2 fourfold", []byte{0x41, 0x21, 0x21}},
	{"four", []byte{0x11, 0x11, 0x11, 0x11}},
	{"four 4:2:0", []byte{0x22, 0x11, 0x11, 0x22}},
}

// generate makes a random picture of the given sampling.
func generate(r *rand.Rand, s sampling, marker byte, maxSide int) *picture {
	p := &picture{
		marker: marker, w: 1 + r.IntN(maxSide), h: 1 + r.IntN(maxSide),
		adobe: -1, jfif: r.IntN(2) == 0, wide: r.IntN(4) == 0,
	}
	if len(s.hv) == 4 {
		p.adobe = 2 * r.IntN(2)
	} else if r.IntN(3) == 0 {
		p.adobe = r.IntN(2)
	}
	for i := range p.quant {
		for j := range p.quant[i] {
			p.quant[i][j] = 1 + r.Int32N(int32(4+j))
		}
	}
	ids := []byte{1, 2, 3, 4}
	if r.IntN(8) == 0 {
		ids = []byte("RGBA")
	}
	for i, hv := range s.hv {
		p.comps = append(p.comps, comp{id: ids[i], h: hv >> 4, v: hv & 15, tq: byte(r.IntN(4))})
	}
	if len(s.hv) == 1 {
		p.comps[0].h, p.comps[0].v, p.comps[0].declared = 1, 1, s.hv[0]
	}
	mx, my := p.mcus()
	for i := range p.comps {
		c := &p.comps[i]
		c.across, c.down = mx*int(c.h), my*int(c.v)
		c.blocks = make([][64]int32, c.across*c.down)
		fillBlocks(r, c.blocks)
	}
	if r.IntN(2) == 0 {
		p.interval = 1 + r.IntN(mx*my+1)
	}
	p.scans = p.script(r)
	return p
}

// fillBlocks writes plausible coefficients: a wandering DC, and few AC, sparser upward,
// with a rare large one and some full blocks.
func fillBlocks(r *rand.Rand, blocks [][64]int32) {
	dc, empty := int32(0), r.IntN(4)
	for i := range blocks {
		b := &blocks[i]
		dc += r.Int32N(41) - 20
		if r.IntN(60) == 0 {
			dc = r.Int32N(2047) - 1023
		}
		b[0] = dc
		if r.IntN(4) < empty {
			continue
		}
		busy := 1 + r.IntN(40)
		for k := 1; k < 64; k++ {
			if r.IntN(k+busy) < busy/2+1 {
				b[k] = r.Int32N(15) - 7
			}
			if r.IntN(400) == 0 {
				b[k] = r.Int32N(2047) - 1023
			}
		}
	}
}

// script returns a random valid list of scans.
func (p *picture) script(r *rand.Rand) (scans []testScan) {
	all, total := []int{}, 0
	for i, c := range p.comps {
		all = append(all, i)
		total += int(c.h) * int(c.v)
	}
	groups := [][]int{all}
	if total > 10 && len(all) > 1 || r.IntN(4) == 0 {
		groups = nil
		for i := range all {
			groups = append(groups, all[i:i+1])
		}
	}
	if p.marker != markerSOF2 {
		for _, g := range groups {
			scans = append(scans, testScan{comps: g, to: 63})
		}
		return scans
	}
	low := r.IntN(3)
	for _, g := range groups {
		scans = append(scans, testScan{comps: g, low: low})
	}
	for l := low; l > 0; l-- {
		for _, g := range groups {
			scans = append(scans, testScan{comps: g, high: l, low: l - 1})
		}
	}
	for i := range all {
		split, acLow := 1+r.IntN(62), r.IntN(3)
		for l := acLow; l >= 0; l-- {
			high := l + 1
			if l == acLow {
				high = 0
			}
			scans = append(scans,
				testScan{comps: all[i : i+1], from: 1, to: split, high: high, low: l},
				testScan{comps: all[i : i+1], from: split + 1, to: 63, high: high, low: l})
		}
	}
	return scans
}

// String describes p in failures.
func (p *picture) String() string {
	s := fmt.Sprintf("SOF%d %dx%d interval %d adobe %d", p.marker-markerSOF0, p.w, p.h, p.interval, p.adobe)
	for _, c := range p.comps {
		s += fmt.Sprintf(" %dx%d", c.h, c.v)
	}
	return s + fmt.Sprint(" ", p.scans)
}
