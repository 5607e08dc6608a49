package jpg

import (
	"encoding/binary"
	"math/bits"
)

// A progressive picture comes in scans that each bring some coefficients, or some bits of
// them, so all that matter are kept until the end marker: those that the scale needs, of
// the blocks that the region needs. To read refinements one must know of every block
// which coefficients are not zero; that is kept as masks.

// progression reads one scan. At Scale 8 the AC scans are passed over.
func (d *Decoder) progression(s *scanHeader) error {
	for _, c := range s.comp[:s.n] {
		d.keep(c)
	}
	switch {
	case s.from != 0 && d.side == 1:
		return d.seg.skipScan()
	case s.high != 0 && s.from == 0:
		return d.units(s, (*Decoder).refineDC)
	case s.high != 0:
		s.ac[0].makeAC()
		return d.units(s, (*Decoder).refineAC)
	case s.from == 0:
		for i := range s.n {
			s.dc[i].makeDC()
		}
		return d.units(s, (*Decoder).firstDC)
	default:
		s.ac[0].makeAC()
		return d.units(s, (*Decoder).firstAC)
	}
}

// coefsPerBlock returns the number of coefficients kept of a block: per, and where not all matter one
// for the others to go to.
func (d *Decoder) coefsPerBlock() int {
	if d.per == 16 || d.per == 4 {
		return d.per + 1
	}
	return d.per
}

// keep allocates zeroed coefficients for component c before its first scan.
func (d *Decoder) keep(c int) {
	l := &d.layout[c]
	if l.hasCoefs {
		return
	}
	l.hasCoefs = true
	d.coefs[c] = grow(d.coefs[c], (l.x1-l.x0)*(l.y1-l.y0)*d.coefsPerBlock())
	clear(d.coefs[c])
	if d.side > 1 {
		d.masks[c] = grow(d.masks[c], l.across*l.down)
		clear(d.masks[c])
	}
}

// storedBytes returns the number of bytes that keep allocates for all components.
func (d *Decoder) storedBytes() (total int64) {
	for i := range d.n {
		l := &d.layout[i]
		total += 4 * int64(l.x1-l.x0) * int64(l.y1-l.y0) * int64(d.coefsPerBlock())
		if d.side > 1 {
			total += 8 * int64(l.across) * int64(l.down)
		}
	}
	return total
}

// at returns the coefficients of block (x, y) of component c. If the result does not need the block, at returns d.passed,
// whose values are ignored.
func (d *Decoder) at(c, x, y int) []int32 {
	l := &d.layout[c]
	if x < l.x0 || l.x1 <= x || y < l.y0 || l.y1 <= y {
		return d.passed[:]
	}
	return d.coefs[c][((y-l.y0)*(l.x1-l.x0)+x-l.x0)*d.coefsPerBlock():]
}

// firstDC reads the first scan of DC coefficients.
func (d *Decoder) firstDC(y, x0, x1 int) error {
	r, limit, low := &d.bits, d.bits.limit(), d.s.low
	for x := x0; x < x1; x++ {
		if r.p > limit {
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
		}
		for i := range d.blocks[:d.s.blocks] {
			b := &d.blocks[i]
			r.refill()
			e := b.dc[r.acc>>(64-dcBits)]
			diff := e >> 16
			r.acc <<= uint(e) & 63
			r.n -= uint(e) & 63
			if e == 0 {
				diff = d.bigDC(b.i)
			}
			c := b.comp & 3
			d.dc[c] += diff
			d.at(c, x*b.h+b.dx, y*b.v+b.dy)[0] = d.dc[c] << low
		}
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

// refineDC reads one more bit of each DC coefficient.
func (d *Decoder) refineDC(y, x0, x1 int) error {
	r, limit, low := &d.bits, d.bits.limit(), d.s.low
	for x := x0; x < x1; x++ {
		if r.p > limit {
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
		}
		for i := range d.blocks[:d.s.blocks] {
			b := &d.blocks[i]
			d.at(b.comp, x*b.h+b.dx, y*b.v+b.dy)[0] |= int32(r.take(1)) << low
		}
	}
	return nil
}

// firstAC reads the first scan of a band of AC coefficients, of one component.
func (d *Decoder) firstAC(y, x0, x1 int) error {
	r, table, c := &d.bits, d.blocks[0].ac, d.blocks[0].comp
	buf, place, from, to, low := &r.buf, d.place, uint(d.s.from), uint(d.s.to), d.s.low
	masks := d.masks[c][y*d.layout[c].across:]
	acc, n, p, limit := r.acc, r.n, r.p, r.limit()
	for x := x0; x < x1; x++ {
		if d.eobRun > 0 {
			run := min(d.eobRun, x1-x)
			d.eobRun -= run
			x += run - 1
			continue
		}
		if p > limit {
			r.acc, r.n, r.p = acc, n&63, p
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
			acc, n, p = r.acc, r.n, r.p
		}
		b, mask := d.at(c, x, y), masks[x]
	block:
		for zig := from; zig <= to; {
			acc |= binary.BigEndian.Uint64(buf[p:]) >> (n & 63)
			p += int(^n & 63 >> 3)
			n |= 56
			for range 5 {
				e := table[acc>>(64-acBits)]
				z := zig + uint(e>>8)&0xff
				if z > to {
					if z-acEnd < 64 {
						acc <<= uint(e) & 63
						n -= uint(e)
						break block
					}
					r.acc, r.n, r.p = acc, n&63, p
					zig = d.bigAC(0, zig, b, &mask)
					acc, n, p = r.acc, r.n, r.p
					break
				}
				acc <<= uint(e) & 63
				n -= uint(e)
				if v := e >> 16; v != 0 {
					b[place[z&63]] = v << low
					mask |= 1 << (z & 63)
				}
				if zig = z + 1; zig > to {
					break block
				}
			}
		}
		masks[x] = mask
		if d.err != nil {
			return d.err
		}
	}
	r.acc, r.n, r.p = acc, n&63, p
	return nil
}

// refineAC reads one more bit of a band of AC coefficients, of one component.
func (d *Decoder) refineAC(y, x0, x1 int) error {
	r, limit, c := &d.bits, d.bits.limit(), d.s.comp[0]
	masks, band := d.masks[c][y*d.layout[c].across:], from(d.s.from)&^from(d.s.to+1)
	for x := x0; x < x1; x++ {
		if d.eobRun > 0 && masks[x]&band == 0 {
			d.eobRun--
			continue
		}
		if r.p > limit {
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
		}
		if err := d.refineBlock(d.at(c, x, y), &masks[x]); err != nil {
			return err
		}
	}
	return nil
}

// from returns the mask of all coefficients except the first zig.
func from(zig int) uint64 { return ^uint64(0) << zig }

// refineBlock decodes a block as in section G.1.2.3. Each code gives the place of a new coefficient, by the
// number of zeros before it, then its sign, and a bit for each coefficient passed that is not
// zero.
func (d *Decoder) refineBlock(b []int32, mask *uint64) error {
	zig, end, old := d.s.from, from(d.s.to+1), *mask
	for d.eobRun == 0 && zig <= d.s.to {
		run, value, err := d.refinement()
		if err != nil {
			return err
		}
		if d.eobRun > 0 {
			break
		}
		zeros := ^old & from(zig) &^ end
		for range run {
			zeros &= zeros - 1
		}
		next := bits.TrailingZeros64(zeros)
		d.correct(b, old&from(zig)&^from(min(next, d.s.to+1)))
		if zeros == 0 {
			return errRefine
		}
		if value != 0 {
			b[d.place[next&63]] = value << d.s.low
			*mask |= 1 << next
		}
		zig = next + 1
	}
	if d.eobRun > 0 {
		d.eobRun--
		d.correct(b, old&from(zig)&^end)
	}
	return nil
}

// refinement reads a code: a number of zeros and then 1, -1 or one more zero. Or the code is the end
// of the band for d.eobRun blocks, including this one.
func (d *Decoder) refinement() (run int, value int32, err error) {
	r := &d.bits
	r.refill()
	e := d.blocks[0].ac[r.acc>>(64-acBits)]
	run, value = int(e>>8&0xff), e>>16
	if run <= 15 {
		if value < -1 || 1 < value {
			return 0, 0, errRefine
		}
		r.acc <<= uint(e) & 63
		r.n -= uint(e) & 63
		return run, value, nil
	}
	symbol, err := r.symbol(d.s.ac[0])
	if err != nil {
		return 0, 0, err
	}
	run = int(symbol >> 4)
	switch {
	case symbol&15 == 1:
		return run, 2*int32(r.take(1)) - 1, nil
	case symbol&15 != 0:
		return 0, 0, errRefine
	case run != 15:
		d.eobRun = 1<<run + int(r.take(uint(run)))
	}
	return run, 0, nil
}

// correct reads a bit for each coefficient in mask. A bit of 1 moves the coefficient away from zero.
func (d *Decoder) correct(b []int32, mask uint64) {
	delta := int32(1) << d.s.low
	for mask != 0 {
		n := min(bits.OnesCount64(mask), 32)
		v := d.bits.take(uint(n)) << (32 - n)
		for ; n > 0; n-- {
			if int32(v) < 0 {
				at := &b[d.place[bits.TrailingZeros64(mask)&63]]
				if *at >= 0 {
					*at += delta
				} else {
					*at -= delta
				}
			}
			v <<= 1
			mask &= mask - 1
		}
	}
}

// reconstruct transforms the wanted blocks of component c into pix.
func (d *Decoder) reconstruct(c int) error {
	l, p, q, perBlock := &d.layout[c], &d.planes.P[c], &d.quants[c], d.coefsPerBlock()
	*q = d.inOrder(&d.quant[d.comp[c].tq])
	coefs := d.coefs[c]
	for y := l.y0; y < l.y1; y++ {
		if d.pollDeadline(l.x1 - l.x0) {
			return ErrExpired
		}
		for x := l.x0; x < l.x1; x++ {
			dst := d.pix[c][((y-l.y0)*p.Stride+x-l.x0)*d.side:]
			switch {
			case d.side == 1 || d.masks[c][y*l.across+x] == 0:
				d.flat(dst, p.Stride, coefs[0]*q[0])
			case perBlock == 64:
				d.inverse(dst, p.Stride, (*[64]int32)(coefs), q)
			default:
				copy(d.unit[0][:], coefs[:d.per])
				d.inverse(dst, p.Stride, &d.unit[0], q)
			}
			coefs = coefs[perBlock:]
		}
	}
	return nil
}
