package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train/kernel"
)

// crowd returns the workload on which other libraries are measured: n unit vectors around one direction per concept, with noise of length
// 1.1. It returns them row by row, with their concepts.
func crowd(seed uint64, n, d, concepts int) (x [][]float32, y []int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	unit := func(v []float64) {
		s := 0.0
		for _, e := range v {
			s += e * e
		}
		for i := range v {
			v[i] /= math.Sqrt(s)
		}
	}
	centres := make([][]float64, concepts)
	for c := range centres {
		centres[c] = make([]float64, d)
		for i := range centres[c] {
			centres[c][i] = rng.NormFloat64()
		}
		unit(centres[c])
	}
	for range n {
		c := rng.IntN(concepts)
		v := make([]float64, d)
		for i := range v {
			v[i] = centres[c][i] + rng.NormFloat64()*1.1/math.Sqrt(float64(d))
		}
		unit(v)
		row := make([]float32, d)
		for i := range v {
			row[i] = float32(v[i])
		}
		x, y = append(x, row), append(y, c)
	}
	return x, y
}

// multinomial returns the softmax task of scikit-learn's LogisticRegression(C=strength) on x and y.
func multinomial(x [][]float32, y []int, concepts int, strength float64) (*matrix, *task) {
	m := newMatrix(len(x), len(x[0]))
	t := &task{softmax: true, ridge: float32(1 / (strength * float64(len(x))))}
	w := make([]float32, m.n)
	for i := range x {
		m.set(i, x[i])
		w[i] = 1 / float32(len(x))
	}
	for c := range concepts {
		col := column{w: w, y: make([]float32, m.n)}
		for i := range y {
			if y[i] == c {
				col.y[i] = 1
			}
		}
		t.columns = append(t.columns, col)
	}
	t.begin(make([]float32, params(concepts, m.d)), t.tolerance(tolerance))
	return m, t
}

func solve(m *matrix, tasks ...*task) {
	for b := newBatch(m, tasks); !b.step(); {
	}
}

// BenchmarkPeers measures the workload on which scikit-learn, torch and spago are measured, packing included: 1,000 embeddings of 512
// dimensions, 20 concepts, C = 10.
func BenchmarkPeers(b *testing.B) {
	x, y := crowd(5, 1000, 512, 20)
	for l := range kernel.Levels.Each() {
		b.Run("n=1000/dim=512/concepts=20/level="+l.String(), func(b *testing.B) {
			defer perProcessor(b)()
			rounds := 0
			for b.Loop() {
				m, t := multinomial(x, y, 20, 10)
				solve(m, t)
				rounds = t.solver.rounds
			}
			b.ReportMetric(float64(rounds), "rounds")
		})
	}
}

// BenchmarkFit measures a training: n photos of each of two concepts with the background, with and without evaluation.
func BenchmarkFit(b *testing.B) {
	for _, n := range []int{2, 10, 100} {
		w := newWorld(6, 2, 1.1)
		p := w.problem(n, "a", "b")
		p.Background = w.background(2048)
		for l := range kernel.Levels.Each() {
			for _, skip := range []bool{true, false} {
				b.Run(fmt.Sprintf("photos=%d/evaluated=%v/level=%s", n, !skip, l), func(b *testing.B) {
					defer perProcessor(b)()
					for b.Loop() {
						if skip {
							fitHead(b, NewFitter(p))
						} else {
							fit(b, p)
						}
					}
				})
			}
		}
	}
}

// BenchmarkSteps measures the longest step of a training, for which a call may have to wait: the processor time of its thread, from the
// problem to the metrics.
func BenchmarkSteps(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		for _, concepts := range []int{2, 20} {
			w := newWorld(8, concepts, 1.1)
			names := make([]string, concepts)
			for c := range names {
				names[c] = fmt.Sprint(c)
			}
			p := w.problem(n/concepts, names...)
			p.Background = w.background(2048)
			b.Run(fmt.Sprintf("examples=%d/concepts=%d", n, concepts), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var longest, all time.Duration
				steps := 0
				for b.Loop() {
					begun := threadTime(b)
					f := NewFitter(p)
					for from, done := begun, false; !done; {
						done = f.Step()
						now := threadTime(b)
						longest, from = max(longest, now-from), now
						steps++
					}
					all += threadTime(b) - begun
				}
				b.ReportMetric(float64(longest.Microseconds())/1e3, "longest-cpu-ms")
				b.ReportMetric(float64(all.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(steps)/float64(b.N), "steps")
			})
		}
	}
}

// BenchmarkConceptValues measures a search by a custom concept, for each picture.
func BenchmarkConceptValues(b *testing.B) {
	w := newWorld(7, 2, 1)
	h := fitHead(b, NewFitter(w.problem(3, "a", "b")))
	const n = 10_000
	q, scale, dst := make([]int16, 0, n*predict.Dim), make([]float32, 0, n), make([]float32, n)
	for range n {
		e := w.picture(-1)
		q, scale = append(q, e.Q[:]...), append(scale, e.Scale)
	}
	for l := range kernel.Levels.Each() {
		b.Run("level="+l.String(), func(b *testing.B) {
			for b.Loop() {
				h.ConceptValues(dst, 0, q, scale)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/picture")
		})
	}
}
