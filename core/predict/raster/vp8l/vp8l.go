// Package vp8l reads the headers of lossless WebP, to know how much memory its pixels need.
//
// A picture selects, for each tile of its pixels, one of up to 65,536 groups of five prefix codes. A small separate image before the codes
// holds the group of each tile. golang.org/x/image/webp allocates all groups, 5.3 KB each, before it reads the first: a file of 750 bytes
// takes 340 MB. So this package reads the part before the codes first, to count the groups:
//
//	size ─ transforms, three of them with a small image ─ [colour cache] ─ [image of groups] ─ codes, pixels
//	╰───────────────────────────── Groups ─────────────────────────────╯
//
// The package does not decode pixels. The WebP container specification defines the format.
package vp8l

// groupBits is the minimum number of bits of a group in the file: five codes of one symbol.
const groupBits = 5 * 4

// Groups returns the number of groups of prefix codes of a picture, and false if the picture ends before its pixels or contradicts itself.
// coded is the payload of the chunk VP8L, whose signature the caller has checked.
func Groups(coded []byte) (n int, ok bool) {
	r := bitReader{b: coded}
	r.read(8) // signature
	w, h := int(r.read(14))+1, int(r.read(14))+1
	r.read(1 + 3) // alpha hint, version
	return r.groups(w, h)
}

// AlphaGroups does what Groups does for the alpha channel of a picture of w × h pixels. coded is the payload of the chunk ALPH without its
// first byte.
func AlphaGroups(coded []byte, w, h int) (n int, ok bool) {
	r := bitReader{b: coded}
	return r.groups(w, h)
}

// groups returns the number of groups of the picture w × h, and whether r can have their codes.
func (r *bitReader) groups(w, h int) (n int, ok bool) {
	n = r.groupsOf(w, h)
	return n, !r.bad && n*groupBits <= 8*(len(r.b)-r.pos)+int(r.n)
}

// bitReader reads bits, the lowest of each byte first. After a malformed value or the end of b
// it sets bad and returns zeros.
type bitReader struct {
	b    []byte
	pos  int
	bits uint32
	n    uint
	bad  bool
}

func (r *bitReader) read(n uint) uint32 {
	for r.n < n {
		if r.pos == len(r.b) {
			r.bad = true
			return 0
		}
		r.bits |= uint32(r.b[r.pos]) << r.n
		r.pos++
		r.n += 8
	}
	v := r.bits & (1<<n - 1)
	r.bits >>= n
	r.n -= n
	return v
}

func tiles(size int, bits uint) int { return (size + 1<<bits - 1) >> bits }

// groupsOf returns the number of groups of the picture w × h. The picture's transforms must be next in r.
func (r *bitReader) groupsOf(w, h int) int {
	for seen := uint32(0); r.read(1) == 1 && !r.bad; {
		kind := r.read(2)
		if seen>>kind&1 != 0 {
			r.bad = true // one of each kind at most, so the loop ends
		}
		seen |= 1 << kind
		switch kind {
		case 0, 1: // predictor, colour
			bits := uint(r.read(3)) + 2
			r.small(tiles(w, bits), tiles(h, bits))
		case 3: // colour indexing: several pixels in one
			colors := int(r.read(8)) + 1
			r.small(colors, 1)
			for _, packed := range []struct {
				colors int
				bits   uint
			}{{2, 3}, {4, 2}, {16, 1}} {
				if colors <= packed.colors {
					w = tiles(w, packed.bits)
					break
				}
			}
		}
	}
	r.cacheBits()
	if r.read(1) == 0 || r.bad {
		return 1
	}
	bits := uint(r.read(3)) + 2
	maxGroup := 0
	for _, argb := range r.small(tiles(w, bits), tiles(h, bits)) {
		maxGroup = max(maxGroup, int(argb>>8&0xffff))
	}
	return maxGroup + 1
}

func (r *bitReader) cacheBits() uint {
	if r.read(1) == 0 {
		return 0
	}
	bits := uint(r.read(4))
	if bits < 1 || bits > 11 {
		r.bad = true
	}
	return bits
}

// small reads one of the small images, which have a single group, and returns its pixels as ARGB.
func (r *bitReader) small(w, h int) []uint32 {
	cacheBits := r.cacheBits()
	var codes [5]prefixCode
	for i, symbols := range []int{256 + 24, 256, 256, 256, 40} {
		if i == 0 && cacheBits > 0 {
			symbols += 1 << cacheBits
		}
		codes[i].read(r, symbols)
	}
	if r.bad {
		return nil
	}
	pix := make([]uint32, 0, w*h)
	cache := make([]uint32, 1<<cacheBits)
	cached := 0
	for len(pix) < w*h && !r.bad {
		switch green := codes[0].next(r); {
		case green < 256:
			red, blue := codes[1].next(r), codes[2].next(r)
			pix = append(pix, codes[3].next(r)<<24|red<<16|green<<8|blue)
		case green < 256+24:
			length := int(r.parameter(green - 256))
			distance := backward(w, int(r.parameter(codes[4].next(r))))
			if distance > len(pix) || length > w*h-len(pix) {
				r.bad = true
				return nil
			}
			for range length {
				pix = append(pix, pix[len(pix)-distance])
			}
		default:
			for ; cached < len(pix); cached++ {
				cache[pix[cached]*0x1e35a7bd>>(32-cacheBits)] = pix[cached]
			}
			pix = append(pix, cache[green-(256+24)]) // the code has no larger symbol
		}
	}
	return pix
}

// parameter reads the rest of a length or distance.
func (r *bitReader) parameter(symbol uint32) uint32 {
	if symbol < 4 {
		return symbol + 1
	}
	extra := uint(symbol-2) >> 1
	return (2+symbol&1)<<extra + r.read(extra) + 1
}

// nearby holds the offsets of the first 120 distances: rows up in the high four bits, 8 minus the columns to the left in the low four.
var nearby = [120]uint8{
	0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1a, 0x26, 0x2a, 0x38, 0x05, 0x37, 0x39, 0x15, 0x1b, 0x36, 0x3a,
	0x25, 0x2b, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1c, 0x35, 0x3b, 0x46, 0x4a, 0x24, 0x2c, 0x58, 0x45, 0x4b, 0x34, 0x3c, 0x03,
	0x57, 0x59, 0x13, 0x1d, 0x56, 0x5a, 0x23, 0x2d, 0x44, 0x4c, 0x55, 0x5b, 0x33, 0x3d, 0x68, 0x02, 0x67, 0x69, 0x12, 0x1e,
	0x66, 0x6a, 0x22, 0x2e, 0x54, 0x5c, 0x43, 0x4d, 0x65, 0x6b, 0x32, 0x3e, 0x78, 0x01, 0x77, 0x79, 0x53, 0x5d, 0x11, 0x1f,
	0x64, 0x6c, 0x42, 0x4e, 0x76, 0x7a, 0x21, 0x2f, 0x75, 0x7b, 0x31, 0x3f, 0x63, 0x6d, 0x52, 0x5e, 0x00, 0x74, 0x7c, 0x41,
	0x4f, 0x10, 0x20, 0x62, 0x6e, 0x30, 0x73, 0x7d, 0x51, 0x5f, 0x40, 0x72, 0x7e, 0x61, 0x6f, 0x50, 0x71, 0x7f, 0x60, 0x70,
}

// backward returns the number of pixels that a distance code points back in an image w wide.
func backward(w, code int) int {
	if code > len(nearby) {
		return code - len(nearby)
	}
	place := int(nearby[code-1])
	return max(1, place>>4*w+8-place&15)
}

// maxCodeBits is the maximum length of a prefix code, in bits.
const maxCodeBits = 15

// prefixCode is a canonical prefix code: its symbols by length, then by number.
type prefixCode struct {
	count   [maxCodeBits + 1]int // symbols of each length
	symbols []uint16
}

// next reads a symbol. A code of one symbol takes no bits.
func (c *prefixCode) next(r *bitReader) uint32 {
	if len(c.symbols) == 1 {
		return uint32(c.symbols[0])
	}
	code, first, place := 0, 0, 0
	for n := 1; n <= maxCodeBits; n++ {
		code |= int(r.read(1))
		if i := code - first; i < c.count[n] {
			return uint32(c.symbols[place+i])
		}
		place += c.count[n]
		first = (first + c.count[n]) << 1
		code <<= 1
	}
	r.bad = true
	return 0
}

// set builds the code from the lengths of its symbols. It sets r.bad if there are no symbols, or if one code would be the prefix of
// another.
func (c *prefixCode) set(r *bitReader, lengths []uint8) {
	*c = prefixCode{}
	for n := uint8(1); n <= maxCodeBits; n++ {
		for symbol, length := range lengths {
			if length == n {
				c.symbols = append(c.symbols, uint16(symbol))
				c.count[n]++
			}
		}
	}
	free := 1
	for n := 1; n <= maxCodeBits; n++ {
		if free = free<<1 - c.count[n]; free < 0 {
			break
		}
	}
	if len(c.symbols) == 0 || len(c.symbols) > 1 && free < 0 {
		r.bad = true
	}
}

// read reads a code for an alphabet of the given number of symbols.
func (c *prefixCode) read(r *bitReader, symbols int) {
	if r.read(1) == 1 { // one or two symbols, listed directly
		n := 1 + int(r.read(1))
		c.symbols = append(c.symbols[:0], uint16(r.read(1+7*uint(r.read(1)))))
		if n == 2 {
			c.symbols = append(c.symbols, uint16(r.read(8)))
			c.count[1] = 2
		}
		for _, s := range c.symbols {
			r.bad = r.bad || int(s) >= symbols
		}
		return
	}
	order := [19]int{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	n := int(r.read(4)) + 4
	if n > len(order) {
		r.bad = true
		return
	}
	var coded [len(order)]uint8
	for _, i := range order[:n] {
		coded[i] = uint8(r.read(3))
	}
	var lengths prefixCode
	lengths.set(r, coded[:])
	if !r.bad {
		c.set(r, lengths.lengths(r, symbols))
	}
}

// lengths reads the lengths of another code's symbols. They are coded with c.
func (c *prefixCode) lengths(r *bitReader, symbols int) []uint8 {
	remaining := symbols
	if r.read(1) == 1 {
		if remaining = int(r.read(2+2*uint(r.read(3)))) + 2; remaining > symbols {
			r.bad = true
		}
	}
	out := make([]uint8, 0, symbols)
	last := uint8(8)
	for ; remaining > 0 && len(out) < symbols && !r.bad; remaining-- {
		length, repeat := c.next(r), 1
		switch length {
		case 16:
			length, repeat = uint32(last), 3+int(r.read(2))
		case 17:
			length, repeat = 0, 3+int(r.read(3))
		case 18:
			length, repeat = 0, 11+int(r.read(7))
		default:
			if length != 0 {
				last = uint8(length)
			}
		}
		if repeat > symbols-len(out) {
			r.bad = true
			break
		}
		for range repeat {
			out = append(out, uint8(length))
		}
	}
	return out
}
