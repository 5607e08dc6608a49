package index

import (
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/kv"
)

// intent returns the key of an intent, which requests an update of an ordinal's node in the graph to its row. The batch that writes the
// resulting pages of the graph also deletes the intent.
func (s *space) intent(seq uint64) []byte {
	return binary.BigEndian.AppendUint64(s.section(spaceIntent), seq)
}

func intentValue(ord uint32) []byte { return binary.BigEndian.AppendUint32(nil, ord) }

func lastValue(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// lastIntent returns the number of the last intent that was ever written, 0 if there was none.
func (s *space) lastIntent(r kv.Reader) (uint64, error) {
	v, err := kv.Find(r, s.section(spaceLast))
	if v == nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("number of the last intent: %d bytes: %w", len(v), ErrCorrupt)
	}
	return binary.BigEndian.Uint64(v), nil
}

// intents yields the intents, starting at a number, oldest first.
func (s *space) intents(r kv.Reader, from uint64, yield func(seq uint64, ord uint32) bool) error {
	prefix := s.section(spaceIntent)
	var failed error
	for k, v := range kv.Range(r, s.intent(from), kv.PrefixEnd(prefix), &failed) {
		if len(k) != len(prefix)+8 || len(v) != 4 {
			return fmt.Errorf("intent of %d bytes: %w", len(v), ErrCorrupt)
		}
		if !yield(binary.BigEndian.Uint64(k[len(prefix):]), binary.BigEndian.Uint32(v)) {
			return nil
		}
	}
	return failed
}

// intentOrdinals returns the ordinals in the intents.
func (s *space) intentOrdinals(r kv.Reader) (*roaring.Bitmap, error) {
	out := roaring.New()
	err := s.intents(r, 0, func(_ uint64, ord uint32) bool {
		out.Add(ord)
		return true
	})
	return out, err
}
