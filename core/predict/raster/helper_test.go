package raster

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// flat is an upright RGB picture in its simplest form.
type flat struct {
	w, h int
	pix  []byte // (h, w, 3)
}

func newFlat(w, h int, at func(x, y int) [3]byte) flat {
	f := flat{w: w, h: h}
	for y := range h {
		for x := range w {
			p := at(x, y)
			f.pix = append(f.pix, p[:]...)
		}
	}
	return f
}

func (f flat) at(x, y int) [3]byte { return [3]byte(f.pix[3*(y*f.w+x):]) }

// flatten returns m over white, computed with the general interface of package image.
func flatten(m image.Image) flat {
	b := m.Bounds()
	return newFlat(b.Dx(), b.Dy(), func(x, y int) [3]byte {
		c := color.NRGBA64Model.Convert(m.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA64)
		a := uint32(c.A >> 8)
		return [3]byte{over(byte(c.R>>8), 255, a), over(byte(c.G>>8), 255, a), over(byte(c.B>>8), 255, a)}
	})
}

func (f flat) mirror() flat {
	return newFlat(f.w, f.h, func(x, y int) [3]byte { return f.at(f.w-1-x, y) })
}

// clockwise returns f turned clockwise by 90 degrees.
func (f flat) clockwise() flat {
	return newFlat(f.h, f.w, func(x, y int) [3]byte { return f.at(y, f.h-1-x) })
}

// upright returns f as a viewer shows it with an EXIF orientation.
func (f flat) upright(orientation int) flat {
	switch orientation {
	case 2:
		return f.mirror()
	case 3:
		return f.clockwise().clockwise()
	case 4:
		return f.clockwise().clockwise().mirror()
	case 5:
		return f.clockwise().mirror()
	case 6:
		return f.clockwise()
	case 7:
		return f.clockwise().mirror().clockwise().clockwise()
	case 8:
		return f.clockwise().clockwise().clockwise()
	}
	return f
}

func (f flat) part(left, top, right, bottom int) flat {
	return newFlat(right-left, bottom-top, func(x, y int) [3]byte { return f.at(left+x, top+y) })
}

// share returns the weight of pixel x in pixel i of the result. It is the length of their overlap, or for a box 1 or 0 by the position of
// x's centre. The n pixels of the result divide lo…hi, in 1/unit of a pixel.
func share(lo, hi, n, i, x int, box bool) int {
	from, to := lo*n+i*(hi-lo), lo*n+(i+1)*(hi-lo) // in 1/(unit·n) of a pixel
	if !box {
		return max(0, min(to, (x+1)*unit*n)-max(from, x*unit*n))
	}
	centre := x*unit*n + unit*n/2
	switch {
	case centre > from && centre < to,
		centre == to && 2*i+1 <= n, // to the left of the middle, or in it
		centre == from && 2*i+1 >= n:
		return 1
	}
	return 0
}

// shrunk resizes the part x0, y0, x1, y1 of f, in 1/unit of a pixel, by counting. It sums rows first, for speed. The sums are integers and
// therefore exact.
func (f flat) shrunk(x0, y0, x1, y1, w, h int, box bool) flat {
	type sum struct{ n, r, g, b int }
	across := make([]sum, w*f.h)
	for i := range w {
		for x := (x0 + i*(x1-x0)/w) / unit; x < f.w && x*unit*w <= x0*w+(i+1)*(x1-x0); x++ {
			n := share(x0, x1, w, i, x, box)
			for y := range f.h {
				p, s := f.at(x, y), &across[y*w+i]
				s.n, s.r, s.g, s.b = s.n+n, s.r+n*int(p[0]), s.g+n*int(p[1]), s.b+n*int(p[2])
			}
		}
	}
	return newFlat(w, h, func(i, j int) [3]byte {
		var s sum
		for y := range f.h {
			n, a := share(y0, y1, h, j, y, box), &across[y*w+i]
			s.n, s.r, s.g, s.b = s.n+n*a.n, s.r+n*a.r, s.g+n*a.g, s.b+n*a.b
		}
		mean := func(sum int) byte { return byte((2*sum + s.n) / (2 * s.n)) }
		return [3]byte{mean(s.r), mean(s.g), mean(s.b)}
	})
}

// view renders an upright picture in a View that shrinks it.
func (f flat) view(v View) flat {
	if v.Crop != (Crop{}) {
		edge := func(fraction float64, side int) int { return int(math.Floor(fraction*float64(side) + 0.5)) }
		f = f.part(edge(v.Crop.Left, f.w), edge(v.Crop.Top, f.h), edge(v.Crop.Right, f.w), edge(v.Crop.Bottom, f.h))
	}
	x0, y0, x1, y1 := 0, 0, unit*f.w, unit*f.h
	if v.Centre > 0 {
		side := 2 * v.Centre * min(f.w, f.h) // Centre is in sixteenths, side in 1/32 of a pixel
		x0, y0 = (x1-side)/2, (y1-side)/2
		x1, y1 = x0+side, y0+side
	}
	return f.shrunk(x0, y0, x1, y1, v.Width, v.Height, v.Box)
}

// noisy returns a picture that looks different in each orientation.
func noisy(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	state := uint32(w*31 + h)
	for y := range h {
		for x := range w {
			state = state*1664525 + 1013904223
			m.SetNRGBA(x, y, color.NRGBA{
				R: byte(x*255/w) ^ byte(state>>28), G: byte(y * 255 / h), B: byte(state >> 24), A: 255,
			})
		}
	}
	return m
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The functions below encode a picture in each format that has an encoder.

func asPNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, png.Encode(&b, m))
	return b.Bytes()
}

func asJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 92}))
	return b.Bytes()
}

func asGIF(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, gif.Encode(&b, m, nil))
	return b.Bytes()
}

func asBMP(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, bmp.Encode(&b, m))
	return b.Bytes()
}

func asTIFF(t testing.TB, m image.Image, c tiff.CompressionType) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, tiff.Encode(&b, m, &tiff.Options{Compression: c, Predictor: c == tiff.Deflate}))
	return b.Bytes()
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	check(t, err)
	return b
}

// exifBlock returns a TIFF structure that contains only an orientation.
func exifBlock(order binary.AppendByteOrder, orientation int) []byte {
	magic := "II*\x00"
	if order.String() == "BigEndian" {
		magic = "MM\x00*"
	}
	b := order.AppendUint32([]byte(magic), 8)
	b = order.AppendUint16(b, 1)
	b = order.AppendUint16(b, exif.TagOrientation)
	b = order.AppendUint16(b, 3)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, uint16(orientation))
	return append(b, 0, 0, 0, 0, 0, 0)
}

// turnJPEG inserts an EXIF segment with an orientation after the start marker.
func turnJPEG(b []byte, orientation int) []byte {
	data := append([]byte("Exif\x00\x00"), exifBlock(binary.BigEndian, orientation)...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(2+len(data)))
	return slices.Concat(b[:2], segment, data, b[2:])
}

// turnPNG inserts an eXIf chunk with an orientation after the header.
func turnPNG(b []byte, orientation int) []byte {
	return slices.Concat(b[:33], pngChunk("eXIf", exifBlock(binary.LittleEndian, orientation)), b[33:])
}

func pngChunk(kind string, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = append(append(b, kind...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// turnTIFF adds an orientation to the directory of a little-endian TIFF and moves the directory to the end of the file.
func turnTIFF(b []byte, orientation int) []byte {
	le := binary.LittleEndian
	dir, _ := exif.FirstDirectory(b)
	at := len(dir)
	for i := 0; i < len(dir); i += 12 {
		if le.Uint16(dir[i:]) > exif.TagOrientation {
			at = i
			break
		}
	}
	entry := exifBlock(le, orientation)[10:22]
	out := slices.Clone(b)
	if len(out)%2 == 1 {
		out = append(out, 0)
	}
	le.PutUint32(out[4:], uint32(len(out)))
	out = le.AppendUint16(out, uint16(len(dir)/12+1))
	return append(slices.Concat(out, dir[:at], entry, dir[at:]), 0, 0, 0, 0)
}

// turnWebP converts a simple file to an extended one and adds an EXIF chunk.
func turnWebP(b []byte, w, h, orientation int) []byte {
	const hasEXIF = 1 << 3
	out := append([]byte{}, "RIFF\x00\x00\x00\x00WEBP"...)
	w, h = w-1, h-1
	out = appendChunk(out, "VP8X", []byte{hasEXIF, 0, 0, 0, byte(w), byte(w >> 8), 0, byte(h), byte(h >> 8), 0})
	out = append(out, b[12:]...)
	out = appendChunk(out, "EXIF", exifBlock(binary.LittleEndian, orientation))
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}
