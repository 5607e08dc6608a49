package jpg

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// shrunk computes one block at Scale 2, 4 or 8 by definition, as rows of 8/scale samples. f contains the block's coefficients times their
// quantisers, in natural order.
func shrunk(f *[64]int32, scale int) []byte {
	toSample := func(v int32) byte { return byte(min(max(v+128, 0), 255)) }
	switch scale {
	case 8:
		return []byte{toSample((f[0] + 4) >> 3)}
	case 4:
		var out []byte
		for _, s := range [][3]int32{{1, 1, 1}, {-1, 1, -1}, {1, -1, -1}, {-1, -1, 1}} {
			out = append(out, toSample((f[0]+s[0]*f[1]+s[1]*f[8]+s[2]*f[9]+4)>>3))
		}
		return out
	}
	pass := func(x [4]int32, half, shift int32) (y [4]int32) {
		e0, e1 := (x[0]+x[2])*8192, (x[0]-x[2])*8192
		o0, o1 := 10703*x[1]+4433*x[3], 4433*x[1]-10703*x[3]
		y = [4]int32{e0 + o0, e1 + o1, e1 - o1, e0 - o0}
		for i := range y {
			y[i] = (y[i] + half) >> shift
		}
		return y
	}
	var rows [4][4]int32
	for v := range 4 {
		rows[v] = pass([4]int32{f[8*v], f[8*v+1], f[8*v+2], f[8*v+3]}, 1<<10, 11)
	}
	out := make([]byte, 16)
	for x := range 4 {
		for y, v := range pass([4]int32{rows[0][x], rows[1][x], rows[2][x], rows[3][x]}, 1<<17, 18) {
			out[4*y+x] = toSample(v)
		}
	}
	return out
}

// checkShrunk compares got with the definition applied to the coefficients of p.
func checkShrunk(t *testing.T, p *picture, got *Planes) {
	t.Helper()
	side := 8 / got.Scale
	for i, c := range p.comps {
		plane := &got.P[i]
		w := (p.w*int(c.h) + int(p.comps[0].h) - 1) / int(p.comps[0].h)
		h := (p.h*int(c.v) + int(p.comps[0].v) - 1) / int(p.comps[0].v)
		w, h = (w+got.Scale-1)/got.Scale, (h+got.Scale-1)/got.Scale
		if plane.Width != w || plane.Height != h {
			t.Fatalf("plane %d is %dx%d, want %dx%d", i, plane.Width, plane.Height, w, h)
		}
		for at := range c.blocks {
			var f [64]int32
			for k, u := range unzig {
				f[u] = c.blocks[at][k] * p.quant[c.tq][u]
			}
			for j, want := range shrunk(&f, got.Scale) {
				x, y := at%c.across*side+j%side, at/c.across*side+j/side
				if x < w && y < h && plane.Pix[y*plane.Stride+x] != want {
					t.Fatalf("plane %d (%d, %d) = %d, want %d in %v", i, x, y, plane.Pix[y*plane.Stride+x], want, p)
				}
			}
		}
	}
}

func TestDecodeShrinks(t *testing.T) {
	var d Decoder
	each(t, 6, 90, func(t *testing.T, _ *rand.Rand, p *picture, data []byte) {
		for _, scale := range []int{2, 4, 8} {
			got, err := d.Decode(data, Options{Scale: scale})
			if err != nil {
				t.Fatalf("Scale %d: %v in %v", scale, err, p)
			}
			checkShrunk(t, p, got)
		}
	})
}

// TestDecodeRegion compares regions with the same part of the whole picture, at every scale.
func TestDecodeRegion(t *testing.T) {
	var d, reference Decoder
	each(t, 4, 120, func(t *testing.T, r *rand.Rand, p *picture, data []byte) {
		for _, scale := range []int{1, 2, 4, 8} {
			want, err := reference.Decode(data, Options{Scale: scale})
			if err != nil {
				t.Fatal(err)
			}
			x, y := r.IntN(p.w), r.IntN(p.h)
			region := Rect{x, y, x + 1 + r.IntN(p.w-x), y + 1 + r.IntN(p.h-y)}
			got, err := d.Decode(data, Options{Scale: scale, Region: region})
			if err != nil {
				t.Fatalf("Region %v: %v", region, err)
			}
			checkRegion(t, got, want, region)
		}
	})
}

func checkRegion(t *testing.T, got, want *Planes, region Rect) {
	t.Helper()
	s := got.Scale
	if got.X0 > region.X0/s || got.Y0 > region.Y0/s || got.X0+got.P[0].Width < (region.X1-1)/s+1 || got.Y0+got.P[0].Height < (region.Y1-1)/s+1 {
		t.Fatalf("Region %v /%d gives %dx%d from (%d, %d)", region, s, got.P[0].Width, got.P[0].Height, got.X0, got.Y0)
	}
	for i := range got.N {
		a, b := &got.P[i], &want.P[i]
		for y := range a.Height {
			row := b.Pix[(got.Y0/a.VSub+y)*b.Stride+got.X0/a.HSub:]
			if !bytes.Equal(a.Pix[y*a.Stride:][:a.Width], row[:a.Width]) {
				t.Fatalf("Region %v /%d: plane %d row %d differs", region, s, i, y)
			}
		}
	}
}

// TestDecodeShrunkRefusesCuts checks that a truncated file is refused at every scale, with and without a Region.
func TestDecodeShrunkRefusesCuts(t *testing.T) {
	var d Decoder
	each(t, 1, 60, func(t *testing.T, r *rand.Rand, p *picture, data []byte) {
		for range 40 {
			cut := data[:r.IntN(len(data)-1)]
			for _, scale := range []int{1, 2, 4, 8} {
				for _, region := range []Rect{{}, {0, 0, 1, 1}} {
					if _, err := d.Decode(cut, Options{Scale: scale, Region: region}); err == nil {
						t.Fatalf("Scale %d took %d of %d bytes of %v", scale, len(cut), len(data), p)
					}
				}
			}
		}
	})
}
