// Package heif reads the structure of HEIC and AVIF pictures: boxes, items and their properties. It decodes no pixels. It gives the coded
// pictures as a stream for a video decoder, and the layout of the decoder's output.
//
//	file ──▶ boxes ──▶ main picture: one item, or a grid of tiles ──▶ Picture: size, orientation, clip, samples, colour
//	                     └── its alpha channel, another item            └─▶ Stream: HEVC in Annex B, or AV1's temporal units
//
// Sources: ISO/IEC 14496-12 and 23008-12 (boxes, items), ITU-T H.265 (parameter sets), AV1 Bitstream & Decoding Process, and AV1 Image
// File Format. The size and the samples of a picture come from the coded stream, because the decoder's output follows it.
//
// The package does not read overlays, sequences without a main picture, uncompressed items, and AVC.
package heif

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Errors of Read.
var (
	ErrCorrupt     = errors.New("corrupt HEIF")
	ErrUnsupported = errors.New("unsupported HEIF")
)

// Codec is the coding of a picture's tiles.
type Codec uint8

// The codecs.
const (
	HEVC Codec = iota
	AV1
)

// NoChroma is the value of SubX and SubY for a picture with luma only.
const NoChroma = 3

// Samples describes the decoder's output for one coded picture.
type Samples struct {
	Width, Height int // in pixels
	Depth         int // bits of a sample
	SubX, SubY    int // 2^SubX × 2^SubY pixels have one sample of each chroma; or both NoChroma
	Matrix        int // MatrixCoefficients of ITU-T H.273; 2: unspecified
	Primaries     int // ColourPrimaries of ITU-T H.273; 2: unspecified
	Full          bool
	coloured      bool // the stream declares matrix and range
}

// Rect is a part of a picture in pixels. X1 and Y1 are outside it.
type Rect struct{ X0, Y0, X1, Y1 int }

// Picture is the main picture of a file, or its alpha channel.
type Picture struct {
	Codec         Codec
	Tile          Samples // output of the decoder for each tile
	Columns, Rows int     // number of tiles, at least 1 × 1
	Width, Height int     // of all tiles together, cut to the size of the grid; before Clip and Orientation
	Clip          Rect    // visible part
	Orientation   int     // 1 to 8 as in EXIF, of the visible part
	Alpha         *Picture
	Premultiplied bool // the colours are multiplied by alpha

	file  *file
	tiles []*item
}

// MaxTile returns the number of pixels of a tile whose decoding by FFmpeg fits into 512 MB. That of AV1 needs 11 bytes a pixel and a few for each
// sample.
func (p *Picture) MaxTile() int64 {
	full, deep := p.Tile.SubX+p.Tile.SubY == 0, p.Tile.Depth > 8
	switch {
	case p.Codec == HEVC && full && deep:
		return 25_000_000
	case p.Codec == HEVC:
		return math.MaxInt64
	case full && deep:
		return 16_000_000
	case full || deep:
		return 22_000_000
	}
	return 25_000_000
}

// Read reads a file's main picture. Errors wrap ErrCorrupt or ErrUnsupported. The Picture borrows b.
func Read(b []byte) (*Picture, error) {
	h, err := readFile(b)
	if err != nil {
		return nil, err
	}
	p, err := h.picture(h.primary)
	if err != nil {
		return nil, err
	}
	if id := h.alpha(h.primary); id != 0 {
		if p.Alpha, err = h.picture(id); err != nil {
			return nil, fmt.Errorf("alpha channel: %w", err)
		}
		if p.Alpha.Width != p.Width || p.Alpha.Height != p.Height {
			return nil, fmt.Errorf("%w: its alpha channel has another size", ErrUnsupported)
		}
		for _, to := range h.items[h.primary].reference("prem") {
			p.Premultiplied = p.Premultiplied || to == id
		}
	}
	return p, nil
}

// picture returns the picture of an item.
func (h *file) picture(id uint32) (*Picture, error) {
	it := h.items[id]
	p := &Picture{Columns: 1, Rows: 1, file: h, tiles: []*item{it}}
	outer := it
	if it.kind == "iden" {
		inner := h.referred(it)
		if len(inner) != 1 || inner[0].kind == "iden" {
			return nil, errBoxes
		}
		it, p.tiles = inner[0], inner
	}
	if it.kind == "grid" {
		if err := p.readGrid(it); err != nil {
			return nil, err
		}
	}
	if err := p.readTile(it); err != nil {
		return nil, err
	}
	switch s := &p.Tile; {
	case it.kind != "grid":
		p.Width, p.Height = s.Width, s.Height
	case p.Width > p.Columns*s.Width || p.Height > p.Rows*s.Height || (p.Columns-1)*s.Width >= p.Width || (p.Rows-1)*s.Height >= p.Height:
		return nil, fmt.Errorf("%w: its tiles do not cover it", ErrCorrupt)
	}
	t := newTransform(p.Width, p.Height)
	for _, from := range []*item{it, outer} {
		if err := t.apply(h, from); err != nil {
			return nil, err
		}
		if it == outer {
			break
		}
	}
	p.Clip, p.Orientation = t.visible, t.orientation()
	return p, nil
}

// referred returns the items from which an item is derived, or nil if one is missing.
func (h *file) referred(it *item) (list []*item) {
	for _, id := range it.reference("dimg") {
		one := h.items[id]
		if one == nil {
			return nil
		}
		list = append(list, one)
	}
	return list
}

// readGrid reads the content of a grid item.
func (p *Picture) readGrid(it *item) error {
	b, err := p.file.content(it)
	if err != nil {
		return err
	}
	f := &fields{b: b}
	f.uint(1) // version
	size := 2 + 2*int(f.uint(1)&1)
	p.Rows, p.Columns = int(f.uint(1))+1, int(f.uint(1))+1
	p.Width, p.Height = int(f.uint(size)), int(f.uint(size))
	p.tiles = p.file.referred(it)
	if f.short || len(p.tiles) != p.Rows*p.Columns || p.Width < 1 || p.Height < 1 {
		return fmt.Errorf("%w: its grid of tiles", ErrCorrupt)
	}
	return nil
}

// readTile reads codec and samples from the configuration of the first tile, which all others must share. The colour of the picture is
// that of the property colr of the main item or of its tile, else that of the stream, else BT.601 of full range.
func (p *Picture) readTile(it *item) error {
	h, first := p.file, p.tiles[0]
	kind := map[string]string{"hvc1": "hvcC", "av01": "av1C"}[first.kind]
	if kind == "" {
		return fmt.Errorf("%w: items of type %q", ErrUnsupported, first.kind)
	}
	config, ok := h.property(first, kind)
	if !ok {
		return fmt.Errorf("%w: no configuration of its codec", ErrCorrupt)
	}
	for _, t := range p.tiles[1:] {
		if other, _ := h.property(t, kind); t.kind != first.kind || !bytes.Equal(other, config) {
			return fmt.Errorf("%w: tiles of several kinds", ErrUnsupported)
		}
	}
	var err error
	if kind == "hvcC" {
		p.Codec = HEVC
		p.Tile, err = readHEVC(config)
	} else {
		p.Codec = AV1
		p.Tile, err = h.readAV1(config, first)
	}
	if err != nil {
		return err
	}
	if !p.Tile.coloured {
		p.Tile.Matrix, p.Tile.Primaries, p.Tile.Full = 2, 2, true
	}
	for _, from := range []*item{first, it} { // the main item's counts
		h.each(from, func(b box) bool {
			if b.kind == "colr" && len(b.body) >= 11 && string(b.body[:4]) == "nclx" {
				f := &fields{b: b.body[4:]}
				p.Tile.Primaries, _, p.Tile.Matrix = int(f.uint(2)), f.uint(2), int(f.uint(2))
				p.Tile.Full = f.uint(1)>>7 == 1
			}
			return true
		})
	}
	return nil
}

// Stream returns the coded tiles, row by row, as one stream for a decoder, which gives one picture for each tile: HEVC in the form of
// Annex B, or temporal units of AV1. An error wraps ErrCorrupt.
func (p *Picture) Stream() ([]byte, error) {
	var out []byte
	kind := [...]string{"hvcC", "av1C"}[p.Codec]
	config, _ := p.file.property(p.tiles[0], kind)
	for i, t := range p.tiles {
		b, err := p.file.content(t)
		if err != nil {
			return nil, err
		}
		if len(out) > 2*len(p.file.bytes) {
			return nil, errBoxes // tiles that share bytes
		}
		if p.Codec == AV1 {
			out = appendUnit(out, config, b)
		} else if out, err = appendTile(out, config, b, i == 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// transform maps the upright visible part to stored pixels: the stored column of the upright pixel (x, y) is, from an edge of visible,
// xx·x + xy·y, and its row yx·x + yy·y. A negative factor counts from the opposite edge.
type transform struct {
	visible        Rect
	xx, xy, yx, yy int
}

func newTransform(width, height int) *transform {
	return &transform{visible: Rect{0, 0, width, height}, xx: 1, yy: 1}
}

// apply applies an item's transformations in their order.
func (t *transform) apply(h *file, it *item) (err error) {
	h.each(it, func(b box) bool {
		f := &fields{b: b.body}
		switch b.kind {
		case "irot": // by 90 degrees, anticlockwise
			for range f.uint(1) & 3 {
				t.compose(0, -1, 1, 0)
			}
		case "imir":
			if f.uint(1)&1 == 1 { // left and right change places
				t.compose(-1, 0, 0, 1)
			} else {
				t.compose(1, 0, 0, -1)
			}
		case "clap":
			err = t.clip(f)
		}
		return err == nil
	})
	return err
}

// compose puts another map before t: from the new upright pixels to those of today.
func (t *transform) compose(xx, xy, yx, yy int) {
	t.xx, t.xy, t.yx, t.yy = t.xx*xx+t.xy*yx, t.xx*xy+t.xy*yy, t.yx*xx+t.yy*yx, t.yx*xy+t.yy*yy
}

// clip reads a clean aperture: width, height, and the offset of its centre from the picture's, as fractions.
func (t *transform) clip(f *fields) error {
	var v [4]float64
	for i := range v {
		n, d := int32(f.uint(4)), int32(f.uint(4))
		if d <= 0 {
			return fmt.Errorf("%w: its clip", ErrCorrupt)
		}
		v[i] = float64(n) / float64(d)
	}
	w, h := t.visible.X1-t.visible.X0, t.visible.Y1-t.visible.Y0
	if t.xx == 0 {
		w, h = h, w
	}
	cw, ch := int(v[0]), int(v[1])
	x, y := int((float64(w)-v[0])/2+v[2]), int((float64(h)-v[1])/2+v[3])
	if f.short || cw < 1 || ch < 1 || x < 0 || y < 0 || x > w-cw || y > h-ch {
		return fmt.Errorf("%w: its clip", ErrCorrupt)
	}
	r := t.stored(Rect{x, y, x + cw, y + ch}, w, h)
	t.visible = Rect{t.visible.X0 + r.X0, t.visible.Y0 + r.Y0, t.visible.X0 + r.X1, t.visible.Y0 + r.Y1}
	return nil
}

// stored maps a part of the upright picture of w × h pixels to the visible part as it is stored.
func (t *transform) stored(r Rect, w, h int) Rect {
	if t.xx < 0 || t.yx < 0 { // upright columns count from the opposite edge
		r.X0, r.X1 = w-r.X1, w-r.X0
	}
	if t.xy < 0 || t.yy < 0 {
		r.Y0, r.Y1 = h-r.Y1, h-r.Y0
	}
	if t.xx == 0 {
		r = Rect{r.Y0, r.X0, r.Y1, r.X1}
	}
	return r
}

// orientation returns the orientation of EXIF with the same map.
func (t *transform) orientation() int {
	for i, m := range [...][4]int{
		{1, 0, 0, 1}, {-1, 0, 0, 1}, {-1, 0, 0, -1}, {1, 0, 0, -1}, {0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, -1, 0}, {0, -1, 1, 0},
	} {
		if m == [4]int{t.xx, t.xy, t.yx, t.yy} {
			return i + 1
		}
	}
	return 1
}
