package location

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// exifForms returns Exif data with the orientation 6, in the forms that programs write.
func exifForms() map[string][]byte {
	forms := map[string][]byte{}
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		short := entry{tag: 274, kind: 3, value: order.AppendUint16(nil, 6)}
		long := entry{tag: 274, kind: 4, value: order.AppendUint32(nil, 6)}
		dir := func(entries ...entry) []byte { return tiffDir(tiffHeader(order, 8), order, entries, 0) }
		for name, b := range map[string][]byte{
			"SHORT": dir(short), "LONG": dir(long), "SHORT after a text": dir(entry{tag: 270, kind: 2, value: []byte(marker)}, short),
			"SHORT without an offset after it": dir(short)[:22], "LONG without an offset after it": dir(long)[:22],
			"bytes": dir(entry{tag: 274, kind: 1, value: []byte{6}}), "two numbers": dir(entry{tag: 274, kind: 3, value: []byte{6, 0, 6, 0}}),
			"9": dir(entry{tag: 274, kind: 3, value: order.AppendUint16(nil, 9)}),
		} {
			forms[fmt.Sprint(order, ", ", name)] = b
			forms[fmt.Sprint(order, ", ", name, ", after Exif")] = append([]byte(exifStart), b...)
		}
	}
	inHeader := []byte("II*\x00\x02\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00")
	forms["directory in the header"] = inHeader
	return forms
}

// TestOrientationAgrees checks that the recogniser turns a hosted copy as it turns the original, and that the copy has the orientation in
// the form of its format's specification, which every browser reads.
func TestOrientationAgrees(t *testing.T) {
	var j, p bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, 30, 20))
	if err := jpeg.Encode(&j, m, nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&p, m); err != nil {
		t.Fatal(err)
	}
	end := p.Len() - 12
	for name, exif := range exifForms() {
		withPrefix := exif
		if !bytes.HasPrefix(exif, []byte(exifStart)) {
			withPrefix = append([]byte(exifStart), exif...)
		}
		chunk := pngChunk("eXIf", string(exif))
		for format, file := range map[string][]byte{
			"jpeg":              slices.Concat([]byte("\xff\xd8"), segment(0xe1, string(withPrefix)), j.Bytes()[2:]),
			"png":               slices.Concat(p.Bytes()[:33], chunk, p.Bytes()[33:]),
			"png, after pixels": slices.Concat(p.Bytes()[:end], chunk, p.Bytes()[end:]),
			"png, after end":    slices.Concat(p.Bytes(), chunk),
			"webp": riff("RIFF", []byte("WEBP"), riff("VP8X", []byte{8, 0, 0, 0, 0, 0, 0, 0, 0, 0}), riff("VP8L", onePixel),
				riff("EXIF", exif)),
		} {
			before, err := raster.Inspect(file)
			if err != nil {
				t.Fatal(format, err)
			}
			got := remove(t, file)
			after, err := raster.Inspect(got)
			if err != nil || after.Orientation != before.Orientation {
				t.Errorf("%s, %s: orientation %d becomes %d, %v", format, name, before.Orientation, after.Orientation, err)
			}
			if before.Orientation != 6 {
				continue
			}
			canonical := []byte("II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00")
			if format == "jpeg" {
				canonical = append([]byte("\x00\x00"), canonical...)
			}
			if !bytes.Contains(got, canonical) {
				t.Errorf("%s, %s: %q", format, name, got)
			}
			if format != "jpeg" && bytes.Contains(got, []byte(exifStart)) {
				t.Errorf("%s, %s: its Exif begins as in a JPEG", format, name)
			}
		}
	}
}
