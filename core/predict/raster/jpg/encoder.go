package jpg

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// An Encoder encodes pictures as baseline JPEG, and reuses its memory. The zero value is ready. It is not safe for concurrent use.
//
// Two blocks share their arithmetic: the low and the high half of an int64 hold a number of each, left and right blocks of luma, or Cb and
// Cr. A sum, a difference and a product with a constant of such pairs are the pairs of the results, because the number that a pair
// represents is high·2³² + low, with signs.
type Encoder struct {
	out    []byte            // the file, and room
	at     int               // bytes of out that are written
	acc    uint64            // its last n bits are not in out yet
	n      uint              // below 32 between blocks
	dc     [3]int32          // levels of the last block of each component
	steps  [2][64]byte       // quantisers of luma and chroma, in zig-zag order
	scale  [2][64]int64      // 2^roundBits through the quantiser and the factors of forward, in zig-zag order
	zero   [2][4]int64       // numbers from −zero to zero−1 of 16 coefficients have the level 0; a power of 2
	pairs  [3][64]int64      // samples, then coefficients of an MCU: upper luma, lower luma, chroma
	rows   [64]int64         // coefficients between the two passes
	levels [2][64]int32      // quantised coefficients of a pair, in zig-zag order
	edge   [3 * 16 * 16]byte // an MCU that is only partly in the picture
}

// MaxSide is the maximum width and height of a JPEG in pixels.
const MaxSide = 65535

// Append encodes a picture with the given quality, from 1 to 100, and appends the file to dst. The quality has the meaning of image/jpeg and
// libjpeg. Chroma has half the resolution in both directions. All hosts return the same bytes.
//
//	pix  (height, width, 3) bytes, RGB
//
// It panics if a side is not in 1…MaxSide, or if pix has another size.
func (e *Encoder) Append(dst, pix []byte, width, height, quality int) []byte {
	if min(width, height) < 1 || max(width, height) > MaxSide || len(pix) != 3*width*height {
		panic(fmt.Sprintf("jpg: %d bytes of %d×%d pixels", len(pix), width, height))
	}
	e.dc, e.acc, e.n = [3]int32{}, 0, 0
	e.quantise(quality)
	e.out = e.headers(dst, width, height)
	e.at = len(e.out)
	for y := 0; y < height; y += 16 {
		for x := 0; x < width; x += 16 {
			at, stride := pix[3*(y*width+x):], 3*width
			if x+16 > width || y+16 > height {
				e.extend(at, stride, min(width-x, 16), min(height-y, 16))
				at, stride = e.edge[:], 3*16
			}
			e.load(at, stride)
			e.mcu()
		}
	}
	e.put(7<<16|0x7f, 0, 0) // the last byte ends in ones
	for ; e.n >= 8; e.n -= 8 {
		e.stuff(byte(e.acc >> (e.n - 8)))
	}
	out := append(e.out[:e.at], 0xff, markerEOI)
	e.out = nil
	return out
}

// extend copies the w × h pixels of an MCU to e.edge and repeats the last column and row.
func (e *Encoder) extend(pix []byte, stride, w, h int) {
	for y := range 16 {
		row := e.edge[3*16*y:][:3*16]
		copy(row, pix[min(y, h-1)*stride:][:3*w])
		for x := w; x < 16; x++ {
			copy(row[3*x:3*x+3], row[3*x-3:])
		}
	}
}

// lanes has 1 in both halves.
const lanes = 1<<32 + 1

// load converts the 16 × 16 pixels of an MCU to e.pairs, in −128…127.
//
// Y is 0.299 R + 0.587 G + 0.114 B, Cb −0.169 R − 0.331 G + 0.5 B and Cr 0.5 R − 0.419 G − 0.081 B, with weights of 16 bits. Chroma is
// computed from the sum of four pixels.
func (e *Encoder) load(pix []byte, stride int) {
	const (
		half   = (1 << 15) * lanes
		middle = (128<<18 + 1<<17 - 1) * lanes // the −1 keeps 127.5 below 128
		bytes  = 0xff * lanes
		zero   = 128 * lanes
	)
	for y := 0; y < 16; y += 2 {
		at := y * stride
		left0, right0 := (*[24]byte)(pix[at:]), (*[24]byte)(pix[at+24:])
		left1, right1 := (*[24]byte)(pix[at+stride:]), (*[24]byte)(pix[at+stride+24:])
		luma := (*[16]int64)(e.pairs[y>>3][y&7*8:])
		chroma := (*[8]int64)(e.pairs[2][y>>1*8:])
		for x := range 4 {
			i := 6 * x
			r0, g0, b0, r1, g1, b1 := pixels((*[6]byte)(left0[i:]), (*[6]byte)(right0[i:]))
			luma[2*x] = int64((19595*r0+38470*g0+7471*b0+half)>>16&bytes) - zero
			luma[2*x+1] = int64((19595*r1+38470*g1+7471*b1+half)>>16&bytes) - zero
			r, g, b := r0+r1, g0+g1, b0+b1
			r0, g0, b0, r1, g1, b1 = pixels((*[6]byte)(left1[i:]), (*[6]byte)(right1[i:]))
			luma[2*x+8] = int64((19595*r0+38470*g0+7471*b0+half)>>16&bytes) - zero
			luma[2*x+9] = int64((19595*r1+38470*g1+7471*b1+half)>>16&bytes) - zero
			r, g, b = r+r0+r1, g+g0+g1, b+b0+b1
			cb := (32768*b - 11056*r - 21712*g + middle) >> 18 & bytes
			cr := (32768*r - 27440*g - 5328*b + middle) >> 18 & bytes
			chroma[x] = int64(cb&0xff|cr<<32) - zero
			chroma[x+4] = int64(cb>>32|cr&^0xff) - zero
		}
	}
}

// pixels returns two pixels of the left blocks and two of the right ones as pairs of samples.
func pixels(left, right *[6]byte) (r0, g0, b0, r1, g1, b1 uint64) {
	const bytes = 0xff * lanes
	v := uint64(binary.LittleEndian.Uint32(left[:4])) | uint64(binary.LittleEndian.Uint32(right[:4]))<<32
	w := uint64(binary.LittleEndian.Uint32(left[2:])) | uint64(binary.LittleEndian.Uint32(right[2:]))<<32
	return v & bytes, v >> 8 & bytes, v >> 16 & bytes, w >> 8 & bytes, w >> 16 & bytes, w >> 24 & bytes
}

// mcu transforms, quantises and codes e.pairs.
func (e *Encoder) mcu() {
	if cap(e.out)-e.at < maxUnit {
		e.out = slices.Grow(e.out[:e.at], max(maxUnit, e.at))
	}
	e.out = e.out[:cap(e.out)]
	for i := range e.pairs {
		forward(&e.rows, &e.pairs[i])
		forward(&e.pairs[i], &e.rows)
		low, high := e.round(i)
		components := [2]int{0, 0}
		if i == 2 {
			components = [2]int{1, 2}
		}
		e.block(components[0], &e.levels[0], low)
		e.block(components[1], &e.levels[1], high)
	}
}

// maxUnit is a bound for the bytes of an MCU: 6 blocks of 64 codes of up to 27 bits, with a stuffed byte after each.
const maxUnit = 6 * 64 * 4 * 2

// one is the 1 of the factors in forward. With 290, the cosines are within 0.03 % of integers.
const one = 290

// forward is a pass of the forward DCT of Arai, Agui and Nakajima (1988) on pairs: the transform of each row of src becomes a column of dst.
// Nothing is rounded. The outputs of two passes are one²·8·a[v]·a[u] times the coefficient of the standard, with a[0] = 1 and
// a[k] = √2·cos(kπ/16). They are below 2³¹ for samples of 8 bits: the largest is that of u = v = 1, 12,945·one².
func forward(dst, src *[64]int64) {
	const c2, c4, c6 = 268, 205, 111 // one·cos(kπ/16)
	for i := range 8 {
		s := (*[8]int64)(src[8*i:])
		t0, t7 := s[0]+s[7], s[0]-s[7]
		t1, t6 := s[1]+s[6], s[1]-s[6]
		t2, t5 := s[2]+s[5], s[2]-s[5]
		t3, t4 := s[3]+s[4], s[3]-s[4]

		e0, e3 := t0+t3, t0-t3
		e1, e2 := t1+t2, t1-t2
		dst[i], dst[i+4*8] = (e0+e1)*one, (e0-e1)*one
		z := (e2 + e3) * c4
		e3 *= one
		dst[i+2*8], dst[i+6*8] = e3+z, e3-z

		o0, o1, o2 := t4+t5, t5+t6, t6+t7
		z5 := (o0 - o2) * c6
		z2, z3, z4 := o0*(c2-c6)+z5, o1*c4, o2*(c2+c6)+z5
		t7 *= one
		z11, z13 := t7+z3, t7-z3
		dst[i+5*8], dst[i+3*8] = z13+z2, z13-z2
		dst[i+8], dst[i+7*8] = z11+z4, z11-z4
	}
}

// roundBits is the number of fraction bits of a coefficient times its scale.
const roundBits = 47

// round divides the coefficients of pair i by their quantisers, rounding half up, and sets e.levels. Bit k of a result is set if level k of
// that block is not zero. Only those levels and the first 16 are set.
func (e *Encoder) round(i int) (low, high uint64) {
	const (
		half = 1 << (roundBits - 1)
		top  = 1 << 63
	)
	a, b, pairs, table := &e.levels[0], &e.levels[1], &e.pairs[i], i>>1
	for from := 0; from < 64; from += 16 {
		bound := e.zero[table][from/16]
		outside := int64(0)
		for _, u := range unzig[from : from+16] {
			outside |= pairs[u&63] + bound*lanes
		}
		if from > 0 && outside&^((2*bound-1)*lanes) == 0 { // all numbers are in −bound…bound−1, so that the levels are zero
			low, high = low>>16, high>>16
			continue
		}
		for z := from; z < from+16; z++ {
			p, s := pairs[unzig[z&63]&63], e.scale[table][z&63]
			l := int64(int32(p))
			h := (p - l) >> 32
			l, h = (l*s+half)>>roundBits, (h*s+half)>>roundBits
			a[z&63], b[z&63] = int32(l), int32(h)
			low = low>>1 | uint64(l|-l)&top // the sign of l|−l is that l is not zero
			high = high>>1 | uint64(h|-h)&top
		}
	}
	return low, high
}

// block codes the levels of a block of a component, 0 to 2. Bit k of mask is set if level k is not zero.
func (e *Encoder) block(component int, levels *[64]int32, mask uint64) {
	table := min(component, 1)
	size, value := valueBits(levels[0] - e.dc[component])
	e.dc[component] = levels[0]
	e.put(dcCodes[table][size&15], size, value)
	codes := &acCodes[table]
	acc, n, last := e.acc, e.n, uint(0)
	for mask &^= 1; mask != 0; mask &= mask - 1 {
		k := uint(bits.TrailingZeros64(mask)) & 63
		run := k - last - 1
		for last = k; run > 15; run -= 16 {
			e.acc, e.n = acc, n
			e.put(codes[0xf0], 0, 0)
			acc, n = e.acc, e.n
		}
		size, value := valueBits(levels[k])
		code := codes[(run<<4|size)&0xff]
		length := uint(code>>16) + size
		acc = acc<<(length&63) | uint64(code&0xffff)<<(size&63) | value
		if n += length; n >= 32 {
			n -= 32
			e.flush(uint32(acc >> (n & 63)))
		}
	}
	e.acc, e.n = acc, n
	if last != 63 {
		e.put(codes[0], 0, 0)
	}
}

// valueBits returns the size of v in bits, and the bits, section F.1.2.1.
func valueBits(v int32) (size uint, value uint64) {
	sign := v >> 31
	size = uint(bits.Len32(uint32((v ^ sign) - sign)))
	return size, uint64(uint32(v+sign)) & (1<<(size&63) - 1)
}

// put writes a code and then the size bits of value, together at most 32.
func (e *Encoder) put(code uint32, size uint, value uint64) {
	n := uint(code>>16) + size
	e.acc = e.acc<<(n&63) | uint64(code&0xffff)<<(size&63) | value
	if e.n += n; e.n >= 32 {
		e.n -= 32
		e.flush(uint32(e.acc >> (e.n & 63)))
	}
}

// flush writes four bytes. mcu makes room for them.
func (e *Encoder) flush(v uint32) {
	const ones, tops = 0x01010101, 0x80808080
	if (^v-ones)&v&tops == 0 { // no byte is 0xff
		binary.BigEndian.PutUint32(e.out[e.at:], v)
		e.at += 4
		return
	}
	for shift := 24; shift >= 0; shift -= 8 {
		e.stuff(byte(v >> shift))
	}
}

// stuff writes a byte, and a zero after 0xff.
func (e *Encoder) stuff(b byte) {
	e.out[e.at] = b
	e.at++
	if b == 0xff {
		e.out[e.at] = 0
		e.at++
	}
}
