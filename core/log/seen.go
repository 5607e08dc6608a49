package log

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/log/field"
)

// Seen names the values of a register that its writer's host showed while it appended the write: the value that serves and, if the host knew
// of a contradiction, all its values. So the fold recognises a write whose maker did not know a value that it meets. A register is a label, a
// name, a part of metadata or a place.
type Seen []SeenName

// SeenName names a write of a register among the few that a register can have at a time, see [Stamp.Name].
type SeenName uint32

// nameBytes is the length of a name.
const nameBytes = 4

// Name returns the name of the write in a [Seen]: a hash of its maker and the clock that the maker gave it, so it does not change when the
// origin sets the clock back. Two values of one register have the same name with a probability of 2⁻³²; then a contradiction is not listed.
func (s Stamp) Name() SeenName {
	const spread = 0x9e3779b97f4a7c15 // distributes each bit over the upper ones
	x := (uint64(s.MadeAt()) ^ uint64(s.Writer)*spread) * spread
	return SeenName((x ^ x>>29) * spread >> 32)
}

// SeenEach has the Seen of each write of an operation with several, in their order.
type SeenEach []SeenOf

// SeenOf is a name in the Seen of a write, which has an index.
type SeenOf struct {
	Write int
	Name  SeenName
}

// MaxSeen is the maximum number of names in a Seen: a write to metadata can replace many parts.
const MaxSeen = 255

// Has reports whether the maker saw the value of a stamp.
func (s Seen) Has(at Stamp) bool { return slices.Contains(s, at.Name()) }

// Of returns the Seen of a write.
func (s SeenEach) Of(write int) (seen Seen) {
	i, _ := slices.BinarySearchFunc(s, write, func(o SeenOf, write int) int { return cmp.Compare(o.Write, write) })
	for ; i < len(s) && s[i].Write == write; i++ {
		seen = append(seen, s[i].Name)
	}
	return seen
}

// Add adds the Seen of a write, which follows those before.
func (s *SeenEach) Add(write int, seen Seen) {
	for _, name := range seen {
		*s = append(*s, SeenOf{write, name})
	}
}

// putSeen writes the names.
func putSeen(e *field.Encoder, number int, s Seen) {
	if len(s) > 0 {
		e.Raw(number, appendNames(nil, s))
	}
}

func appendNames(b []byte, s Seen) []byte {
	for _, name := range s {
		b = binary.LittleEndian.AppendUint32(b, uint32(name))
	}
	return b
}

func getSeen(d *field.Decoder) (s Seen) {
	b := d.Raw()
	if len(b) == 0 || len(b)%nameBytes != 0 || len(b) > nameBytes*MaxSeen {
		d.Malformed("seen")
		return nil
	}
	for ; len(b) > 0; b = b[nameBytes:] {
		s = append(s, SeenName(binary.LittleEndian.Uint32(b)))
	}
	return s
}

// putSeenEach writes each name behind the index of its write. Most operations have one name, or none.
func putSeenEach(e *field.Encoder, number int, each SeenEach) {
	var b []byte
	for _, o := range each {
		b = binary.AppendUvarint(b, uint64(o.Write))
		b = binary.LittleEndian.AppendUint32(b, uint32(o.Name))
	}
	if b != nil {
		e.Raw(number, b)
	}
}

func getSeenEach(d *field.Decoder) (each SeenEach) {
	last := 0
	for b := d.Raw(); len(b) > 0; {
		write, n := binary.Uvarint(b)
		if n <= 0 || len(b) < n+nameBytes || write > math.MaxInt32 || int(write) < last {
			d.Malformed("seen")
			return nil
		}
		last = int(write)
		each = append(each, SeenOf{last, SeenName(binary.LittleEndian.Uint32(b[n:]))})
		b = b[n+nameBytes:]
	}
	return each
}
