package raster

import (
	"compress/lzw"
	"fmt"
	"io"
	"time"
)

// This file reads the GIF container itself, because image/gif returns the first frame or all frames at once,
// never one after the other in the memory of one frame. compress/lzw decodes the
// pixels, as in image/gif. This reader refuses every first frame that image/gif refuses; the tests
// compare the two.

// gifReader walks the blocks of a GIF file.
type gifReader struct {
	b             []byte
	pos           int
	width, height int

	global []byte // (n, 3) global colour table

	// The next frame's settings, from the last graphic control.
	delay       time.Duration
	disposal    byte
	transparent int // palette index, -1: none
}

// gifFrame is one picture in a GIF file. Its pixels are still compressed.
type gifFrame struct {
	x, y, w, h  int
	interlaced  bool
	palette     []byte // (n, 3)
	transparent int    // palette index, -1: none
	disposal    byte
	delay       time.Duration // as shownFor returns it
	codeBits    int
}

// Disposal methods.
const (
	disposeBackground = 2
	disposePrevious   = 3
)

var (
	errGIFShort = fmt.Errorf("%w: it ends early", ErrCorrupt)
	errGIFBlock = fmt.Errorf("%w: unknown block", ErrCorrupt)
)

// newGIF reads the screen descriptor.
func newGIF(b []byte) (*gifReader, error) {
	if len(b) < 13 {
		return nil, errGIFShort
	}
	g := &gifReader{b: b, pos: 13, width: int(le16(b[6:])), height: int(le16(b[8:])), transparent: -1}
	var err error
	if b[10]&0x80 != 0 {
		g.global, err = g.table(b[10])
	}
	return g, err
}

func le16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
func le24(b []byte) int    { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// take returns the next n bytes.
func (g *gifReader) take(n int) ([]byte, error) {
	if len(g.b)-g.pos < n {
		return nil, errGIFShort
	}
	g.pos += n
	return g.b[g.pos-n : g.pos], nil
}

// table reads a colour table whose size is in fields.
func (g *gifReader) table(fields byte) ([]byte, error) {
	return g.take(3 << (1 + fields&7))
}

// skipBlocks skips data blocks up to and including the empty one.
func (g *gifReader) skipBlocks() error {
	for {
		n, err := g.take(1)
		if err != nil {
			return err
		}
		if n[0] == 0 {
			return nil
		}
		if _, err := g.take(int(n[0])); err != nil {
			return err
		}
	}
}

// next returns the next frame and leaves g at its codes. After the last frame it returns io.EOF. The caller moves
// past the codes by decoding them or by skipBlocks.
func (g *gifReader) next() (gifFrame, error) {
	for {
		c, err := g.take(1)
		if err != nil {
			return gifFrame{}, err
		}
		switch c[0] {
		case 0x21:
			err = g.extension()
		case 0x2c:
			return g.frame()
		case 0x3b:
			return gifFrame{}, io.EOF
		default:
			err = errGIFBlock
		}
		if err != nil {
			return gifFrame{}, err
		}
	}
}

// extension skips an extension. It reads only the graphic control of the next frame.
func (g *gifReader) extension() error {
	label, err := g.take(1)
	if err != nil {
		return err
	}
	switch label[0] {
	case 0xf9:
		c, err := g.take(6)
		if err != nil {
			return err
		}
		if c[0] != 4 || c[5] != 0 {
			return fmt.Errorf("%w: graphic control", ErrCorrupt)
		}
		g.disposal = c[1] >> 2 & 7
		g.delay = time.Duration(le16(c[2:])) * (time.Second / 100)
		g.transparent = -1
		if c[1]&1 != 0 {
			g.transparent = int(c[4])
		}
		return nil
	case 0x01: // plain text
		if _, err := g.take(13); err != nil {
			return err
		}
	case 0xff: // application
		n, err := g.take(1)
		if err != nil {
			return err
		}
		if _, err := g.take(int(n[0])); err != nil {
			return err
		}
	case 0xfe: // comment
	default:
		return errGIFBlock
	}
	return g.skipBlocks()
}

// frame reads an image descriptor.
func (g *gifReader) frame() (gifFrame, error) {
	d, err := g.take(9)
	if err != nil {
		return gifFrame{}, err
	}
	f := gifFrame{
		x: int(le16(d)), y: int(le16(d[2:])), w: int(le16(d[4:])), h: int(le16(d[6:])),
		interlaced: d[8]&0x40 != 0, palette: g.global,
		transparent: g.transparent, disposal: g.disposal, delay: shownFor(g.delay),
	}
	// A graphic control applies to one frame.
	g.transparent, g.delay, g.disposal = -1, 0, 0
	if f.x+f.w > g.width || f.y+f.h > g.height {
		return gifFrame{}, fmt.Errorf("%w: frame outside the screen", ErrCorrupt)
	}
	if d[8]&0x80 != 0 {
		if f.palette, err = g.table(d[8]); err != nil {
			return gifFrame{}, err
		}
	}
	if f.palette == nil {
		return gifFrame{}, fmt.Errorf("%w: no colour table", ErrCorrupt)
	}
	bits, err := g.take(1)
	if err != nil {
		return gifFrame{}, err
	}
	if bits[0] < 2 || bits[0] > 8 {
		return gifFrame{}, fmt.Errorf("%w: pixels of %d bits", ErrCorrupt, bits[0])
	}
	f.codeBits = int(bits[0])
	return f, nil
}

// readTimeline reads the headers of at most maxFrames+1 frames of a GIF, or up to damage. complete reports
// whether it reached the end mark.
func (g *gifReader) readTimeline(maxFrames int) (t timeline, complete bool) {
	for t.frames <= maxFrames {
		f, err := g.next()
		if err == nil {
			err = g.skipBlocks()
		}
		if err != nil {
			return t, err == io.EOF
		}
		t.add(f.w, f.h, f.delay)
	}
	return t, false
}

func (h *header) readGIF(b []byte, l Limits) error {
	g, err := newGIF(b)
	if err != nil {
		return err
	}
	h.width, h.height = g.width, g.height
	// One frame's indices, and a copy of them while an interlaced frame is put in order.
	if err := h.check(l, l.Pixels, 4); err != nil {
		return err
	}
	t, complete := g.readTimeline(l.Frames)
	if t.frames > l.Frames {
		return tooManyFrames(l)
	}
	h.timeline, h.cut = t, !complete
	h.frames = max(1, h.frames)
	return nil
}

func tooManyFrames(l Limits) error {
	return fmt.Errorf("%w: more than %d frames", ErrTooLarge, l.Frames)
}

// gifCodes gives compress/lzw the codes of a frame without the block lengths between them.
type gifCodes struct {
	g       *gifReader
	block   []byte // rest of the current block
	err     error  // io.EOF after the empty block
	expired func() bool
}

func (c *gifCodes) fill() {
	if c.err != nil {
		return
	}
	if c.expired() {
		c.err = ErrExpired
		return
	}
	n, err := c.g.take(1)
	if err == nil && n[0] == 0 {
		err = io.EOF
	}
	if err == nil {
		c.block, err = c.g.take(int(n[0]))
	}
	c.err = err
}

// ReadByte implements io.ByteReader.
func (c *gifCodes) ReadByte() (byte, error) {
	if len(c.block) == 0 {
		if c.fill(); c.err != nil {
			return 0, c.err
		}
	}
	v := c.block[0]
	c.block = c.block[1:]
	return v, nil
}

// Read implements io.Reader. compress/lzw calls only ReadByte.
func (c *gifCodes) Read(p []byte) (int, error) {
	for i := range p {
		v, err := c.ReadByte()
		if err != nil {
			return i, err
		}
		p[i] = v
	}
	return len(p), nil
}

// finish checks that the codes end, and accepts the same leftovers as image/gif: the rest of one
// block, or one more block of one byte.
func (c *gifCodes) finish() error {
	if c.err == nil && len(c.block) == 0 {
		if c.fill(); c.err == nil && len(c.block) > 1 {
			return errGIFTooMuch
		}
	}
	if c.err == nil {
		if c.fill(); c.err == nil {
			return errGIFTooMuch
		}
	}
	if c.err == io.EOF {
		return nil
	}
	return c.err
}

var errGIFTooMuch = fmt.Errorf("%w: too many pixels", ErrCorrupt)

// gifDecoder decodes frames and reuses its memory for the next ones.
type gifDecoder struct {
	codes  gifCodes
	lzw    *lzw.Reader
	pix    []byte // (h, w) palette indices of the last frame
	passes []byte // the palette indices before an interlaced frame is put in order
}

// decode decodes f's palette indices into d.pix and moves g past them.
func (d *gifDecoder) decode(g *gifReader, f *gifFrame, expired func() bool) error {
	n := f.w * f.h
	// A code has at least codeBits+1 bits and yields at most 4,096 pixels.
	if int64(n) > int64(len(g.b)-g.pos)*8/int64(f.codeBits+1)*4096 {
		return fmt.Errorf("%w: not enough pixels", ErrCorrupt)
	}
	d.codes = gifCodes{g: g, expired: expired}
	if d.lzw == nil {
		d.lzw = lzw.NewReader(&d.codes, lzw.LSB, f.codeBits).(*lzw.Reader)
	} else {
		d.lzw.Reset(&d.codes, lzw.LSB, f.codeBits)
	}
	to := &d.pix
	if f.interlaced {
		to = &d.passes
	}
	*to = resize(*to, n)
	if _, err := io.ReadFull(d.lzw, *to); err != nil {
		if d.codes.err == ErrExpired {
			return ErrExpired
		}
		return fmt.Errorf("%w: pixels: %v", ErrCorrupt, err)
	}
	// An end code should follow, but need not; see golang.org/issue/9856.
	var one [1]byte
	if n, err := d.lzw.Read(one[:]); n != 0 || (err != io.EOF && err != io.ErrUnexpectedEOF) {
		if d.codes.err == ErrExpired {
			return ErrExpired
		}
		return errGIFTooMuch
	}
	if err := d.codes.finish(); err != nil {
		return err
	}
	colours := len(f.palette) / 3
	if f.transparent >= colours {
		colours = f.transparent + 1
	}
	if colours < 256 {
		for _, p := range *to {
			if int(p) >= colours {
				return fmt.Errorf("%w: colour outside the table", ErrCorrupt)
			}
		}
	}
	if f.interlaced {
		d.deinterlace(f)
	}
	return nil
}

// deinterlace copies the rows of d.passes to their places in d.pix.
func (d *gifDecoder) deinterlace(f *gifFrame) {
	d.pix = resize(d.pix, len(d.passes))
	from := d.passes
	for _, pass := range [4]struct{ start, skip int }{{0, 8}, {4, 8}, {2, 4}, {1, 2}} {
		for y := pass.start; y < f.h; y += pass.skip {
			copy(d.pix[y*f.w:], from[:f.w])
			from = from[f.w:]
		}
	}
}

// gifPicture is a decoded frame on its screen, as rows of RGB over white.
type gifPicture struct {
	frame *gifFrame
	pix   []byte
}

// row implements rowLoader.
func (p gifPicture) row(dst []byte, y, x0, x1 int) {
	whiten(dst)
	p.over(dst, y, x0, x1)
}

// over paints row y of the screen onto dst, which holds pixels x0…x1-1. It does not change pixels that are
// transparent or outside the frame.
func (p gifPicture) over(dst []byte, y, x0, x1 int) {
	f := p.frame
	if y < f.y || y >= f.y+f.h {
		return
	}
	lo, hi := max(x0, f.x), min(x1, f.x+f.w)
	for x := lo; x < hi; x++ {
		i := int(p.pix[(y-f.y)*f.w+x-f.x])
		if i != f.transparent && 3*i < len(f.palette) {
			copy(dst[3*(x-x0):][:3], f.palette[3*i:][:3])
		}
	}
}
