// Package jxl reads the headers of a JPEG XL file (ISO/IEC 18181). It decodes no pixels: libjxl does, in another process or a worker.
//
//	file ──▶ codestream, or the boxes jxlc and jxlp of a container ──▶ size, samples, alpha, colours ──▶ Info
//
// The decoder turns a picture upright, so the size in an Info is the size after that.
//
// The fields are those of libjxl's lib/jxl/image_metadata.cc, headers.cc and color_encoding_internal.cc.
package jxl

import (
	"encoding/binary"
	"errors"
	"math"
)

// Errors of [Read].
var (
	ErrCorrupt     = errors.New("damaged header")
	ErrUnsupported = errors.New("feature not supported")
)

// Info holds the declarations of a file's headers.
type Info struct {
	Width, Height int   // upright
	Depth         int   // bits of a sample, 1 to 64
	Premultiplied bool  // the colours are multiplied by alpha
	Linear        bool  // the decoder's output is proportional to light; otherwise it is like sRGB
	Ink           bool  // there is a channel for black, so the colours are amounts of ink
	Animated      bool  // there may be several frames
	Ticks, Per    int64 // a second has Ticks/Per ticks, the unit of a frame's duration; 0, 0: not animated
}

// maxHeader is the maximum number of bytes of a codestream that Read looks at. Only the names of many channels need more than some hundred.
const maxHeader = 64 << 10

// Begins of a file.
const (
	codestream = "\xff\x0a"
	container  = "\x00\x00\x00\x0cJXL \r\n\x87\n"
)

// Read reads the headers of a file. It looks at the first bytes of the codestream only and allocates at most 64 KiB.
// The error is ErrCorrupt or ErrUnsupported.
func Read(file []byte) (Info, error) {
	b := bits{from: file}
	if begins(file, container) {
		b.from = collect(file)
	}
	if !begins(b.from, codestream) {
		return Info{}, ErrCorrupt
	}
	b.from = b.from[len(codestream):min(len(b.from), maxHeader)]
	i, err := readHeaders(&b)
	switch {
	case b.short: // whatever the bits after the end seemed to be
		return Info{}, ErrCorrupt
	case err != nil:
		return Info{}, err
	}
	return i, nil
}

func begins(b []byte, magic string) bool {
	return len(b) >= len(magic) && string(b[:len(magic)]) == magic
}

// collect returns the start of the codestream in a container: the content of the box jxlc, or of all boxes jxlp, each after a number of
// four bytes.
func collect(file []byte) (stream []byte) {
	for len(file) >= 8 && len(stream) < maxHeader {
		size, head := uint64(binary.BigEndian.Uint32(file)), uint64(8)
		if size == 1 && len(file) >= 16 {
			size, head = binary.BigEndian.Uint64(file[8:]), 16
		}
		end := uint64(len(file))
		if size != 0 { // otherwise the box reaches the end of the file
			end = min(end, size)
		}
		if end < head || size == 1 {
			return stream
		}
		body := file[head:end]
		switch kind := string(file[4:8]); {
		case kind == "jxlc":
			return body
		case kind == "jxlp" && len(body) >= 4:
			stream = append(stream, body[4:min(len(body), 4+maxHeader)]...)
		}
		file = file[end:]
	}
	return stream
}

// readHeaders reads SizeHeader and ImageMetadata.
func readHeaders(b *bits) (i Info, err error) {
	i = Info{Depth: 8}
	i.Width, i.Height = b.size()
	if i.Width < 1 || i.Height < 1 {
		return i, ErrCorrupt
	}
	if b.flag() { // all default
		return i, nil
	}
	extra := b.flag()
	if extra {
		if orientation := 1 + b.read(3); orientation > 4 {
			i.Width, i.Height = i.Height, i.Width
		}
		if b.flag() { // the size for which the picture is intended
			b.size()
		}
		if b.flag() {
			b.preview()
		}
		if i.Animated = b.flag(); i.Animated {
			i.Ticks = int64(b.number(fixed(100), fixed(1000), field{10, 1}, field{30, 1}))
			i.Per = int64(b.number(fixed(1), fixed(1001), field{8, 1}, field{10, 1}))
			b.number(fixed(0), field{3, 0}, field{16, 0}, field{32, 0}) // number of loops
			b.flag()                                                    // time codes
		}
	}
	i.Depth = b.depth()
	b.flag() // 16 bits suffice for the buffers
	if err := i.readChannels(b); err != nil {
		return i, err
	}
	xyb := b.flag()
	i.readColours(b, xyb)
	return i, nil
}

// Types of extra channels.
const (
	typeAlpha = 0
	typeSpot  = 2
	typeBlack = 4
	typeCFA   = 5
)

// maxChannels is the maximum number of extra channels. libjxl's decoder has the same limit.
const maxChannels = 256

// readChannels reads the descriptions of the extra channels.
func (i *Info) readChannels(b *bits) error {
	n := b.number(fixed(0), fixed(1), field{4, 2}, field{12, 1})
	if n > maxChannels {
		return ErrUnsupported
	}
	alpha := false
	for range n {
		kind, associated := uint64(typeAlpha), false
		if !b.flag() {
			kind = b.enum()
			b.depth()
			b.number(fixed(0), fixed(3), fixed(4), field{3, 1})                      // a logarithm of its scale
			b.skip(8 * b.number(fixed(0), field{4, 0}, field{5, 16}, field{10, 48})) // its name
			switch kind {
			case typeAlpha:
				associated = b.flag()
			case typeSpot:
				b.skip(4 * 16)
			case typeCFA:
				b.number(fixed(1), field{2, 0}, field{4, 3}, field{8, 19})
			}
		}
		if kind == typeAlpha && !alpha { // the decoder gives the first one
			alpha, i.Premultiplied = true, associated
		}
		i.Ink = i.Ink || kind == typeBlack
		if b.short {
			return ErrCorrupt
		}
	}
	return nil
}

// Values of a colour encoding.
const (
	spaceGrey      = 1
	spaceXYB       = 2
	customColours  = 2
	transferLinear = 8
)

// readColours reads the colour encoding. If the file has XYB and a profile, the decoder's output is linear.
func (i *Info) readColours(b *bits, xyb bool) {
	if b.flag() { // all default
		return
	}
	profile, space := b.flag(), b.enum()
	switch {
	case profile:
		i.Linear = xyb
		return
	case space == spaceXYB:
		return
	}
	if b.enum() == customColours { // white point
		b.point()
	}
	if space != spaceGrey && b.enum() == customColours { // primaries
		b.point()
		b.point()
		b.point()
	}
	if b.flag() {
		const one = 10_000_000
		i.Linear = b.read(24) > one*9/10 // the gamma: about 1
		return
	}
	i.Linear = b.enum() == transferLinear
}

// bits reads the fields of a header, the low bit of each byte first. After the end it reads zeros.
type bits struct {
	from  []byte
	at    uint64 // bits read
	short bool   // more was read than there is
}

// read reads a number of n bits, at most 32.
func (b *bits) read(n uint) (v uint64) {
	for i := range uint64(n) {
		at := b.at + i
		if at/8 >= uint64(len(b.from)) {
			b.short = true
			return 0
		}
		v |= uint64(b.from[at/8]>>(at%8)&1) << i
	}
	b.at += uint64(n)
	return v
}

func (b *bits) skip(n uint64) { b.at += n }

func (b *bits) flag() bool { return b.read(1) == 1 }

// field is a number of bits and what is added to their value.
type field struct {
	bits uint
	plus uint64
}

func fixed(v uint64) field { return field{0, v} }

// number reads two bits, which select a field, and the field.
func (b *bits) number(fields ...field) uint64 {
	f := fields[b.read(2)]
	return b.read(f.bits) + f.plus
}

func (b *bits) enum() uint64 { return b.number(fixed(0), fixed(1), field{4, 2}, field{6, 18}) }

// ratios has the quotients of width and height that need no field for the width.
var ratios = [8][2]uint64{1: {1, 1}, 2: {12, 10}, 3: {4, 3}, 4: {3, 2}, 5: {16, 9}, 6: {5, 4}, 7: {2, 1}}

// size reads a SizeHeader.
func (b *bits) size() (width, height int) {
	small := b.flag()
	side := func() uint64 {
		if small {
			return 8 * (b.read(5) + 1)
		}
		return b.number(field{9, 1}, field{13, 1}, field{18, 1}, field{30, 1})
	}
	return b.sides(side)
}

// preview reads the size of a preview.
func (b *bits) preview() {
	eighths := b.flag()
	b.sides(func() uint64 {
		if eighths {
			return 8 * b.number(fixed(16), fixed(32), field{5, 1}, field{9, 33})
		}
		return b.number(field{6, 1}, field{8, 65}, field{10, 321}, field{12, 1345})
	})
}

// sides reads a height, and a width or the quotient of both.
func (b *bits) sides(side func() uint64) (width, height int) {
	h := side()
	var w uint64
	if r := ratios[b.read(3)]; r[1] > 0 {
		w = h * r[0] / r[1]
	} else {
		w = side()
	}
	return int(min(w, math.MaxInt32)), int(min(h, math.MaxInt32))
}

// depth reads the description of a channel's samples and returns their bits.
func (b *bits) depth() int {
	if float := b.flag(); float {
		n := b.number(fixed(32), fixed(16), fixed(24), field{6, 1})
		b.read(4) // the bits of the exponent
		return int(n)
	}
	return int(b.number(fixed(8), fixed(10), fixed(12), field{6, 1}))
}

// point reads the coordinates of a colour.
func (b *bits) point() {
	for range 2 {
		b.number(field{19, 0}, field{19, 1 << 19}, field{20, 1 << 20}, field{21, 1 << 21})
	}
}
