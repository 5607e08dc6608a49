package kv

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/tidwall/btree"
)

// writeIndex is the last put or delete of each single key in a batch. It finds keys by hash, since a fold reads many keys one by one and
// rarely a range:
//
//	slots   ┌ hash, 24 bits ┬ offset of the operation in the batch, 40 bits ┐   0: free
//
// The order of the keys is computed at the first range read, and maintained after several.
type writeIndex struct {
	batch *Batch
	slots []uint64 // length is a power of two; nil while empty
	used  int      // slots that are not free, including those of dropped keys
	scans int      // number of range reads

	ordered *btree.BTreeG[entry] // the same entries in order; nil: not maintained
}

// entry is a key that was put or deleted. Its bytes belong to the batch.
type entry struct {
	key, value []byte
	deleted    bool
}

const (
	placeBits  = 40
	placeMask  = 1<<placeBits - 1
	freedPlace = placeMask // the place of a dropped key
	fewSlots   = 64
	manySlots  = 1 << 12
	orderAfter = 32 // range reads before the order is maintained: a scan of all keys costs a thirtieth of that
)

// hashKey mixes eight bytes at a time. Deliberately colliding keys make a batch slow, not wrong.
func hashKey(key []byte) uint64 {
	const k = 0x9e3779b97f4a7c15
	h := uint64(len(key)) * k
	for len(key) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(key)) * k
		h ^= h >> 32
		key = key[8:]
	}
	for _, b := range key {
		h = (h ^ uint64(b)) * k
	}
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// reset empties the index for another batch. It frees a large table that the last batch did not need.
func (w *writeIndex) reset() {
	if len(w.slots) > manySlots && w.used < len(w.slots)/16 {
		w.slots = nil
	} else if w.used > 0 {
		clear(w.slots)
	}
	w.used, w.scans, w.ordered = 0, 0, nil
}

// at returns the operation at an offset of the batch.
func (w *writeIndex) at(place uint64) entry {
	op, _ := next(w.batch.data[place:])
	return entry{key: op.Key, value: op.Value, deleted: op.Kind == KindDelete}
}

// find returns the slot of a key, or the free slot where it belongs.
func (w *writeIndex) find(key []byte, hash uint64) (slot int, e entry, ok bool) {
	mask := len(w.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		s := w.slots[i]
		if s == 0 {
			return i, entry{}, false
		}
		if s>>placeBits != hash>>placeBits || s&placeMask == freedPlace {
			continue
		}
		if e := w.at(s & placeMask); bytes.Equal(e.key, key) {
			return i, e, true
		}
	}
}

func (w *writeIndex) get(key []byte) (entry, bool) {
	if w.used == 0 {
		return entry{}, false
	}
	_, e, ok := w.find(key, hashKey(key))
	return e, ok
}

// set adds the operation at an offset of the batch.
func (w *writeIndex) set(place int) {
	if 4*w.used >= 3*len(w.slots) {
		w.grow()
	}
	e := w.at(uint64(place))
	hash := hashKey(e.key)
	i, _, ok := w.find(e.key, hash)
	if !ok {
		w.used++
	}
	w.slots[i] = hash>>placeBits<<placeBits | uint64(place)
	if w.ordered != nil {
		w.ordered.Set(e)
	}
}

// grow doubles the table, without the slots of dropped keys.
func (w *writeIndex) grow() {
	old := w.slots
	w.slots, w.used = make([]uint64, max(fewSlots, 2*len(old))), 0
	mask := len(w.slots) - 1
	for _, s := range old {
		if s == 0 || s&placeMask == freedPlace {
			continue
		}
		i := int(hashKey(w.at(s&placeMask).key)) & mask
		for w.slots[i] != 0 {
			i = (i + 1) & mask
		}
		w.slots[i] = s
		w.used++
	}
}

// drop removes the keys lo ≤ key < hi.
func (w *writeIndex) drop(lo, hi []byte) {
	for i, s := range w.slots {
		if s == 0 || s&placeMask == freedPlace {
			continue
		}
		if e := w.at(s & placeMask); bytes.Compare(e.key, lo) >= 0 && bytes.Compare(e.key, hi) < 0 {
			w.slots[i] |= freedPlace
			if w.ordered != nil {
				w.ordered.Delete(e)
			}
		}
	}
}

// within returns the keys lo ≤ key < hi in their order; a nil hi reaches to the end.
func (w *writeIndex) within(lo, hi []byte) (some []entry) {
	if w.used == 0 {
		return nil
	}
	if w.scans++; w.scans == orderAfter {
		w.ordered = btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true})
		w.each(func(e entry) { w.ordered.Set(e) })
	}
	if w.ordered != nil {
		w.ordered.Ascend(entry{key: lo}, func(e entry) bool {
			if hi != nil && bytes.Compare(e.key, hi) >= 0 {
				return false
			}
			some = append(some, e)
			return true
		})
		return some
	}
	w.each(func(e entry) {
		if bytes.Compare(e.key, lo) >= 0 && (hi == nil || bytes.Compare(e.key, hi) < 0) {
			some = append(some, e)
		}
	})
	slices.SortFunc(some, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return some
}

func byKey(a, b entry) bool { return bytes.Compare(a.key, b.key) < 0 }

func (w *writeIndex) each(yield func(entry)) {
	for _, s := range w.slots {
		if s != 0 && s&placeMask != freedPlace {
			yield(w.at(s & placeMask))
		}
	}
}
