package index

import (
	"cmp"
	"context"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// Searches count days by the creation times of inputs. These do not follow the order of ordinals: an input that was made offline is late in
// the log. A creation time never changes, so the index caches it at its first use. It caches minutes, because time zones differ by whole
// minutes.

// dates caches the minutes since 1970 in which inputs were created, but not for inputs whose creation is pending.
type dates = columnCache[uint32]

// columnCache caches values of inputs in memory, in blocks.
type columnCache[T any] struct {
	mu     sync.Mutex
	have   *roaring.Bitmap
	blocks map[uint32]*[blockSize]T
}

func newColumnCache[T any]() *columnCache[T] {
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

// put stores a value. The caller holds mu.
func (k *columnCache[T]) put(ord uint32, value T) {
	k.set(ord, value)
	k.have.Add(ord)
}

// set is put without adding ord to have.
func (k *columnCache[T]) set(ord uint32, value T) {
	b := k.blocks[ord/blockSize]
	if b == nil {
		b = new([blockSize]T)
		k.blocks[ord/blockSize] = b
	}
	b[ord%blockSize] = value
}

// eachCreated yields the creation times of ords. For many ordinals it reads all times between the first and the last one.
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
