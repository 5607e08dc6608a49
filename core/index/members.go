package index

import (
	"encoding/binary"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
)

// members is a chunk that may change. Most terms have few members in a chunk, which it keeps in their stored form.
type members struct {
	bits *chunk // nil if the members are in few
	few  [fewMembers]uint16
	n    int
}

const fewMembers = 12

func (m *members) empty() bool { return m.n == 0 && (m.bits == nil || *m.bits == chunk{}) }

// decode reads a stored chunk. It returns ErrCorrupt for one that encode never writes.
func (m *members) decode(value []byte) error {
	if len(value) <= 2*fewMembers && len(value)%2 == 0 {
		for ; len(value) > 0; value = value[2:] {
			i := binary.LittleEndian.Uint16(value)
			if i >= chunkSize || m.n > 0 && i <= m.few[m.n-1] {
				break
			}
			m.few[m.n] = i
			m.n++
		}
		if len(value) == 0 {
			return nil
		}
	}
	*m = members{bits: &chunk{}}
	return m.bits.decode(value)
}

// put adds an ordinal or removes it.
func (m *members) put(ord uint32, in bool) {
	if m.bits != nil {
		m.bits.put(ord, in)
		return
	}
	i := uint16(ord % chunkSize)
	at, found := slices.BinarySearch(m.few[:m.n], i)
	switch {
	case in == found:
	case !in:
		copy(m.few[at:], m.few[at+1:m.n])
		m.n--
	case m.n < fewMembers:
		copy(m.few[at+1:m.n+1], m.few[at:m.n])
		m.few[at] = i
		m.n++
	default:
		m.bits = &chunk{}
		for _, j := range m.few {
			m.bits.add(uint32(j))
		}
		m.n = 0
		m.bits.add(ord)
	}
}

// encode appends the stored form.
func (m *members) encode(dst []byte) []byte {
	if m.bits != nil {
		return m.bits.encode(dst)
	}
	for _, i := range m.few[:m.n] {
		dst = binary.LittleEndian.AppendUint16(dst, i)
	}
	return dst
}

// fresh describes the chunk of the newest inputs, if it was followed from its first input. If no input of the chunk has a term, the store
// has no such chunk of the term, and the stage need not read it.
type fresh struct {
	number uint32
	known  bool // all terms of the chunk are in terms
	terms  kv.Filter
}

// enter moves fresh to the chunk of a new input.
func (s *stage) enter(ord uint32) {
	f, number := s.fresh, ord>>chunkBits
	if f == nil || isPending(ord) || f.known && f.number == number {
		return
	}
	if ord%chunkSize != 0 {
		return
	}
	f.number, f.known = number, s.term(plain(kindLive), number).empty()
	f.terms.Reset()
	for at := range s.terms {
		if at.number == number {
			f.terms.Add(at.term[:])
		}
	}
}

// analysed selects the posting of analysed inputs.
const analysed = -1

// spaceChunk names a chunk of a space's posting.
type spaceChunk struct {
	space   *space
	concept int // its place, or analysed
	number  uint32
}

func (c spaceChunk) key() []byte {
	if c.concept == analysed {
		return numberedKey(c.space.analysedKey(), c.number)
	}
	return numberedKey(c.space.present(c.concept), c.number)
}

// none returns a chunk without members.
func (s *stage) none() *members {
	if len(s.slab) == 0 {
		s.slab = make([]members, 64)
	}
	m := &s.slab[0]
	s.slab = s.slab[1:]
	return m
}

// read returns a stored chunk.
func (s *stage) read(key []byte) *members {
	m := s.none()
	value, err := kv.Find(s.tx, key)
	if value != nil {
		err = m.decode(value)
	}
	s.fail(err)
	return m
}

// write writes a chunk. It deletes the key of an empty chunk.
func (s *stage) write(key []byte, m *members) {
	if m.empty() {
		s.tx.Delete(key)
		return
	}
	s.value = m.encode(s.value[:0])
	s.tx.Put(key, s.value)
}
