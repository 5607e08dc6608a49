package heif

import (
	"fmt"
	"slices"
)

// Types of OBUs, the units of AV1.
const (
	obuSequence  = 1
	obuDelimiter = 2
	obuPadding   = 15
)

// eachOBU calls visit for each OBU in b with its content. The last one may have no length. It reports whether b is well formed.
func eachOBU(b []byte, visit func(kind int, head []byte, content []byte)) bool {
	for len(b) > 0 {
		head := 1
		if b[0]&4 != 0 { // the extension
			head = 2
		}
		if b[0]&0x80 != 0 || len(b) < head {
			return false
		}
		size, at := uint64(len(b)-head), head
		if b[0]&2 != 0 {
			size = 0
			for i := 0; ; i++ {
				if i == 8 || at == len(b) {
					return false
				}
				size |= uint64(b[at]&0x7f) << (7 * i)
				at++
				if b[at-1]&0x80 == 0 {
					break
				}
			}
		}
		if size > uint64(len(b)-at) {
			return false
		}
		visit(int(b[0]>>3&15), b[:head], b[at:][:size])
		b = b[at+int(size):]
	}
	return true
}

// appendUnit appends an item as a temporal unit: a delimiter, the sequence header, and the item's OBUs, each with its length.
func appendUnit(out, config, b []byte) []byte {
	out = append(out, obuDelimiter<<3|2, 0)
	add := func(kind int, head, content []byte) {
		if kind == obuDelimiter || kind == obuPadding {
			return
		}
		out = append(out, head[0]|2)
		out = append(out, head[1:]...)
		n := len(content)
		for ; n > 0x7f; n >>= 7 {
			out = append(out, byte(n)|0x80)
		}
		out = append(append(out, byte(n)), content...)
	}
	if len(config) > 4 {
		eachOBU(config[4:], add)
	}
	eachOBU(b, add) // the decoder finds damage
	return out
}

// readAV1 reads the sequence header of a configuration, or of the item itself.
func (h *file) readAV1(config []byte, it *item) (s Samples, err error) {
	if len(config) < 4 {
		return s, fmt.Errorf("%w: no configuration of its codec", ErrCorrupt)
	}
	b, err := h.content(it)
	if err != nil {
		return s, err
	}
	err = fmt.Errorf("%w: no sequence header", ErrCorrupt)
	found := false
	for _, from := range [][]byte{config[4:], b} {
		eachOBU(from, func(kind int, _, content []byte) {
			if kind == obuSequence && !found {
				found = true
				s, err = readSequence(content)
			}
		})
	}
	return s, err
}

// readSequence reads sequence_header_obu, section 5.5.1.
func readSequence(content []byte) (s Samples, err error) {
	r := &bits{b: content}
	profile := r.read(3)
	r.skip(1)
	reduced := r.flag()
	if reduced {
		r.skip(5)
	} else {
		skipOperatingPoints(r)
	}
	across, down := int(r.read(4))+1, int(r.read(4))+1
	s.Width, s.Height = int(r.read(across))+1, int(r.read(down))+1
	if !reduced && r.flag() {
		r.skip(7)
	}
	r.skip(3)
	if !reduced {
		r.skip(4)
		order := r.flag()
		if order {
			r.skip(2)
		}
		screen := true // "select" counts as used
		if !r.flag() {
			screen = r.flag()
		}
		if screen && !r.flag() {
			r.skip(1)
		}
		if order {
			r.skip(3)
		}
	}
	r.skip(3)
	readColour(r, profile, &s)
	if r.short || profile > 2 {
		return s, fmt.Errorf("%w: its sequence header", ErrCorrupt)
	}
	return s, nil
}

// skipOperatingPoints skips the timing and the operating points of a sequence that is not reduced.
func skipOperatingPoints(r *bits) {
	delay, model := 0, false
	if r.flag() {
		r.skip(64)
		if r.flag() {
			r.golomb()
		}
		if model = r.flag(); model {
			delay = int(r.read(5)) + 1
			r.skip(42)
		}
	}
	display := r.flag()
	for range r.read(5) + 1 {
		r.skip(12)
		if r.read(5) > 7 {
			r.skip(1)
		}
		if model && r.flag() {
			r.skip(2*delay + 1)
		}
		if display && r.flag() {
			r.skip(4)
		}
	}
}

// readColour reads color_config, section 5.5.2.
func readColour(r *bits, profile uint32, s *Samples) {
	s.Depth = 8
	if r.flag() {
		s.Depth = 10
		if profile == 2 && r.flag() {
			s.Depth = 12
		}
	}
	gray := profile != 1 && r.flag()
	s.coloured, s.Primaries, s.Matrix = true, 2, 2
	transfer := 2
	if r.flag() {
		s.Primaries, transfer, s.Matrix = int(r.read(8)), int(r.read(8)), int(r.read(8))
	}
	switch {
	case gray:
		s.Full, s.SubX, s.SubY = r.flag(), NoChroma, NoChroma
	case slices.Equal([]int{s.Primaries, transfer, s.Matrix}, []int{1, 13, 0}): // sRGB
		s.Full = true
	default:
		s.Full = r.flag()
		switch {
		case profile == 0:
			s.SubX, s.SubY = 1, 1
		case profile == 2 && s.Depth < 12:
			s.SubX = 1
		case profile == 2:
			if s.SubX = int(r.read(1)); s.SubX == 1 {
				s.SubY = int(r.read(1))
			}
		}
	}
}
