package jpg

// progression reads one scan of a progressive picture into coefs. At Scale 8 the AC
// scans are passed over.
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

// keep takes zeroed memory for the coefficients of component c before its first scan.
func (d *Decoder) keep(c int) {
	l := &d.layout[c]
	if l.hasCoefs {
		return
	}
	l.hasCoefs = true
	d.coefs[c] = grow(d.coefs[c], l.across*l.down*d.kept())
	clear(d.coefs[c])
}

// firstDC reads the first scan of DC coefficients.
func (d *Decoder) firstDC(y, x0, x1 int) error {
	r, limit, kept, low := &d.bits, d.bits.limit(), d.kept(), d.s.low
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
			r.acc <<= uint(e) & 15
			r.n -= uint(e) & 15
			if e == 0 {
				diff = d.bigDC(b.i)
			}
			c := b.comp
			d.dc[c] += diff
			at := (y*b.v+b.dy)*d.layout[c].across + x*b.h + b.dx
			d.coefs[c][at*kept] = d.dc[c] << low
		}
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

// refineDC reads one more bit of each DC coefficient.
func (d *Decoder) refineDC(y, x0, x1 int) error {
	r, limit, kept, low := &d.bits, d.bits.limit(), d.kept(), d.s.low
	for x := x0; x < x1; x++ {
		if r.p > limit {
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
		}
		for i := range d.blocks[:d.s.blocks] {
			b := &d.blocks[i]
			at := (y*b.v+b.dy)*d.layout[b.comp].across + x*b.h + b.dx
			d.coefs[b.comp][at*kept] |= int32(r.take(1)) << low
		}
	}
	return nil
}

// firstAC reads the first scan of a band of AC coefficients, of one component.
func (d *Decoder) firstAC(y, x0, x1 int) error {
	r, limit, table := &d.bits, d.bits.limit(), d.blocks[0].ac
	to, low := uint(d.s.to), d.s.low
	row, place := d.row(y), transforms[0].place
	for x := x0; x < x1; x++ {
		if d.eobRun > 0 {
			run := min(d.eobRun, x1-x)
			d.eobRun -= run
			x += run - 1
			continue
		}
		if r.p > limit {
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
		}
		b := (*[64]int32)(row[64*x:])
		for zig := uint(d.s.from); zig <= to; {
			if r.n < 32 {
				r.refill()
			}
			e := table[r.acc>>(64-acBits)]
			z := zig + uint(e>>8)&0xff
			if z > to {
				if z-acEnd < 64 {
					r.acc <<= uint(e) & 15
					r.n -= uint(e) & 15
					break
				}
				zig = d.progressiveAC(b, zig)
				continue
			}
			b[place[z&63]&63] = e >> 16 << low
			r.acc <<= uint(e) & 15
			r.n -= uint(e) & 15
			zig = z + 1
		}
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

// row returns row y of the coefficients of the scan's only component.
func (d *Decoder) row(y int) []int32 {
	c := d.s.comp[0]
	across := 64 * d.layout[c].across
	return d.coefs[c][y*across : (y+1)*across]
}

// progressiveAC is bigAC for a band.
func (d *Decoder) progressiveAC(b *[64]int32, zig uint) uint {
	symbol, err := d.bits.symbol(d.s.ac[0])
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
		b[transforms[0].place[zig]] = extend(d.bits.take(size), int(size)) << d.s.low
		return zig + 1
	case run == 15:
		return zig + 16
	default:
		d.eobRun = 1<<run + int(d.bits.take(run)) - 1
		return 64
	}
}

// refineAC reads one more bit of a band of AC coefficients, of one component.
func (d *Decoder) refineAC(y, x0, x1 int) error {
	r, limit := &d.bits, d.bits.limit()
	row := d.row(y)
	for x := x0; x < x1; x++ {
		if r.p > limit {
			var err error
			if limit, err = r.more(); err != nil {
				return err
			}
		}
		if err := d.refineBlock((*[64]int32)(row[64*x:])); err != nil {
			return err
		}
	}
	return nil
}

// refineBlock is section G.1.2.3.
func (d *Decoder) refineBlock(b *[64]int32) error {
	r, h, zig, to, delta := &d.bits, d.s.ac[0], d.s.from, d.s.to, int32(1)<<d.s.low
	for ; d.eobRun == 0 && zig <= to; zig++ {
		symbol, err := r.symbol(h)
		if err != nil {
			return err
		}
		run, value := int(symbol>>4), int32(0)
		switch symbol & 15 {
		case 0:
			if run != 15 {
				d.eobRun = 1<<run + int(r.take(uint(run)))
			}
		case 1:
			value = delta
			if r.take(1) == 0 {
				value = -delta
			}
		default:
			return errRefine
		}
		if d.eobRun > 0 {
			break
		}
		if zig = d.refineNonZero(b, zig, run); zig > to {
			return errRefine
		}
		if value != 0 {
			b[transforms[0].place[zig]] = value
		}
	}
	if d.eobRun > 0 {
		d.eobRun--
		d.refineNonZero(b, zig, -1)
	}
	return nil
}

// refineNonZero adds a bit to each coefficient that is not zero, from zig on, up to the
// zero after the next zeros ones (-1: all), whose place it returns.
func (d *Decoder) refineNonZero(b *[64]int32, zig, zeros int) int {
	r, to, delta, place := &d.bits, d.s.to, int32(1)<<d.s.low, transforms[0].place
	for ; zig <= to; zig++ {
		v := &b[place[zig&63]&63]
		if *v == 0 {
			if zeros == 0 {
				break
			}
			zeros--
		} else if r.take(1) != 0 {
			if *v >= 0 {
				*v += delta
			} else {
				*v -= delta
			}
		}
	}
	return zig
}

// reconstruct transforms the wanted blocks of component c into pix.
func (d *Decoder) reconstruct(c int) error {
	l, p, kept := &d.layout[c], &d.planes.P[c], d.kept()
	q := &d.quants[c]
	*q = d.inOrder(&d.quant[d.comp[c].tq])
	for y := l.y0; y < l.y1; y++ {
		if d.expired(l.x1 - l.x0) {
			return ErrExpired
		}
		for x := l.x0; x < l.x1; x++ {
			coefs := d.coefs[c][(y*l.across+x)*kept:]
			dst := d.pix[c][((y-l.y0)*p.Stride+x-l.x0)*d.side:]
			if kept == 1 {
				d.flat(dst, p.Stride, coefs[0]*q[0])
				continue
			}
			for i := range d.side {
				copy(d.block[i*d.side:(i+1)*d.side], coefs[8*i:])
			}
			d.inverse(dst, p.Stride, &d.block, q)
		}
	}
	return nil
}
