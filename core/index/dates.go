package index

import (
	"cmp"
	"context"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// Days are counted by the creation times of inputs, which do not follow their order: an input that was made offline is late in the log.
// The time never changes, so it is kept in memory once a search has asked for it, in minutes: time zones differ by whole minutes.

// dates is the minutes since 1970 in which inputs were created. Inputs whose creation is pending are in none.
type dates = columnCache[uint32]

// columnCache holds values of inputs in memory, in blocks.
type columnCache[T any] struct {
	mu     sync.Mutex
	have   *roaring.Bitmap
	blocks map[uint32]*[blockSize]T
}

func newKept[T any]() *columnCache[T] {
	return &columnCache[T]{have: roaring.New(), blocks: map[uint32]*[blockSize]T{}}
}

const minuteMillis = 60_000

func minuteOf(at log.HLC) uint32 { return uint32(uint64(at) >> 16 / minuteMillis) }

// EachMinute calls yield with the minute since 1970 in which each input of ords was created, in their order.
func (v *View) EachMinute(ctx context.Context, ords *roaring.Bitmap, yield func(ord, minute uint32)) error {
	d := v.dates
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := ords.Clone()
	missing.AndNot(d.have)
	pending := map[uint32]uint32{}
	err := v.eachCreated(ctx, missing, func(ord uint32, at log.HLC) {
		if isPending(ord) {
			pending[ord] = minuteOf(at)
			return
		}
		d.put(ord, minuteOf(at))
	})
	if err != nil {
		return err
	}
	var block *[blockSize]uint32
	number := uint32(0)
	for it := ords.Iterator(); it.HasNext(); {
		ord := it.Next()
		if isPending(ord) {
			yield(ord, pending[ord])
			continue
		}
		if n := ord / blockSize; block == nil || n != number {
			block, number = d.blocks[n], n
		}
		yield(ord, block[ord%blockSize])
	}
	return nil
}

// put keeps a value. mu is held.
func (k *columnCache[T]) put(ord uint32, value T) {
	k.set(ord, value)
	k.have.Add(ord)
}

// set is put without a note in have.
func (k *columnCache[T]) set(ord uint32, value T) {
	b := k.blocks[ord/blockSize]
	if b == nil {
		b = new([blockSize]T)
		k.blocks[ord/blockSize] = b
	}
	b[ord%blockSize] = value
}

// eachCreated yields when ords were created: of many by going through all from the first to the last.
func (v *View) eachCreated(ctx context.Context, ords *roaring.Bitmap, yield func(ord uint32, at log.HLC)) error {
	if ords.IsEmpty() {
		return nil
	}
	if span := uint64(ords.Maximum()-ords.Minimum()) + 1; 4*ords.GetCardinality() < span {
		return v.inputs(ctx, ords, func(in *catalog.Input) { yield(in.Ord, in.Created) })
	}
	n, last := 0, ords.Maximum()
	err := v.records.CreationTimes(ords.Minimum(), func(ord uint32, at log.HLC) bool {
		if n++; n%256 == 0 && ctx.Err() != nil {
			return false
		}
		if ord <= last && ords.Contains(ord) {
			yield(ord, at)
		}
		return ord < last
	})
	return cmp.Or(err, ctx.Err())
}
