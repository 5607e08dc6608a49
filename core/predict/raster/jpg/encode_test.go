package jpg

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// picture describes a JPEG file down to its coefficients. The tests' encoder starts at coefficients and not at pixels, so that it can write
// every kind of file that the decoder accepts.
type picture struct {
	marker   byte // of the frame header
	w, h     int
	comps    []comp
	interval int
	scans    []testScan
	adobe    int // transform, -1 for no Adobe segment
	jfif     bool
	quant    [4][64]int32
	wide     bool // 16-bit quantisers
	fitted   bool // every Huffman code is fitted to its scan
}

// comp is one component. blocks are (down, across) with 64 coefficients in zig-zag order.
type comp struct {
	id, h, v, tq byte
	declared     byte // sampling factors in the header; 0: h and v
	across, down int
	blocks       [][64]int32
}

type testScan struct {
	comps     []int
	from, to  int
	high, low int
}

// code is a Huffman code.
type code struct {
	counts [16]byte
	order  []byte // symbols, shortest code first
	bits   [256]uint32
	length [256]int
	used   [256]int // times written
}

// newCode returns a random code: a tree of 257 leaves without the last one. Small symbols tend to have short codes.
func newCode(r *rand.Rand) *code {
	depths := []int{1, 1}
	for len(depths) < 257 {
		i := r.IntN(len(depths))
		if r.IntN(3) == 0 {
			i = len(depths) - 1
		}
		if depths[i] == 16 {
			continue
		}
		depths[i]++
		depths = append(depths, depths[i])
	}
	slices.Sort(depths)
	var order []byte
	for i := range 256 {
		order = append(order, byte(i))
	}
	for i := range order {
		j := min(255, i+r.IntN(20))
		order[i], order[j] = order[j], order[i]
	}
	return assign(order, depths)
}

// shannonCode returns Shannon's code for the symbols that c has written.
func (c *code) shannonCode() *code {
	var order []byte
	total := 1
	for s, n := range c.used {
		if total += n; n > 0 {
			order = append(order, byte(s))
		}
	}
	slices.SortFunc(order, func(a, b byte) int { return c.used[b] - c.used[a] })
	var depths []int
	for _, s := range order {
		depths = append(depths, min(16, bits.Len(uint(total/c.used[s]))))
	}
	if len(order) == 0 {
		order, depths = []byte{0}, []int{1}
	}
	return assign(order, depths)
}

// assign gives each symbol in order a code of the length in depths, which must ascend.
func assign(order []byte, depths []int) *code {
	c := &code{}
	next, last := uint32(0), 0
	for i, s := range order {
		next <<= depths[i] - last
		last = depths[i]
		c.counts[last-1]++
		c.bits[s], c.length[s] = next, last
		next++
	}
	c.order = order
	return c
}

// bitWriter writes entropy-coded data.
type bitWriter struct {
	out []byte
	acc uint64
	n   int
}

func (w *bitWriter) put(v uint32, n int) {
	w.acc = w.acc<<n | uint64(v)&(1<<n-1)
	for w.n += n; w.n >= 8; w.n -= 8 {
		b := byte(w.acc >> (w.n - 8))
		if w.out = append(w.out, b); b == 0xff {
			w.out = append(w.out, 0)
		}
	}
}

func (w *bitWriter) flush() { w.put(0x7f, (8-w.n)%8) }

func (w *bitWriter) symbol(c *code, s int) {
	c.used[s]++
	w.put(c.bits[s], c.length[s])
}

// value writes v in size bits, as EXTEND of the JPEG standard reads it. The function size returns that number of bits.
func (w *bitWriter) value(v int32, size int) {
	if v < 0 {
		v += 1<<size - 1
	}
	w.put(uint32(v), size)
}

func size(v int32) (n int) {
	for v = max(v, -v); v > 0; v >>= 1 {
		n++
	}
	return n
}

func (p *picture) mcus() (x, y int) {
	h, v := 8*int(p.comps[0].h), 8*int(p.comps[0].v)
	return (p.w + h - 1) / h, (p.h + v - 1) / v
}

// encode returns the file with random Huffman codes. It fits the codes of about every other scan to the scan, or of all if p.fitted.
func (p *picture) encode(r *rand.Rand) []byte {
	w := &bitWriter{out: []byte{0xff, markerSOI}}
	if p.jfif {
		w.segment(markerAPP0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"))
	}
	if p.adobe >= 0 {
		w.segment(markerAPP14, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), byte(p.adobe)))
	}
	for i := range p.quant {
		w.quantizer(i, &p.quant[i], p.wide)
	}
	sof := []byte{8, byte(p.h >> 8), byte(p.h), byte(p.w >> 8), byte(p.w), byte(len(p.comps))}
	for _, c := range p.comps {
		if c.declared == 0 {
			c.declared = c.h<<4 | c.v
		}
		sof = append(sof, c.id, c.declared, c.tq)
	}
	w.segment(p.marker, sof)
	if p.interval > 0 {
		w.segment(markerDRI, []byte{byte(p.interval >> 8), byte(p.interval)})
	}
	for _, s := range p.scans {
		e := &scanWriter{bitWriter: w, p: p, s: s, dc: newCode(r), ac: newCode(r)}
		if p.fitted || r.IntN(2) == 0 {
			trial := &scanWriter{bitWriter: &bitWriter{}, p: p, s: s, dc: e.dc, ac: e.ac}
			trial.write()
			e.dc, e.ac = e.dc.shannonCode(), e.ac.shannonCode()
		}
		w.segment(markerDHT, slices.Concat([]byte{0x00}, e.dc.counts[:], e.dc.order))
		w.segment(markerDHT, slices.Concat([]byte{0x11}, e.ac.counts[:], e.ac.order))
		sos := []byte{byte(len(s.comps))}
		for _, c := range s.comps {
			sos = append(sos, p.comps[c].id, 0x01)
		}
		w.segment(markerSOS, append(sos, byte(s.from), byte(s.to), byte(s.high<<4|s.low)))
		e.write()
	}
	return append(w.out, 0xff, markerEOI)
}

func (w *bitWriter) segment(marker byte, body []byte) {
	w.out = append(w.out, 0xff, marker, byte((len(body)+2)>>8), byte(len(body)+2))
	w.out = append(w.out, body...)
}

func (w *bitWriter) quantizer(i int, natural *[64]int32, wide bool) {
	body := []byte{byte(i)}
	if wide {
		body[0] |= 0x10
	}
	for _, u := range unzig {
		if wide {
			body = append(body, byte(natural[u]>>8))
		}
		body = append(body, byte(natural[u]))
	}
	w.segment(markerDQT, body)
}

// scanWriter writes one scan.
type scanWriter struct {
	*bitWriter
	p      *picture
	s      testScan
	dc, ac *code
	pred   [4]int32

	eobRun    int
	corrected []byte // correction bits of the blocks in eobRun
}

// write writes the units of the scan in the order and with the restart markers that
// image/jpeg expects.
func (e *scanWriter) write() {
	mx, my := e.p.mcus()
	single := len(e.s.comps) == 1
	blocks, mcu := 0, 0
	for y := range my {
		for x := range mx {
			for _, c := range e.s.comps {
				co := &e.p.comps[c]
				h, v := int(co.h), int(co.v)
				for j := range h * v {
					bx, by := x*h+j%h, y*v+j/h
					if single {
						bx, by = blocks%co.across, blocks/co.across
						blocks++
						if 8*bx >= e.p.w || 8*by >= e.p.h {
							continue
						}
					}
					e.block(c, &co.blocks[by*co.across+bx])
				}
			}
			if mcu++; e.p.interval > 0 && mcu%e.p.interval == 0 && mcu < mx*my {
				e.endRun()
				e.flush()
				e.out = append(e.out, 0xff, markerRST0+byte(mcu/e.p.interval-1)&7)
				e.pred = [4]int32{}
			}
		}
	}
	e.endRun()
	e.flush()
}

func (e *scanWriter) block(c int, b *[64]int32) {
	switch {
	case e.p.marker != markerSOF2:
		e.difference(c, b[0])
		e.run(b, 1, 63, 0, false)
	case e.s.from == 0 && e.s.high == 0:
		e.difference(c, b[0]>>e.s.low)
	case e.s.from == 0:
		e.put(uint32(b[0]>>e.s.low), 1)
	case e.s.high == 0:
		e.run(b, e.s.from, e.s.to, e.s.low, true)
	default:
		e.refine(b)
	}
}

func (e *scanWriter) difference(c int, v int32) {
	d := v - e.pred[c]
	e.pred[c] = v
	e.symbol(e.dc, size(d))
	e.value(d, size(d))
}

// run writes a band of AC coefficients.
func (e *scanWriter) run(b *[64]int32, from, to, low int, runs bool) {
	zeros := 0
	for k := from; k <= to; k++ {
		v := shrink(b[k], low)
		if v == 0 {
			zeros++
			continue
		}
		for e.endRun(); zeros > 15; zeros -= 16 {
			e.symbol(e.ac, 0xf0)
		}
		e.symbol(e.ac, zeros<<4|size(v))
		e.value(v, size(v))
		zeros = 0
	}
	if zeros > 0 {
		e.eobRun++
		if !runs || e.eobRun == 0x7fff {
			e.endRun()
		}
	}
}

// shrink returns v / 2^low, rounded toward zero.
func shrink(v int32, low int) int32 {
	if v < 0 {
		return -(-v >> low)
	}
	return v >> low
}

// endRun writes the pending end-of-band run and the correction bits of its blocks.
func (e *scanWriter) endRun() {
	if e.eobRun > 0 {
		n := size(int32(e.eobRun)) - 1
		e.symbol(e.ac, n<<4)
		e.put(uint32(e.eobRun), n)
		e.eobRun = 0
	}
	e.bitsOf(e.corrected)
	e.corrected = e.corrected[:0]
}

func (e *scanWriter) bitsOf(queue []byte) {
	for _, b := range queue {
		e.put(uint32(b), 1)
	}
}

// refine writes one more bit of a band, as libjpeg's encode_mcu_AC_refine does.
func (e *scanWriter) refine(b *[64]int32) {
	last := 0
	for k := e.s.from; k <= e.s.to; k++ {
		if v := shrink(b[k], e.s.low); v == 1 || v == -1 {
			last = k
		}
	}
	zeros := 0
	var queue []byte
	for k := e.s.from; k <= e.s.to; k++ {
		v := shrink(b[k], e.s.low)
		if v == 0 {
			zeros++
			continue
		}
		for zeros > 15 && k <= last {
			e.endRun()
			e.symbol(e.ac, 0xf0)
			zeros -= 16
			e.bitsOf(queue)
			queue = queue[:0]
		}
		if v != 1 && v != -1 {
			queue = append(queue, byte(max(v, -v)&1))
			continue
		}
		e.endRun()
		e.symbol(e.ac, zeros<<4|1)
		e.put(uint32(v+1)/2, 1)
		e.bitsOf(queue)
		queue, zeros = queue[:0], 0
	}
	if zeros > 0 || len(queue) > 0 {
		e.eobRun++
		e.corrected = append(e.corrected, queue...)
		if e.eobRun == 0x7fff || len(e.corrected) > 900 {
			e.endRun()
		}
	}
}
