package slim

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// maxImage is the maximum number of bytes of memory that a module may set.
const maxImage = 64 << 20

// gap is the number of zeros that end a segment. A shorter gap makes more segments: a gap of 8, which the linker uses, adds 140 KB to the
// module after compression by brotli.
const gap = 256

// image is the memory that a module's data section sets, from address 0.
type image []byte

// load returns the image that a data section with this body sets.
func load(body []byte) (image, error) {
	broken := func(problem string) (image, error) { return nil, fmt.Errorf("%w: data: %s", ErrModule, problem) }
	count, n := binary.Uvarint(body)
	if n <= 0 {
		return broken("no number of segments")
	}
	body = body[n:]
	var m image
	for range count {
		// A segment of memory 0 is 0, i32.const ADDRESS, end, its size and its bytes.
		if len(body) < 2 || body[0] != 0 || body[1] != opConst {
			return broken("a segment that is not one of memory 0 with a constant address")
		}
		at, n := varint(body[2:])
		if n == 0 || at < 0 || at > maxImage || len(body) <= 2+n || body[2+n] != opEnd {
			return broken("a segment's address")
		}
		body = body[2+n+1:]
		size, k := binary.Uvarint(body)
		if k <= 0 || size > uint64(len(body)-k) || size > maxImage {
			return broken("a segment's size")
		}
		if end := int(at) + int(size); end > len(m) {
			m = append(m, make([]byte, end-len(m))...)
		}
		copy(m[at:], body[k:][:size])
		body = body[k+int(size):]
	}
	return m, nil
}

// The instructions that a segment's address consists of.
const (
	opConst = 0x41
	opEnd   = 0x0b
)

// section returns the body of a data section that sets the image. It leaves out long runs of zeros.
func (m image) section() []byte {
	var segments []byte
	count := uint64(0)
	zeros := make([]byte, gap)
	for at := 0; at < len(m); {
		if m[at] == 0 {
			at++
			continue
		}
		end := len(m)
		if n := bytes.Index(m[at:], zeros); n >= 0 {
			end = at + n
		}
		used := bytes.TrimRight(m[at:end], "\x00")
		segments = append(segments, 0, opConst)
		segments = appendVarint(segments, int64(at))
		segments = append(segments, opEnd)
		segments = binary.AppendUvarint(segments, uint64(len(used)))
		segments = append(segments, used...)
		count++
		at = end
	}
	return append(binary.AppendUvarint(nil, count), segments...)
}

// varint returns the signed LEB128 number at the start of b, and its length. The length is 0 if the number is cut off or longer than five
// bytes.
func varint(b []byte) (v int64, n int) {
	for n < len(b) && n < binary.MaxVarintLen32 {
		c := b[n]
		v |= int64(c&0x7f) << (7 * n)
		n++
		if c < 0x80 {
			if c&0x40 != 0 {
				v -= 1 << (7 * n)
			}
			return v, n
		}
	}
	return 0, 0
}

// appendVarint appends v, which is not negative, as signed LEB128.
func appendVarint(dst []byte, v int64) []byte {
	for v >= 0x40 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// part returns the n bytes of the image at an address. It returns an error if they exceed the image. The result shares m's memory.
func (m image) part(at, n uint64) ([]byte, error) {
	if at > uint64(len(m)) || n > uint64(len(m))-at {
		return nil, fmt.Errorf("%w: a table of %d bytes at %d exceeds the memory", ErrModule, n, at)
	}
	return m[at:][:n], nil
}
