package jpg

import "encoding/binary"

// sequential reads a scan of a baseline or extended picture, block by block into pix.
func (d *Decoder) sequential(s *scanHeader) error {
	for i, c := range s.comp[:s.n] {
		s.dc[i].makeDC()
		if d.lastCoef > 0 {
			s.ac[i].makePair()
		}
		if d.lastCoef < 63 || d.o.Region != (Rect{}) {
			s.ac[i].makeSkip()
		}
		d.quants[c] = d.inOrder(&d.quant[d.comp[c].tq])
		d.layout[c].written = true
	}
	return d.units(s, (*Decoder).sequentialRow)
}

// sequentialRow decodes units x0 to x1 of row y. It reads units outside the Region only to
// keep the bit position and the predictions correct.
func (d *Decoder) sequentialRow(y, x0, x1 int) error {
	b := &d.blocks[0]
	l := &d.layout[b.comp]
	if y < l.y0/b.v || l.y1/b.v <= y {
		return d.meanRow(x0, x1, false)
	}
	left, right := min(max(l.x0/b.h, x0), x1), max(min(l.x1/b.h, x1), x0)
	if left >= right {
		return d.meanRow(x0, x1, false)
	}
	if err := d.meanRow(x0, left, false); err != nil {
		return err
	}
	for i := range d.blocks[:d.s.blocks] {
		b := &d.blocks[i]
		l, stride := &d.layout[b.comp], d.planes.P[b.comp].Stride
		b.step = b.h * d.side
		b.at = (y*b.v+b.dy-l.y0)*d.side*stride + (left*b.h+b.dx-l.x0)*d.side
	}
	var err error
	if d.lastCoef == 0 {
		err = d.meanRow(left, right, true)
	} else {
		err = d.valueRow(left, right)
	}
	if err != nil {
		return err
	}
	return d.meanRow(right, x1, false)
}

// more prepares the bits for another unit when p has passed the limit, and returns the
// next limit.
func (r *bitReader) more() (limit int, err error) {
	if r.low() {
		r.fill()
	} else if r.overrun() {
		return 0, errShort
	}
	return r.limit(), nil
}

// limit returns the value of p at which more must be called before a unit.
func (r *bitReader) limit() int {
	if r.last {
		return r.end
	}
	return r.end - unitBytes
}

// The loops below keep the bit reader in local variables. Only the low six bits of their n
// are valid, because they subtract whole entries, not only an entry's bits.

// meanRow decodes only the DC coefficients of units x0 to x1. If write is true, it writes each block's
// mean to pix.
func (d *Decoder) meanRow(x0, x1 int, write bool) error {
	r := &d.bits
	buf := &r.buf
	acc, n, p, limit := r.acc, r.n, r.p, r.limit()
	blocks := d.blocks[:d.s.blocks]
	for x := x0; x < x1; x++ {
		if p > limit {
			r.acc, r.n, r.p = acc, n&63, p
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
			acc, n, p = r.acc, r.n, r.p
		}
		for i := range blocks {
			b := &blocks[i]
			skip, zig := b.skip, uint(1)
			var e, z uint
			acc |= binary.BigEndian.Uint64(buf[p:]) >> (n & 63)
			p += int(^n & 63 >> 3)
			n |= 56
			first := b.dc[acc>>(64-dcBits)]
			diff := first >> 16
			acc <<= uint(first) & 63
			n -= uint(first)
			if first == 0 {
				r.acc, r.n, r.p = acc, n&63, p
				diff = d.bigDC(b.i)
				acc, n, p = r.acc, r.n, r.p
			}
			c := b.comp & 3
			d.dc[c] += diff
			if write {
				d.pix[c][b.at] = clamp((d.dc[c]*d.quants[c][0] + 4) >> 3)
				b.at += b.step
			}
			if d.eobRun != 0 {
				d.eobRun--
				continue
			}
			// 56 bits are at least one DC and three AC look-ups, or four AC look-ups.
			goto three
		four:
			acc |= binary.BigEndian.Uint64(buf[p:]) >> (n & 63)
			p += int(^n & 63 >> 3)
			n |= 56
			e = uint(skip[acc>>(64-skipBits)])
			if z = zig + e>>6; z > 63 {
				goto end
			}
			zig = z
			acc <<= e & 63
			n -= e
		three:
			e = uint(skip[acc>>(64-skipBits)])
			if z = zig + e>>6; z > 63 {
				goto end
			}
			zig = z
			acc <<= e & 63
			n -= e
			e = uint(skip[acc>>(64-skipBits)])
			if z = zig + e>>6; z > 63 {
				goto end
			}
			zig = z
			acc <<= e & 63
			n -= e
			e = uint(skip[acc>>(64-skipBits)])
			if z = zig + e>>6; z > 63 {
				goto end
			}
			zig = z
			acc <<= e & 63
			n -= e
			goto four
		end:
			if z == 64 || z-skipEnd < 64 {
				acc <<= e & 63
				n -= e
				continue
			}
			r.acc, r.n, r.p = acc, n&63, p
			zig = d.bigAC(b.i, zig, d.passed[:], nil)
			acc, n, p = r.acc, r.n, r.p
			if zig < 64 {
				goto four
			}
		}
		if d.err != nil {
			return d.err
		}
	}
	r.acc, r.n, r.p = acc, n&63, p
	return nil
}

// valueRow decodes units x0 to x1 into pix.
func (d *Decoder) valueRow(x0, x1 int) error {
	r := &d.bits
	buf := &r.buf
	acc, n, p, limit := r.acc, r.n, r.p, r.limit()
	blocks, place, lastCoef := d.blocks[:d.s.blocks], d.place, d.lastCoef
	for x := x0; x < x1; x++ {
		if p > limit {
			r.acc, r.n, r.p = acc, n&63, p
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
			acc, n, p = r.acc, r.n, r.p
		}
		for i := range blocks {
			b := &blocks[i]
			acc |= binary.BigEndian.Uint64(buf[p:]) >> (n & 63)
			p += int(^n & 63 >> 3)
			n |= 56
			first := b.dc[acc>>(64-dcBits)]
			diff := first >> 16
			acc <<= uint(first) & 63
			n -= uint(first)
			if first == 0 {
				r.acc, r.n, r.p = acc, n&63, p
				diff = d.bigDC(b.i)
				acc, n, p = r.acc, r.n, r.p
			}
			d.dc[b.comp&3] += diff
			zig, pair, skip, block := uint(1), b.pair, b.skip, &d.unit[i]
			block[0] = d.dc[b.comp&3]
			if d.eobRun != 0 {
				d.eobRun--
				goto done
			}
			// 56 bits are at least one DC and four AC look-ups, or five AC look-ups.
			for k := 4; ; k = 5 {
				for ; k > 0; k-- {
					e := pair[acc>>(64-acBits)]
					z := zig + uint(e>>24)&0xff
					if z > 64 && z-pairEnd > 63 {
						r.acc, r.n, r.p = acc, n&63, p
						zig = d.bigAC(b.i, zig, block[:], nil)
						acc, n, p = r.acc, r.n, r.p
						if zig > lastCoef {
							goto rest
						}
						break
					}
					block[place[(zig+uint(e>>8))&63]&63] = int32(e>>16) >> 16
					block[place[(zig+uint(e>>16))&63]&63] = int32(e>>32) >> 16
					acc <<= e & 63
					n -= uint(e)
					if zig = z; zig > lastCoef {
						goto rest
					}
				}
				acc |= binary.BigEndian.Uint64(buf[p:]) >> (n & 63)
				p += int(^n & 63 >> 3)
				n |= 56
			}
		rest:
			for z := zig; z < 64; {
				acc |= binary.BigEndian.Uint64(buf[p:]) >> (n & 63)
				p += int(^n & 63 >> 3)
				n |= 56
				for range 4 {
					e := uint(skip[acc>>(64-skipBits)])
					next := z + e>>6
					if next < 64 || next == 64 || next-skipEnd < 64 {
						acc <<= e & 63
						n -= e
						z = next
					} else {
						r.acc, r.n, r.p = acc, n&63, p
						z = d.bigAC(b.i, z, d.passed[:], nil)
						acc, n, p = r.acc, r.n, r.p
						break
					}
					if z > 63 {
						break
					}
				}
			}
		done:
			b.flat = zig == 1 || zig == 1+pairEnd
		}
		d.put(blocks)
		if d.err != nil {
			return d.err
		}
	}
	r.acc, r.n, r.p = acc, n&63, p
	return nil
}

// put transforms the blocks of a unit into pix. It runs after the whole unit is decoded, so that the
// stores of a block's coefficients have reached the cache when vectors load them.
func (d *Decoder) put(blocks []unitBlock) {
	for i := range blocks {
		b := &blocks[i]
		c := b.comp & 3
		dst, stride, q, block := d.pix[c][b.at:], d.planes.P[c].Stride, &d.quants[c], &d.unit[i]
		b.at += b.step
		if b.flat {
			d.flat(dst, stride, block[0]*q[0])
		} else {
			d.inverse(dst, stride, block, q)
		}
	}
}

// bigDC decodes a DC difference by its symbol. Afterwards at least 56 bits are valid.
func (d *Decoder) bigDC(i int) int32 {
	size, err := d.bits.symbol(d.s.dc[i])
	if err == nil && size > 16 {
		err = errExcessive
	}
	if err != nil {
		d.fail(err)
		return 0
	}
	diff := extend(d.bits.take(uint(size)), int(size))
	d.bits.refill()
	return diff
}

// fail stores the first error of a row. The row continues to its next check.
func (d *Decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// bigAC decodes an AC coefficient of the scan's band by its symbol into block, and adds its place to mask, which may be nil. It
// returns the next place: 64 or more at the end of the band. A code for the end of several blocks belongs to
// progressive pictures, but image/jpeg accepts it everywhere.
func (d *Decoder) bigAC(i int, zig uint, block []int32, mask *uint64) uint {
	symbol, err := d.bits.symbol(d.s.ac[i])
	if err != nil {
		d.fail(err)
		return 64
	}
	run, size := uint(symbol>>4), uint(symbol&15)
	switch {
	case size != 0:
		if zig += run; zig > uint(d.s.to) {
			return 64
		}
		block[d.place[zig]] = extend(d.bits.take(size), int(size)) << d.s.low
		if mask != nil {
			*mask |= 1 << zig
		}
		return zig + 1
	case run == 15:
		return zig + 16
	default:
		d.eobRun = 1<<run + int(d.bits.take(run)) - 1
		return 64
	}
}
