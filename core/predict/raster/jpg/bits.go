package jpg

import (
	"encoding/binary"
	"math/bits"
)

const (
	// unitBytes is more than the longest unit (ten blocks of 64 codes of at most 31 bits)
	// takes without stuffing, plus the eight bytes that a refill reads ahead.
	unitBytes = 4096
	bufBytes  = 32 << 10
)

// bitReader reads the bits of one entropy-coded segment: the bytes from a position of
// the file to the next marker or the end of the file. It removes the stuffing in
// bulk, one buffer at a time.
//
// Reading past the end gives undefined bits, and overrun reports it. A prefix code that is cut off cannot end within the segment, so a
// reader that continues must pass the end.
type bitReader struct {
	// acc holds n valid bits at its top. p is the index in buf of the first byte that is
	// not counted in n; bits below the n valid ones are those of buf[p], or zero.
	acc uint64
	n   uint
	p   int

	end   int // bytes in buf
	last  bool
	base  int // bytes of the segment before buf[0]
	data  []byte
	start int // of the segment in data
	next  int // first byte of data that is not in buf
	buf   [bufBytes + unitBytes]byte
}

// reset starts a segment at pos of data.
func (r *bitReader) reset(data []byte, pos int) {
	r.acc, r.n, r.p, r.end, r.last, r.base = 0, 0, 0, 0, false, 0
	r.data, r.start, r.next = data, pos, pos
	r.fill()
}

// fill moves the unread bytes to the front of buf and fills the rest.
func (r *bitReader) fill() {
	if r.last {
		return
	}
	copy(r.buf[:], r.buf[r.p:r.end])
	r.base += r.p
	r.end -= r.p
	r.p = 0
	r.unstuff()
	for r.end < bufBytes && !r.last {
		switch rest := r.data[r.next:]; {
		case len(rest) == 0, rest[0] == 0xff && (len(rest) == 1 || rest[1] != 0):
			r.last = true
		case rest[0] == 0xff:
			r.buf[r.end] = 0xff
			r.end++
			r.next += 2
		default:
			r.buf[r.end] = rest[0]
			r.end++
			r.next++
		}
	}
}

// unstuff does most of fill, eight bytes at a time.
func (r *bitReader) unstuff() {
	const low = 0x0101010101010101
	data, next, end := r.data, r.next, r.end
	for end < bufBytes && next+9 <= len(data) {
		x := binary.LittleEndian.Uint64(data[next:])
		binary.LittleEndian.PutUint64(r.buf[end:], x)
		at := (^x - low) & x & (low << 7) // its lowest bit is that of the first 0xff
		if at == 0 {
			next += 8
			end += 8
			continue
		}
		i := bits.TrailingZeros64(at) / 8
		if data[next+i+1] != 0 {
			next += i
			end += i
			break
		}
		next += i + 2
		end += i + 1
	}
	r.next, r.end = next, end
}

// low reports whether fill must be called before the next unit.
func (r *bitReader) low() bool { return r.p > r.end-unitBytes && !r.last }

// overrun reports whether more bits were taken than the segment has.
func (r *bitReader) overrun() bool { return r.p > r.end && 8*r.p-int(r.n) > 8*r.end }

// refill makes at least 56 bits valid. It reads at most 7 bytes past a unit's end.
func (r *bitReader) refill() {
	p := min(r.p, len(r.buf)-8)
	r.acc |= binary.BigEndian.Uint64(r.buf[p:]) >> (r.n & 63)
	r.p += int((63 - r.n) >> 3)
	r.n |= 56
}

// take returns the next size bits, at most 16.
func (r *bitReader) take(size uint) uint32 {
	if r.n < size {
		r.refill()
	}
	v := uint32(r.acc >> 32 >> (32 - size))
	r.acc <<= size
	r.n -= size
	return v
}

// symbol decodes one code of h as image/jpeg does. While eight bits are left, it uses
// the 8-bit look-up. Otherwise, and for longer codes, it compares the code's value, shortest first.
func (r *bitReader) symbol(h *huffman) (byte, error) {
	if h.n == 0 {
		return 0, errNoTable
	}
	r.refill()
	if left := 8*(r.end-r.p) + int(r.n); left >= 8 {
		if e := h.lut[r.acc>>56]; e != 0 {
			length := uint(e&0xff) - 1
			r.acc <<= length
			r.n -= length
			return byte(e >> 8), nil
		}
	}
	for i, largest := range h.maxCode {
		code := int32(r.acc >> (63 - i))
		if code <= largest {
			r.acc <<= uint(i + 1)
			r.n -= uint(i + 1)
			return h.values[h.first[i]+code], nil
		}
	}
	return 0, errCode
}

// position returns the position in the file after the last byte from which a bit was taken.
func (r *bitReader) position() int {
	consumed := r.base + r.p - int(r.n>>3)
	if r.last && consumed == r.base+r.end {
		return r.next
	}
	pos := r.start
	for range consumed {
		if r.data[pos] == 0xff {
			pos++
		}
		pos++
	}
	return pos
}
