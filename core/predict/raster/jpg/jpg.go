// Package jpg decodes JPEG pictures into planes, at full size or shrunk by 2, 4 or 8
// inside the decoder, fast enough that a 12 megapixel photo can become a thumbnail
// in the time its entropy coding takes to read. Its [Encoder] makes the files of such small pictures.
//
//	bytes ─ markers ─ scan ─┬ unstuff ─ Huffman ─ coefficients ─┬ inverse DCT 8x8 ─ planes
//	                        │   (code and value bits, and in     ├ 4x4 (Scale 2)
//	                        │    skipped parts several symbols,  ├ 2x2 (Scale 4)
//	                        │    in one look-up)                 └ mean (Scale 8)
//	                        └ progressive: coefficients kept until the end marker
//
// It accepts the files that the standard library's image/jpeg (Go 1.26) accepts: baseline, extended and progressive Huffman coding with 8
// bit samples; one component, three in the samplings 4:4:4, 4:4:0, 4:2:2, 4:2:0, 4:1:1 and 4:1:0, four as Adobe CMYK or YCCK; restart
// markers. At Scale 1 and without a Region the planes equal those of image/jpeg bit for bit, and the same files are refused: image/jpeg
// is the definition, its leniency included.
//
// # Shrinking
//
// Scale 2, 4 and 8 use the lowest 4x4, 2x2 and 1x1 coefficients F[v][u] of each block
// (times their quantiser) and an inverse DCT of that size. With all arithmetic on int32
// that wraps, >> rounding down, and clamp to [0, 255]:
//
//	Scale 8  clamp(((F00 + 4) >> 3) + 128)
//	Scale 4  clamp(((F00 ± F01 ± F10 ± F11 + 4) >> 3) + 128)
//	Scale 2  two passes, rows and then columns, of
//	           e0 = (x0+x2) << 13    o0 = 10703·x1 + 4433·x3    y0, y3 = e0 ± o0
//	           e1 = (x0-x2) << 13    o1 = 4433·x1 - 10703·x3    y1, y2 = e1 ± o1
//	         where the first pass keeps (y + 1<<10) >> 11 and the second
//	         clamp(((y + 1<<17) >> 18) + 128); 4433 and 10703 are √2·cos(3π/8) and
//	         √2·cos(π/8) in 13 bits, as in libjpeg's reduced transforms.
//
// # Rejected files
//
// The decoder reads a sequential scan to its end, or with a Region to the last row of MCUs that touches it. It then walks the rest of the
// file marker by marker, so it refuses a file without an end marker in every mode. The same walk skips the AC scans of a progressive
// picture at Scale 8. Damage between intact markers is found only in the parts that are decoded.
//
// # Memory
//
// A Decoder keeps the planes. For a progressive picture it also keeps the coefficients that scale
// and region need, four bytes each, and eight bytes for every block. For 12 megapixels in
// 4:2:0 that is 75 MB at Scale 1, 22 at 2, 8 at 4 and 1 at 8. A sequential picture needs
// no coefficients. The decoder checks Options.MaxBytes before it allocates either.
//
// # Encoding
//
// The encoder writes baseline JPEG in 4:2:0 with the Huffman codes of Annex K, as image/jpeg does. It computes with integers only, so all
// hosts write the same bytes. Its DCT rounds nothing: the only roundings are those of the samples and of the levels.
//
// The package does not read EXIF, and the decoder does not convert colours.
package jpg

import "errors"

var (
	// ErrCorrupt is wrapped by the errors for data that is not a JPEG or is damaged.
	ErrCorrupt = errors.New("corrupt JPEG")
	// ErrUnsupported is wrapped by the errors for JPEG files that neither this
	// package nor image/jpeg reads: arithmetic coding, lossless, 12 bit, unusual samplings.
	ErrUnsupported = errors.New("unsupported JPEG")
	// ErrExpired is returned when Options.Expired returned true.
	ErrExpired = errors.New("JPEG decoding took too long")
	// ErrTooManyScans is returned for files with more scans than Options.MaxScans.
	ErrTooManyScans = errors.New("JPEG has too many scans")
	// ErrTooLarge is returned when planes and coefficients would exceed Options.MaxBytes.
	ErrTooLarge = errors.New("JPEG needs too much memory")
)

// ColorModel is the meaning of a picture's planes.
type ColorModel uint8

const (
	Gray  ColorModel = iota // one plane
	YCbCr                   // three planes, JFIF's full-range BT.601
	RGB                     // three planes: red, green, blue
	CMYK                    // four planes as Adobe stores them: 255 means no ink
	YCCK                    // YCbCr of the inverted CMY, and K as Adobe stores it: 255 means no ink
)

// Config is the content of a JPEG file's headers.
type Config struct {
	Width, Height int // pixels, each 0 to 65535
	Components    int // 1, 3 or 4
	Progressive   bool
	HSamp, VSamp  [4]int // sampling factors as declared; 1 and 1 for a single component
	Scans         int    // number of SOS markers in the whole file
}

// Rect is the half-open rectangle X0 <= x < X1, Y0 <= y < Y1.
type Rect struct{ X0, Y0, X1, Y1 int }

// Options configure Decode.
type Options struct {
	// Scale is 1, 2, 4 or 8; 0 means 1. Each side of a plane has ceil(component size/Scale) samples.
	Scale int
	// Region is the part to decode, in pixels of the full size. It is clipped to the
	// picture; the zero value means the whole picture. Planes cover the MCUs that touch it.
	Region Rect
	// Expired, if not nil, is called at least every few thousand blocks. If it returns true,
	// Decode stops with ErrExpired.
	Expired func() bool
	// MaxScans is the maximum number of scans; 0 means 64.
	MaxScans int
	// MaxBytes bounds planes and progressive coefficients together; 0 means 1 GiB.
	MaxBytes int64
}

// Planes is a decoded picture, or the part of it that covers Options.Region. Like image/jpeg, Decode accepts pictures of zero width or
// height. The Decoder owns Planes and overwrites it in the next call of Decode.
type Planes struct {
	Scale  int
	X0, Y0 int // position of sample 0 of the first plane in the scaled picture
	Model  ColorModel
	P      [4]Plane // the first N are set
	N      int
}

// Plane is one component. Sample (x, y) is Pix[y*Stride+x]. It covers HSub x VSub samples of the first plane, starting at (x*HSub,
// y*VSub).
type Plane struct {
	Pix           []byte
	Stride        int
	Width, Height int
	HSub, VSub    int // 1, 2 or 4
}
