package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict"
)

// A complete state is indexed in two passes. Each reads its records in the order of the store:
//
//	Postpone ── Stage, of all inputs ── IndexDerived ── derived records, by picture ──▶ rows, intents      batch after batch
//	                                                    └──▶ postings of concepts, in memory ──▶    at the end
//
// Stage alone would read the derived records one by one, in an order unrelated to that of the store, and write the postings of all
// concepts with every batch.

// Postpone makes Stage skip the data of base models, until IndexDerived or Resume. It is for a writer whose batches become visible together
// at the end.
func (x *Index) Postpone() { x.later = true }

// Resume cancels Postpone without an IndexDerived, if the caller gives the state up.
func (x *Index) Resume() { x.later = false }

// learning returns the spaces that Stage fills.
func (x *Index) learning() []*space {
	if x.later {
		return nil
	}
	return x.all()
}

// maxLoaded is the maximum number of chunks of postings that IndexDerived holds in memory: about 36 MB.
const maxLoaded = 1 << 16

// IndexDerived indexes the derived records of all inputs at 30000, in batches of about size bytes. The store has everything else of these
// inputs, and the index has no row of them yet. Only the writer may call it, between the end of one Stage and the next.
func (x *Index) IndexDerived(ctx context.Context, size int) error {
	x.later = false
	for _, sp := range x.all() {
		l := load{x: x, sp: sp, size: size, epoch: x.epochNow(), chunks: map[uint64]*members{}}
		if err := l.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load is the work of IndexDerived for one space.
type load struct {
	x     *Index
	sp    *space
	size  int
	epoch uint64

	ready  *roaring.Bitmap
	last   uint64 // number of the last intent
	batch  kv.Batch
	chunks map[uint64]*members // chunks of postings, by place of the concept and number
	slab   []members
	stored bool // some chunks are in the store

	embedding predict.Embedding
	row, key  []byte // scratch
}

func (l *load) run(ctx context.Context) (err error) {
	v := l.x.At(l.x.now())
	if l.ready, err = v.Ready(); err != nil {
		return err
	}
	if l.last, err = l.sp.lastIntent(l.x.store); err != nil {
		return err
	}
	var bad error
	err = l.x.now().EachDerived(l.sp.Base, func(ord uint32, m catalog.DerivedContent) bool {
		if l.ready.Contains(ord) && !isPending(ord) {
			bad = l.input(ctx, ord, &m)
		}
		return bad == nil
	})
	if err = errors.Join(err, bad); err == nil {
		err = l.flush()
	}
	if err == nil {
		err = l.write()
	}
	return err
}

// input indexes the derived record of one input.
func (l *load) input(ctx context.Context, ord uint32, m *catalog.DerivedContent) error {
	if len(m.Values) != 4*len(l.sp.Concepts) {
		return fmt.Errorf("derived record of input %d with %d bytes of values: %w", ord, len(m.Values), ErrCorrupt)
	}
	if err := l.embedding.UnmarshalBinary(m.Embedding); err != nil {
		return fmt.Errorf("derived record of input %d: %w: %w", ord, ErrCorrupt, err)
	}
	l.row = append(l.row[:0], m.Embedding...)
	if err := l.set(analysed, ord); err != nil {
		return err
	}
	for c, values := 0, m.Values; len(values) >= 4; c, values = c+1, values[4:] {
		if !(math.Float32frombits(binary.LittleEndian.Uint32(values)) >= PresentThreshold) {
			continue
		}
		l.row = binary.LittleEndian.AppendUint16(l.row, uint16(c))
		if err := l.set(c, ord); err != nil {
			return err
		}
	}
	l.last++
	l.batch.Put(l.numberedKey(spaceRow, uint64(ord), 4), l.row)
	l.batch.Put(l.numberedKey(spaceIntent, l.last, 8), binary.BigEndian.AppendUint32(l.row[:0], ord))
	if len(l.batch.Bytes()) < l.size {
		return nil
	}
	return errors.Join(ctx.Err(), l.write())
}

// numberedKey returns the key of a section with a number of size bytes, 4 or 8. It is valid until the next call.
func (l *load) numberedKey(section byte, n uint64, size int) []byte {
	l.key = append(append(l.key[:0], l.sp.prefix...), section)
	if size == 8 {
		l.key = binary.BigEndian.AppendUint64(l.key, n)
	} else {
		l.key = binary.BigEndian.AppendUint32(l.key, uint32(n))
	}
	return l.key
}

// write applies the batch to the store.
func (l *load) write() error {
	if l.batch.Len() == 0 {
		return nil
	}
	l.batch.Put(l.sp.section(spaceLast), lastValue(l.last))
	err := l.x.write(l.epoch, &l.batch)
	l.sp.due.add(nil)
	l.batch.Reset()
	return err
}

// set adds an ordinal to the posting of a concept, or to that of analysed inputs.
func (l *load) set(concept int, ord uint32) error {
	at := uint64(concept+1)<<32 | uint64(ord>>chunkBits)
	m := l.chunks[at]
	if m == nil {
		var err error
		if m, err = l.chunk(at); err != nil {
			return err
		}
	}
	m.put(ord, true)
	return nil
}

// chunkOf returns the name of the stored chunk for a key of chunks.
func (l *load) chunkOf(at uint64) spaceChunk {
	return spaceChunk{l.sp, int(at>>32) - 1, uint32(at)}
}

// chunk loads one more chunk into memory. If there are too many, it flushes first.
func (l *load) chunk(at uint64) (*members, error) {
	if len(l.chunks) >= maxLoaded {
		if err := l.flush(); err != nil {
			return nil, err
		}
	}
	if len(l.slab) == 0 {
		l.slab = make([]members, 64)
	}
	m := &l.slab[0]
	l.slab = l.slab[1:]
	if l.stored {
		value, err := kv.Find(l.x.store, l.chunkOf(at).key())
		if value != nil {
			err = m.decode(value)
		}
		if err != nil {
			return nil, err
		}
	}
	l.chunks[at] = m
	return m, nil
}

// flush writes the postings, ordered by key, and releases them.
func (l *load) flush() error {
	var value []byte
	for _, at := range slices.Sorted(maps.Keys(l.chunks)) {
		value = l.chunks[at].encode(value[:0])
		l.batch.Put(l.chunkOf(at).key(), value)
		if len(l.batch.Bytes()) >= l.size {
			if err := l.write(); err != nil {
				return err
			}
		}
	}
	clear(l.chunks)
	l.stored, l.slab = true, nil
	return nil
}
