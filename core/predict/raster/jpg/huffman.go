package jpg

import "fmt"

var (
	errHuffman  = fmt.Errorf("%w: Huffman table", ErrCorrupt)
	errCode     = fmt.Errorf("%w: Huffman code", ErrCorrupt)
	errNoTable  = fmt.Errorf("%w: Huffman table not defined", ErrCorrupt)
	errQuantize = fmt.Errorf("%w: quantisation table", ErrCorrupt)
)

const (
	dcBits   = 10 // look-up width of dcTable
	acBits   = 11 // look-up width of acTable and pairTable
	skipBits = 13 // look-up width of skipTable
)

// dcTable decodes a DC code with its value bits when both fit in dcBits. An entry is
// value<<16 | bits, or 0 if they do not fit or no code matches.
type dcTable [1 << dcBits]int32

// acTable decodes an AC code with its value bits. An entry is value<<16 | run<<8 | bits
// with run 0 to 15 zeros before the value, or acEnd for the end of the block. It is acOther
// if they do not fit, no code matches, or the code ends more than one block.
// Sixteen zeros (ZRL) are the value 0 after a run of 15.
type acTable [1 << acBits]int32

// Both are runs that pass the end of every block, so that one comparison finds all special cases.
const (
	acEnd   = 128
	acOther = 255 << 8
)

// pairTable decodes one or two AC codes with their value bits, if they fit in acBits. An
// entry is
//
//	value2<<48 | value1<<32 | advance<<24 | offset2<<16 | offset1<<8 | bits
//
// The values belong to the coefficients offset1 and offset2 after the next one. advance is the number of coefficients passed, plus
// pairEnd if the last code is the end of the block. An entry is pairOther<<24 if no code fits. If there is no second value, its fields
// repeat the first one. If the first code has no value, the first value is a zero.
type pairTable [1 << acBits]uint64

const (
	pairEnd   = 128
	pairOther = 255
)

// skipTable passes over AC codes and their value bits, as many as fit in skipBits. An
// entry is advance<<6 | bits. advance is the number of coefficients passed, plus
// skipEnd if the last code is the end of the block. An entry is skipOther if no code fits.
type skipTable [1 << skipBits]uint16

const (
	skipEnd   = 256
	skipOther = 1023 << 6
)

// huffman is one table of a DHT segment with the look-up tables derived from it.
type huffman struct {
	counts [16]byte // codes of each length, 1 to 16 bits
	values [256]byte
	n      int // number of codes; 0 if the table is not defined

	lut     [256]uint16 // symbol<<8 | length+1 of codes up to 8 bits; 0 for longer ones
	maxCode [16]int32   // largest code of each length; -1: none
	first   [16]int32   // symbol index of code 0 of each length, so that values[first+code] is the symbol
	wild    bool        // more codes than the lengths allow

	hasDC, hasAC, hasPair, hasSkip bool // which of the following tables are filled
	dc                             dcTable
	ac                             acTable
	pair                           pairTable
	skip                           skipTable
}

// define reads one table of a DHT body and returns the rest of body. It keeps the look-up tables
// if the table is the same as before, as in pictures that share the standard tables.
func (h *huffman) define(body []byte) ([]byte, error) {
	n := 0
	for _, c := range body[1:17] {
		n += int(c)
	}
	if n == 0 || n > 256 || 17+n > len(body) {
		return nil, errHuffman
	}
	values, rest := body[17:17+n], body[17+n:]
	if string(h.counts[:]) == string(body[1:17]) && string(h.values[:n]) == string(values) {
		h.n = n
		return rest, nil
	}
	h.n = n
	copy(h.counts[:], body[1:17])
	copy(h.values[:], values)
	h.hasDC, h.hasAC, h.hasPair, h.hasSkip = false, false, false, false
	h.derive()
	return rest, nil
}

// derive fills lut, maxCode and first as image/jpeg does. If the table has too many
// codes, a code of the wrapped value wins the look-up.
func (h *huffman) derive() {
	clear(h.lut[:])
	h.wild = false
	code, index := int32(0), int32(0)
	for i, count := range h.counts {
		h.maxCode[i], h.first[i] = -1, index-code
		for j := range int32(count) {
			if i < 8 {
				base := uint8(uint32(code+j) << (7 - i))
				for k := range uint8(1 << (7 - i)) {
					h.lut[base|k] = uint16(h.values[index+j])<<8 | uint16(i+2)
				}
			}
		}
		if count > 0 {
			h.maxCode[i] = code + int32(count) - 1
		}
		code += int32(count)
		index += int32(count)
		h.wild = h.wild || code > 2<<i
		code <<= 1
	}
}

// makeDC fills h.dc.
func (h *huffman) makeDC() {
	if h.hasDC {
		return
	}
	h.hasDC = true
	clear(h.dc[:])
	h.each(dcBits, func(code uint32, length int, symbol byte) {
		if size := int(symbol); length+size <= dcBits {
			fill(h.dc[:], dcBits, code, length, size, 0)
		}
	})
}

// fill sets the entries that begin with code and have size value bits after it. bits is the table's look-up width. An entry is
// value<<16 | run<<8 | bits.
func fill(table []int32, bits int, code uint32, length, size int, run int32) {
	shift := bits - length - size
	base := code << (bits - length)
	for v := range uint32(1) << size {
		e := extend(v, size)<<16 | run<<8 | int32(length+size)
		part := table[base+v<<shift:]
		for k := range part[:1<<shift] {
			part[k] = e
		}
	}
}

// makeAC fills h.ac.
func (h *huffman) makeAC() {
	if h.hasAC {
		return
	}
	h.hasAC = true
	for i := range h.ac {
		h.ac[i] = acOther
	}
	h.each(acBits, func(code uint32, length int, symbol byte) {
		run, size := int32(symbol>>4), int(symbol&15)
		if size == 0 && run == 0 {
			run = acEnd
		} else if size == 0 && run != 15 || length+size > acBits {
			return
		}
		fill(h.ac[:], acBits, code, length, size, run)
	})
}

// makePair fills h.pair.
func (h *huffman) makePair() {
	if h.hasPair {
		return
	}
	h.makeAC()
	h.hasPair = true
	for i, first := range &h.ac {
		h.pair[i] = pairOther << 24
		if first == acOther {
			continue
		}
		bits, run, value := first&63, first>>8&0xff, first>>16
		if run == acEnd {
			h.pair[i] = pairEnd<<24 | uint64(bits)
			continue
		}
		advance, run2, value2 := run+1, run, value
		second := h.ac[i<<bits&(1<<acBits-1)]
		if second != acOther && bits+(second&63) <= acBits {
			bits += second & 63
			if next := second >> 8 & 0xff; next == acEnd {
				advance += pairEnd
			} else {
				run2, value2 = advance+next, second>>16
				advance = run2 + 1
			}
		}
		h.pair[i] = uint64(uint16(value2))<<48 | uint64(uint16(value))<<32 | uint64(uint32(advance<<24|run2<<16|run<<8|bits))
	}
}

// makeSkip fills h.skip with single codes and then adds the codes that can follow them.
func (h *huffman) makeSkip() {
	if h.hasSkip {
		return
	}
	h.hasSkip = true
	for i := range h.skip {
		h.skip[i] = skipOther
	}
	h.each(skipBits, func(code uint32, length int, symbol byte) {
		run, size := int(symbol>>4), int(symbol&15)
		advance := run + 1
		if symbol == 0 {
			advance = skipEnd
		} else if size == 0 && run != 15 || length+size > skipBits {
			return
		}
		part := h.skip[code<<(skipBits-length):]
		for k := range part[:1<<(skipBits-length)] {
			part[k] = uint16(advance<<6 | (length + size))
		}
	})
	single := h.skip
	for i, e := range single {
		bits, advance := e&63, e>>6
		for advance < 63 {
			next := single[uint32(i)<<bits&(1<<skipBits-1)]
			if next == skipOther || bits+(next&63) > skipBits {
				break
			}
			bits += next & 63
			advance += next >> 6
		}
		h.skip[i] = advance<<6 | bits
	}
}

// each calls f for every code of up to limit bits. For a wild table it calls f for no code, so that
// the symbol-by-symbol path, which knows the order of precedence, decodes all of them.
func (h *huffman) each(limit int, f func(code uint32, length int, symbol byte)) {
	if h.wild {
		return
	}
	code, index := uint32(0), 0
	for i := range min(limit, 16) {
		for range h.counts[i] {
			f(code, i+1, h.values[index])
			code++
			index++
		}
		code <<= 1
	}
}

// extend is EXTEND of section F.2.2.1: it returns the value of the size bits in v.
func extend(v uint32, size int) int32 {
	if size == 0 || v>>(size-1) != 0 {
		return int32(v)
	}
	return int32(v) - 1<<size + 1
}
