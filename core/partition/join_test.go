package partition_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
)

// TestJoinedSearch has a replica that has nothing take a snapshot, in one batch and in many, and search by
// similarity before it has done a single step: it finds what comparing all embeddings finds, and so it does
// in the middle of indexing. In the end its index is as the records have it.
func TestJoinedSearch(t *testing.T) {
	ctx := context.Background()
	origin := open(t, memkv.New())
	const inputs = 600
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
	asked := embeddings[7]
	for i := range all {
		all[i] = index.Similar{Ord: uint32(i), Cosine: asked.Cosine(&embeddings[i])}
	}
	slices.SortFunc(all, func(a, b index.Similar) int {
		return cmp.Or(-cmp.Compare(a.Cosine, b.Cosine), cmp.Compare(a.Ord, b.Ord))
	})
	x, _ := export(t, origin, network)
	for _, batch := range []int{0, 64 << 10} {
		held := 0
		s := x.Snapshot
		s.Held = func(i int) bool {
			data, err := s.Read(i)
			held++
			return err == nil && blob.Sum(data) == s.Chunks[i].Hash
		}
		p := (&copies{tb: t}).reopen(&copied{store: memkv.New(), site: 2, batch: batch})
		if err := p.Rebase(ctx, s); err != nil || held != len(s.Chunks) {
			t.Fatalf("Rebase: %v, asked of %d of %d chunks", err, held, len(s.Chunks))
		}
		for step := 0; ; step++ {
			v := p.View()
			seen := p.Index().At(v.Reader)
			ords, err := seen.Analysed()
			if err != nil {
				t.Fatal(err)
			}
			got, err := seen.Nearest(ctx, &asked, ords, 10)
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
