package video

import "strings"

// Planes is a frame as decoders give it: luma and chroma in planes of different sizes. Pix has the rows of Y, then those of
// Cb, then those of Cr, without padding. A sample of 8 bits is a byte, a deeper one is two bytes, the low one first.
type Planes struct {
	Width, Height int // as stored, that is before Rotation
	SubX, SubY    int // 2^SubX × 2^SubY pixels have one sample of Cb and of Cr; both NoChroma: Y alone
	Depth         int // bits of a sample: 8, 10 or 12
	Matrix        Matrix
	Full          bool // full range; limited or unknown: false
	Rotation      int  // orientation as in EXIF: 1, 3, 6 or 8
	Pix           []byte
}

// NoChroma is the SubX and SubY of a frame of Y alone.
const NoChroma = 3

// Matrix is the standard by which YCbCr was made of RGB.
type Matrix uint8

// The matrices.
const (
	MatrixUnknown Matrix = iota
	BT601
	BT709
	BT2020
)

// matrices has FFmpeg's names of those that are known. Others are unknown.
var matrices = map[string]Matrix{
	"bt709": BT709, "smpte170m": BT601, "bt470bg": BT601, "bt2020nc": BT2020, "bt2020c": BT2020,
}

// subsamplings has the layouts of chroma that FFmpeg names in its sample formats.
var subsamplings = map[string][2]int{"420": {1, 1}, "422": {1, 0}, "444": {0, 0}, "440": {0, 1}, "411": {2, 0}, "410": {2, 2}}

// samples reads FFmpeg's name of a sample format, such as yuv420p10le, into p. It reports whether the format is one that
// Planes can have.
func (p *Planes) samples(format string) bool {
	p.Depth = 8
	for suffix, depth := range map[string]int{"10le": 10, "12le": 12} {
		if rest, deep := strings.CutSuffix(format, suffix); deep {
			format, p.Depth = rest, depth
		}
	}
	if format == "gray" {
		p.SubX, p.SubY = NoChroma, NoChroma
		return true
	}
	layout, full := strings.CutPrefix(format, "yuvj")
	if p.Full = full; !full {
		layout, _ = strings.CutPrefix(format, "yuv")
	}
	layout, planar := strings.CutSuffix(layout, "p")
	sub, known := subsamplings[layout]
	p.SubX, p.SubY = sub[0], sub[1]
	return known && planar && strings.HasPrefix(format, "yuv")
}

// size returns how many bytes Pix has.
func (p *Planes) size() int {
	n := p.Width * p.Height
	if p.SubX != NoChroma {
		n += 2 * ((p.Width + 1<<p.SubX - 1) >> p.SubX) * ((p.Height + 1<<p.SubY - 1) >> p.SubY)
	}
	if p.Depth > 8 {
		n *= 2
	}
	return n
}
