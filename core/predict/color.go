package predict

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// ColorSide is the longest side, in pixels, of the reduced picture whose colours are counted.
const ColorSide = 128

// minShare is the part of a picture, in hundredths, under which a colour is left out.
const minShare = 1

const maxColors = 1024

// Color is one of the 140 colour names of the W3C.
type Color struct {
	ID   string `wire:"1"` // concept id
	Name string `wire:"2"` // such as "WhiteSmoke"
	Hex  string `wire:"3"` // "#f5f5f5"
}

// ColorShare is a colour and its share of a picture.
type ColorShare struct {
	W3C    Color   `wire:"+0"`
	RawHex string  `wire:"4"` // mean colour of the pixels nearest to W3C, "#rrggbb"
	Value  float32 `wire:"5"` // their share of the picture, 0…1
}

// palette finds the nearest of a list of colours. It is immutable.
//
// The whole picture after orientation and crop, area-averaged to at most ColorSide pixels a
// side, is counted: every pixel goes to the colour with the smallest Euclidean distance in
// OKLab (oklab.go), of equally near ones to the first in the bundle's list. A colour's value
// is its pixels' share, float32(pixels/all); its raw colour the mean of their sRGB bytes,
// each channel rounded half up. Shares under a hundredth are left out, but never the largest.
type palette struct {
	colors []Color
	lab    []oklab  // of colors
	byL    []swatch // ascending in L
}

// swatch is a colour of the list in OKLab.
type swatch struct {
	lab   oklab
	place int // in colors
}

func newPalette(colors []Color) *palette {
	p := &palette{colors: colors}
	for i, c := range colors {
		rgb, _ := parseHex(c.Hex)
		lab := toOKLab(rgb[0], rgb[1], rgb[2])
		p.lab = append(p.lab, lab)
		p.byL = append(p.byL, swatch{lab, i})
	}
	slices.SortStableFunc(p.byL, func(a, b swatch) int { return cmp.Compare(a.lab.l, b.lab.l) })
	return p
}

// nearest returns the place of the colour nearest to c. It walks away from c in lightness both
// ways, and stops where lightness alone is farther than the best so far. Of equally near ones it
// is the first, wherever the walk begins; guess, a place, only makes it short.
func (p *palette) nearest(c oklab, guess int) int {
	place, best := guess, p.lab[guess].distance(c)
	lo, hi := 0, len(p.byL)
	for lo < hi {
		if mid := (lo + hi) / 2; p.byL[mid].lab.l < c.l {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for i := lo; i < len(p.byL) && square(p.byL[i].lab.l-c.l) <= best; i++ {
		if d := p.byL[i].lab.distance(c); d < best || d == best && p.byL[i].place < place {
			place, best = p.byL[i].place, d
		}
	}
	for i := lo - 1; i >= 0 && square(p.byL[i].lab.l-c.l) <= best; i-- {
		if d := p.byL[i].lab.distance(c); d < best || d == best && p.byL[i].place < place {
			place, best = p.byL[i].place, d
		}
	}
	return place
}

// tally is the pixels that went to one colour.
type tally struct {
	pixels, r, g, b int64
}

// shares counts pix, (pixels, 3) RGB bytes, using tallies of one element a colour.
func (p *palette) shares(pix []byte, tallies []tally) []ColorShare {
	clear(tallies)
	var last [3]byte
	place := p.nearest(oklab{}, 0)
	for i := 0; i+3 <= len(pix); i += 3 {
		if c := [3]byte(pix[i:]); c != last {
			place, last = p.nearest(toOKLab(c[0], c[1], c[2]), place), c
		}
		t := &tallies[place]
		t.pixels++
		t.r += int64(last[0])
		t.g += int64(last[1])
		t.b += int64(last[2])
	}
	order := make([]int, 0, 16)
	for i := range tallies {
		if tallies[i].pixels > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(tallies[b].pixels, tallies[a].pixels), strings.Compare(p.colors[a].ID, p.colors[b].ID))
	})
	all := int64(len(pix) / 3)
	out := make([]ColorShare, 0, len(order))
	for _, i := range order {
		t := &tallies[i]
		if len(out) > 0 && 100*t.pixels < minShare*all {
			break
		}
		mean := func(sum int64) int64 { return (2*sum + t.pixels) / (2 * t.pixels) }
		out = append(out, ColorShare{
			W3C:    p.colors[i],
			RawHex: fmt.Sprintf("#%02x%02x%02x", mean(t.r), mean(t.g), mean(t.b)),
			Value:  float32(float64(t.pixels) / float64(all)),
		})
	}
	return out
}

// parseHex reads "#rrggbb" in lower case.
func parseHex(s string) (rgb [3]byte, ok bool) {
	digits, ok := strings.CutPrefix(s, "#")
	if !ok || !isHex(digits, 3) {
		return rgb, false
	}
	_, err := hex.Decode(rgb[:], []byte(digits))
	return rgb, err == nil
}
