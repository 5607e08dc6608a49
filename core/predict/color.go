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

// minShare is the minimum share of a colour in the result, in hundredths of the picture.
const minShare = 1

const maxColors = 1024

// Color is one of the 140 colour names of the W3C.
type Color struct {
	ID   string `wire:"1"` // concept id
	Name string `wire:"2"` // such as "WhiteSmoke"
	Hex  string `wire:"3"` // "#f5f5f5"
}

// ColorShare is a named colour with its share of a picture.
type ColorShare struct {
	W3C    Color   `wire:"+0"`
	RawHex string  `wire:"4"` // mean colour of the pixels nearest to W3C, "#rrggbb"
	Value  float32 `wire:"5"` // share of these pixels in the picture, 0…1
}

// palette finds the nearest colour in the bundle's list and counts the colours of a picture. It is immutable.
//
// The counted picture is the whole picture after orientation and crop, area-averaged to at most ColorSide pixels per side. Every pixel
// belongs to the colour with the smallest Euclidean distance in OKLab (oklab.go), and at equal distances to the first in the list. A
// colour's value is the share of its pixels, float32(pixels/all). Its raw colour is the mean of their sRGB bytes, with each channel
// rounded half up. The result omits shares below minShare, except the largest share.
type palette struct {
	colors []Color
	lab    []oklab  // OKLab value of each of colors
	byL    []swatch // colors in ascending order of lightness
}

// swatch is the OKLab value of one of the colours.
type swatch struct {
	lab   oklab
	place int // index in colors
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

// nearest returns the index in p.colors of the colour nearest to c, and of equally near colours the first. It tests colours in both
// directions from the lightness of c, until the difference in lightness alone exceeds the smallest distance so far. guess is an index in
// p.colors. It does not change the result, but a near guess makes the search short.
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

// tally is the number of pixels of one colour and the sum of each of their channels.
type tally struct {
	pixels, r, g, b int64
}

// shares returns the colours of pix, RGB bytes of (pixels, 3), largest share first. tallies is scratch with one element per colour.
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

// parseHex parses "#rrggbb". It accepts lower case only.
func parseHex(s string) (rgb [3]byte, ok bool) {
	digits, ok := strings.CutPrefix(s, "#")
	if !ok || !isHex(digits, 3) {
		return rgb, false
	}
	_, err := hex.Decode(rgb[:], []byte(digits))
	return rgb, err == nil
}
