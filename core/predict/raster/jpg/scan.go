package jpg

import "fmt"

var (
	errScan      = fmt.Errorf("%w: scan header", ErrCorrupt)
	errRestart   = fmt.Errorf("%w: restart marker", ErrCorrupt)
	errRefine    = fmt.Errorf("%w: refinement", ErrCorrupt)
	errExcessive = fmt.Errorf("%w: more than 16 bits of DC", ErrUnsupported)
)

// scanHeader is the content of a scan header, section B.2.3, and the scan's grid of units. A unit is an MCU, or a block in a scan of one
// component.
type scanHeader struct {
	n      int
	comp   [4]int // indices into frame.comp
	dc, ac [4]*huffman

	from, to  int  // spectral band, zig-zag order
	high, low uint // successive approximation

	across, down int // units, up to whole MCUs
	visX, visY   int // units that are coded; blocks wholly outside the picture are not
	restart      int // units between restart markers; 0: none
	blocks       int // in a unit
}

// scan reads one scan.
func (d *Decoder) scan(body []byte) error {
	if d.n == 0 {
		return errNoFrame
	}
	s := &d.s
	if err := d.scanHeader(s, body); err != nil {
		return err
	}
	if d.scans == 0 {
		if err := d.countScans(); err != nil {
			return err
		}
		if err := d.layOut(); err != nil {
			return err
		}
	}
	if d.scans++; d.scans > d.o.MaxScans {
		return ErrTooManyScans
	}
	d.dc = [4]int32{}
	d.list(s)
	if !d.progressive {
		return d.sequential(s)
	}
	return d.progression(s)
}

// unitBlock is one block of a unit.
type unitBlock struct {
	dc     *dcTable
	ac     *acTable
	pair   *pairTable
	skip   *skipTable
	comp   int
	at     int  // index of its first sample in pix
	step   int  // from one unit of a row to the next
	dx, dy int  // position in the unit, in blocks
	h, v   int  // blocks of the component in a unit
	i      int  // index into scanHeader.dc and ac
	flat   bool // the unit being decoded has no AC coefficients in this block
}

// list fills d.blocks with the blocks of a unit in their order.
func (d *Decoder) list(s *scanHeader) {
	s.blocks = 0
	for i, c := range s.comp[:s.n] {
		h, v := d.comp[c].h, d.comp[c].v
		if s.n == 1 {
			h, v = 1, 1
		}
		for j := range h * v {
			d.blocks[s.blocks] = unitBlock{
				dc: &s.dc[i].dc, ac: &s.ac[i].ac, pair: &s.ac[i].pair, skip: &s.ac[i].skip,
				comp: c, dx: j % h, dy: j / h, h: h, v: v, i: i,
			}
			s.blocks++
		}
	}
}

// countScans refuses a progressive picture with too many scans before it decodes any. It ignores damage, which the decoding reports.
func (d *Decoder) countScans() error {
	if !d.progressive {
		return nil
	}
	ahead := d.seg
	for n := 1; ; {
		if n > d.o.MaxScans {
			return ErrTooManyScans
		}
		if ahead.skipScan() != nil {
			return nil
		}
		for {
			marker, _, err := ahead.next()
			if err != nil || marker == markerEOI {
				return nil
			}
			if marker == markerSOS {
				n++
				break
			}
		}
	}
}

// scanHeader checks a scan header as image/jpeg does. For baseline and extended
// pictures it does not check the band and the approximation.
func (d *Decoder) scanHeader(s *scanHeader, body []byte) error {
	*s = scanHeader{}
	if len(body) < 6 || len(body) != 4+2*int(body[0]) || int(body[0]) > d.n {
		return errScan
	}
	s.n = int(body[0])
	total := 0
	for i := range s.n {
		c := -1
		for j := range d.n {
			if d.comp[j].id == body[1+2*i] {
				c = j
			}
		}
		if c < 0 {
			return errScan
		}
		for _, earlier := range s.comp[:i] {
			if c == earlier {
				return errScan
			}
		}
		s.comp[i] = c
		total += d.comp[c].h * d.comp[c].v
		dc, ac := body[2+2*i]>>4, body[2+2*i]&15
		if dc > 3 || ac > 3 || d.baseline && (dc > 1 || ac > 1) {
			return errScan
		}
		s.dc[i], s.ac[i] = d.table(0, dc), d.table(1, ac)
	}
	if d.n > 1 && total > 10 {
		return errScan
	}
	s.to = 63
	if d.progressive {
		tail := body[1+2*s.n:]
		s.from, s.to, s.high, s.low = int(tail[0]), int(tail[1]), uint(tail[2]>>4), uint(tail[2]&15)
		if s.from == 0 && s.to != 0 || s.from > s.to || s.to > 63 || s.from != 0 && s.n != 1 || s.high != 0 && s.high != s.low+1 {
			return errScan
		}
	}
	d.grid(s)
	return nil
}

// table returns a Huffman table, or a table without codes if the slot is not defined.
func (d *Decoder) table(class, slot byte) *huffman {
	if h := &d.huff[class][slot]; h.n != 0 {
		return h
	}
	return &d.noHuff
}

// grid sets the units of a scan. In a scan of one component, image/jpeg measures blocks
// against the whole picture's size for any sampling of the component. It counts restart
// intervals in as many blocks as an MCU would hold. This package does the same.
func (d *Decoder) grid(s *scanHeader) {
	s.across, s.down = d.mcus()
	s.visX, s.visY, s.restart = s.across, s.down, d.interval
	if s.n == 1 {
		c := &d.comp[s.comp[0]]
		s.across *= c.h
		s.down *= c.v
		s.restart *= c.h * c.v
		s.visX, s.visY = min(s.across, ceil(d.width, 8)), min(s.down, ceil(d.height, 8))
	}
}

// pollUnits is the maximum number of units between two polls of Expired.
const pollUnits = 1024

// row decodes the units from x0 to x1 of row y.
type row func(d *Decoder, y, x0, x1 int) error

// units walks the grid of a scan and its restart intervals. For a sequential picture it stops
// after the last row that Options.Region needs.
func (d *Decoder) units(s *scanHeader, f row) error {
	d.bits.reset(d.seg.data, d.seg.pos)
	total, restart, expected := s.across*s.down, s.restart, byte(markerRST0)
	if restart == 0 {
		restart = total
	}
	lastRow := s.down
	if !d.progressive {
		lastRow = d.lastRow(s)
	}
	for at, y := 0, 0; y < s.down; y++ {
		if y == lastRow {
			d.seg.pos = d.bits.next
			return d.seg.skipScan()
		}
		for x := 0; x < s.across; {
			run := min(s.across-x, restart-at%restart, pollUnits)
			if to := min(x+run, s.visX); y < s.visY && x < to {
				if d.pollDeadline((to - x) * s.blocks) {
					return ErrExpired
				}
				if err := f(d, y, x, to); err != nil {
					return err
				}
				if d.bits.overrun() {
					return errShort
				}
			}
			x += run
			at += run
			if at%restart == 0 && at < total {
				if err := d.nextInterval(expected); err != nil {
					return err
				}
				expected = markerRST0 | (expected+1)&7
			}
		}
	}
	d.seg.pos = d.bits.position()
	return nil
}

// lastRow returns the number of the first row of units after the Region.
func (d *Decoder) lastRow(s *scanHeader) int {
	l := &d.layout[s.comp[0]]
	if s.n > 1 {
		return l.y1 / d.comp[s.comp[0]].v
	}
	return l.y1
}

// nextInterval finds the expected restart marker, skipping other data before it, and starts the segment after it.
func (d *Decoder) nextInterval(expected byte) error {
	data, pos := d.seg.data, d.bits.position()
	for {
		if pos+2 > len(data) {
			return errShort
		}
		switch {
		case data[pos] == 0xff && data[pos+1] == expected:
			d.bits.reset(data, pos+2)
			d.dc, d.eobRun = [4]int32{}, 0
			return nil
		case data[pos+1] == 0xff:
			pos++
		case data[pos] == 0xff && data[pos+1] != 0:
			return errRestart
		default:
			pos += 2
		}
	}
}
