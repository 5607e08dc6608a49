package raster

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestCropRounding(t *testing.T) {
	tests := []struct {
		name                     string
		c                        Crop
		w, h                     int
		left, top, right, bottom int
	}{
		{"zero value", Crop{}, 7, 5, 0, 0, 7, 5},
		{"all", Crop{0, 0, 1, 1}, 7, 5, 0, 0, 7, 5},
		{"half up", Crop{0.5, 0.5, 1, 1}, 7, 5, 4, 3, 7, 5}, // 3.5 and 2.5
		{"below half", Crop{0.49, 0.49, 1, 1}, 7, 5, 3, 2, 7, 5},
		{"order is top, left, bottom, right", Crop{0.1, 0.2, 0.3, 0.4}, 100, 10, 20, 1, 40, 3},
		{"at least one pixel", Crop{0.5, 0.5, 0.5000001, 0.5000001}, 100, 100, 50, 50, 51, 51},
		{"one pixel at the end", Crop{0.9999, 0.9999, 1, 1}, 100, 100, 99, 99, 100, 100},
		{"one pixel picture", Crop{0.3, 0.6, 0.4, 0.7}, 1, 1, 0, 0, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			left, top, right, bottom, err := tt.c.pixels(tt.w, tt.h)
			check(t, err)
			got, want := [4]int{left, top, right, bottom}, [4]int{tt.left, tt.top, tt.right, tt.bottom}
			if got != want {
				t.Errorf("pixels = %v, want %v", got, want)
			}
		})
	}
}

func TestViewMistakes(t *testing.T) {
	nan := math.NaN()
	square := View{Width: 8, Height: 8}
	with := func(c Crop) View { v := square; v.Crop = c; return v }
	tests := []struct {
		name string
		v    View
		want error
	}{
		{"no size", View{}, errView},
		{"only a width", View{Width: 8}, errView},
		{"negative", View{Width: -8, Height: 8}, errView},
		{"huge", View{Width: MaxResultSide + 1, Height: 8}, errView},
		{"huge longest side", View{MaxSide: MaxResultSide + 1}, errView},
		{"centre", View{Width: 8, Height: 8, Centre: 17}, errView},
		{"negative centre", View{Width: 8, Height: 8, Centre: -1}, errView},
		{"top below bottom", with(Crop{0.5, 0, 0.4, 1}), errCrop},
		{"empty", with(Crop{0.5, 0, 0.5, 1}), errCrop},
		{"right of left", with(Crop{0, 0.5, 1, 0.4}), errCrop},
		{"outside", with(Crop{0, 0, 1, 1.01}), errCrop},
		{"negative edge", with(Crop{-0.01, 0, 1, 1}), errCrop},
		{"not a number", with(Crop{0, 0, nan, 1}), errCrop},
		{"infinite", with(Crop{0, 0, math.Inf(1), 1}), errCrop},
	}
	b := asPNG(t, noisy(9, 9))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewDecoder(Limits{}).Decode(b, tt.v); !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestCentre(t *testing.T) {
	tests := []struct {
		w, h, sixteenths int
		side, left, top  float64
	}{
		{4000, 3000, 15, 2812.5, 593.75, 93.75},
		{3000, 4000, 15, 2812.5, 93.75, 593.75},
		{224, 224, 16, 224, 0, 0},
		{225, 224, 16, 224, 0.5, 0},
		{1, 500, 15, 0.9375, 0.03125, 249.53125},
		{3, 3, 1, 0.1875, 1.40625, 1.40625},
		{41, 33, 15, 30.9375, 5.03125, 1.03125},
	}
	for _, tt := range tests {
		win, err := View{Centre: tt.sixteenths, Width: 8, Height: 8}.window(tt.w, tt.h, upright)
		check(t, err)
		got := [4]float64{float64(win.x0) / unit, float64(win.y0) / unit, float64(win.x1-win.x0) / unit, float64(win.y1-win.y0) / unit}
		if want := [4]float64{tt.left, tt.top, tt.side, tt.side}; got != want {
			t.Errorf("%d sixteenths of %d × %d = %v, want %v", tt.sixteenths, tt.w, tt.h, got, want)
		}
	}
}

// TestOrientation compares a picture of two by three letters with the text of EXIF 2.32. The text names the visual side of the stored first
// row and first column.
func TestOrientation(t *testing.T) {
	const stored = "abcdef" // ab, cd, ef: 2 × 3
	tests := []struct {
		orientation int
		words       string
		want        string
		w           int
	}{
		{1, "row 0 top, column 0 left", "abcdef", 2},
		{2, "row 0 top, column 0 right", "badcfe", 2},
		{3, "row 0 bottom, column 0 right", "fedcba", 2},
		{4, "row 0 bottom, column 0 left", "efcdab", 2},
		{5, "row 0 left, column 0 top", "acebdf", 3},
		{6, "row 0 right, column 0 top", "ecafdb", 3},
		{7, "row 0 right, column 0 bottom", "fdbeca", 3},
		{8, "row 0 left, column 0 bottom", "bdface", 3},
	}
	for _, tt := range tests {
		t.Run(tt.words, func(t *testing.T) {
			win, err := View{Width: tt.w, Height: 6 / tt.w}.window(2, 3, tt.orientation)
			check(t, err)
			got := make([]byte, 3*6)
			for j := range win.th {
				for i := range win.tw {
					got[win.base+i*win.stepX+j*win.stepY] = stored[2*j+i]
				}
			}
			var letters []byte
			for i := 0; i < len(got); i += 3 {
				letters = append(letters, got[i])
			}
			if string(letters) != tt.want {
				t.Errorf("upright = %q, want %q", letters, tt.want)
			}
		})
	}
}

// TestWindowIsInside checks, for any view and picture, the properties of a window that the renderer relies on.
func TestWindowIsInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, maxSide).Draw(t, "w"), rapid.IntRange(1, maxSide).Draw(t, "h")
		o := rapid.IntRange(1, 8).Draw(t, "orientation")
		v := View{Centre: rapid.IntRange(0, 16).Draw(t, "centre")}
		if rapid.Bool().Draw(t, "exact") {
			v.Width, v.Height = rapid.IntRange(1, 500).Draw(t, "width"), rapid.IntRange(1, 500).Draw(t, "height")
		} else {
			v.MaxSide = rapid.IntRange(1, 500).Draw(t, "max side")
		}
		if rapid.Bool().Draw(t, "crop") {
			edge := rapid.Float64Range(0, 1)
			v.Crop = Crop{edge.Draw(t, "top"), edge.Draw(t, "left"), edge.Draw(t, "bottom"), edge.Draw(t, "right")}
		}
		win, err := v.window(w, h, o)
		if err != nil {
			if errors.Is(err, errCrop) && (v.Crop.Top >= v.Crop.Bottom || v.Crop.Left >= v.Crop.Right) {
				return
			}
			t.Fatalf("window = %v", err)
		}
		if win.x0 < 0 || win.y0 < 0 || win.x0 >= win.x1 || win.y0 >= win.y1 || win.x1 > unit*w || win.y1 > unit*h {
			t.Fatalf("window %+v is not inside %d × %d", win, w, h)
		}
		if x0, y0, x1, y1 := win.pixels(); unit*x0 > win.x0 || unit*y0 > win.y0 || unit*x1 < win.x1 || unit*y1 < win.y1 || x1 > w || y1 > h {
			t.Fatalf("pixels %d, %d, %d, %d of window %+v", x0, y0, x1, y1, win)
		}
		// The corners of the result stay in it, and no two of them coincide.
		n := 3 * win.width * win.height
		seen := map[int]bool{}
		for _, i := range []int{0, win.tw - 1} {
			for _, j := range []int{0, win.th - 1} {
				at := win.base + i*win.stepX + j*win.stepY
				if at < 0 || at+3 > n || at%3 != 0 {
					t.Fatalf("corner (%d, %d) at %d of %d", i, j, at, n)
				}
				seen[at] = true
			}
		}
		if want := min(2, win.tw) * min(2, win.th); len(seen) != want {
			t.Fatalf("%d corners, want %d", len(seen), want)
		}
		if v.MaxSide > 0 && (win.width > v.MaxSide || win.height > v.MaxSide) {
			t.Fatalf("%d × %d, want at most %d a side", win.width, win.height, v.MaxSide)
		}
	})
}
