package index

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/kv"
)

// A posting is a set of ordinals. The store has it as chunks of chunkSize ordinals under a common prefix:
//
//	prefix ‖ number of the chunk, big-endian uint32 → its members, in the smaller form
//
//	n ≤ 255 members   2n bytes: ordinal modulo 4,096, little-endian uint16, ascending
//	more              512 bytes: bit i%64 of the little-endian uint64 i/64 is member i
//
// An empty chunk has no key. So a write changes at most 512 bytes of a set, however large the set is. Nothing is loaded when a store opens,
// and a reader of a snapshot sees the sets of its moment.
const (
	chunkBits  = 12
	chunkSize  = 1 << chunkBits
	chunkBytes = chunkSize / 8
	maxList    = chunkBytes/2 - 1 // a list is shorter than the bits, so the length identifies the form
)

// chunk holds the members of one chunk as bits.
type chunk [chunkSize / 64]uint64

func (c *chunk) add(i uint32)    { c[i%chunkSize/64] |= 1 << (i % 64) }
func (c *chunk) remove(i uint32) { c[i%chunkSize/64] &^= 1 << (i % 64) }

func (c *chunk) put(i uint32, in bool) {
	if in {
		c.add(i)
	} else {
		c.remove(i)
	}
}

func (c *chunk) count() int {
	n := 0
	for _, w := range c {
		n += bits.OnesCount64(w)
	}
	return n
}

// decode reads a stored chunk. It returns ErrCorrupt for one that encode never writes.
func (c *chunk) decode(value []byte) error {
	*c = chunk{}
	if len(value) == chunkBytes {
		for i := range c {
			c[i] = binary.LittleEndian.Uint64(value[8*i:])
		}
		return nil
	}
	if len(value) > 2*maxList || len(value)%2 != 0 {
		return fmt.Errorf("chunk of %d bytes: %w", len(value), ErrCorrupt)
	}
	for ; len(value) > 0; value = value[2:] {
		i := binary.LittleEndian.Uint16(value)
		if i >= chunkSize {
			return fmt.Errorf("member %d of a chunk: %w", i, ErrCorrupt)
		}
		c.add(uint32(i))
	}
	return nil
}

// encode appends the stored form.
func (c *chunk) encode(dst []byte) []byte {
	if c.count() > maxList {
		for _, w := range c {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
		return dst
	}
	c.each(func(i uint32) {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(i))
	})
	return dst
}

func (c *chunk) each(yield func(i uint32)) {
	for w, word := range c {
		for ; word != 0; word &= word - 1 {
			yield(uint32(64*w + bits.TrailingZeros64(word)))
		}
	}
}

// chunkCardinality returns the number of members of a stored chunk, without decoding it.
func chunkCardinality(value []byte) uint64 {
	if len(value) != chunkBytes {
		return uint64(len(value) / 2)
	}
	n := 0
	for i := 0; i < chunkBytes; i += 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(value[i:]))
	}
	return uint64(n)
}

// chunkNumber returns the number at the end of a chunk's key.
func chunkNumber(prefix, key []byte) (uint32, error) {
	if len(key) != len(prefix)+4 {
		return 0, fmt.Errorf("posting key of %d bytes: %w", len(key), ErrCorrupt)
	}
	n := binary.BigEndian.Uint32(key[len(prefix):])
	if n >= 1<<(32-chunkBits) {
		return 0, fmt.Errorf("chunk %d: %w", n, ErrCorrupt)
	}
	return n, nil
}

// bitmap reads a whole posting.
func bitmap(r kv.Reader, prefix []byte) (*roaring.Bitmap, error) {
	var dense []uint64  // words of the chunks that are bits
	var sparse []uint32 // members of the others
	var failed error
	for key, value := range kv.WithPrefix(r, prefix, &failed) {
		n, err := chunkNumber(prefix, key)
		if err != nil {
			return nil, err
		}
		switch {
		case len(value) == chunkBytes && isPending(n<<chunkBits):
			var c chunk
			if err := c.decode(value); err != nil {
				return nil, err
			}
			c.each(func(i uint32) { sparse = append(sparse, n<<chunkBits|i) })
		case len(value) == chunkBytes:
			at := int(n) * (chunkSize / 64)
			for len(dense) < at+chunkSize/64 {
				dense = append(dense, 0)
			}
			for i := range chunkSize / 64 {
				dense[at+i] = binary.LittleEndian.Uint64(value[8*i:])
			}
		default:
			for i := 0; i+1 < len(value); i += 2 {
				sparse = append(sparse, n<<chunkBits|uint32(binary.LittleEndian.Uint16(value[i:])))
			}
		}
	}
	if failed != nil {
		return nil, failed
	}
	out := roaring.New()
	if dense != nil {
		out.FromDense(dense, false)
	}
	if len(sparse) > 0 {
		out.AddMany(sparse)
	}
	return out, nil
}

// BitmapOf returns the set of ords, which must be ascending.
func BitmapOf(ords []uint32) *roaring.Bitmap {
	out := roaring.New()
	if len(ords) == 0 {
		return out
	}
	if last := ords[len(ords)-1]; uint64(len(ords)) > uint64(last)/64 {
		// Many ordinals share a word: writing words is faster than adding ordinals one by one.
		dense := make([]uint64, last/64+1)
		for _, ord := range ords {
			dense[ord/64] |= 1 << (ord % 64)
		}
		out.FromDense(dense, false)
		return out
	}
	out.AddMany(ords)
	return out
}

// cardinality returns the number of members of a posting.
func cardinality(r kv.Reader, prefix []byte) (n uint64, err error) {
	for _, value := range kv.WithPrefix(r, prefix, &err) {
		n += chunkCardinality(value)
	}
	return n, err
}

// page returns n members of a posting, starting at a rank.
func page(r kv.Reader, prefix []byte, offset, n uint64) ([]uint32, error) {
	out := make([]uint32, 0, min(n, chunkSize))
	var failed error
	for key, value := range kv.WithPrefix(r, prefix, &failed) {
		if uint64(len(out)) == n {
			break
		}
		if have := chunkCardinality(value); have <= offset {
			offset -= have
			continue
		}
		number, err := chunkNumber(prefix, key)
		if err != nil {
			return nil, err
		}
		var c chunk
		if err := c.decode(value); err != nil {
			return nil, err
		}
		c.each(func(i uint32) {
			switch {
			case offset > 0:
				offset--
			case uint64(len(out)) < n:
				out = append(out, number<<chunkBits|i)
			}
		})
	}
	return out, failed
}
