package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index/hnsw"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict"
)

// Similar is an input with the similarity of its picture.
type Similar struct {
	Ord    uint32
	Cosine float64
}

// Embedding returns the embedding of an input. It returns false if the input is not analysed.
func (v *View) Embedding(ord uint32) (*predict.Embedding, bool, error) {
	value, err := kv.Find(v.kv, v.space.row(ord))
	if value == nil {
		return nil, false, err
	}
	var r row
	if err := r.decode(value, len(v.space.Concepts)); err != nil {
		return nil, false, err
	}
	return &r.embedding, true, nil
}

// Embeddings calls yield with the embedding of every input of ords, in their order. All of them must be analysed. The embedding is borrowed
// until yield returns. If ords are dense, it reads the rows in one scan.
func (v *View) Embeddings(ctx context.Context, ords *roaring.Bitmap, yield func(ord uint32, e *predict.Embedding)) error {
	if ords.IsEmpty() {
		return nil
	}
	var e predict.Embedding
	span := uint64(ords.Maximum()-ords.Minimum()) + 1
	if 8*ords.GetCardinality() >= span {
		return v.scanRows(ctx, ords, &e, yield)
	}
	it := ords.Iterator()
	for n := 0; it.HasNext(); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ord := it.Next()
		value, err := v.kv.Get(v.space.row(ord))
		if err == nil {
			err = readEmbedding(&e, value)
		}
		if err != nil {
			return fmt.Errorf("row of input %d: %w", ord, err)
		}
		yield(ord, &e)
	}
	return nil
}

func (v *View) scanRows(ctx context.Context, ords *roaring.Bitmap, e *predict.Embedding, yield func(ord uint32, e *predict.Embedding)) error {
	var failed error
	n := 0
	it := ords.Iterator()
	lo, hi := v.space.row(ords.Minimum()), append(v.space.row(ords.Maximum()), 0)
	for k, value := range kv.Range(v.kv, lo, hi, &failed) {
		if n++; n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ord := lastNumber(k)
		if ord < it.PeekNext() {
			continue
		}
		if ord > it.PeekNext() {
			break
		}
		if err := readEmbedding(e, value); err != nil {
			return err
		}
		yield(ord, e)
		if it.Next(); !it.HasNext() {
			return nil
		}
	}
	if failed == nil {
		failed = fmt.Errorf("row of input %d is missing: %w", it.PeekNext(), ErrCorrupt)
	}
	return failed
}

// readEmbedding reads the embedding of a row without checking it again.
func readEmbedding(e *predict.Embedding, value []byte) error {
	if len(value) < predict.EmbeddingBytes {
		return fmt.Errorf("row of %d bytes: %w", len(value), ErrCorrupt)
	}
	for i := 0; i < predict.Dim; i += 4 {
		w := binary.LittleEndian.Uint64(value[2*i:])
		q := e.Q[i : i+4 : i+4]
		q[0], q[1], q[2], q[3] = int16(w), int16(w>>16), int16(w>>32), int16(w>>48)
	}
	e.Scale = math.Float32frombits(binary.LittleEndian.Uint32(value[2*predict.Dim:]))
	return nil
}

// Cosines returns the cosine of every input of ords to e, in their order.
func (v *View) Cosines(ctx context.Context, e *predict.Embedding, ords *roaring.Bitmap) ([]Similar, error) {
	out := make([]Similar, 0, ords.GetCardinality())
	g, missing := v.space.split(ords)
	if g != nil {
		known := ords.Clone()
		known.AndNot(missing)
		for _, h := range g.Cosines(make([]hnsw.Hit, 0, known.GetCardinality()), e.Q[:], e.Scale, known) {
			out = append(out, Similar{h.Node, h.Cosine})
		}
		if uint64(len(out)) < known.GetCardinality() {
			// Inputs that left the graph meanwhile are read like those that it lacks.
			for _, s := range out {
				known.Remove(s.Ord)
			}
			missing.Or(known)
		}
	}
	if missing.IsEmpty() {
		return out, nil
	}
	err := v.Embeddings(ctx, missing, func(ord uint32, other *predict.Embedding) {
		out = append(out, Similar{ord, e.Cosine(other)})
	})
	slices.SortFunc(out, func(a, b Similar) int { return cmp.Compare(a.Ord, b.Ord) })
	return out, err
}

// Nearest returns the k inputs of ords that are most similar to e, the most similar first, equal ones by ordinal. It may miss inputs that
// the graph has, as hnsw does. It scans the inputs that the graph lacks.
func (v *View) Nearest(ctx context.Context, e *predict.Embedding, ords *roaring.Bitmap, k int) ([]Similar, error) {
	near := nearest{k: k}
	g, missing := v.space.split(ords)
	if g != nil {
		allow := ords.Clone()
		allow.AndNot(missing)
		for _, h := range g.Search(nil, e.Q[:], e.Scale, k, searchWidth(k), allow) {
			near.add(Similar{h.Node, h.Cosine})
		}
	}
	err := v.Embeddings(ctx, missing, func(ord uint32, other *predict.Embedding) {
		near.add(Similar{ord, e.Cosine(other)})
	})
	if err != nil {
		return nil, err
	}
	return near.sortAndTrim(), nil
}

// nearest collects the k most similar inputs. It also holds others until the next sort.
type nearest struct {
	k    int
	some []Similar
	last Similar // the kth after the last sort
	full bool    // last is set
}

func (n *nearest) add(s Similar) {
	if n.full && bySimilarity(n.last, s) < 0 {
		return
	}
	if n.some = append(n.some, s); n.k > 0 && len(n.some) >= max(2*n.k, 256) {
		n.sortAndTrim()
		n.last, n.full = n.some[n.k-1], true
	}
}

// sortAndTrim returns the collected inputs, the most similar first.
func (n *nearest) sortAndTrim() []Similar {
	slices.SortFunc(n.some, bySimilarity)
	n.some = n.some[:min(n.k, len(n.some))]
	return n.some
}

// searchWidth returns the number of candidates that a walk keeps for k hits.
func searchWidth(k int) int { return max(128, k+k/2) }

func bySimilarity(a, b Similar) int {
	return cmp.Or(-cmp.Compare(a.Cosine, b.Cosine), cmp.Compare(a.Ord, b.Ord))
}
