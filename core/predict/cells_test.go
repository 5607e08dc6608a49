package predict

import (
	"errors"
	"image/color"
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestActivations runs the tiny network, whose cells are its pixels, on a picture that is red above and green below.
func TestActivations(t *testing.T) {
	s := tinySet(t)
	a := s.NewAnalyser(raster.Limits{})
	data := picture(t, 48, 32, func(_, y int) color.Color {
		if y < 16 {
			return rgb(255, 0, 0)
		}
		return rgb(0, 255, 0)
	})
	out, err := a.Analyse(data, raster.Crop{}, WantCells)
	if err != nil {
		t.Fatal(err)
	}
	c := &out.Cells
	if out.Has != WantCells || c.Height != tinySize || c.Width != tinySize || c.Classes != 6 || !c.Valid() {
		t.Fatalf("has %v, %d×%d cells of %d classes, valid: %v", out.Has, c.Height, c.Width, c.Classes, c.Valid())
	}
	if want := (raster.Crop{Top: 1. / 32, Left: 9. / 48, Bottom: 31. / 32, Right: 39. / 48}); c.Box != want {
		t.Errorf("box %v, want %v", c.Box, want)
	}
	above, below := make([]float32, 64), make([]float32, 64)
	for i := range 32 {
		above[i], below[63-i] = 1, 1
	}
	none := make([]float32, 64)
	place := func(m *Model, id string) int {
		i := placeOf(m, id)
		if i < 0 {
			t.Fatalf("no concept %s", id)
		}
		return i
	}
	food, _ := s.Model("bd367be194cf45149e75f01d59f77ba7")
	for _, tt := range []struct {
		m    *Model
		id   string
		want []float32
	}{
		{s.General(), "ai_red", above},
		{s.General(), "ai_blue", none},
		{s.General(), "ai_both", none},  // its class is nowhere, and its head weighs less
		{s.General(), "ai_dull", below}, // less red than it has green
		{food, "ai_red", above},
		{food, "ai_green", below},
	} {
		got, err := s.Activations(tt.m, c, []int{place(tt.m, tt.id)})
		if err != nil || len(got) != 1 || !slices.Equal(got[0], tt.want) {
			t.Errorf("%s of %s: %v, %v, want %v", tt.id, tt.m.Name, got, err, tt.want)
		}
	}
	head := make([]float32, Dim)
	head[0] = 3
	if got := c.Support(head); !slices.Equal(got, above) {
		t.Errorf("along red: %v, want %v", got, above)
	}
	tables, err := LoadTables(bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tables.Activations(tables.General(), c, []int{0}); err != nil || !slices.Equal(got[0], above) {
		t.Errorf("without a network: %v, %v", got, err)
	}
}

func TestActivationsOfInvalidCells(t *testing.T) {
	s := tinySet(t)
	good := func() *Cells {
		return &Cells{Height: 1, Width: 2, Classes: 6, Rows: make([]float32, 2*(6+Dim)), Box: raster.Crop{Bottom: 1, Right: 1}}
	}
	if got, err := s.Activations(s.General(), good(), []int{0, 3}); err != nil || !slices.Equal(got[0], []float32{0, 0}) {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	for name, change := range map[string]func(c *Cells){
		"no cells":          func(c *Cells) { c.Height, c.Rows = 0, nil },
		"very many":         func(c *Cells) { c.Height, c.Width = 1<<32, 1<<32 },
		"short":             func(c *Cells) { c.Rows = c.Rows[1:] },
		"another network's": func(c *Cells) { c.Classes, c.Rows = 5, c.Rows[2:] },
		"infinite":          func(c *Cells) { c.Rows[7] = float32(math.Inf(1)) },
		"no number":         func(c *Cells) { c.Rows[7] = float32(math.NaN()) },
		"box upside down":   func(c *Cells) { c.Box.Top = 1 },
		"box outside":       func(c *Cells) { c.Box.Right = 1.5 },
	} {
		c := good()
		change(c)
		if got, err := s.Activations(s.General(), c, []int{0}); !errors.Is(err, ErrNetwork) {
			t.Errorf("%s: %v, %v, want ErrNetwork", name, got, err)
		}
	}
}

// TestRecogniserShapes checks that a slice of the wrong length panics, as a bug of the caller.
func TestRecogniserShapes(t *testing.T) {
	r := tinySet(t).NewRecogniser()
	defer func() {
		if recover() == nil {
			t.Error("rows of another length are taken")
		}
	}()
	_ = r.Cells(make([]byte, 3*tinySize*tinySize), make([]float32, 5))
}
