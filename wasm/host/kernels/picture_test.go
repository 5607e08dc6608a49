package kernels

import (
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestInspect reads the headers of pictures in the guest's memory. For an invalid picture, inspect returns 0, and the guest finds the
// error.
func TestInspect(t *testing.T) {
	const pictureAt, infoAt = 4096, 64
	in := New(Options{}).Open()
	in.mem = make([]byte, 1<<20)
	red := apitest.Picture("red.png")
	for name, tt := range map[string]struct {
		picture []byte
		format  uint64
	}{
		"png": {red, 2}, "bitmap": {bitmap(3, 2), 5}, "cut": {red[:20], 0}, "no picture": {[]byte("no picture"), 0}, "nothing": {nil, 0},
	} {
		copy(in.mem[pictureAt:], tt.picture)
		s := []uint64{pictureAt, uint64(len(tt.picture)), infoAt}
		in.inspect(s)
		if s[0] != tt.format {
			t.Errorf("%s: inspect = %d, want %d", name, s[0], tt.format)
		}
		info, err := raster.Inspect(tt.picture)
		if (err == nil) != (tt.format > 0) {
			t.Errorf("%s: natively %v", name, err)
		}
		v := view[int32](in, infoAt, 4)
		if got := [4]int{int(v[0]), int(v[1]), int(v[2]), int(v[3])}; err == nil && got != [4]int{info.Width, info.Height, info.Orientation, info.Frames} {
			t.Errorf("%s: inspect says %v, natively %+v", name, got, info)
		}
	}
	f := &function{name: "inspect", run: (*Instance).inspect}
	end := uint64(len(in.mem))
	for i, wrong := range [][]uint64{0: {end, end - 9}, 1: {end}, 2: {end - 15, 3}} {
		for _, v := range wrong {
			s := []uint64{pictureAt, uint64(len(red)), infoAt}
			s[i] = v
			if call(t, in, f, s) {
				t.Errorf("parameter %d = %d: the guest lives on, want ErrWild", i, v)
			}
		}
	}
}

// bitmap returns a BMP with 24 bits a pixel.
func bitmap(width, height byte) []byte {
	row := (3*int(width) + 3) &^ 3
	b := make([]byte, 54+row*int(height))
	copy(b, "BM")
	b[2], b[10], b[14], b[18], b[22], b[26], b[28] = byte(len(b)), 54, 40, width, height, 1, 24
	return b
}
