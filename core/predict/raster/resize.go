package raster

import (
	"math/bits"
	"slices"
)

// How a picture is resized
//
// An axis takes the full-size interval from lo to hi, of length S = hi-lo, to n pixels of the result. Its ends are borders of pixels or,
// for a centred square, multiples of 1/32 of a pixel. A plane's sample j covers the full-size interval [o+j·p, o+(j+1)·p): p is its
// pitch, the subsampling times the DCT scale, and o its origin.
//
//    S ≥ n  area: pixel i of the result is the interval [lo+i·S/n, lo+(i+1)·S/n).
//           A sample's weight is its overlap with the interval. In units of 1/(32·n)
//           of a pixel all overlaps are integers, and they add up to 32·S.
//           box: a sample's weight is the number of full-size pixels under it whose
//           centres lie in the interval. With k = floor(S/n) the interval has k or k+1
//           such pixels, and a factor for each case makes the sums of all pixels equal.
//    S < n  bilinear: pixel i is at the centre of that interval. The two samples
//           whose centres are around it have weights by their nearness, in units of
//           1/(64·n·p). Beyond the last centre of the samples that the wanted part
//           touches, that sample has all the weight.
//
// So an axis has integer weights with a fixed sum D, and a pixel of the result is
//
//	floor(Σ wy·wx·sample / (Dy·Dx) + 1/2)
//
// computed exactly: the sums are integers that fit, and the one division is exact too.
// So no parameter needs tuning, and two hosts cannot differ. A mirrored or turned picture
// gives the mirrored or turned result.
//
// An area average or a box of a subsampled plane equals that of the plane with its samples
// repeated. image/jpeg defines its colours in this way.

// divider divides by one number, rounding half up. The quotient must fit a byte.
//
// With x = s + d/2 ≤ 255.5·d the quotient floor(x/d) is floor(x·m / 2^k) for
// m = ceil(2^k / d) as long as x·d < 2^k (Granlund and Montgomery, 1994). For d below 2^24 a
// product of 64 bits with k = 56 is enough. Larger d need a product of 128 bits with k = 80, and with
// k = 96 if d is at least 2^36.
type divider struct {
	d, half, m uint64
	shift      uint // k - 64, where the product has 128 bits
}

// An axis' sum of weights is below 1<<21. For an area it is at most 30·maxSide: a
// square's side is 2·Centre units for a pixel, and every other part (or the whole picture)
// has a common factor of 16. For a box it is less than maxBox². For bilinear it
// is at most 32·MaxResultSide·4, half of its unit, because 4 is the largest
// pitch of a plane that is enlarged.

// narrowSum is the divisor below which all sums of a pixel fit 32 bits.
const narrowSum = 1 << 24

func newDivider(d uint64) divider {
	if d < narrowSum {
		return divider{d: d, half: d / 2, m: (1<<56 + d - 1) / d}
	}
	shift := uint(16)
	if d >= 1<<36 {
		shift = 32
	}
	m, rest := bits.Div64(1<<shift, 0, d)
	if rest > 0 {
		m++
	}
	return divider{d: d, half: d / 2, m: m, shift: shift}
}

// wide is the division for larger d, below 1<<42.
func (v *divider) wide(s uint64) byte {
	hi, _ := bits.Mul64(s+v.half, v.m)
	return byte(hi >> (v.shift & 63))
}

// source describes the samples that a resize reads: one plane, or three interleaved ones.
type source struct {
	pix      []byte // rows of samples; nil if load makes the rows
	stride   int
	channels int // 1, or 3 interleaved
	load     rowLoader

	originX, originY int // full-size position of sample (0, 0)
	pitchX, pitchY   int // full-size pixels that a sample covers
	width, height    int // samples
}

// rowLoader makes rows of samples: RGB from a library's picture, or bytes from a plane of more than 8 bits.
type rowLoader interface {
	// row writes the samples x0…x1-1 of row y to dst, which has the shape (x1-x0, channels).
	row(dst []byte, y, x0, x1 int)
}

// lane resizes one source, row by row of the result. It reuses its scratch memory for the next source.
type lane struct {
	src     *source
	x, y    axis
	div     divider
	sums    []uint32  // (touched columns · channels) vertical sums of one row, ≤ 255·y.sum
	out     []byte    // (n · channels) one row of the result
	rows    [2][]byte // the last two rows that were loaded
	rowHeld [2]int    // numbers of the rows in rows; -1: none
}

// start prepares l for the part of src in win. It reports whether src covers that part.
func (l *lane) start(src *source, win *window) bool {
	l.src = src
	l.x.build(span{lo: win.x0, hi: win.x1, n: win.tw, origin: src.originX, pitch: src.pitchX, box: win.box})
	l.y.build(span{lo: win.y0, hi: win.y1, n: win.th, origin: src.originY, pitch: src.pitchY, box: win.box})
	if win.x0 < unit*src.originX || win.y0 < unit*src.originY || l.x.hi > src.width || l.y.hi > src.height {
		return false
	}
	l.div = newDivider(uint64(l.x.sum) * uint64(l.y.sum))
	l.x.group()
	touched := (l.x.hi - l.x.lo) * src.channels
	l.sums = resize(l.sums, touched+groupReach)[:touched]
	l.out = resize(l.out, win.tw*src.channels)
	if src.load != nil {
		l.rows[0] = resize(l.rows[0], touched)
		l.rows[1] = resize(l.rows[1], touched)
		l.rowHeld = [2]int{-1, -1}
	}
	return true
}

// resize returns a slice of n elements with arbitrary values. It reuses b's memory if that is large enough.
func resize[T any](b []T, n int) []T {
	return slices.Grow(b[:0], n)[:n]
}

// loadRow returns the touched samples of row y. It keeps the last two rows, because two rows of the result may share one.
func (l *lane) loadRow(y int) []byte {
	k := y & 1
	if l.rowHeld[k] != y {
		l.src.load.row(l.rows[k], y, l.x.lo, l.x.hi)
		l.rowHeld[k] = y
	}
	return l.rows[k]
}

// row returns row j of the result, (n, channels) bytes, valid until the next call.
func (l *lane) row(j int) []byte {
	y, w := int(l.y.first[j]), l.y.w[j*l.y.taps:][:l.y.taps]
	clear(l.sums)
	if l.src.load == nil {
		at := (l.y.lo+y)*l.src.stride + l.x.lo*l.src.channels
		addRows(l.sums, l.src.pix[at:], l.src.stride, w)
	} else {
		for k := range w {
			if w[k] != 0 {
				addRows(l.sums, l.loadRow(l.y.lo+y+k), 0, w[k:k+1])
			}
		}
	}
	switch {
	case l.src.channels == 3:
		l.across3()
	case l.div.d < narrowSum:
		l.across(l.acrossFast())
	default:
		l.acrossWide()
	}
	return l.out
}

// across sums and divides along the row, starting at pixel i: one channel, with sums that fit 32 bits. After DCT scaling a pixel takes
// two or three samples, and separate loops handle these cases.
func (l *lane) across(i int) {
	taps := l.x.taps
	acrossGeneric(l.out[i:len(l.x.first)], l.sums, l.x.first[i:], l.x.w[i*taps:], taps, l.div.half, l.div.m)
}

// acrossWide is across with sums of 64 bits.
func (l *lane) acrossWide() {
	taps := l.x.taps
	for i, first := range l.x.first {
		w := l.x.w[i*taps:][:taps]
		s := l.sums[first:][:taps]
		var sum uint64
		for k, v := range s {
			sum += uint64(v) * uint64(w[k])
		}
		l.out[i] = l.div.wide(sum)
	}
}

// across3 is across for three interleaved channels.
func (l *lane) across3() {
	if l.div.d < narrowSum {
		across3Generic(l.out, l.sums, l.x.first, l.x.w, l.x.taps, l.div.half, l.div.m)
		return
	}
	taps := l.x.taps
	for i, first := range l.x.first {
		w := l.x.w[i*taps:][:taps]
		s := l.sums[3*first:][:3*taps]
		var r, g, b uint64
		for k, w := range w {
			p := (*[3]uint32)(s[3*k:])
			r += uint64(p[0]) * uint64(w)
			g += uint64(p[1]) * uint64(w)
			b += uint64(p[2]) * uint64(w)
		}
		out := (*[3]byte)(l.out[3*i:])
		out[0], out[1], out[2] = l.div.wide(r), l.div.wide(g), l.div.wide(b)
	}
}
