package raster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/predict/raster/heif"
)

// errModule is the error of Decoder.Decode for a picture that a [Still] describes.
var errModule = fmt.Errorf("%w: it needs a decoding module, which this host does not have", ErrUnsupported)

// Module is a decoding module: a program that runs apart, because it is large or reads hostile bytes in C.
type Module uint8

// The modules.
const (
	FFmpeg Module = iota // one stream of coded tiles, without a container
	JPEGXL               // a JPEG XL file
)

// Run is a run of a decoding module.
type Run struct {
	Module Module
	Format string // of Input, as FFmpeg calls it: hevc or obu; for JPEG XL the output: see jxl.go
	Input  []byte
	Bytes  int // size of the output; of FFmpeg's: the planes of each tile, one tile after the other
}

// Still is a picture that a decoding module must decode: a HEIC, an AVIF or a JPEG XL. A host runs the module for each of [Still.Runs], in
// another process or a worker, and passes the outputs to [Still.Planes].
type Still struct {
	file []byte
	heif *heif.Picture // nil: a JPEG XL
	jxl  jxlPicture
}

// NeedsModule reports whether a file that begins with b is a picture for [ReadStill].
func NeedsModule(b []byte) bool {
	switch Recognise(b).Name {
	case formatHEIC.String(), formatAVIF.String(), formatJXL.String():
		return true
	}
	return false
}

// ReadStill reads the headers of a picture. It returns nil if this package decodes the picture itself, and for files that are not
// pictures. The error wraps ErrCorrupt, ErrUnsupported or ErrTooLarge. The Still borrows picture.
func ReadStill(picture []byte, l Limits) (*Still, error) {
	if !NeedsModule(picture) {
		return nil, nil
	}
	l = l.WithDefaults()
	h, err := inspect(picture, l)
	if err != nil {
		return nil, err
	}
	return &Still{picture, h.heif, jxlPicture{h.jxl, picture, l}}, nil
}

// Runs returns the runs for the picture and, if it has one, for its alpha channel.
func (s *Still) Runs() ([]Run, error) {
	if s.heif == nil {
		return []Run{s.jxl.run("first", s.jxl.bytes())}, nil
	}
	var runs []Run
	for _, p := range s.pictures() {
		input, err := p.Stream()
		if err != nil {
			return nil, heifError(err)
		}
		tile := tilePlanes(p)
		size, err := tile.Size()
		if err != nil {
			return nil, err
		}
		runs = append(runs, Run{FFmpeg, [...]string{heif.HEVC: "hevc", heif.AV1: "obu"}[p.Codec], input, p.Columns * p.Rows * size})
	}
	return runs, nil
}

// Decode passes the runs to decode, which returns their outputs, and assembles the outputs.
func (s *Still) Decode(decode func([]Run) ([][]byte, error)) (Planes, error) {
	runs, err := s.Runs()
	if err != nil {
		return Planes{}, err
	}
	outputs, err := decode(runs)
	if err != nil {
		return Planes{}, err
	}
	return s.Planes(outputs)
}

func (s *Still) pictures() []*heif.Picture {
	if s.heif.Alpha == nil {
		return []*heif.Picture{s.heif}
	}
	return []*heif.Picture{s.heif, s.heif.Alpha}
}

// Planes assembles the outputs of the runs. A picture with an alpha channel is composited over white and gets 8 bits. The result may share
// the memory of the outputs. The error wraps ErrCorrupt if an output has another size than its run.
func (s *Still) Planes(outputs [][]byte) (Planes, error) {
	p, err := s.planes(outputs)
	p.Exif = exif.Read(s.file)
	return p, err
}

func (s *Still) planes(outputs [][]byte) (Planes, error) {
	if s.heif == nil {
		return s.jxl.planes(outputs)
	}
	var all []Planes
	for i, p := range s.pictures() {
		tile := tilePlanes(p)
		size, err := tile.Size()
		if err != nil {
			return Planes{}, err
		}
		if len(outputs) <= i || len(outputs[i]) != p.Columns*p.Rows*size {
			return Planes{}, fmt.Errorf("%w: its decoder returned too little", ErrCorrupt)
		}
		all = append(all, assemble(p, tile, outputs[i]))
	}
	out := all[0]
	if len(all) == 2 {
		out = overWhite(&out, &all[1], s.heif.Premultiplied)
	}
	c := s.heif.Clip
	out.Clip, out.Rotation = Clip(c), s.heif.Orientation
	return out, nil
}

// matrices has the supported matrices by their numbers in ITU-T H.273.
var matrices = map[int]Matrix{0: Identity, 1: BT709, 2: BT601, 5: BT601, 6: BT601, 9: BT2020, 10: BT2020}

// tilePlanes returns the layout of a tile.
func tilePlanes(p *heif.Picture) Planes {
	t := &p.Tile
	return Planes{Width: t.Width, Height: t.Height, SubX: t.SubX, SubY: t.SubY, Depth: t.Depth, Matrix: matrices[t.Matrix], Full: t.Full}
}

// readHEIF reads the boxes of a HEIC or AVIF.
func (h *header) readHEIF(b []byte, l Limits) error {
	p, err := heif.Read(b)
	if err != nil {
		return heifError(err)
	}
	h.width, h.height = p.Width, p.Height
	if err := h.checkSides(l); err != nil {
		return err
	}
	piece := int64(p.Tile.Width) * int64(p.Tile.Height)
	if max(h.pixels(), piece*int64(p.Columns*p.Rows)/2) > l.StillPixels {
		return fmt.Errorf("%w: %d × %d pixels, at most %d of this kind", ErrTooLarge, h.width, h.height, l.StillPixels)
	}
	if limit := min(p.MaxTile(), l.StillPixels); piece > limit {
		return fmt.Errorf("%w: %d × %d pixels in one piece, at most %d of this kind", ErrTooLarge, p.Tile.Width, p.Tile.Height, limit)
	}
	if _, known := matrices[p.Tile.Matrix]; !known && p.Tile.SubX != NoChroma {
		return fmt.Errorf("%w: matrix %d of its colours", ErrUnsupported, p.Tile.Matrix)
	}
	h.heif, h.orientation = p, p.Orientation
	h.width, h.height = p.Clip.X1-p.Clip.X0, p.Clip.Y1-p.Clip.Y0
	return nil
}

// heifError converts an error of package heif to an error of this package.
func heifError(err error) error {
	if errors.Is(err, heif.ErrUnsupported) {
		return fmt.Errorf("%w: %v", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %v", ErrCorrupt, err)
}

// assemble copies the tiles of a grid into planes of the whole picture.
func assemble(p *heif.Picture, tile Planes, from []byte) Planes {
	out := tile
	out.Width, out.Height, out.Pix = p.Width, p.Height, from
	if p.Columns*p.Rows == 1 && p.Width == tile.Width && p.Height == tile.Height {
		return out
	}
	size, _ := out.Size()
	out.Pix = make([]byte, size)
	unit := tile.sampleBytes()
	for row := range p.Rows {
		for column := range p.Columns {
			at := 0 // start of the plane in out.Pix
			for plane := range tile.count() {
				x, y, w, h := column*tile.Width, row*tile.Height, tile.Width, tile.Height
				width, height := out.Width, out.Height
				if plane > 0 {
					x, y = x>>tile.SubX, y>>tile.SubY
					w, h = tile.chroma()
					width, height = out.chroma()
				}
				for i := range max(0, min(h, height-y)) {
					n := max(0, min(w, width-x))
					copy(out.Pix[at+unit*((y+i)*width+x):][:unit*n], from[unit*i*w:])
				}
				at += unit * width * height
				from = from[unit*w*h:]
			}
		}
	}
	return out
}

// count returns the number of planes.
func (p *Planes) count() int {
	if p.SubX == NoChroma {
		return 1
	}
	return 3
}

// overWhite composites planes over white. A sample s with alpha a becomes round((a·s + (255-a)·w) / 255), where w is white's sample; the
// alpha of a chroma sample is that of its first pixel. Premultiplied samples need only white's part.
func overWhite(p, alpha *Planes, premultiplied bool) Planes {
	out := *p
	out.Depth = 8
	out.Pix = p.bytes()
	a := alpha.bytes()[:p.Width*p.Height]
	if !alpha.Full {
		for i, v := range a {
			a[i] = byte(min(max((int(v)-16)*255+109, 0)/219, 255))
		}
	}
	at := 0
	for plane := range out.count() {
		white, black, width, height, subX, subY := 255, 0, p.Width, p.Height, 0, 0
		if !p.Full {
			white, black = 235, 16
		}
		if plane > 0 {
			width, height = p.chroma()
			subX, subY = p.SubX, p.SubY
			if p.Matrix != Identity {
				white, black = 128, 128
			}
		}
		for y := range height {
			row := out.Pix[at+y*width:][:width]
			alphas := a[(y<<subY)*p.Width:]
			for x, v := range row {
				t := int(alphas[x<<subX])
				if premultiplied {
					row[x] = byte(min(int(v)+((255-t)*(white-black)+127)/255, 255))
				} else {
					row[x] = byte((int(v)*t + white*(255-t) + 127) / 255)
				}
			}
		}
		at += width * height
	}
	return out
}

// bytes returns the samples of p in 8 bits, in new memory.
func (p *Planes) bytes() []byte {
	if p.Depth == 8 {
		return slices.Clone(p.Pix)
	}
	out := make([]byte, len(p.Pix)/2)
	(&deepRows{pix: p.Pix, width: len(out), shift: uint(p.Depth - 8)}).row(out, 0, 0, len(out))
	return out
}
