// Package raster turns the bytes of a picture, or a frame of a video, into a small RGB image. The image is upright, cropped, resized, and
// the same bytes on every host.
//
//	bytes ──▶ format by content ──▶ header: size, orientation, frames ──▶ limits
//	                                                                        │
//	      ┌──────────────── view mapped into stored coordinates ◀───────────┘
//	      ▼
//	   JPEG, also the largest one in camera raw: planes at 1/1, 1/2, 1/4 or 1/8 of the part that is wanted   (package jpg)
//	   TIFF of YCbCr or JPEG: planes
//	   frame of a video, HEIC, AVIF: the planes that a decoder of videos gave   (Decoder.Planes)
//	   others: the library's picture, read row by row
//	      │
//	      ▼
//	   exact area average, or a box, where an axis shrinks, bilinear where it grows
//	      │
//	      ▼
//	   colour conversion of the few pixels left, written upright
//
// The order of the view is: orientation, the user's crop, the centred square, the resize. The crop is rounded to pixels; the square is
// exact, in fractions of a pixel. Orientation and crop only move coordinates; no picture is ever turned as a whole. The resize works on
// YCbCr planes at each plane's own resolution, so a 4:2:0 photo costs half as much as RGB.
//
// Everything is integer arithmetic on rational weights: a pixel of the result is
// floor(Σ w·p / Σ w + 1/2) with integers w, computed without any other rounding, so
// the order of summation, the vector width and the target cannot matter. See resize.go.
//
// Transparent pixels are composited over white. GIF and animated WebP give their first frame, or as videos the frame at each time through
// [Decoder.Frames]. HEIC and AVIF need a decoding module, which a host runs: [ReadStill] says with which input, and makes [Planes] of its
// output. The package recognises SVG and videos in containers, and refuses each by its name; such videos need a video decoder. [Recognise]
// distinguishes the formats. No colour management: samples are taken as sRGB.
//
// The idea of decoding only as much of a JPEG as the result needs is libjpeg's
// scale_denom and libvips' shrink-on-load.
package raster

import "errors"

// ErrUnsupported is returned for bytes that are not a picture in a supported format, and for unsupported features of a format. The
// message names the format or feature and what to do.
var ErrUnsupported = errors.New("picture format not supported")

// ErrTooLarge is returned when a picture declares more than the [Limits] allow. The
// decoder checks the headers before it allocates memory.
var ErrTooLarge = errors.New("picture too large")

// ErrCorrupt is returned when a picture is damaged or ends too early.
var ErrCorrupt = errors.New("picture corrupt or truncated")

// ErrExpired is returned when [Limits.Expired] returned true.
var ErrExpired = errors.New("picture took too long to decode")

// Crop is the part of the upright picture to use, in fractions of its height and width
// measured from the top left corner. The zero value selects the whole picture.
//
// Each edge is rounded half up to a pixel: floor(fraction·side + 1/2). At least one
// pixel remains. Fractions outside 0…1, Top ≥ Bottom and Left ≥ Right are errors.
type Crop struct {
	Top    float64 `wire:"1"`
	Left   float64 `wire:"2"`
	Bottom float64 `wire:"3"`
	Right  float64 `wire:"4"`
}

// View selects a part of a picture and the size of the result.
type View struct {
	Crop Crop

	// Centre is the side of the centred square that remains after the crop, in sixteenths of the short side, 1 to 16. 0 keeps the whole
	// crop. Nothing is rounded: side and offset are multiples of 1/16 and 1/32 of a pixel.
	Centre int

	// Box selects the filter for an axis that shrinks. If it is false, each source pixel has
	// the weight of its overlap with the result pixel (area average). If it is true, a source
	// pixel counts fully in the result pixel that contains its centre, as in Pillow's BOX
	// filter, which training of networks often uses. The results differ much only
	// while the source is less than about four times as large as the result.
	Box bool

	// Width and Height, when positive, are the exact size of the result, at most
	// MaxResultSide each; the part is stretched to them. With Centre they describe a
	// square and are normally equal.
	Width, Height int

	// MaxSide is used when Width and Height are zero: the longest side of the result.
	// The other side is in proportion, rounded half up, at least 1. The result is never larger than
	// the source; a square's fraction of a pixel is dropped.
	MaxSide int

	// Detail is the minimum number of pixels that the decoder of a JPEG leaves of the part's short side before the resize, if the part has as
	// many. At most MaxResultSide; 0: as many as the result needs. With the same Detail, views of different sizes mostly have the
	// same DCT scale, so that they share a decode in [Decoder.Views].
	Detail int
}

// MaxResultSide is the largest Width, Height, MaxSide or Detail of a [View], in pixels.
const MaxResultSide = 8192

// Image is a picture of (Height, Width, 3) bytes: RGB, interleaved, row-major. The [Decoder]
// that made it owns Pix and overwrites it in its next call.
type Image struct {
	Width, Height int
	Pix           []byte // (Height, Width, 3)
}

// Info holds the declarations of a picture's headers.
type Info struct {
	Format        string // "jpeg", "png", "gif", "webp", "bmp", "tiff" or "raw"
	Width, Height int    // upright, that is after Orientation
	Orientation   int    // 1 to 8 as in EXIF
	Frames        int    // 1, or the frames of a GIF or WebP animation (counted, not decoded)
}

// Limits bound the cost of a picture. A zero field means its default.
type Limits struct {
	Bytes             int64       // encoded size; default 20 MB (20,000,000)
	RawBytes          int64       // encoded size of camera raw; default 64 MB (64,000,000)
	Pixels            int64       // pixels in memory when decoded (of a JPEG: after DCT scaling); default 40 MP
	BaselinePixels    int64       // declared pixels of a baseline JPEG; default 200 MP
	ProgressivePixels int64       // declared pixels of a progressive JPEG; default 64 MP
	TightPixels       int64       // declared pixels of a TIFF, BMP or WebP; default 20 MP
	StillPixels       int64       // pixels of a HEIC, AVIF or JPEG XL; default 50 MP
	Side              int         // declared width or height; default 30,000, at most 65,535
	Scans             int         // scans of a JPEG; default 64
	ScanBlocks        int64       // scans × 8×8 blocks of a JPEG; default 32 million
	Frames            int         // frames of an animation; default 1,000
	FramePixels       int64       // pixels of all frames that Frames decodes; default 2,000 MP
	Expired           func() bool // polled while decoding; true stops with ErrExpired; nil: never
	Pause             func()      // called between the steps of a network, which waits until it returns; nil: never
}

// WithDefaults returns l with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	l.Bytes = orDefault(l.Bytes, 20_000_000)
	l.RawBytes = orDefault(l.RawBytes, 64_000_000)
	l.Pixels = orDefault(l.Pixels, 40_000_000)
	l.BaselinePixels = orDefault(l.BaselinePixels, 200_000_000)
	l.ProgressivePixels = orDefault(l.ProgressivePixels, 64_000_000)
	l.TightPixels = orDefault(l.TightPixels, 20_000_000)
	l.StillPixels = orDefault(l.StillPixels, 50_000_000)
	l.Side = min(orDefault(l.Side, 30_000), maxSide)
	l.Scans = orDefault(l.Scans, 64)
	l.ScanBlocks = orDefault(l.ScanBlocks, 32_000_000)
	l.Frames = orDefault(l.Frames, 1_000)
	l.FramePixels = orDefault(l.FramePixels, 2_000_000_000)
	if l.Expired == nil {
		l.Expired = never
	}
	return l
}

// maxSide is the largest side for which the arithmetic of a resize does not overflow.
const maxSide = 65_535

func orDefault[T int | int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func never() bool { return false }
