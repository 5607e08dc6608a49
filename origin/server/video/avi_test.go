package video

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
)

// Geometry of the film that newFilm makes.
const (
	filmWidth, filmHeight = 48, 32
	filmMS                = 100 // time from one picture to the next
)

// newFilm returns an AVI of grey JPEGs, ten a second. Picture i has the luma 10·i.
func newFilm(t testing.TB, pictures int) []byte { return newFilmOf(t, pictures, filmWidth, filmHeight) }

func newFilmOf(t testing.TB, pictures, width, height int) []byte {
	t.Helper()
	le := binary.LittleEndian
	chunk := func(id string, body ...[]byte) []byte {
		all := bytes.Join(body, nil)
		return append(append(le.AppendUint32([]byte(id), uint32(len(all))), all...), make([]byte, len(all)%2)...)
	}
	list := func(kind string, body ...[]byte) []byte {
		return chunk("LIST", append([][]byte{[]byte(kind)}, body...)...)
	}
	numbers := func(all ...any) []byte {
		var b bytes.Buffer
		for _, n := range all {
			if err := binary.Write(&b, le, n); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	var movie, index []byte
	for i := range pictures {
		grey := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
		for j := range grey.Y {
			grey.Y[j] = byte(10 * i)
		}
		for j := range grey.Cb {
			grey.Cb[j], grey.Cr[j] = 128, 128
		}
		var picture bytes.Buffer
		if err := jpeg.Encode(&picture, grey, &jpeg.Options{Quality: 100}); err != nil {
			t.Fatal(err)
		}
		index = append(index, numbers([]byte("00dc"), uint32(0x10), uint32(4+len(movie)), uint32(picture.Len()))...)
		movie = append(movie, chunk("00dc", picture.Bytes())...)
	}
	n := uint32(pictures)
	return chunk("RIFF", []byte("AVI "),
		list("hdrl",
			chunk("avih", numbers(uint32(filmMS*1000), uint32(0), uint32(0), uint32(0x10), n, uint32(0), uint32(1), uint32(0),
				uint32(width), uint32(height), [4]uint32{})),
			list("strl",
				chunk("strh", []byte("vidsMJPG"), numbers(uint32(0), uint32(0), uint32(0), uint32(filmMS), uint32(1000), uint32(0), n,
					uint32(0), uint32(0), uint32(0), uint64(0))),
				chunk("strf", numbers(uint32(40), uint32(width), uint32(height), uint16(1), uint16(24)), []byte("MJPG"), make([]byte, 20)))),
		list("movi", movie),
		chunk("idx1", index))
}

// writeFilm stores a film in a file and opens the file.
func writeFilm(t testing.TB, film []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film")
	if err := os.WriteFile(name, film, 0o600); err != nil {
		t.Fatal(err)
	}
	return openFilm(t, name)
}

// TestFrameAtEachTime decodes films whose pictures show their number, also at sample times between two pictures. The frame of a time is the
// newest picture that is not later. The last time is not after the last picture. Times begin at the first picture, even if the sound begins
// before it. All frames of a film have one size.
func TestFrameAtEachTime(t *testing.T) {
	d := decoder(t, Options{})
	for _, tt := range []struct {
		film                            *os.File
		pictures, width, height, offset int
		samples                         []int
	}{
		{writeFilm(t, newFilm(t, 25)), 25, filmWidth, filmHeight, 0, []int{100, 110, 333, 2400, 2401, 600_000}},
		{openFilm(t, "testdata/late.webm"), 16, 64, 48, 20, []int{110, 500}},
		{openFilm(t, "testdata/sizes.webm"), 17, 64, 48, 20, []int{110}},
	} {
		for _, ms := range tt.samples {
			i := 0
			for f, err := range d.Frames(t.Context(), tt.film, every(ms)) {
				if err != nil {
					t.Fatalf("%s, %d ms: %v", tt.film.Name(), ms, err)
				}
				p := f.Planes
				want := tt.offset + i*ms/filmMS*10
				if got := int(p.Pix[tt.width*tt.height/2]); f.Index != i || f.TimeMS != int64(i*ms) || p.Width != tt.width || p.Height != tt.height ||
					len(p.Pix) != tt.width*tt.height*3/2 || max(got-want, want-got) > 4 {
					t.Errorf("%s, %d ms: frame %d at %d ms shows %d and has %d bytes, want %d", tt.film.Name(), ms, f.Index, f.TimeMS, got, len(p.Pix), want)
				}
				i++
			}
			if want := (tt.pictures-1)*filmMS/ms + 1; i != want {
				t.Errorf("%s, %d ms: %d frames, want %d", tt.film.Name(), ms, i, want)
			}
		}
	}
}
