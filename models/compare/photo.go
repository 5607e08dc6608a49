package main

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
)

// photo returns a JPEG of width × height, 4:2:0 at quality 85, which costs a decoder as much as a photograph of
// about 1.5 bits a pixel. It has soft gradients over many octaves, hard edges where a second field
// changes its sign, and sensor noise. The same size always gives the same bytes.
func photo(width, height int) ([]byte, error) {
	rng := rand.New(rand.NewPCG(3, uint64(width)<<32|uint64(height)))
	light := newField(rng, width, height, 0.62)
	edges := newField(rng, width, height, 0.4)
	tints := [3]*field{newField(rng, width, height, 0.45), newField(rng, width, height, 0.45), newField(rng, width, height, 0.45)}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			l := 128 + 45*light.at(x, y) + math.Copysign(25, edges.at(x, y))
			var rgb [3]uint8
			for c, tint := range tints {
				rgb[c] = uint8(min(max(l+18*tint.at(x, y)+7.5*rng.NormFloat64(), 0), 255))
			}
			img.SetRGBA(x, y, color.RGBA{rgb[0], rgb[1], rgb[2], 255})
		}
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 85})
	return b.Bytes(), err
}

// field is value noise: octaves of random lattices, each twice as fine as the one before
// and weaker by persistence, scaled to about unit variance.
type field struct {
	octaves []octave
	scale   float64
}

type octave struct {
	cell, columns int
	weight        float64
	values        []float64
}

func newField(rng *rand.Rand, width, height int, persistence float64) *field {
	f := &field{}
	weight, power := 1.0, 0.0
	for cell := max(width, height) / 2; cell >= 2; cell /= 2 {
		o := octave{cell: cell, columns: width/cell + 2, weight: weight}
		o.values = make([]float64, o.columns*(height/cell+2))
		for i := range o.values {
			o.values[i] = rng.NormFloat64()
		}
		f.octaves = append(f.octaves, o)
		power += weight * weight * 0.4 // bilinear blending keeps about that share of a lattice's variance
		weight *= persistence
	}
	f.scale = 1 / math.Sqrt(power)
	return f
}

func (f *field) at(x, y int) float64 {
	sum := 0.0
	for i := range f.octaves {
		o := &f.octaves[i]
		at := y/o.cell*o.columns + x/o.cell
		u, v := float64(x%o.cell)/float64(o.cell), float64(y%o.cell)/float64(o.cell)
		top := o.values[at]*(1-u) + o.values[at+1]*u
		bottom := o.values[at+o.columns]*(1-u) + o.values[at+o.columns+1]*u
		sum += o.weight * (top*(1-v) + bottom*v)
	}
	return sum * f.scale
}
