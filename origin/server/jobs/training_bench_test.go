package jobs

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/training"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web"
)

// newLargeSchool returns a school whose model has two concepts, with pictures inputs of each in turn.
func newLargeSchool(b *testing.B, set *predict.Set, pictures int) *school {
	b.Helper()
	s := &school{t: b}
	store, err := pebblekv.Open(b.TempDir(), pebblekv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	s.p, err = partition.OpenOrigin(partition.Options{Store: store, App: schoolID, Clock: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	s.q = training.NewQueue(s.p, set)
	rng := rand.New(rand.NewPCG(1, 2))
	concepts := []string{"cat", "dog"}
	for from := 0; from < pictures; from += 1000 {
		var bodies []log.Body
		derived := map[blob.Hash][]byte{}
		for i := from; i < from+1000; i++ {
			v := make([]float32, predict.Dim)
			for k := range v {
				v[k] = float32(rng.NormFloat64()) / 16
			}
			v[i%2] += 0.3
			e, err := predict.NewEmbedding(v)
			if err != nil {
				b.Fatal(err)
			}
			data, err := e.MarshalBinary()
			if err != nil {
				b.Fatal(err)
			}
			hash := blob.Sum(binary.LittleEndian.AppendUint64(nil, uint64(i)))
			derived[hash] = data
			bodies = append(bodies, &log.InputCreate{
				ID: strconv.Itoa(i), URL: "http://x/" + strconv.Itoa(i), Blob: hash,
				Labels: []log.Label{{Concept: concepts[i%2], Value: log.True}},
			})
		}
		_, err := s.p.Submit(context.Background(), "", bodies, func(batch *kv.Batch) {
			for hash, data := range derived {
				catalog.PutDerived(batch, schoolID, set.Base(), hash, raster.Crop{}, catalog.DerivedData{Embedding: data})
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	s.model = s.submit(&log.ModelCreate{ID: "m", Concepts: concepts}, nil)
	return s
}

// predictions predicts a picture again and again for a while, by so many clients, and returns
// how long each took, ascending.
func predictions(b *testing.B, p *Pool, picture []byte, clients int, d time.Duration) []time.Duration {
	b.Helper()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		took []time.Duration
	)
	end := time.Now().Add(d)
	for range clients {
		wg.Go(func() {
			for time.Now().Before(end) {
				begun := time.Now()
				r, err := p.Run(context.Background(), []api.Job{{Data: picture, Want: predict.WantConcepts}})
				if err != nil || r[0].Err != nil {
					b.Errorf("%v %v", err, r[0].Err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took
}

// BenchmarkPredictDuringTraining measures the time that a training of 20,000 inputs adds to the slowest predictions. Windows with
// trainings, one after the other, alternate with windows without. So other load on the machine affects both alike. It reports medians of
// the windows' quantiles.
func BenchmarkPredictDuringTraining(b *testing.B) {
	set, err := predict.Load(models.FS)
	if err != nil {
		b.Fatal(err)
	}
	picture, err := fs.ReadFile(web.Samples(), "04-old-camera.jpg")
	if err != nil {
		b.Fatal(err)
	}
	s := newLargeSchool(b, set, 20_000)
	system.ReserveThreads(2) // as serve does
	pool := New(Options{
		NewAnalyser: func(_ [32]byte, l raster.Limits) Analyser { return set.NewAnalyser(l) },
		Now:         system.Now, ThreadTime: system.ThreadTime, Log: slog.New(slog.DiscardHandler), Workers: 2,
	})
	bg := &Background{Pool: pool, Now: system.Now, Pause: system.Pause, Log: slog.New(slog.DiscardHandler)}
	versions := 0
	trainings := func(ctx context.Context) { // until ctx ends
		for ctx.Err() == nil {
			versions++
			s.ask(fmt.Sprint(versions))
			runs, err := s.q.Take(time.Now(), 1)
			if err != nil || len(runs) != 1 {
				b.Errorf("%d trainings: %v", len(runs), err)
				return
			}
			trouble := bg.train(ctx, runs[0])
			if err := s.q.Done(context.Background(), time.Now(), runs[0], trouble); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
			s.submit(&log.VersionDelete{Model: s.model, Version: fmt.Sprint(versions)}, nil)
		}
	}
	const window = 700 * time.Millisecond
	for _, clients := range []int{1, 2} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var p50, p99 [2][]float64 // without, with
			predictions(b, pool, picture, clients, window)
			for b.Loop() {
				for with := range 2 {
					ctx, stop := context.WithCancel(context.Background())
					var wg sync.WaitGroup
					if with == 1 {
						wg.Go(func() { trainings(ctx) })
					}
					took := predictions(b, pool, picture, clients, window)
					stop()
					wg.Wait()
					p50[with] = append(p50[with], took[len(took)/2].Seconds()*1e3)
					p99[with] = append(p99[with], took[len(took)*99/100].Seconds()*1e3)
				}
			}
			median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
			b.ReportMetric(median(p50[0]), "p50-alone-ms")
			b.ReportMetric(median(p50[1]), "p50-beside-ms")
			b.ReportMetric(median(p99[0]), "p99-alone-ms")
			b.ReportMetric(median(p99[1]), "p99-beside-ms")
			b.ReportMetric(median(p99[1])/median(p99[0]), "p99-ratio")
		})
	}
}
