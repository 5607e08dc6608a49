package raster

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// noisyPlanes is a frame whose samples take every value of their depth and some beyond.
func noisyPlanes(t testing.TB, p Planes) Planes {
	t.Helper()
	n, err := p.Size()
	check(t, err)
	p.Pix = make([]byte, n)
	state := uint32(n)
	for i := range p.Pix {
		state = state*1664525 + 1013904223
		p.Pix[i] = byte(state >> 24)
		if p.Depth > 8 && i%2 == 1 && state>>8&31 != 0 { // seldom beyond the depth
			p.Pix[i] &= 1<<(p.Depth-8) - 1
		}
	}
	return p
}

// packPlanes returns a frame with the planes of m.
func packPlanes(m *image.YCbCr) Planes {
	px, py := subsampling(m.SubsampleRatio)
	p := Planes{Width: m.Rect.Dx(), Height: m.Rect.Dy(), SubX: px / 2, SubY: py / 2, Depth: 8, Matrix: BT601, Full: true}
	for y := range p.Height {
		p.Pix = append(p.Pix, m.Y[y*m.YStride:][:p.Width]...)
	}
	w, h := (p.Width+px-1)/px, (p.Height+py-1)/py
	for _, plane := range [][]byte{m.Cb, m.Cr} {
		for y := range h {
			p.Pix = append(p.Pix, plane[y*m.CStride:][:w]...)
		}
	}
	return p
}

// slowly renders a view of a frame: samples of 8 bits for every pixel, turned, averaged, then converted.
func (p Planes) slowly(v View) flat {
	sample := func(from, w, x, y int) byte {
		i := from + y*w + x
		if p.Depth == 8 {
			return p.Pix[i]
		}
		value := int(p.Pix[2*i]) + 256*int(p.Pix[2*i+1])
		return byte(min(255, math.Floor(float64(value)/float64(int(1)<<(p.Depth-8))+0.5)))
	}
	gray := p.SubX == NoChroma
	samples := newFlat(p.Width, p.Height, func(x, y int) [3]byte {
		out := [3]byte{sample(0, p.Width, x, y), 128, 128}
		if !gray {
			px, py := 1<<p.SubX, 1<<p.SubY
			w, h := (p.Width+px-1)/px, (p.Height+py-1)/py
			out[1] = sample(p.Width*p.Height, w, x/px, y/py)
			out[2] = sample(p.Width*p.Height+w*h, w, x/px, y/py)
		}
		return out
	})
	samples = samples.upright(p.Rotation).view(v)
	for i := 0; i < len(samples.pix); i += 3 {
		s := slices.Clone(samples.pix[i:][:3])
		p.conversion().row(samples.pix, i, 3, &[4][]byte{s[:1], s[1:2], s[2:3]}, 1)
	}
	return samples
}

// TestPlanes compares frames of every subsampling, depth and orientation, in odd sizes, to a slow reference.
func TestPlanes(t *testing.T) {
	views := []View{
		{Width: 9, Height: 9, Centre: 15, Box: true},
		{Width: 11, Height: 8},
		{Width: 7, Height: 12, Crop: Crop{Top: 0.1, Left: 0.09, Bottom: 0.97, Right: 0.92}},
	}
	d := NewDecoder(Limits{})
	n := 0
	for _, sub := range [...][2]int{{0, 0}, {1, 0}, {1, 1}, {0, 1}, {2, 0}, {2, 2}, {NoChroma, NoChroma}} {
		for _, depth := range [...]int{8, 10, 12} {
			t.Run(fmt.Sprintf("sub=%v/depth=%d", sub, depth), func(t *testing.T) {
				for rotation := range 9 {
					n++
					p := noisyPlanes(t, Planes{
						Width: 37, Height: 29, SubX: sub[0], SubY: sub[1], Depth: depth, Matrix: Matrix(n % 4), Full: n%3 == 0, Rotation: rotation,
					})
					for _, v := range views {
						got, err := d.Planes(p, v)
						check(t, err)
						if diff := difference(got, p.slowly(v)); diff != "" {
							t.Errorf("orientation %d, %+v: %s", rotation, v, diff)
						}
					}
				}
			})
		}
	}
}

// TestPlanesDepth checks the rounding of deep samples at its edges.
func TestPlanesDepth(t *testing.T) {
	tests := []struct {
		depth, sample int
		want          byte
	}{
		{10, 1, 0},
		{10, 2, 1},
		{10, 5, 1},
		{10, 6, 2},
		{10, 1017, 254},
		{10, 1018, 255},
		{10, 1023, 255},
		{10, 65535, 255},
		{12, 7, 0},
		{12, 8, 1},
		{12, 4095, 255},
		{12, 65535, 255},
	}
	d := NewDecoder(Limits{})
	for _, tt := range tests {
		p := Planes{
			Width: 1, Height: 1, SubX: NoChroma, SubY: NoChroma, Depth: tt.depth, Full: true,
			Pix: []byte{byte(tt.sample), byte(tt.sample >> 8)},
		}
		img, err := d.Planes(p, View{MaxSide: 1})
		if err != nil || !bytes.Equal(img.Pix, bytes.Repeat([]byte{tt.want}, 3)) {
			t.Errorf("%d of %d bits = %v, %v, want %d", tt.sample, tt.depth, img.Pix, err, tt.want)
		}
	}
}

// TestPlanesEqualJPEG compares planes of full range BT.601 to the JPEG that has the same planes.
func TestPlanesEqualJPEG(t *testing.T) {
	d := NewDecoder(Limits{})
	views := []View{
		{Width: 24, Height: 24, Centre: 15, Box: true},
		{MaxSide: 30},
		{Width: 90, Height: 50},
		{Width: 20, Height: 20, Crop: Crop{Top: 0.1, Left: 0.2, Bottom: 0.9, Right: 0.95}},
	}
	file := asJPEG(t, noisy(45, 39)) // no view is so small that the JPEG is shrunk while it is decoded
	m, err := jpeg.Decode(bytes.NewReader(file))
	check(t, err)
	p := packPlanes(m.(*image.YCbCr))
	for rotation := 1; rotation <= 8; rotation++ {
		p.Rotation = rotation
		for _, v := range views {
			want, err := d.Decode(turnJPEG(file, rotation), v)
			check(t, err)
			pix := slices.Clone(want.Pix)
			got, err := d.Planes(p, v)
			check(t, err)
			if got.Width != want.Width || got.Height != want.Height || !bytes.Equal(got.Pix, pix) {
				t.Errorf("orientation %d, %+v: the planes give another picture than the JPEG", rotation, v)
			}
		}
	}
}

// TestPlanesGolden checks that every matrix, range and depth gives the same bytes on every host.
func TestPlanesGolden(t *testing.T) {
	d := NewDecoder(Limits{})
	sum := crc32.NewIEEE()
	for matrix := range BT2020 + 1 {
		for _, full := range [...]bool{false, true} {
			for _, depth := range [...]int{8, 10, 12} {
				p := noisyPlanes(t, Planes{Width: 61, Height: 47, SubX: 1, SubY: 1, Depth: depth, Matrix: matrix, Full: full, Rotation: 6})
				for _, v := range []View{{Width: 48, Height: 48, Centre: 15, Box: true}, {MaxSide: 32}, {Width: 100, Height: 70}} {
					img, err := d.Planes(p, v)
					check(t, err)
					sum.Write(img.Pix)
				}
			}
		}
	}
	if got, want := sum.Sum32(), uint32(0x37a94e3d); got != want {
		t.Errorf("pixels have checksum %#x, want %#x", got, want)
	}
}

// TestPlanesMatrix checks the colours of a frame with an unknown matrix.
func TestPlanesMatrix(t *testing.T) {
	tests := []struct {
		name string
		p    Planes
		want *ycbcr
	}{
		{"719 lines", Planes{Width: 1280, Height: 719}, &conversions[BT601][0]},
		{"720 lines", Planes{Width: 1280, Height: 720}, &conversions[BT709][0]},
		{"720 lines of full range", Planes{Width: 1280, Height: 720, Full: true}, &conversions[BT709][1]},
		{"720 lines, turned", Planes{Width: 480, Height: 720, Rotation: 6}, &conversions[BT709][0]},
		{"720 lines of BT.601", Planes{Width: 1280, Height: 720, Matrix: BT601}, &conversions[BT601][0]},
		{"100 lines of BT.2020", Planes{Width: 100, Height: 100, Matrix: BT2020}, &conversions[BT2020][0]},
	}
	for _, tt := range tests {
		if got := tt.p.conversion(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, *got, *tt.want)
		}
	}
}

// TestColourRows compares the colours of every matrix and range with those in floating point.
func TestColourRows(t *testing.T) {
	step := testkit.Size(t, 17, 5, 1, 1)
	var values []byte // with those at which a range ends
	for v := range 256 {
		if slices.Contains([]int{1, 15, 16, 17, 127, 128, 129, 234, 235, 236, 239, 240, 241, 254, 255}, v) || v%step == 0 {
			values = append(values, byte(v))
		}
	}
	weights := [...][2]float64{BT601: {0.299, 0.114}, BT709: {0.2126, 0.0722}, BT2020: {0.2627, 0.0593}}
	n := len(values)
	cr, rows := values, [4][]byte{make([]byte, n), make([]byte, n), values}
	dst := make([]byte, 3*n)
	for m := BT601; m <= BT2020; m++ {
		red, blue := weights[m][0], weights[m][1]
		green := 1 - red - blue
		for full, ranges := range [...]struct{ black, luma, chroma float64 }{{16, 219, 224}, {0, 255, 255}} {
			c := &conversions[m][full]
			worst := 0.0
			for _, y := range values {
				for _, cb := range values {
					for i := range n {
						rows[0][i], rows[1][i] = y, cb
					}
					c.row(dst, 0, 3, &rows, n)
					luma, b := (float64(y)-ranges.black)/ranges.luma, (float64(cb)-128)/ranges.chroma
					for i, v := range cr {
						r := (float64(v) - 128) / ranges.chroma
						for j, want := range [3]float64{
							luma + 2*(1-red)*r,
							luma - 2*(1-red)*red/green*r - 2*(1-blue)*blue/green*b,
							luma + 2*(1-blue)*b,
						} {
							want = math.Floor(min(max(want, 0), 1)*255 + 0.5)
							worst = max(worst, math.Abs(float64(dst[3*i+j])-want))
						}
					}
				}
				// Cb and Cr of 128 give grey, and so does Y alone.
				var pair [6]byte
				c.row(pair[:], 0, 3, &[4][]byte{{y}, {128}, {128}}, 1)
				c.gray(pair[:], 3, 3, &[4][]byte{{y}}, 1)
				if grey := pair[0]; pair != [6]byte{grey, grey, grey, grey, grey, grey} || full == 1 && grey != y {
					t.Errorf("matrix %d, full %d: Y %d without colour is %v", m, full, y, pair)
				}
			}
			if worst > 1 {
				t.Errorf("matrix %d, full %d: off by %v, want at most 1", m, full, worst)
			}
		}
	}
}

// TestPlanesRefused checks that a frame with wrong fields is an error, before memory is taken for it.
func TestPlanesRefused(t *testing.T) {
	p := func(change func(p *Planes)) Planes {
		p := Planes{Width: 4, Height: 2, SubX: 1, SubY: 1, Depth: 8, Pix: make([]byte, 12)}
		change(&p)
		return p
	}
	tests := []struct {
		name string
		p    Planes
		want error
	}{
		{"whole", p(func(*Planes) {}), nil},
		{"no width", p(func(p *Planes) { p.Width = 0 }), ErrCorrupt},
		{"a negative height", p(func(p *Planes) { p.Height = -2 }), ErrCorrupt},
		{"a byte less", p(func(p *Planes) { p.Pix = p.Pix[1:] }), ErrCorrupt},
		{"a byte more", p(func(p *Planes) { p.Pix = make([]byte, 13) }), ErrCorrupt},
		{"no bytes", p(func(p *Planes) { p.Pix = nil }), ErrCorrupt},
		{"half of the bytes", p(func(p *Planes) { p.Depth = 10 }), ErrCorrupt},
		{"no chroma planes", p(func(p *Planes) { p.SubX, p.SubY = NoChroma, NoChroma }), ErrCorrupt},
		{"too wide", p(func(p *Planes) { p.Width = 30_001 }), ErrTooLarge},
		{"too high", p(func(p *Planes) { p.Height = math.MaxInt }), ErrTooLarge},
		{"too many pixels", p(func(p *Planes) { p.Width, p.Height = 10_000, 5_001 }), ErrTooLarge},
		{"many pixels", p(func(p *Planes) { p.Width, p.Height = 10_000, 5_000 }), ErrCorrupt},
		{"9 bits", p(func(p *Planes) { p.Depth = 9 }), ErrUnsupported},
		{"no depth", p(func(p *Planes) { p.Depth = 0 }), ErrUnsupported},
		{"a negative subsampling", p(func(p *Planes) { p.SubY = -1 }), ErrUnsupported},
		{"chroma for 8 pixels", p(func(p *Planes) { p.SubX = 3 }), ErrUnsupported},
		{"an unknown matrix", p(func(p *Planes) { p.Matrix = Identity + 1 }), ErrUnsupported},
		{"a clip outside", p(func(p *Planes) { p.Clip = Clip{X1: 5, Y1: 2} }), ErrCorrupt},
		{"an empty clip", p(func(p *Planes) { p.Clip = Clip{X0: 1, X1: 1, Y1: 2} }), ErrCorrupt},
		{"an unknown orientation", p(func(p *Planes) { p.Rotation = 9 }), ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := NewDecoder(Limits{})
			_, grown, err := cost(func() error {
				_, err := d.Planes(tt.p, View{Width: 4, Height: 4})
				return err
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("Planes = %v, want %v", err, tt.want)
			}
			if grown > 1<<20 {
				t.Errorf("took %d bytes", grown)
			}
		})
	}
	if _, err := NewDecoder(Limits{}).Planes(p(func(*Planes) {}), View{}); !errors.Is(err, errView) {
		t.Errorf("without a size: %v, want %v", err, errView)
	}
	expired := Limits{Expired: func() bool { return true }}
	if _, err := NewDecoder(expired).Planes(p(func(*Planes) {}), View{MaxSide: 1}); !errors.Is(err, ErrExpired) {
		t.Errorf("without time: %v, want %v", err, ErrExpired)
	}
}

// TestPlanesSteadyState checks that a frame after the first allocates nothing.
func TestPlanesSteadyState(t *testing.T) {
	d := NewDecoder(Limits{})
	for _, p := range []Planes{
		{SubX: 1, SubY: 1, Depth: 8, Rotation: 6},
		{SubX: 1, SubY: 1, Depth: 8, Matrix: BT601, Full: true},
		{SubX: 0, SubY: 0, Depth: 10},
		{SubX: NoChroma, SubY: NoChroma, Depth: 12},
	} {
		p.Width, p.Height = 300, 200
		p = noisyPlanes(t, p)
		for _, v := range []View{{Width: 64, Height: 64, Centre: 15, Box: true}, {MaxSide: 128}, {MaxSide: 300}} {
			n := testing.AllocsPerRun(20, func() {
				if _, err := d.Planes(p, v); err != nil {
					t.Fatal(err)
				}
			})
			if n != 0 {
				t.Errorf("%d bits, %+v: %v allocations, want 0", p.Depth, v, n)
			}
		}
	}
}
