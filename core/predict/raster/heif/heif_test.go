package heif

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRead reads files that libheif and libavif wrote.
func TestRead(t *testing.T) {
	whole := func(w, h int) Rect { return Rect{0, 0, w, h} }
	yuv := func(w, h, depth, subX, subY, primaries, matrix int) Samples {
		return Samples{Width: w, Height: h, Depth: depth, SubX: subX, SubY: subY, Matrix: matrix, Primaries: primaries, Full: true}
	}
	tests := []struct {
		name    string
		want    Picture
		alpha   bool
		streams int // number of coded pictures in the stream
	}{
		{"plain.heic", Picture{Tile: yuv(160, 128, 8, 1, 1, 1, 6), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: whole(160, 128), Orientation: 1}, false, 1},
		{"deep.heic", Picture{Tile: yuv(160, 128, 8, 0, 0, 1, 6), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: whole(160, 128), Orientation: 1}, false, 1},
		{"alpha.heic", Picture{Tile: yuv(160, 128, 8, 1, 1, 1, 6), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: whole(160, 128), Orientation: 1}, true, 1},
		{"alpha.avif", Picture{Codec: AV1, Tile: yuv(160, 128, 8, 0, 0, 1, 6), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: whole(160, 128), Orientation: 1, Premultiplied: true}, true, 1},
		{"gray.avif", Picture{Codec: AV1, Tile: yuv(160, 128, 10, NoChroma, NoChroma, 1, 6), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: whole(160, 128), Orientation: 1}, false, 1},
		{"identity.avif", Picture{Codec: AV1, Tile: yuv(160, 128, 8, 0, 0, 1, 0), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: whole(160, 128), Orientation: 1}, false, 1},
		{"grid.avif", Picture{Codec: AV1, Tile: yuv(64, 64, 8, 0, 0, 1, 6), Columns: 2, Rows: 2, Width: 128, Height: 128, Clip: whole(128, 128), Orientation: 1}, false, 4},
		{"turned.avif", Picture{Codec: AV1, Tile: yuv(160, 128, 8, 0, 0, 1, 6), Columns: 1, Rows: 1, Width: 160, Height: 128, Clip: Rect{40, 26, 140, 86}, Orientation: 5}, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Read(read(t, tt.name))
			if err != nil {
				t.Fatal(err)
			}
			if (p.Alpha != nil) != tt.alpha {
				t.Errorf("alpha channel: %v", p.Alpha)
			} else if tt.alpha && p.Alpha.Tile.Width != p.Tile.Width {
				t.Errorf("alpha channel: %+v", p.Alpha.Tile)
			}
			got := *p
			got.Alpha, got.file, got.tiles, got.Tile.coloured = nil, nil, nil, false
			if tt.want.Tile.Primaries = got.Tile.Primaries; !equal(got, tt.want) {
				t.Errorf("Read =\n%+v, want\n%+v", got, tt.want)
			}
			stream, err := p.Stream()
			if err != nil {
				t.Fatal(err)
			}
			if n := pictures(p.Codec, stream); n != tt.streams {
				t.Errorf("a stream of %d pictures, want %d", n, tt.streams)
			}
		})
	}
}

func equal(a, b Picture) bool {
	a.tiles, b.tiles = nil, nil
	return a.Codec == b.Codec && a.Tile == b.Tile && a.Columns == b.Columns && a.Rows == b.Rows && a.Width == b.Width && a.Height == b.Height &&
		a.Clip == b.Clip && a.Orientation == b.Orientation && a.Premultiplied == b.Premultiplied
}

// pictures counts the coded pictures in a stream.
func pictures(c Codec, stream []byte) (n int) {
	if c == AV1 {
		if !eachOBU(stream, func(kind int, _, _ []byte) {
			if kind == obuDelimiter {
				n++
			}
		}) {
			return -1
		}
		return n
	}
	for _, unit := range bytes.Split(stream, []byte{0, 0, 0, 1})[1:] {
		const firstSet = 32 // slices have the types below
		if unit[0]>>1&0x3f < firstSet {
			n++
		}
	}
	return n
}

// TestTransform applies properties in all orders to a picture of 4 × 3 pixels, and looks up the stored pixel of each upright one.
func TestTransform(t *testing.T) {
	type image [][]int
	rotate := func(m image) image { // anticlockwise
		out := make(image, len(m[0]))
		for y := range out {
			for x := range m {
				out[y] = append(out[y], m[x][len(out)-1-y])
			}
		}
		return out
	}
	steps := map[string]struct {
		box box
		do  func(image) image
	}{
		"turn":  {box{"irot", []byte{1}}, rotate},
		"turn3": {box{"irot", []byte{3}}, func(m image) image { return rotate(rotate(rotate(m))) }},
		"left":  {box{"imir", []byte{1}}, func(m image) image { out := clone(m); mirror(out); return out }},
		"top":   {box{"imir", []byte{0}}, func(m image) image { out := clone(m); slices.Reverse(out); return out }},
		"clip": {box{"clap", []byte{0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2}}, func(m image) image {
			x, y := (len(m[0])-2+1)/2, (len(m)-2-1)/2
			return image{m[y][x : x+2], m[y+1][x : x+2]}
		}},
	}
	stored := image{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}
	for a := range steps {
		for b := range steps {
			for c := range steps {
				h, it, want := &file{}, &item{}, clone(stored)
				clips := 0
				for i, name := range []string{a, b, c} {
					if name == "clip" {
						clips++
					}
					h.properties = append(h.properties, steps[name].box)
					it.properties = append(it.properties, i)
				}
				if clips > 1 { // the clip needs more than 2 × 2 pixels
					continue
				}
				for _, name := range []string{a, b, c} {
					want = steps[name].do(want)
				}
				tr := newTransform(4, 3)
				if err := tr.apply(h, it); err != nil {
					t.Fatalf("%s, %s, %s: %v", a, b, c, err)
				}
				for y := range want {
					for x := range want[y] {
						if sx, sy := at(tr, x, y); stored[sy][sx] != want[y][x] {
							t.Fatalf("%s, %s, %s: the pixel (%d, %d) is stored at (%d, %d), orientation %d, %+v, want %d", a, b, c, x, y, sx, sy, tr.orientation(), tr.visible, want[y][x])
						}
					}
				}
			}
		}
	}
}

func clone(m [][]int) (out [][]int) {
	for _, row := range m {
		out = append(out, slices.Clone(row))
	}
	return out
}

func mirror(m [][]int) {
	for _, row := range m {
		slices.Reverse(row)
	}
}

// at returns where the pixel (x, y) of the upright visible part is stored.
func at(t *transform, x, y int) (int, int) {
	from := func(lo, hi, v int) int {
		if v < 0 {
			return hi + v
		}
		return lo + v
	}
	pick := func(factorX, factorY, lo, hi int) int {
		switch {
		case factorX > 0:
			return from(lo, hi, x)
		case factorX < 0:
			return hi - 1 - x
		case factorY > 0:
			return from(lo, hi, y)
		}
		return hi - 1 - y
	}
	return pick(t.xx, t.xy, t.visible.X0, t.visible.X1), pick(t.yx, t.yy, t.visible.Y0, t.visible.Y1)
}

// TestDamage reads each file with every byte changed, and cut at every byte. Nothing panics, errors are those of the package, and the
// stream is not much longer than the file.
func TestDamage(t *testing.T) {
	names, err := filepath.Glob("testdata/*.*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		whole := read(t, filepath.Base(name))
		for i := range whole {
			try(t, whole[:i])
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				b := bytes.Clone(whole)
				b[i] = v
				try(t, b)
			}
		}
	}
}

func try(t *testing.T, b []byte) {
	p, err := Read(b)
	for err == nil && p != nil {
		var stream []byte
		if stream, err = p.Stream(); len(stream) > 8*len(b)+1<<16 {
			t.Fatalf("a stream of %d bytes of a file of %d", len(stream), len(b))
		}
		p = p.Alpha
	}
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
		t.Fatal(err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"plain.heic", "alpha.heic", "grid.avif", "turned.avif"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) { try(t, b) })
}
