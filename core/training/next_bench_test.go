//go:build unix

package training

import (
	"context"
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// large returns an application of n analysed inputs on disk, each with another picture. Half of the first labelled ones have a positive
// label for "cat" and half a negative one.
func large(b *testing.B, n, labelled int) *world {
	b.Helper()
	store, err := pebblekv.Open(b.TempDir(), pebblekv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	w := newIndexedWorld(b, store)
	pictures := make([]catalog.DerivedData, 4096)
	for i := range pictures {
		_, pictures[i] = w.picture(i % 8)
	}
	const batch = 1000
	for from := 0; from < n; from += batch {
		bodies := make([]log.Body, 0, batch)
		for i := from; i < from+batch; i++ {
			create := &log.InputCreate{ID: fmt.Sprint(i), Blob: blob.Sum(fmt.Append(nil, i)), ContentType: "image/png"}
			if i < labelled {
				create.Labels = []log.Label{{Concept: "cat", Value: log.False + log.Value(i%2)}}
			}
			bodies = append(bodies, create)
		}
		w.with(func(to *kv.Batch) {
			for i, body := range bodies {
				create, _ := body.(*log.InputCreate)
				catalog.PutDerived(to, appID, w.net.base, create.Blob, create.Crop, pictures[(from+i)%len(pictures)])
			}
		}, bodies...)
	}
	return w
}

// BenchmarkLabelNext measures a page of 20 at 100,000 inputs with 1,000 labelled ones, and the other requests about a model's training
// set and its versions.
func BenchmarkLabelNext(b *testing.B) {
	const n, labelled = 100_000, 1000
	w := large(b, n, labelled)
	w.make([]string{"cat"})
	v1 := w.train("v1")
	view := w.p.View()
	defer view.Close()
	all, err := w.p.Index().At(view.Reader).AnalysedInputs()
	if err != nil {
		b.Fatal(err)
	}
	known := roaring.BitmapOf(all.ToArray()[:labelled]...)
	unlabelled := roaring.AndNot(all, known)
	m, err := view.Manifest(&v1)
	if err != nil {
		b.Fatal(err)
	}
	var head train.Head
	if err := head.UnmarshalBinary(m.Head); err != nil {
		b.Fatal(err)
	}
	judge := func(e *predict.Embedding) ([]float32, float64) {
		values := head.Values(nil, e)
		return values, Uncertainty(values, Relation{})
	}
	side := NewSide(&head, &train.Metrics{})
	for _, op := range []struct {
		name string
		do   func(v *partition.View, x *index.View) error
	}{
		{"next/20", func(_ *partition.View, x *index.View) error {
			_, err := Suggest(context.Background(), x, unlabelled, known, judge, 20)
			return err
		}},
		{"next/1000", func(_ *partition.View, x *index.View) error {
			_, err := Suggest(context.Background(), x, unlabelled, known, judge, 1000)
			return err
		}},
		{"survey", func(v *partition.View, x *index.View) error {
			_, err := NewSurvey(v, x, []string{"cat"}, &v1)
			return err
		}},
		{"compare", func(_ *partition.View, x *index.View) error {
			_, err := Compare(context.Background(), x, all, &side, &side)
			return err
		}},
		{"history/first", func(v *partition.View, _ *index.View) error { return history(w, v, "0") }},
		{"history/last", func(v *partition.View, _ *index.View) error { return history(w, v, fmt.Sprint(n-1)) }},
	} {
		b.Run(fmt.Sprintf("n=%d/%s", n, op.name), func(b *testing.B) {
			for b.Loop() {
				v := w.p.View()
				if err := op.do(v, w.p.Index().At(v.Reader)); err != nil {
					b.Fatal(err)
				}
				_ = v.Close()
			}
		})
	}
}

func history(w *world, v *partition.View, id string) error {
	in, err := v.InputByID(id)
	if err == nil {
		_, err = w.p.History(in.Dot, func(log.Entry) bool { return true })
	}
	return err
}
