package partition_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// TestSearchAfterJoin: an empty replica takes a snapshot, in one batch and in many. Its derived records come with the snapshot or were
// placed before. Before its first step, and during indexing, a search by similarity finds the same as comparing all embeddings. In the end
// the index equals the records.
func TestSearchAfterJoin(t *testing.T) {
	ctx := context.Background()
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	const inputs = 1800
	all := make([]index.Similar, inputs)
	embeddings := make([]predict.Embedding, inputs)
	for i := 0; i < inputs; i += 100 {
		bodies := make([]log.Body, 100)
		for j := range bodies {
			bodies[j] = create(fmt.Sprintf("input-%06d", i+j))
		}
		_, err := origin.Submit(ctx, "key", bodies, func(b *kv.Batch) {
			for j, body := range bodies {
				in := body.(*log.InputCreate)
				d := derivedOf(in.Blob)
				if err := embeddings[i+j].UnmarshalBinary(d.Embedding); err != nil {
					t.Fatal(err)
				}
				catalog.PutDerived(b, app, network, in.Blob, in.Crop, d)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	query := embeddings[7]
	for i := range all {
		all[i] = index.Similar{Ord: uint32(i), Cosine: query.Cosine(&embeddings[i])}
	}
	slices.SortFunc(all, func(a, b index.Similar) int {
		return cmp.Or(-cmp.Compare(a.Cosine, b.Cosine), cmp.Compare(a.Ord, b.Ord))
	})
	x, _ := export(t, origin, network)
	for i := range 4 {
		batch, places := []int{0, 64 << 10}[i%2], i > 1
		asked, placed := map[int]bool{}, make([]bool, len(x.Chunks))
		s := x.Snapshot
		store := kvtest.OrLate(t, memkv.New())
		p := (&copies{tb: t}).reopen(&testReplica{store: store, batch: batch})
		read := len(s.Chunks)
		if places {
			read -= place(t, store, &s, placed)
			if more, err := p.Step(ctx, clock()); more || err != nil {
				t.Fatalf("a step before the rest has come: %v, %v", more, err)
			}
		}
		s.Read = func(i int) ([]byte, error) {
			asked[i] = true
			return x.Chunk(i)
		}
		if err := p.Rebase(ctx, s); err != nil || len(asked) != read {
			t.Fatalf("Rebase: %v, read %d of %d chunks, want %d", err, len(asked), len(s.Chunks), read)
		}
		sweep(t, store)
		for step := 0; ; step++ {
			v := p.View()
			seen := p.Index().At(v.Reader)
			ords, err := seen.AnalysedInputs()
			if err != nil {
				t.Fatal(err)
			}
			got, err := seen.Nearest(ctx, &query, ords, 10)
			if err != nil || step < 2 && !slices.Equal(got, all[:10]) || len(got) != 10 || got[0].Ord != 7 {
				t.Fatalf("step %d of batch %d: %v, %v, want %v", step, batch, got, err, all[:10])
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			more, err := p.Step(ctx, clock())
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
		}
		v := p.View()
		if err := p.Index().Check(ctx, v.Reader); err != nil {
			t.Error(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// place stores the chunks of derived records in their final place and returns their number.
func place(t *testing.T, store kv.Store, s *partition.Snapshot, placed []bool) (n int) {
	t.Helper()
	for i := range s.Chunks {
		data, err := s.Read(i)
		if err != nil {
			t.Fatal(err)
		}
		var b kv.Batch
		if placed[i] = partition.PlaceChunk(&b, app, s.Chunks[i].Hash, data); placed[i] {
			n++
		} else if b.Len() > 0 {
			t.Errorf("%d operations of a chunk that is not placed", b.Len())
		}
		if err := store.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	s.Placed = func(i int) bool { return placed[i] }
	if n == 0 || n == len(s.Chunks) {
		t.Fatalf("%d of %d chunks were placed", n, len(s.Chunks))
	}
	return n
}

// sweep deletes all notes of chunks that were placed for a snapshot.
func sweep(t *testing.T, store kv.Store) {
	t.Helper()
	var b kv.Batch
	partition.DeletePlacedKeys(&b, app)
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
}

// TestPlacedDerivedRecords: a replica creates an input after derived records were placed, so the snapshot must bring them again. Placed
// records that no input names are deleted, but not before.
func TestPlacedDerivedRecords(t *testing.T) {
	ctx := context.Background()
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	for i := range 400 {
		c := create(fmt.Sprintf("input-%06d", i))
		c.Meta = fmt.Appendf(nil, `{"text":"%01000d"}`, i)
		_, err := origin.Submit(ctx, "key", []log.Body{c}, func(b *kv.Batch) {
			catalog.PutDerived(b, app, network, c.Blob, c.Crop, derivedOf(c.Blob))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	x, _ := export(t, origin, network)
	store := kvtest.OrLate(t, memkv.New())
	p := (&copies{tb: t}).reopen(&testReplica{store: store})
	s := x.Snapshot
	var b kv.Batch
	orphan := log.InputCreate{Blob: blob.Sum([]byte("of no input")), ContentType: "image/png"}
	catalog.PutDerived(&b, app, network, orphan.Blob, orphan.Crop, derivedOf(orphan.Blob))
	b.Put(partition.PlacedKey(app, orphan.Blob), nil)
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	s.Placed = func(i int) bool { return i == len(s.Chunks)-1 }
	s.Read = func(i int) ([]byte, error) {
		if s.Placed(i) {
			return nil, blob.ErrNotFound
		}
		return x.Chunk(i)
	}
	submit(t, p.Replica, create("mine"))
	if err := p.Rebase(ctx, s); !errors.Is(err, blob.ErrNotFound) {
		t.Fatalf("Rebase: %v, want one that asks for the chunk", err)
	}
	has := func() bool {
		_, err := catalog.Read(store, app).DerivedOf(network, orphan.Blob, orphan.Crop)
		return err == nil
	}
	if !has() {
		t.Error("what was placed is gone before the rest has come")
	}
	if err := p.Rebase(ctx, x.Snapshot); err != nil {
		t.Fatal(err)
	}
	sweep(t, store)
	p.push(t, origin, 9)
	p.pull(t, origin, 1000)
	for more := true; more; {
		var err error
		if more, err = p.Step(ctx, clock()); err != nil {
			t.Fatal(err)
		}
	}
	if has() {
		t.Error("what no input has is still there")
	}
	p.check(t, origin)
}

// TestDerivedRecordCoversSamePicture: a derived record arrives with one input, while another one of the same picture has none. Searches
// find both.
func TestDerivedRecordCoversSamePicture(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	p := (&copies{tb: t}).reopen(&testReplica{store: kvtest.OrLate(t, memkv.New())})
	first, second := create("first"), create("second")
	second.Blob = first.Blob
	pull := func(c *log.InputCreate, also func(*kv.Batch)) {
		submit(t, origin, c)
		r := run(t, origin, p.Cursor(), 1)
		r.Attach = also
		if _, err := p.Pull(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		p.check(t, origin)
	}
	pull(first, nil)
	pull(second, func(b *kv.Batch) {
		catalog.PutDerived(b, app, network, first.Blob, first.Crop, derivedOf(first.Blob))
	})
	v := p.View()
	analysed, err := p.Index().At(v.Reader).AnalysedInputs()
	if err = errors.Join(err, v.Close()); err != nil || analysed.GetCardinality() != 2 {
		t.Errorf("%d inputs are analysed, want 2: %v", analysed.GetCardinality(), err)
	}
}
