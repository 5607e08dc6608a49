package index

import (
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// ErrSpace is returned for a base model without a space in the index.
var ErrSpace = errors.New("the index has no data for this base model")

// The change to a new base model has four steps. Each of them may be repeated after a crash:
//
//	Open with Next     new inputs enter both spaces, each with its own derived record
//	StageDerived       older inputs enter the second space as their new derived records come
//	Switch             once UnanalysedInputs is empty and Step has nothing to do: searches change to the new space at once
//	Drop               deletes the old space

func (x *Index) spaceOf(base [32]byte) (*space, error) {
	for _, sp := range x.all() {
		if sp.Base == base {
			return sp, nil
		}
	}
	return nil, fmt.Errorf("base model %x: %w", base[:4], ErrSpace)
}

// Has reports whether the index has a space of a base model.
func (x *Index) Has(base [32]byte) bool {
	_, err := x.spaceOf(base)
	return err == nil
}

// UnanalysedInputs returns the inputs at 30000 that a base model has not analysed. Errors: ErrSpace.
func (v *View) UnanalysedInputs(base [32]byte) (*roaring.Bitmap, error) {
	sp, err := v.x.spaceOf(base)
	if err != nil {
		return nil, err
	}
	out, err := v.Ready()
	if err != nil {
		return nil, err
	}
	analysed, err := bitmap(v.kv, sp.analysedKey())
	if err != nil {
		return nil, err
	}
	out.AndNot(analysed)
	return out, nil
}

// StageDerived indexes ready inputs whose derived records are new, in the batch that has the records. It also indexes other inputs of the
// same pictures, since they share the records. As with Stage, ConfirmStage or Discard must follow.
func (x *Index) StageDerived(tx *kv.Overlay, inputs []catalog.Input) error {
	x.lockStage()
	s := x.newStage(tx)
	r := catalog.Read(tx, x.app)
	for i := range inputs {
		in := &inputs[i]
		entered, err := s.addAnalysed(in)
		if err != nil {
			return err
		}
		if !entered {
			continue
		}
		var failed error
		err = r.ByPicture(in.Blob, in.Crop, func(ord uint32) bool {
			same, err := r.Input(ord)
			if err == nil {
				_, err = s.addAnalysed(&same)
			}
			failed = err
			return err == nil
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	s.flush()
	x.noteTouched(s)
	return s.failed
}

// addAnalysed adds a ready input to the spaces that lack it, if they have its derived record. It reports whether it added the input to one.
func (s *stage) addAnalysed(in *catalog.Input) (entered bool, err error) {
	if in.Code != catalog.InputReady {
		return false, nil
	}
	for _, sp := range s.x.all() {
		row, err := kv.Find(s.tx, sp.row(in.Ord))
		if row != nil {
			continue
		}
		if err == nil {
			err = s.learn(sp, in)
		}
		if err == nil {
			row, err = kv.Find(s.tx, sp.row(in.Ord))
		}
		if err != nil {
			return false, err
		}
		entered = entered || row != nil
	}
	return entered, nil
}

// Lacks reports whether an input with a derived record is missing in the serving space.
func (x *Index) Lacks(r kv.Reader, in *catalog.Input) (bool, error) {
	sp := x.serving()
	row, err := kv.Find(r, sp.row(in.Ord))
	if err != nil || row != nil {
		return false, err
	}
	_, err = catalog.Read(r, x.app).DerivedOfInput(sp.Base, in)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Switch makes the space of a base model the serving one, for views that are taken afterwards. After a restart the argument of Open
// decides. Errors: ErrSpace.
func (x *Index) Switch(base [32]byte) error {
	sp, err := x.spaceOf(base)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.spaces = slices.Insert(x.without(sp), 0, sp)
	return nil
}

// without returns the spaces except sp. The caller holds mu.
func (x *Index) without(sp *space) []*space {
	return slices.DeleteFunc(slices.Clone(x.spaces), func(other *space) bool { return other == sp })
}

// Drop removes the space of a base model that does not serve, in one batch. Views taken while it served must have ended. Errors: ErrSpace.
func (x *Index) Drop(base [32]byte) error {
	x.step.Lock()
	defer x.step.Unlock()
	sp, err := x.spaceOf(base)
	if err != nil {
		return err
	}
	x.commit.Lock()
	defer x.commit.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.spaces[0] == sp {
		return fmt.Errorf("base model %x is in use: %w", base[:4], ErrSpace)
	}
	var b kv.Batch
	kv.DeletePrefix(&b, sp.prefix)
	if err := x.store.Apply(&b); err != nil {
		return err
	}
	x.spaces = x.without(sp)
	return nil
}

// DropOrphans deletes the spaces of base models that Open did not get, in one batch. They belong to a previous network, or to one that
// should no longer serve. also adds related changes to the batch.
func (x *Index) DropOrphans(also func(b *kv.Batch, base [32]byte)) error {
	x.commit.Lock()
	defer x.commit.Unlock()
	lo := key(x.prefix, []byte{sectionSpace})
	hi := kv.PrefixEnd(lo)
	var b kv.Batch
	for next := lo; ; {
		var base [32]byte
		var err error
		found := false
		for k := range kv.Range(x.store, next, hi, &err) {
			found = copy(base[:], k[len(lo):]) == len(base)
			break
		}
		if err != nil {
			return err
		}
		if !found {
			break
		}
		prefix := key(lo, base[:])
		next = kv.PrefixEnd(prefix)
		if _, err := x.spaceOf(base); err != nil {
			b.DeleteRange(prefix, next)
			also(&b, base)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return x.store.Apply(&b)
}
