package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// Values of the application's own concepts are computed when a search first asks for them and kept in memory, by version and concept, in
// blocks. Versions and analyses never change, so a stored value is always right. New inputs are added by the next search.

// maxOwnValues is the maximum number of cached values of all custom concepts together: 128 MB.
const maxOwnValues = 32 << 20

// heads caches the trained heads and the values of an application's custom concepts.
type heads struct {
	mu      sync.Mutex
	heads   map[headKey]*train.Head // nil if the manifest belongs to another base model
	columns map[ownKey]*ownColumn
	clock   uint64 // counts uses
}

type headKey struct {
	base     [32]byte // base model of the view
	manifest blob.Hash
}

type ownKey struct {
	manifest blob.Hash
	concept  int // place in the head
}

// ownColumn holds the values of one concept of one version.
type ownColumn struct {
	used uint64 // under heads.mu
	*columnCache[float32]
}

func newHeads() *heads {
	return &heads{heads: map[headKey]*train.Head{}, columns: map[ownKey]*ownColumn{}}
}

func (h *heads) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.heads)
	clear(h.columns)
}

// maxHeads is the maximum number of cached heads.
const maxHeads = 64

// head returns the head of a version. It returns false if the version belongs to another base model, or if its manifest is missing: a
// replica may have a version without its manifest shortly before the version is deleted.
func (v *View) head(version *catalog.Version) (*train.Head, bool, error) {
	h := v.x.heads
	k := headKey{v.space.Base, version.Manifest}
	h.mu.Lock()
	head, ok := h.heads[k]
	h.mu.Unlock()
	if ok {
		return head, head != nil, nil
	}
	m, err := v.records.Manifest(version)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if m.Base == v.space.Base {
		head = new(train.Head)
		if err := head.UnmarshalBinary(m.Head); err != nil {
			return nil, false, fmt.Errorf("head of version %q: %w", version.ID, err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.heads) >= maxHeads {
		clear(h.heads)
	}
	h.heads[k] = head
	return head, head != nil, nil
}

// column returns the cached values of a concept of a version. For a new concept it makes room first.
func (h *heads) column(k ownKey) *ownColumn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	c, ok := h.columns[k]
	if !ok {
		h.makeRoom()
		c = &ownColumn{columnCache: newColumnCache[float32]()}
		h.columns[k] = c
	}
	c.used = h.clock
	return c
}

// makeRoom drops the least recently used columns until the others are within the limit.
func (h *heads) makeRoom() {
	for {
		total := 0
		var oldest ownKey
		first := uint64(0)
		for k, c := range h.columns {
			c.mu.Lock()
			total += len(c.blocks) * blockSize
			c.mu.Unlock()
			if first == 0 || c.used < first {
				oldest, first = k, c.used
			}
		}
		if total <= maxOwnValues {
			return
		}
		delete(h.columns, oldest)
	}
}

// newest returns the newest version at 21100 that contains a concept, with its head and the concept's place in the head. It returns nil if
// no version of the serving base model contains the concept.
func (v *View) newest(concept string) (*catalog.Version, *train.Head, int, error) {
	var best *catalog.Version
	var failed error
	err := v.records.Models(func(m catalog.Model) bool {
		failed = v.records.Versions(m.Dot, func(version catalog.Version) bool {
			if version.Code != catalog.VersionTrained || best != nil && version.Seq < best.Seq {
				return best == nil || version.Seq >= best.Seq
			}
			head, ours, err := v.head(&version)
			if err != nil {
				failed = err
				return false
			}
			if ours && placeOf(head, concept) >= 0 {
				best = &version
				return false
			}
			return true
		})
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil || best == nil {
		return nil, nil, 0, err
	}
	head, _, err := v.head(best)
	if err != nil {
		return nil, nil, 0, err
	}
	return best, head, placeOf(head, concept), nil
}

// NewestVersion returns the version whose values searches use for a custom concept, nil if there is none.
func (v *View) NewestVersion(concept string) (*catalog.Version, error) {
	if _, public := v.space.place[concept]; public {
		return nil, nil
	}
	version, _, _, err := v.newest(concept)
	return version, err
}

func placeOf(h *train.Head, concept string) int { return slices.Index(h.Concepts, concept) }

// own sets the values that the newest version gives a custom concept. It returns false if no version has the concept.
func (v *View) own(ctx context.Context, concept string, out InputValues) (bool, error) {
	version, head, place, err := v.newest(concept)
	if err != nil || version == nil {
		return false, err
	}
	c := v.x.heads.column(ownKey{version.Manifest, place})
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := BitmapOf(out.Ords)
	missing.AndNot(c.have)
	if err := c.compute(ctx, v, head, place, missing); err != nil {
		return false, err
	}
	for _, b := range blocksOf(out.Ords) {
		values := c.blocks[b.number]
		for i := b.from; i < b.to; i++ {
			out.Values[i] = values[out.Ords[i]%blockSize]
		}
	}
	return true, nil
}

// compute computes the values of the missing inputs and adds them to the column.
func (c *ownColumn) compute(ctx context.Context, v *View, head *train.Head, place int, missing *roaring.Bitmap) error {
	const batch = 256
	ords := make([]uint32, 0, batch)
	q := make([]int16, 0, batch*predict.Dim)
	scales := make([]float32, 0, batch)
	values := make([]float32, batch)
	flush := func() {
		head.ConceptValues(values[:len(ords)], place, q, scales)
		for i, ord := range ords {
			c.set(ord, values[i])
		}
		c.have.AddMany(ords)
		ords, q, scales = ords[:0], q[:0], scales[:0]
	}
	err := v.Embeddings(ctx, missing, func(ord uint32, e *predict.Embedding) {
		ords, q, scales = append(ords, ord), append(q, e.Q[:]...), append(scales, e.Scale)
		if len(ords) == batch {
			flush()
		}
	})
	if err != nil {
		return err
	}
	flush()
	return nil
}
