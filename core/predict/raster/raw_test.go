package raster

import (
	"bytes"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

// TestRaw checks that camera raw is its largest JPEG, turned by the orientation of the raw file and not by that of the JPEG.
func TestRaw(t *testing.T) {
	m := noisy(648, 40)
	preview := turnJPEG(asJPEG(t, m), 3)
	d := NewDecoder(Limits{})
	for _, orientation := range []int{3, 6, 8} {
		turned := turnJPEG(asJPEG(t, m), orientation)
		want, err := d.Decode(turned, View{MaxSide: 64})
		check(t, err)
		pix := slices.Clone(want.Pix)
		for name, file := range rawtest.Files(preview, orientation) {
			if name == "raf" { // the orientation of the JPEG counts
				file = rawtest.Files(turned, 0)[name]
			}
			kind, err := InspectPicture(file)
			if err != nil || kind.MediaType != rawtest.MediaTypes[name] || kind.Kind != Picture || !kind.Supported {
				t.Errorf("%s: InspectPicture = %+v, %v", name, kind, err)
			}
			info, err := Inspect(file)
			width, height := 648, 40
			if orientation >= 5 {
				width, height = height, width
			}
			if want := (Info{"raw", width, height, orientation, 1}); err != nil || info != want {
				t.Errorf("%s: Inspect = %+v, %v, want %+v", name, info, err, want)
			}
			got, err := d.Decode(file, View{MaxSide: 64})
			if err != nil || got.Width != want.Width || got.Height != want.Height || !bytes.Equal(got.Pix, pix) {
				t.Errorf("%s with orientation %d: other pixels, %v", name, orientation, err)
			}
		}
	}
}

// TestRawWithoutPreview checks that the error about a raw file with a thumbnail only has the name of the format.
func TestRawWithoutPreview(t *testing.T) {
	for name, file := range rawtest.Files(asJPEG(t, image.NewGray(image.Rect(0, 0, 639, 480))), 1) {
		_, err := Inspect(file)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), " raw ("+strings.ToUpper(name)+")") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRawBytes checks that camera raw may have more bytes than other pictures, and a TIFF may not.
func TestRawBytes(t *testing.T) {
	limits := Limits{}.WithDefaults()
	files := rawtest.Files(asJPEG(t, image.NewGray(image.Rect(0, 0, 640, 8))), 1)
	for name, file := range files {
		if limit := SizeLimit(file[:min(len(file), 1024)]); limit != 64_000_000 {
			t.Errorf("%s may have %d bytes", name, limit)
		}
	}
	file := append(files["nef"], make([]byte, int(limits.Bytes))...)
	if _, err := Inspect(file); err != nil {
		t.Error(err)
	}
	plain := append(asTIFF(t, noisy(12, 9), 0), make([]byte, int(limits.Bytes))...)
	for name, b := range map[string][]byte{"NEF": append(file, make([]byte, int(limits.RawBytes-limits.Bytes))...), "TIFF": plain} {
		if _, err := Inspect(b); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s of %d bytes: %v", name, len(b), err)
		}
	}
	for start, want := range map[string]int64{"\xff\xd8\xff": limits.Bytes, "": limits.Bytes, "text": limits.Bytes, "II*\x00": limits.RawBytes} {
		if got := SizeLimit([]byte(start)); got != want {
			t.Errorf("SizeLimit(%q) = %d, want %d", start, got, want)
		}
	}
}
