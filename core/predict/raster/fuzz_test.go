package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/sightline-dev/sightline/core/predict/raster/raw/rawtest"
)

// fuzzLimits keeps fuzzed pictures small, so that the fuzzer can try many.
var fuzzLimits = Limits{Bytes: 1 << 20, Pixels: 1 << 18, TightPixels: 1 << 18, BaselinePixels: 1 << 20, ProgressivePixels: 1 << 20, Frames: 20}

// maxFuzzBytes is the maximum that decoding one picture may allocate in total: 6 MB by the limits, the rest for the libraries' readers.
const maxFuzzBytes = 48 << 20

// fuzzDecode checks the promises of Decode for any bytes: the size that the headers and the view determine, an error of one of the four
// kinds, bounded memory, the same result twice, and agreement with Inspect.
func fuzzDecode(t *testing.T, b []byte) {
	v := View{MaxSide: 40}
	d := NewDecoder(fuzzLimits)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := d.Decode(b, v)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxFuzzBytes {
		t.Fatalf("took %d MB", n>>20)
	}
	info, infoErr := Inspect(b)
	if err != nil {
		known := errors.Is(err, ErrUnsupported) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrCorrupt)
		if !known || errors.Is(err, ErrExpired) {
			t.Fatalf("Decode = %v", err)
		}
		return
	}
	if infoErr != nil {
		t.Fatalf("Decode took what Inspect refuses: %v", infoErr)
	}
	if w, h, err := v.size(info.Width, info.Height); err != nil || w != got.Width || h != got.Height || len(got.Pix) != 3*w*h {
		t.Fatalf("%d × %d with %d bytes of %+v", got.Width, got.Height, len(got.Pix), info)
	}
	first := slices.Clone(got.Pix)
	for range 2 { // with used scratch memory, then with new
		if got, err = d.Decode(b, v); err != nil || !slices.Equal(got.Pix, first) {
			t.Fatalf("another picture the second time: %v", err)
		}
		d = NewDecoder(fuzzLimits)
	}
	// At the picture's own size, a decoder of the standard library or of x/image is the oracle.
	if info.Width <= 256 && info.Height <= 256 {
		full, err := d.Decode(b, View{Width: info.Width, Height: info.Height})
		if err != nil {
			t.Fatalf("its own size: %v", err)
		}
		sameAsLibrary(t, b, info, flat{full.Width, full.Height, full.Pix})
	}
}

// sameAsLibrary compares got with the result of the format's library.
func sameAsLibrary(t *testing.T, b []byte, info Info, got flat) {
	t.Helper()
	decode := map[string]func(io.Reader) (image.Image, error){
		"jpeg": jpeg.Decode, "png": png.Decode, "bmp": bmp.Decode, "tiff": tiff.Decode,
	}[info.Format]
	if info.Format == "gif" {
		sameAsStandardGIF(t, b)
		return
	}
	if decode == nil {
		return
	}
	m, err := decode(bytes.NewReader(b))
	if h, headerErr := inspect(b, fuzzLimits.WithDefaults()); headerErr == nil && h.planes {
		if err == nil {
			t.Fatal("the library reads YCbCr or JPEG in TIFF: compare")
		}
		return
	}
	if err != nil {
		t.Fatalf("taken, but the library says %v", err)
	}
	stored := flatten(m)
	if c, ok := m.(*image.CMYK); ok {
		stored = newFlat(stored.w, stored.h, func(x, y int) [3]byte {
			p := c.CMYKAt(x, y)
			r, g, b := color.CMYKToRGB(p.C, p.M, p.Y, p.K)
			return [3]byte{r, g, b}
		})
	}
	if want := stored.upright(info.Orientation); !slices.Equal(got.pix, want.pix) {
		if _, premultiplied := m.(*image.RGBA); premultiplied && info.Format == "tiff" {
			return // colours above their alpha have no meaning that two could agree on
		}
		if _, premultiplied := m.(*image.RGBA64); premultiplied && info.Format == "tiff" {
			return
		}
		t.Fatalf("%s differs from the library's picture", info.Format)
	}
}

// smallPictures returns seeds of every format, with an orientation if the format has one.
func smallPictures(t testing.TB) map[string][][]byte {
	m := noisy(12, 9)
	var raws [][]byte
	for _, name := range rawtest.Names() {
		raws = append(raws, rawtest.Files(asJPEG(t, image.NewGray(image.Rect(0, 0, 640, 8))), 6)[name])
	}
	return map[string][][]byte{
		"jpeg": {
			asJPEG(t, m), turnJPEG(asJPEG(t, m), 6), asJPEG(t, grey(m)), manyScans(t, 3), progressive(asJPEG(t, grey(m))),
			jpegSize(asJPEG(t, m), 65535, 65535),
		},
		"png": {
			asPNG(t, m), turnPNG(asPNG(t, m), 7), asPNG(t, grey16(m)), asPNG(t, toPaletted(m)), asPNG(t, deepAlpha(m)),
			pngHeader(65535, 65535, 8, 6, 0),
		},
		"gif": {
			asGIF(t, toPaletted(m)), asInterlacedGIF(t, toPaletted(m)), manyFrames(5), gifHeader(65535, 65535),
			gifOf(t, gifTestFrame{pix: "rrgbgbrr", disposal: 3}, gifTestFrame{x: 1, pix: "b.", disposal: 2}),
		},
		"webp": {
			fixture(t, "lossy.webp"), fixture(t, "lossless.webp"), fixture(t, "alpha.webp"), fixture(t, "animated.webp"),
			turnWebP(fixture(t, "lossless.webp"), 33, 21, 5), webpHeader(16384, 16384, 16384, 16384),
			webpOf(webpTestFrame{0, 4, 100, 0, color.NRGBA{R: 255, A: 255}}, webpTestFrame{2, 1, 50, 3, color.NRGBA{A: 9}}),
		},
		"bmp": {asBMP(t, m), asBMP(t, grey(m)), asBMP(t, toPaletted(m)), bmpHeader(65535, 65535, 24)},
		"tiff": {
			asTIFF(t, m, tiff.Uncompressed), turnTIFF(asTIFF(t, m, tiff.Deflate), 8), asTIFF(t, grey16(m), tiff.Deflate),
			asTIFF(t, toPaletted(m), tiff.Uncompressed), tiffHeader(65535, 65535, 1, 8, nil),
			ycbcrTIFF(image.NewYCbCr(image.Rect(0, 0, 9, 7), image.YCbCrSubsampleRatio420), 2, 6), jpegTIFF(t, noisy(19, 17)),
			fixture(t, "tiff/lzw-21-tiles.tif"), fixture(t, "tiff/deflate-12-strips.tif"), fixture(t, "tiff/jpeg-41-strips.tif"),
			fixture(t, "tiff/packbits-41-bt709-range.tif"), fixture(t, "tiff/jpeg-grey-pillow.tif"),
		},
		"raw": raws,
	}
}

func fuzzFormat(f *testing.F, format string) {
	for _, b := range smallPictures(f)[format] {
		f.Add(b)
	}
	f.Fuzz(fuzzDecode)
}

func FuzzJPEG(f *testing.F) { fuzzFormat(f, "jpeg") }
func FuzzPNG(f *testing.F)  { fuzzFormat(f, "png") }
func FuzzGIF(f *testing.F)  { fuzzFormat(f, "gif") }
func FuzzWebP(f *testing.F) { fuzzFormat(f, "webp") }
func FuzzBMP(f *testing.F)  { fuzzFormat(f, "bmp") }
func FuzzTIFF(f *testing.F) { fuzzFormat(f, "tiff") }
func FuzzRaw(f *testing.F)  { fuzzFormat(f, "raw") }

// FuzzInspect checks the reading of headers: errors of the four kinds only, sizes within the limits, and memory that does not grow with
// the declared size.
func FuzzInspect(f *testing.F) {
	for _, pictures := range smallPictures(f) {
		for _, b := range pictures {
			f.Add(b)
		}
	}
	f.Add([]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"))
	f.Add([]byte("<svg/>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		info, err := Inspect(b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Fatalf("took %d bytes", n)
		}
		switch {
		case err == nil:
			if info.Width < 1 || info.Height < 1 || max(info.Width, info.Height) > 30_000 || info.Frames < 1 || info.Frames > 1000 ||
				info.Orientation < 1 || info.Orientation > 8 || !slices.Contains(formatNames[1:], info.Format) {
				t.Fatalf("Inspect = %+v", info)
			}
		case !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrCorrupt):
			t.Fatalf("Inspect = %v", err)
		}
	})
}

// FuzzFrames checks that an animation has pictures of the promised size at the promised times, that the first one equals
// Decode's, and that their number is Len.
func FuzzFrames(f *testing.F) {
	for _, b := range append(smallPictures(f)["gif"], smallPictures(f)["webp"]...) {
		f.Add(b, uint16(100))
		f.Add(b, uint16(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, ms uint16) {
		d, v, sample := NewDecoder(fuzzLimits), View{MaxSide: 24}, time.Duration(ms)*time.Millisecond+time.Millisecond
		frames, err := d.Frames(b, sample)
		if err != nil {
			return
		}
		var first []byte
		seen := 0
		for ; err == nil && seen < 200; seen++ {
			var at time.Duration
			if at, err = frames.Next(); err != nil {
				break
			}
			var img Image
			if img, err = frames.Image(v); err != nil {
				break
			}
			if at != time.Duration(seen)*sample || len(img.Pix) != 3*img.Width*img.Height || max(img.Width, img.Height) > 24 {
				t.Fatalf("picture %d of %d × %d at %v", seen, img.Width, img.Height, at)
			}
			if seen == 0 {
				first = slices.Clone(img.Pix)
			}
		}
		if frames.decoded > fuzzLimits.Frames || err == io.EOF && seen != frames.Len() {
			t.Fatalf("%d pictures of %d frames, %d promised: %v", seen, frames.decoded, frames.Len(), err)
		}
		if seen > 0 {
			if img, err := d.Decode(b, v); err != nil || !slices.Equal(img.Pix, first) {
				t.Fatalf("Decode differs from the first picture: %v", err)
			}
		}
	})
}

// FuzzPlanes checks that a frame with any fields gives a picture of the promised size or an error, with bounded memory.
func FuzzPlanes(f *testing.F) {
	f.Add(int32(4), int32(2), int8(1), int8(1), uint8(8), uint8(0), false, uint8(6), make([]byte, 12))
	f.Add(int32(3), int32(3), int8(NoChroma), int8(NoChroma), uint8(10), uint8(3), true, uint8(0), make([]byte, 18))
	f.Add(int32(65535), int32(65535), int8(0), int8(2), uint8(12), uint8(4), true, uint8(9), []byte{1})
	f.Fuzz(func(t *testing.T, w, h int32, subX, subY int8, depth, matrix uint8, full bool, rotation uint8, pix []byte) {
		p := Planes{
			Width: int(w), Height: int(h), SubX: int(subX), SubY: int(subY), Depth: int(depth),
			Matrix: Matrix(matrix), Full: full, Rotation: int(rotation), Pix: pix,
		}
		d := NewDecoder(fuzzLimits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		img, err := d.Planes(p, View{MaxSide: 24})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Fatalf("took %d bytes", n)
		}
		size, sizeErr := p.Size()
		switch {
		case err == nil:
			if sizeErr != nil || size != len(pix) || max(img.Width, img.Height) > 24 || len(img.Pix) != 3*img.Width*img.Height {
				t.Fatalf("%d × %d with %d bytes of %d, %v", img.Width, img.Height, len(img.Pix), size, sizeErr)
			}
		case !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrCorrupt):
			t.Fatalf("Planes = %v", err)
		}
	})
}

// FuzzCrop compares a crop of a picture with the same part, cut out of the whole picture slowly.
func FuzzCrop(f *testing.F) {
	f.Add(0.0, 0.0, 0.0, 0.0, uint8(1), uint8(15), uint8(7), uint8(9))
	f.Add(0.1, 0.2, 0.8, 0.9, uint8(6), uint8(0), uint8(3), uint8(3))
	f.Add(0.5, 0.5, 0.5000001, 1.0, uint8(8), uint8(16), uint8(1), uint8(1))
	f.Add(math.NaN(), 0.0, 1.0, 1.0, uint8(2), uint8(1), uint8(2), uint8(2))
	f.Add(0.0, 0.0, 1.0, 1.0, uint8(5), uint8(15+8*17), uint8(12), uint8(8))
	picture := noisy(29, 23)
	var turned [9][]byte
	for o := 1; o <= 8; o++ {
		turned[o] = turnPNG(asPNG(f, picture), o)
	}
	stored := flatten(picture)
	d := NewDecoder(Limits{})
	f.Fuzz(func(t *testing.T, top, left, bottom, right float64, o, sixteenths, w, h uint8) {
		orientation := 1 + int(o)%8
		v := View{Crop: Crop{top, left, bottom, right}, Centre: int(sixteenths) % 17, Box: sixteenths >= 128, Width: 1 + int(w)%30, Height: 1 + int(h)%30}
		got, err := d.Decode(turned[orientation], v)
		fine := top >= 0 && top < bottom && bottom <= 1 && left >= 0 && left < right && right <= 1
		if uncropped := v.Crop == (Crop{}); !fine && !uncropped {
			if !errors.Is(err, errCrop) {
				t.Fatalf("Decode(%+v) = %v, want %v", v, err, errCrop)
			}
			return
		}
		if err != nil || got.Width != v.Width || got.Height != v.Height {
			t.Fatalf("Decode(%+v) = %d × %d, %v", v, got.Width, got.Height, err)
		}
		reference := stored.upright(orientation)
		l, tp, r, b, err := v.Crop.pixels(reference.w, reference.h)
		if err != nil {
			t.Fatal(err)
		}
		part := reference.part(l, tp, r, b)
		wide, high := 16*part.w, 16*part.h
		if v.Centre > 0 {
			wide = v.Centre * min(part.w, part.h)
			high = wide
		}
		if wide < 16*v.Width || high < 16*v.Height {
			return // enlarged: resize_test.go has the oracle
		}
		square := View{Centre: v.Centre, Box: v.Box, Width: v.Width, Height: v.Height}
		if diff := difference(got, part.view(square)); diff != "" {
			t.Fatalf("%+v, orientation %d: %s", v, orientation, diff)
		}
	})
}

// FuzzOrientation checks that the reader of EXIF returns 1 to 8 for any bytes, and the written orientation for an intact block.
func FuzzOrientation(f *testing.F) {
	f.Add(exifBlock(binary.LittleEndian, 6), uint8(3))
	f.Add(exifBlock(binary.BigEndian, 9), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, o uint8) {
		if got := exif.Orientation(b); got < 1 || got > 8 {
			t.Fatalf("Orientation = %d", got)
		}
		// Bytes after the directory do not matter.
		want := 1 + int(o)%8
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			if got := exif.Orientation(append(exifBlock(order, want), b...)); got != want {
				t.Fatalf("Orientation = %d, want %d", got, want)
			}
		}
	})
}
