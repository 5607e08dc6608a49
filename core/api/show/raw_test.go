package show_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/jpeg"
	"testing"

	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

// TestCameraRaw sends camera raw as base64: it may have more bytes than other pictures, and has the media type of its format.
func TestCameraRaw(t *testing.T) {
	var preview bytes.Buffer
	if err := jpeg.Encode(&preview, image.NewGray(image.Rect(0, 0, 640, 8)), nil); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, 21_000_000)
	decode := func(data []byte) (string, error) {
		var doc jsonio.Doc
		text := `"` + base64.StdEncoding.EncodeToString(data) + `"`
		if err := doc.Parse([]byte(text), jsonio.Limits{Bytes: len(text)}); err != nil {
			t.Fatal(err)
		}
		_, contentType, err := show.DecodePicture(nil, doc.Root(), "base64")
		return contentType, err
	}
	if contentType, err := decode(append(rawtest.Files(preview.Bytes(), 1)["nef"], rest...)); err != nil || contentType != "image/x-nikon-nef" {
		t.Errorf("%q, %v", contentType, err)
	}
	if _, err := decode(append(preview.Bytes(), rest...)); !errors.Is(err, raster.ErrTooLarge) {
		t.Errorf("a JPEG of %d bytes: %v", preview.Len()+len(rest), err)
	}
}
