package video

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/location"
)

// atom returns a box of an MP4 or QuickTime file. parts are strings and numbers, which it writes big-endian.
func atom(kind string, parts ...any) []byte {
	var b bytes.Buffer
	b.WriteString("size" + kind)
	for _, p := range parts {
		if text, ok := p.(string); ok {
			p = []byte(text)
		}
		_ = binary.Write(&b, binary.BigEndian, p) // cannot fail: numbers, to memory
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()))
	return b.Bytes()
}

// track returns a track with one chunk of samples at offset at, one every filmMS.
func track(id uint32, matrix [9]int32, size image.Point, handler string, entry []byte, at int, samples [][]byte, more ...any) []byte {
	n, lengths := uint32(len(samples)), []uint32(nil)
	for _, s := range samples {
		lengths = append(lengths, uint32(len(s)))
	}
	head := atom("tkhd", uint32(3), [2]uint32{}, id, uint32(0), n*filmMS, [4]uint32{}, matrix, uint32(size.X)<<16, uint32(size.Y)<<16)
	table := atom("stbl",
		atom("stsd", uint32(0), uint32(1), entry),
		atom("stts", uint32(0), uint32(1), n, uint32(filmMS)),
		atom("stsc", uint32(0), uint32(1), [3]uint32{1, n, 1}),
		atom("stsz", uint32(0), uint32(0), n, lengths),
		atom("stco", uint32(0), uint32(1), uint32(at)))
	media := atom("mdia",
		atom("mdhd", [3]uint32{}, uint32(1000), n*filmMS, uint32(0)),
		atom("hdlr", uint32(0), "mhlr"+handler, [3]uint32{}, byte(0)),
		atom("minf", atom("vmhd", uint32(1), [4]uint16{}), atom("dinf", atom("dref", uint32(0), uint32(1), atom("url ", uint32(1)))), table))
	return atom("trak", append([]any{head, media}, more...)...)
}

// newMOV returns a QuickTime film of a picture of four greys. m is the matrix of its track. If place is not empty, the film has it in
// every box that cameras write it to, and as the samples of a track.
func newMOV(t testing.TB, m [9]int32, place string) []byte {
	t.Helper()
	size := image.Pt(64, 48)
	grey := image.NewGray(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			grey.SetGray(x, y, color.Gray{Y: greys[y/(size.Y/2)][x/(size.X/2)]})
		}
	}
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, grey, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	frames := [][]byte{picture.Bytes(), picture.Bytes(), picture.Bytes()}
	entry := atom("jpeg", [6]byte{}, uint16(1), [4]uint32{}, uint16(size.X), uint16(size.Y), uint32(72<<16), uint32(72<<16), uint32(0), uint16(1), [32]byte{}, uint16(24), int16(-1))
	start := atom("ftyp", "qt  ", uint32(0), "qt  ")
	movie := bytes.Join(frames, nil)
	boxes := []any{atom("mvhd", [3]uint32{}, uint32(1000), uint32(3*filmMS), uint32(1<<16), uint16(1<<8), [5]uint16{}, upright, [6]uint32{}, uint32(3))}
	at := len(start) + 8
	if place == "" {
		boxes = append(boxes, track(1, m, size, "vide", entry, at, frames))
		return bytes.Join([][]byte{start, atom("mdat", movie), atom("moov", boxes...)}, nil)
	}
	user := atom("udta", atom("\xa9xyz", uint16(len(place)), uint16(0), place), atom("loci", uint32(0), uint16(0), place+"\x00", byte(0), [3]uint32{}, "earth\x00\x00"))
	meta := atom("meta", atom("hdlr", [2]uint32{}, "mdta", [3]uint32{}, byte(0)),
		atom("keys", uint32(0), uint32(1), atom("mdta", "com.apple.quicktime.location.ISO6709")), atom("ilst", atom("\x00\x00\x00\x01", atom("data", uint32(1), uint32(0), place))))
	boxes = append(boxes,
		track(1, m, size, "vide", entry, at, frames, user),
		track(2, upright, image.Point{}, "meta", atom("mebx", [6]byte{}, uint16(1)), at+len(movie), [][]byte{[]byte(place), []byte(place)}),
		user, meta)
	return bytes.Join([][]byte{
		start, atom("mdat", movie, place, place), atom("moov", boxes...),
		atom("uuid", "\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac", place), user,
	}, nil)
}

// greys has the luma of each quarter of newMOV's picture, by row and column.
var greys = [2][2]byte{{40, 90}, {140, 200}}

var upright = matrixOf(1, 0, 0, 1)

func matrixOf(a, b, c, d int32) [9]int32 {
	return [9]int32{a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30}
}

// TestMirrored checks that films with each matrix of right angles, mirrored or not, are shown upright.
func TestMirrored(t *testing.T) {
	d := decoder(t, Options{})
	pictures := raster.NewDecoder(raster.Limits{})
	matrices := [][4]int32{{0, 1, 1, 0}, {-1, 0, 0, 1}, {1, 0, 0, -1}, {0, -1, -1, 0}, {0, 1, -1, 0}, {-1, 0, 0, -1}, {0, -1, 1, 0}, {1, 0, 0, 1}}
	for _, m := range matrices[:testkit.Size(t, 1, 2, 8, 8)] {
		a, b, c, e := m[0], m[1], m[2], m[3]
		f, err := first(d.Frames(t.Context(), writeFilm(t, newMOV(t, matrixOf(a, b, c, e), "")), every(1000)))
		if err != nil {
			t.Fatal(err)
		}
		img, err := pictures.Planes(f.Planes, raster.View{Width: 2, Height: 2})
		if err != nil {
			t.Fatal(err)
		}
		for y, row := range greys {
			for x, want := range row {
				from := [2]int32{int32(2*x - 1), int32(2*y - 1)} // relative to the middle
				to := [2]int32{(a*from[0] + c*from[1] + 1) / 2, (b*from[0] + e*from[1] + 1) / 2}
				if got := img.Pix[3*(2*to[1]+to[0])]; max(got, want)-min(got, want) > 3 {
					t.Errorf("matrix %v: quarter %v shows %d, want %d", m, to, got, want)
				}
			}
		}
	}
}

// TestFilmWithoutLocation removes the place from a film. No copy of the place is left, and the frames are the same.
func TestFilmWithoutLocation(t *testing.T) {
	const place = "+48.8584+002.2945/"
	d := decoder(t, Options{})
	film := newMOV(t, matrixOf(0, 1, 1, 0), place)
	edits, err := location.Edits(t.Context(), film)
	if err != nil {
		t.Fatal(err)
	}
	reduced := bytes.Clone(film)
	location.Apply(edits, reduced, 0)
	if n := strings.Count(string(film), place); n != 10 || bytes.Contains(reduced, []byte(place)) || len(reduced) != len(film) {
		t.Errorf("the film has %d places and %d bytes, the other one %d bytes: %q", n, len(film), len(reduced), reduced)
	}
	want, err := all(t, d, writeFilm(t, film), every(filmMS))
	if err != nil || len(want) != 3 {
		t.Fatalf("%d frames, %v", len(want), err)
	}
	got, err := all(t, d, writeFilm(t, reduced), every(filmMS))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	for i := range got {
		if got[i].sum != want[i].sum || got[i].Planes.Rotation != want[i].Planes.Rotation {
			t.Errorf("frame %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
