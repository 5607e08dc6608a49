package raster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/image/webp"
)

// bitWriter writes bits, the lowest of each byte first.
type bitWriter struct {
	b []byte
	n uint
}

func (w *bitWriter) write(v uint32, n uint) {
	for i := range n {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[len(w.b)-1] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
}

// one writes a prefix code of one symbol.
func (w *bitWriter) one(symbol uint32) {
	w.write(0b101, 3) // simple, one symbol, of eight bits
	w.write(symbol, 8)
}

// vp8lWithGroups returns a lossless picture of 100 × 100 pixels. Its pixels use the group with the number last, and the file has the codes
// of so many groups.
func vp8lWithGroups(last, groups int) []byte {
	var w bitWriter
	w.write(0x2f, 8)
	w.write(99, 14)
	w.write(99, 14)
	w.write(0, 1+3)
	w.write(0, 1+1) // no transform, no cache
	w.write(1, 1)
	w.write(5, 3) // tiles of 128
	w.write(0, 1) // the image of groups: no cache, one pixel
	for _, symbol := range []uint32{uint32(last & 255), uint32(last >> 8), 0, 0, 0} {
		w.one(symbol)
	}
	for range groups {
		for _, symbol := range []uint32{10, 20, 30, 255, 0} {
			w.one(symbol)
		}
	}
	f := webpFrame{kind: "VP8L", data: w.b}
	return f.file(nil)
}

func TestGroups(t *testing.T) {
	tests := []struct {
		last, groups int
		err          error
	}{
		{0, 1, nil},
		{2, 3, nil},
		{maxGroups - 1, maxGroups, nil},
		{maxGroups, maxGroups + 1, ErrTooLarge},
		{65535, 0, ErrTooLarge}, // some 30 bytes
		{2000, 10, ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d of %d", tt.groups, tt.last+1), func(t *testing.T) {
			img, err := NewDecoder(Limits{}).Decode(vp8lWithGroups(tt.last, tt.groups), View{MaxSide: 100})
			if !errors.Is(err, tt.err) {
				t.Fatalf("Decode = %v, want %v", err, tt.err)
			}
			if err == nil && (img.Width != 100 || !bytes.Equal(img.Pix[:3], []byte{20, 10, 30})) {
				t.Errorf("%d wide, first pixel %v", img.Width, img.Pix[:3])
			}
		})
	}
}

// TestGroupsOfRealPictures checks that checkGroups accepts files of libwebp, and that golang.org/x/image/webp cannot read any shortened
// file that checkGroups refuses.
func TestGroupsOfRealPictures(t *testing.T) {
	for _, name := range []string{"lossless.webp", "alpha.webp"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseWebP(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.still.checkGroups(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		part := &f.still.data
		if f.still.alpha != nil {
			part = &f.still.alpha
		}
		data := *part
		for n := 6; n < len(data); n++ {
			*part = data[:n]
			if err := f.still.checkGroups(); err == nil {
				continue
			}
			if _, err := webp.Decode(bytes.NewReader(f.still.file(nil))); err == nil {
				t.Errorf("%s: the library reads the first %d bytes", name, n)
			}
		}
	}
}
