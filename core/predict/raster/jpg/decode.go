package jpg

import (
	"fmt"
)

// Decoder decodes one picture after another with the same memory, which grows to the size that the largest picture needs. It is not safe
// for concurrent use. The zero value is ready.
type Decoder struct {
	frame
	seg    segments
	o      Options
	planes Planes
	layout [4]layout

	interval int          // restart interval in MCUs; 0 for none
	eobRun   int          // blocks left whose coefficients of the band are done, section G.1.2.2; kept between scans, as in image/jpeg
	quant    [4][64]int32 // in the transform order of Scale 1
	huff     [2][4]huffman
	noHuff   huffman // replaces a table that is not defined
	scans    int
	pollIn   int // blocks until the next call of Expired

	s      scanHeader
	blocks [10]unitBlock // blocks of one unit of s
	bits   bitReader
	dc     [4]int32      // predictions
	err    error         // first error of a symbol in the row being decoded
	unit   [10][64]int32 // blocks of one unit in transform order; zero between units
	passed [64]int32     // receives values that the result does not need
	pix    [4][]byte
	coefs  [4][]int32   // progressive: (wanted down, wanted across, kept) in transform order
	masks  [4][]uint64  // progressive: (down, across); bit k for the k-th coefficient in zig-zag order, when not zero
	quants [4][64]int32 // of each component, in transform order
	*transform
}

// layout describes the blocks of one component.
type layout struct {
	across, down   int // blocks in the picture, up to whole MCUs
	x0, y0, x1, y1 int // blocks that the Region needs
	hasCoefs       bool
	written        bool
}

// Decode decodes the JPEG file data, which it only reads and does not keep. The planes
// belong to d until the next call. After an error d can be used again.
//
// The errors wrap ErrCorrupt, ErrUnsupported, ErrTooManyScans, ErrTooLarge or ErrExpired.
func (d *Decoder) Decode(data []byte, o Options) (*Planes, error) {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Scale != 1 && o.Scale != 2 && o.Scale != 4 && o.Scale != 8 {
		panic(fmt.Sprintf("jpg: scale %d", o.Scale))
	}
	if o.MaxScans == 0 {
		o.MaxScans = 64
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	d.frame, d.seg, d.o = frame{}, segments{data: data}, o
	d.interval, d.eobRun, d.scans, d.pollIn = 0, 0, 0, 0
	d.planes, d.layout, d.quant = Planes{Scale: o.Scale}, [4]layout{}, [4][64]int32{}
	for i := range d.huff {
		for j := range d.huff[i] {
			d.huff[i][j].n = 0
		}
	}
	d.unit, d.err = [10][64]int32{}, nil
	d.transform = transformOf(o.Scale)
	err := d.decode()
	d.seg.data, d.bits.data, d.o.Expired = nil, nil, nil
	if err != nil {
		return nil, err
	}
	return &d.planes, nil
}

// decode walks the segments to the end marker.
func (d *Decoder) decode() error {
	if err := d.seg.start(); err != nil {
		return err
	}
	for {
		marker, body, err := d.seg.next()
		if err != nil {
			return err
		}
		switch marker {
		case markerEOI:
			return d.finish()
		case markerDHT:
			err = d.defineHuffman(body)
		case markerDQT:
			err = d.defineQuant(body)
		case markerDRI:
			if len(body) != 2 {
				return errSegment
			}
			d.interval = int(body[0])<<8 + int(body[1])
		case markerSOS:
			err = d.scan(body)
		default:
			err = d.header(marker, body)
		}
		if err != nil {
			return err
		}
	}
}

// defineHuffman reads a DHT segment, section B.2.4.2.
func (d *Decoder) defineHuffman(body []byte) (err error) {
	for len(body) > 0 {
		class, slot := body[0]>>4, body[0]&15
		if len(body) < 17 || class > 1 || slot > 3 || d.baseline && slot > 1 {
			return errHuffman
		}
		if body, err = d.huff[class][slot].define(body); err != nil {
			return err
		}
	}
	return nil
}

// defineQuant reads a DQT segment, section B.2.4.1.
func (d *Decoder) defineQuant(body []byte) error {
	for len(body) > 0 {
		precision, slot := body[0]>>4, body[0]&15
		if slot > 3 || precision > 1 {
			return errQuantize
		}
		size := 64 << precision
		if len(body) == 1 {
			return nil // a table's first byte alone passes, as in image/jpeg
		}
		if len(body) < 1+size {
			return errQuantize
		}
		for i, u := range transforms[0].place {
			if precision == 0 {
				d.quant[slot][u] = int32(body[1+i])
			} else {
				d.quant[slot][u] = int32(body[1+2*i])<<8 | int32(body[2+2*i])
			}
		}
		body = body[1+size:]
	}
	return nil
}

// finish makes the planes of a progressive picture, and empty planes for components that
// no scan contained.
func (d *Decoder) finish() error {
	if d.scans == 0 {
		return errNoScan
	}
	model, err := d.model()
	if err != nil {
		return err
	}
	d.planes.Model = model
	for i := range d.n {
		l := &d.layout[i]
		if l.hasCoefs {
			if err := d.reconstruct(i); err != nil {
				return err
			}
		} else if !l.written {
			clear(d.pix[i])
		}
	}
	return nil
}

// pollDeadline calls Options.Expired about once in 4096 units and returns its result. units is the number of units to decode next.
func (d *Decoder) pollDeadline(units int) bool {
	if d.pollIn -= units; d.pollIn > 0 || d.o.Expired == nil {
		return false
	}
	d.pollIn = 4096
	return d.o.Expired()
}

// unzig maps the zig-zag order of coefficients to the natural one, row by row.
var unzig = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// layOut determines the blocks that Options select and allocates their planes.
func (d *Decoder) layOut() error {
	mx, my := d.mcus()
	h0, v0, scale := d.comp[0].h, d.comp[0].v, d.o.Scale
	region := d.o.Region
	if region == (Rect{}) {
		region = Rect{0, 0, d.width, d.height}
	}
	x0, x1 := clip(region.X0, region.X1, 8*h0, mx)
	y0, y1 := clip(region.Y0, region.Y1, 8*v0, my)
	side := 8 / scale
	total := int64(0)
	for i := range d.n {
		c, l := &d.comp[i], &d.layout[i]
		l.across, l.down = mx*c.h, my*c.v
		l.x0, l.x1, l.y0, l.y1 = x0*c.h, x1*c.h, y0*c.v, y1*c.v
		p := &d.planes.P[i]
		p.HSub, p.VSub = h0/c.h, v0/c.v
		p.Stride = (l.x1 - l.x0) * side
		p.Width = min(ceil(ceil(d.width, p.HSub), scale), l.x1*side) - l.x0*side
		p.Height = min(ceil(ceil(d.height, p.VSub), scale), l.y1*side) - l.y0*side
		total += int64(p.Stride) * int64((l.y1-l.y0)*side)
	}
	if d.progressive {
		total += d.storedBytes()
	}
	if total > d.o.MaxBytes {
		return fmt.Errorf("%w: %d MB", ErrTooLarge, total>>20)
	}
	for i := range d.n {
		l, p := &d.layout[i], &d.planes.P[i]
		d.pix[i] = grow(d.pix[i], p.Stride*(l.y1-l.y0)*side)
		p.Pix = d.pix[i]
	}
	d.planes.N = d.n
	d.planes.X0, d.planes.Y0 = x0*h0*side, y0*v0*side
	return nil
}

// clip returns the range of units that the pixels from a to b touch. Each unit has size pixels, and n is the number of units.
func clip(a, b, size, n int) (from, to int) {
	to = min(ceil(max(b, 0), size), n)
	return min(max(a, 0)/size, to), to
}

// ceil returns a/b rounded up.
func ceil(a, b int) int { return (a + b - 1) / b }

// grow returns a slice of length n. It reuses the memory of s if that is large enough.
func grow[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n)
	}
	return s[:n]
}
