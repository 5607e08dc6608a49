package raster

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomView returns a valid view, also with crops, squares, and more or less detail.
func randomView(r *rand.Rand) View {
	v := View{MaxSide: 1 + r.IntN(60), Box: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		v.MaxSide, v.Width, v.Height = 0, 1+r.IntN(40), 1+r.IntN(40)
	}
	if r.IntN(2) == 0 {
		v.Centre = 1 + r.IntN(16)
	}
	if r.IntN(2) == 0 {
		v.Detail = r.IntN(100)
	}
	if r.IntN(2) == 0 {
		top, left := r.Float64(), r.Float64()
		v.Crop = Crop{Top: top / 2, Left: left / 2, Bottom: 1 - top/3, Right: 1 - left/3}
	}
	return v
}

// TestViews compares the views of Views with those of Decode, for every format and DCT scales that views share or not.
func TestViews(t *testing.T) {
	var coded bytes.Buffer
	check(t, jpeg.Encode(&coded, noisy(333, 250), &jpeg.Options{Quality: 60}))
	pictures := smallPictures(t)
	pictures["large jpeg"] = [][]byte{coded.Bytes(), turnJPEG(coded.Bytes(), 6), asJPEG(t, grey(noisy(90, 400)))}
	for name, files := range pictures {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			d, alone := NewDecoder(fuzzLimits), NewDecoder(fuzzLimits)
			for i, b := range files {
				for range 40 {
					views := make([]View, 1+r.IntN(5))
					for i := range views {
						views[i] = randomView(r)
					}
					compareViews(t, d, alone, b, views)
					if t.Failed() {
						t.Fatalf("file %d", i)
					}
				}
			}
		})
	}
}

// compareViews compares the images of Views and its error with those of Decode.
func compareViews(t *testing.T, d, alone *Decoder, b []byte, views []View) {
	t.Helper()
	var images []Image
	var wantErr error
	for _, v := range views {
		img, err := alone.Decode(b, v)
		wantErr = errors.Join(wantErr, err)
		img.Pix = slices.Clone(img.Pix)
		images = append(images, img)
	}
	var last Image
	at, used := -1, 0
	err := d.Views(b, views, func(i int, img Image) {
		at, last = i, img
		used |= 1 << i
		if want := images[i]; img.Width != want.Width || img.Height != want.Height || !bytes.Equal(img.Pix, want.Pix) {
			t.Errorf("view %d of %+v differs from Decode's", i, views)
		}
	})
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("Views = %v, Decode = %v", err, wantErr)
	case err != nil:
	case at != len(views)-1 || used != 1<<len(views)-1:
		t.Errorf("Views used %b of %d views, the last one of them %d", used, len(views), at)
	case !bytes.Equal(last.Pix, images[at].Pix):
		t.Error("the last image changed after Views returned")
	}
}

// TestViewsMistakes checks that Views decodes nothing if one view is invalid.
func TestViewsMistakes(t *testing.T) {
	d := NewDecoder(Limits{})
	use := func(int, Image) { t.Error("an image of an invalid list of views") }
	if err := d.Views(asJPEG(t, noisy(100, 80)), []View{{MaxSide: 5}, {}}, use); !errors.Is(err, errView) {
		t.Errorf("Views = %v, want %v", err, errView)
	}
	if err := d.Views(asJPEG(t, noisy(10, 8)), nil, use); err != nil {
		t.Errorf("no views: %v", err)
	}
}

// TestViewsDecodeOnce counts the calls of Expired while Views decodes a picture: one decode makes fewer calls than one for each view.
func TestViewsDecodeOnce(t *testing.T) {
	m := noisy(900, 700)
	views := []View{{MaxSide: 80, Detail: 350}, {Width: 60, Height: 60, Centre: 15, Detail: 350}, {MaxSide: 70, Detail: 350}}
	for name, b := range map[string][]byte{"jpeg": asJPEG(t, m), "png": asPNG(t, m), "gif": asGIF(t, toPaletted(m))} {
		calls := 0
		d := NewDecoder(Limits{Expired: func() bool {
			calls++
			return false
		}})
		_, err := d.Decode(b, views[0])
		check(t, err)
		one := calls
		calls = 0
		check(t, d.Views(b, views, func(int, Image) {}))
		if rows := 3 * 6; calls > one+rows { // render looks at the clock at every 16th row
			t.Errorf("%s: %d calls of Expired, want at most %d", name, calls, one+rows)
		}
	}
}

// TestDetail checks that a view with Detail has the finer one of two scales: its own and that of a square with these pixels.
func TestDetail(t *testing.T) {
	for w := 1; w < 3000; w += 7 {
		for _, h := range []int{1, 100, 238, 239, 477, 478, 640, 955, 956, 1911, 1912, 2600} {
			var scales [3]int
			for i, v := range []View{{MaxSide: 320}, {Width: 224, Height: 224, Centre: 15}, {MaxSide: 320, Detail: 239}} {
				win, err := v.window(w, h, upright)
				check(t, err)
				scales[i] = dctScale(&win)
			}
			if want := min(scales[0], scales[1]); scales[2] != want {
				t.Fatalf("%d × %d: scale %d, want %d", w, h, scales[2], want)
			}
		}
	}
	for _, detail := range []int{-1, MaxResultSide + 1} {
		if _, err := NewDecoder(Limits{}).Decode(asPNG(t, image.NewGray(image.Rect(0, 0, 1, 1))), View{MaxSide: 1, Detail: detail}); !errors.Is(err, errView) {
			t.Errorf("detail %d: %v, want %v", detail, err, errView)
		}
	}
}
