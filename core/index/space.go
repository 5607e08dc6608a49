package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
)

// PresentThreshold is the minimum value with which a concept counts as predicted present.
const PresentThreshold float32 = 0.3

// Space contains the data of one base model, which are never compared with another's.
type Space struct {
	Base     [32]byte // see predict.Set.Base
	Concepts []string // ids of the general model's concepts, in the order of its values
}

// space is a Space of an open index.
type space struct {
	Space
	prefix []byte
	place  map[string]int        // place of each concept in Concepts
	graph  atomic.Pointer[graph] // nil until a step opens it
	links  *Links                // nil until a search asks for them; guarded by Index.mu

	due dueBlocks
}

func (x *Index) newSpace(s Space) (*space, error) {
	if len(s.Concepts) > math.MaxUint16 {
		return nil, fmt.Errorf("%d concepts, at most %d", len(s.Concepts), math.MaxUint16)
	}
	sp := &space{Space: s, prefix: key(x.prefix, []byte{sectionSpace}, s.Base[:]), place: map[string]int{}}
	for i, id := range s.Concepts {
		sp.place[id] = i
	}
	return sp, nil
}

func (s *space) section(b byte) []byte { return key(s.prefix, []byte{b}) }

func (s *space) analysedKey() []byte { return s.section(spaceAnalysed) }

func (s *space) of(section byte, concept int) []byte {
	return binary.BigEndian.AppendUint16(s.section(section), uint16(concept))
}

func (s *space) present(concept int) []byte      { return s.of(spacePresent, concept) }
func (s *space) column(concept int) []byte       { return s.of(spaceColumn, concept) }
func (s *space) row(ord uint32) []byte           { return numberedKey(s.section(spaceRow), ord) }
func (s *space) removedRowKey(ord uint32) []byte { return numberedKey(s.section(spaceLeft), ord) }

// row is the stored form of an analysed input.
type row struct {
	embedding predict.Embedding
	present   []uint16 // places of the concepts present in the stored predictions
}

func rowOf(d *catalog.DerivedData, concepts int) (row, error) {
	var r row
	if len(d.Values) != concepts {
		return r, fmt.Errorf("derived record with %d values, want %d: %w", len(d.Values), concepts, ErrCorrupt)
	}
	if err := r.embedding.UnmarshalBinary(d.Embedding); err != nil {
		return r, fmt.Errorf("derived record: %w: %w", ErrCorrupt, err)
	}
	for i, v := range d.Values {
		if v >= PresentThreshold {
			r.present = append(r.present, uint16(i))
		}
	}
	return r, nil
}

func (r *row) encode() []byte {
	b, _ := r.embedding.AppendBinary(make([]byte, 0, predict.EmbeddingBytes+2*len(r.present)))
	for _, c := range r.present {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

func (r *row) decode(b []byte, concepts int) error {
	if len(b) < predict.EmbeddingBytes || (len(b)-predict.EmbeddingBytes)%2 != 0 {
		return fmt.Errorf("row of %d bytes: %w", len(b), ErrCorrupt)
	}
	if err := r.embedding.UnmarshalBinary(b[:predict.EmbeddingBytes]); err != nil {
		return fmt.Errorf("row: %w: %w", ErrCorrupt, err)
	}
	r.present = r.present[:0]
	for b = b[predict.EmbeddingBytes:]; len(b) > 0; b = b[2:] {
		c := binary.LittleEndian.Uint16(b)
		if int(c) >= concepts {
			return fmt.Errorf("row with concept %d of %d: %w", c, concepts, ErrCorrupt)
		}
		r.present = append(r.present, c)
	}
	return nil
}
