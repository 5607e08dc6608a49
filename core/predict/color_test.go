package predict

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/colornames"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// w3c returns the list of colour names without the seven spellings with "grey": 140 colours.
func w3c(t testing.TB) []Color {
	t.Helper()
	var out []Color
	for _, name := range slices.Sorted(slices.Values(colornames.Names)) {
		if strings.Contains(name, "grey") {
			continue
		}
		c := colornames.Map[name]
		out = append(out, Color{ID: "ai_" + name, Name: name, Hex: fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)})
	}
	if len(out) != 140 {
		t.Fatalf("%d colours, want 140", len(out))
	}
	return out
}

// floatLab returns OKLab in floating point, as its author defines it.
func floatLab(r, g, b byte) (lab [3]float64) {
	light := func(v byte) float64 {
		c := float64(v) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	x, y, z := light(r), light(g), light(b)
	l := math.Cbrt(0.4122214708*x + 0.5363325363*y + 0.0514459929*z)
	m := math.Cbrt(0.2119034982*x + 0.6806995451*y + 0.1073969566*z)
	s := math.Cbrt(0.0883024619*x + 0.2817188376*y + 0.6299787005*z)
	return [3]float64{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

func TestOKLab(t *testing.T) {
	worst := 0.0
	for r := 0; r < 256; r += 5 {
		for g := 0; g < 256; g += 5 {
			for b := 0; b < 256; b += 5 {
				got, want := toOKLab(byte(r), byte(g), byte(b)), floatLab(byte(r), byte(g), byte(b))
				for i, v := range [3]int64{got.l, got.a, got.b} {
					worst = max(worst, math.Abs(float64(v)-65536*want[i]))
				}
			}
		}
	}
	t.Logf("largest difference: %.2f of 65536", worst)
	if worst > 5 {
		t.Errorf("largest difference from floating point is %.2f of 65536, want at most 5", worst)
	}
	if got := toOKLab(0, 0, 0); got != (oklab{}) {
		t.Errorf("black is %v, want 0", got)
	}
	if got := toOKLab(255, 255, 255); got.distance(oklab{l: 65536}) > 12 {
		t.Errorf("white is %v, want L 65536", got)
	}
}

func TestCubeRoot(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	check := func(x uint64) {
		if y := cubeRoot(x); y*y*y > x || (y+1)*(y+1)*(y+1) <= x {
			t.Errorf("cubeRoot(%d) = %d", x, y)
		}
	}
	for x := range uint64(2000) {
		check(x)
	}
	for range 20_000 {
		check(rng.Uint64() >> (13 + rng.IntN(40)))
	}
	for y := uint64(1); y < 1<<17; y++ {
		check(y * y * y)
		check(y*y*y - 1)
	}
	check(1<<51 - 1)
}

// TestNamedColoursAreNearestToThemselves checks that every W3C colour is nearest to itself. Cyan and Magenta are nearest to their other
// names, Aqua and Fuchsia, which come first.
func TestNamedColoursAreNearestToThemselves(t *testing.T) {
	p := newPalette(w3c(t))
	for i, c := range p.colors {
		rgb, ok := parseHex(c.Hex)
		if !ok {
			t.Fatalf("parseHex(%q) failed", c.Hex)
		}
		want := map[string]string{"cyan": "aqua", "magenta": "fuchsia"}[c.Name]
		if want == "" {
			want = c.Name
		}
		if got := p.colors[p.nearest(toOKLab(rgb[0], rgb[1], rgb[2]), i%3)].Name; got != want {
			t.Errorf("nearest to %s is %s, want %s", c.Hex, got, want)
		}
	}
}

func TestNearestAgreesWithScan(t *testing.T) {
	p := newPalette(w3c(t))
	var list []oklab
	for _, color := range p.colors {
		rgb, _ := parseHex(color.Hex)
		list = append(list, toOKLab(rgb[0], rgb[1], rgb[2]))
	}
	rng := rand.New(rand.NewPCG(2, 1))
	for range 1000 {
		c := toOKLab(byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()))
		best, place := int64(math.MaxInt64), -1
		for i := range list {
			if d := c.distance(list[i]); d < best {
				best, place = d, i
			}
		}
		if got := p.nearest(c, rng.IntN(140)); got != place {
			t.Fatalf("nearest(%v) = %s, want %s", c, p.colors[got].Name, p.colors[place].Name)
		}
	}
}

// picture encodes a w×h picture as PNG.
func picture(t testing.TB, w, h int, at func(x, y int) color.Color) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, at(x, y))
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func rgb(r, g, b byte) color.Color { return color.RGBA{r, g, b, 255} }

func TestColors(t *testing.T) {
	s := tinySet(t)
	s.palette = newPalette(w3c(t))
	by := map[string]Color{}
	for _, c := range s.palette.colors {
		by[c.Name] = c
	}
	tests := []struct {
		name string
		data []byte
		crop raster.Crop
		want []ColorShare
	}{
		{
			"one colour", picture(t, 30, 20, func(int, int) color.Color { return rgb(0xf2, 0xf2, 0xf2) }),
			raster.Crop{},
			[]ColorShare{{by["whitesmoke"], "#f2f2f2", 1}},
		},
		{
			"quarters", picture(t, 40, 40, func(x, _ int) color.Color {
				if x < 10 {
					return rgb(250, 4, 2)
				}
				return rgb(0, 0, byte(x)/20) // 0 and 1: the mean 2/3 is rounded to 1
			}),
			raster.Crop{},
			[]ColorShare{{by["black"], "#000001", 0.75}, {by["red"], "#fa0402", 0.25}},
		},
		{
			"the crop alone", picture(t, 40, 40, func(x, _ int) color.Color {
				if x < 10 {
					return rgb(255, 0, 0)
				}
				return rgb(255, 255, 255)
			}),
			raster.Crop{Top: 0, Left: 0.1, Bottom: 0.5, Right: 0.25},
			[]ColorShare{{by["red"], "#ff0000", 1}},
		},
		{
			"outside of the centred square too", picture(t, 100, 10, func(x, _ int) color.Color {
				if x < 45 || x >= 55 {
					return rgb(255, 255, 0)
				}
				return rgb(0, 128, 0)
			}),
			raster.Crop{},
			[]ColorShare{{by["yellow"], "#ffff00", 0.9}, {by["green"], "#008000", 0.1}},
		},
		{
			"equal shares by id, under a hundredth left out", picture(t, 128, 2, func(x, y int) color.Color {
				switch {
				case x == 127 && y == 0:
					return rgb(255, 0, 0)
				case x == 0 || x == 127 && y == 1:
					return rgb(255, 255, 255)
				}
				return [2]color.Color{rgb(0, 0, 255), rgb(0, 0, 0)}[x%2]
			}),
			raster.Crop{},
			[]ColorShare{{by["black"], "#000000", 126.0 / 256}, {by["blue"], "#0000ff", 126.0 / 256}, {by["white"], "#ffffff", 3.0 / 256}},
		},
	}
	a := s.NewAnalyser(raster.Limits{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := a.Analyse(tt.data, tt.crop, WantColors)
			if err != nil || out.Has != WantColors || out.General != nil {
				t.Fatalf("Analyse = %+v, %v, want colours alone", out, err)
			}
			if diff := cmp.Diff(tt.want, out.Colors); diff != "" {
				t.Errorf("colours, -want +got:\n%s", diff)
			}
		})
	}
}

// TestSharesAgainstFloat compares shares with a plain count in floating point, except for pixels between two names.
func TestSharesAgainstFloat(t *testing.T) {
	p := newPalette(w3c(t))
	rng := rand.New(rand.NewPCG(3, 1))
	pix := make([]byte, 3*1000)
	for i := range pix {
		pix[i] = byte(rng.IntN(256))
	}
	count := map[string]int{}
	var list [][3]float64
	for _, c := range p.colors {
		rgb, _ := parseHex(c.Hex)
		list = append(list, floatLab(rgb[0], rgb[1], rgb[2]))
	}
	for i := 0; i < len(pix); i += 3 {
		lab := floatLab(pix[i], pix[i+1], pix[i+2])
		best, name := math.Inf(1), ""
		for j, c := range p.colors {
			q := list[j]
			if d := math.Hypot(math.Hypot(lab[0]-q[0], lab[1]-q[1]), lab[2]-q[2]); d < best {
				best, name = d, c.Name
			}
		}
		count[name]++
	}
	last := float32(1)
	for _, s := range p.shares(pix, make([]tally, len(p.colors))) {
		if want := float64(count[s.W3C.Name]) / 1000; math.Abs(float64(s.Value)-want) > 0.003 {
			t.Errorf("%s has %v, want %v", s.W3C.Name, s.Value, want)
		}
		if s.Value > last || s.Value < minShare/100.0 {
			t.Errorf("%s with %v after %v", s.W3C.Name, s.Value, last)
		}
		last = s.Value
	}
}

func BenchmarkColors(b *testing.B) {
	p := newPalette(w3c(b))
	rng := rand.New(rand.NewPCG(4, 1))
	pix := make([]byte, 3*ColorSide*ColorSide)
	tallies := make([]tally, len(p.colors))
	for _, step := range []int{3, 256} { // steps from pixel to pixel: as in a photo, and noise
		b.Run(fmt.Sprintf("step=%d", step), func(b *testing.B) {
			for i := range pix {
				pix[i] = byte(128 + rng.IntN(step))
				if i >= 3 {
					pix[i] = pix[i-3] + byte(rng.IntN(step)-step/2)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				p.shares(pix, tallies)
			}
		})
	}
}
