package index

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// Check compares the index with the records at the moment of r: the index has every live input once and nothing else, and all data that
// depends on the records alone equals its recomputation. It takes the memory of one chunk of inputs and returns ErrCorrupt with the first
// difference.
func (x *Index) Check(ctx context.Context, r catalog.Reader) error {
	keys := 0
	err := x.chunks(ctx, r, func(tx *kv.Overlay) error {
		return x.fresh(tx, func(key, value []byte) error {
			keys++
			stored, err := kv.Find(r.KV(), key)
			if err != nil {
				return err
			}
			if stored == nil || !bytes.Equal(stored, value) {
				return fmt.Errorf("key %x is %x, want %x: %w", key[len(x.prefix):], stored, value, ErrCorrupt)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	err = x.fresh(r.KV(), func(key, _ []byte) error {
		if keys--; keys < 0 {
			return fmt.Errorf("keys without an input, such as %x: %w", key[len(x.prefix):], ErrCorrupt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, sp := range x.all() {
		if err := x.checkColumns(ctx, sp, r); err != nil {
			return err
		}
		if err := x.checkGraph(sp, r); err != nil {
			return err
		}
	}
	return nil
}

// chunks stages all inputs again over an empty index, a chunk of ordinals at a time, and calls do with each result.
func (x *Index) chunks(ctx context.Context, r catalog.Reader, do func(tx *kv.Overlay) error) error {
	tx := kv.NewOverlay(r.KV())
	for from := uint64(0); from <= math.MaxUint32; {
		var inputs []catalog.Input
		err := r.Inputs(uint32(from), func(in catalog.Input) bool {
			if len(inputs) > 0 && in.Ord>>chunkBits != inputs[0].Ord>>chunkBits {
				return false
			}
			inputs = append(inputs, in)
			return true
		})
		if err != nil || len(inputs) == 0 {
			return err
		}
		tx.Reset(r.KV())
		kv.DeletePrefix(tx, x.prefix)
		s := x.newStage(tx)
		for i := range inputs {
			if err := s.change(nil, &inputs[i]); err != nil {
				return err
			}
		}
		s.flush()
		if err := do(tx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		from = uint64(inputs[0].Ord>>chunkBits+1) << chunkBits
	}
	return nil
}

// fresh yields the keys that the records alone determine.
func (x *Index) fresh(r kv.Reader, yield func(key, value []byte) error) error {
	var prefixes [][]byte
	for _, s := range []byte{sectionPosting, sectionEdit, sectionCell, sectionPlaces} {
		prefixes = append(prefixes, x.section(s))
	}
	for _, sp := range x.all() {
		prefixes = append(prefixes, sp.section(spaceAnalysed), sp.section(spacePresent), sp.section(spaceRow))
	}
	for _, p := range prefixes {
		var failed error
		for key, value := range kv.WithPrefix(r, p, &failed) {
			if err := yield(key, value); err != nil {
				return err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// checkColumns compares every value in a column with the derived record.
func (x *Index) checkColumns(ctx context.Context, sp *space, r catalog.Reader) error {
	covered, err := sp.readCoverage(r.KV())
	if err != nil {
		return err
	}
	analysed, err := bitmap(r.KV(), sp.analysedKey())
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(covered)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		columns := make([][]byte, len(sp.Concepts))
		for c := range columns {
			if columns[c], err = kv.Find(r.KV(), numberedKey(sp.column(c), number)); err != nil {
				return err
			}
			if len(columns[c]) != columnBytes {
				return fmt.Errorf("column %d of block %d: %d bytes: %w", c, number, len(columns[c]), ErrCorrupt)
			}
		}
		it := analysed.Iterator()
		it.AdvanceIfNeeded(number * blockSize)
		for it.HasNext() && it.PeekNext()/blockSize == number {
			ord := it.Next()
			if !covered[number].has(ord) {
				continue
			}
			d, err := sp.derivedRecord(r, ord)
			if err != nil {
				return err
			}
			for c, want := range d.Values {
				if got := columnValue(columns[c], ord); math.Float32bits(got) != math.Float32bits(want) {
					return fmt.Errorf("input %d has %v in column %d, want %v: %w", ord, got, c, want, ErrCorrupt)
				}
			}
		}
	}
	return nil
}

// Rebuild makes the index again from the records. Searches during it find fewer inputs.
func (x *Index) Rebuild(ctx context.Context) error {
	x.step.Lock()
	defer x.step.Unlock()
	x.commit.Lock()
	defer x.commit.Unlock()
	snapshot := x.store.Snapshot()
	defer snapshot.Close()
	var b kv.Batch
	kv.DeletePrefix(&b, x.prefix)
	if err := x.store.Apply(&b); err != nil {
		return err
	}
	x.forgetMemory()
	x.newest.known = false
	intents := map[string]uint64{} // number of the last intent written, by space
	err := x.chunks(ctx, catalog.Read(snapshot, x.app), func(tx *kv.Overlay) error {
		b.Reset()
		if err := x.fresh(tx, func(key, value []byte) error {
			b.Put(key, value)
			return nil
		}); err != nil {
			return err
		}
		for _, sp := range x.all() {
			if err := sp.moveIntents(&b, tx, intents); err != nil {
				return err
			}
		}
		return x.store.Apply(&b)
	})
	if err != nil {
		return err
	}
	b.Reset()
	b.Put(x.section(sectionFormat), []byte{format})
	return x.store.Apply(&b)
}

// moveIntents adds the intents in tx to a batch, numbered after those of earlier chunks.
func (s *space) moveIntents(b *kv.Batch, tx *kv.Overlay, written map[string]uint64) error {
	last := written[string(s.prefix)]
	err := s.intents(tx, 0, func(_ uint64, ord uint32) bool {
		last++
		b.Put(s.intent(last), intentValue(ord))
		return true
	})
	written[string(s.prefix)] = last
	b.Put(s.section(spaceLast), lastValue(last))
	return err
}
