package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// randomTask returns a random task over a random matrix.
func randomTask(rng *rand.Rand, n, d, columns int, softmax bool) (*matrix, *task) {
	m := newMatrix(n, d)
	x := make([]float32, d)
	for i := range n {
		for k := range x {
			x[k] = float32(rng.NormFloat64() / math.Sqrt(float64(d)))
		}
		m.set(i, x)
	}
	t := &task{softmax: softmax, ridge: float32(math.Exp(-7 * rng.Float64()))}
	w := make([]float32, m.n)
	for i := range n {
		w[i] = float32(rng.Float64() / float64(n))
	}
	for range columns {
		t.columns = append(t.columns, column{w: w, y: make([]float32, m.n)})
	}
	for i := range n {
		if c := rng.IntN(columns + 1); c < columns {
			t.columns[c].y[i] = 1
		} else if softmax {
			t.columns[0].y[i] = 1
		}
		if rng.IntN(5) == 0 {
			t.without = append(t.without, int32(i))
		}
	}
	return m, t
}

// at is element k of example i.
func (m *matrix) at(i, k int) float64 {
	return float64(m.examples(i / lanes * lanes)[k*lanes+i%lanes])
}

// loss is the objective of t at x in float64, straight from its definition.
func (t *task) loss(m *matrix, x []float32) float64 {
	c := len(t.columns)
	f := 0.0
	for i := range m.n {
		if slices.Contains(t.without, int32(i)) || t.columns[0].w[i] == 0 {
			continue
		}
		z := make([]float64, c)
		sum := 0.0
		for j := range z {
			z[j] = float64(x[c*m.d+j]) * biasUnit
			for k := range m.d {
				z[j] += m.at(i, k) * float64(x[j*m.d+k])
			}
			sum += math.Exp(z[j])
		}
		for j, col := range t.columns {
			w, y := float64(col.w[i]), float64(col.y[i])
			if t.softmax {
				f += w * y * (math.Log(sum) - z[j])
			} else {
				f += w * (math.Log1p(math.Exp(z[j])) - y*z[j])
			}
		}
	}
	for j, v := range x {
		r := float64(t.ridge)
		if j >= c*m.d {
			r *= biasRidge * biasUnit * biasUnit
		}
		f += r / 2 * float64(v) * float64(v)
	}
	return f
}

// slopes runs one evaluation and returns the gradient at x.
func (t *task) slopes(m *matrix, x []float32) []float32 {
	t.begin(slices.Clone(x), 0)
	b := newBatch(m, []*task{t})
	for t.solver.rounds == 0 {
		b.step()
	}
	return t.solver.g
}

func TestGradientMatchesTheLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n, d := rapid.IntRange(1, 700).Draw(t, "examples"), 32*rapid.IntRange(1, 2).Draw(t, "dimensions")
		columns, softmax := 1, rapid.Bool().Draw(t, "softmax")
		if softmax {
			columns = rapid.IntRange(2, 5).Draw(t, "columns")
		}
		m, task := randomTask(rng, n, d, columns, softmax)
		x := make([]float32, params(columns, m.d))
		for i := range columns * (d + 1) {
			x[i] = float32(rng.NormFloat64())
		}
		g := task.slopes(m, x)
		scale := length(g) + 1e-3
		for range 8 {
			i := rng.IntN(columns * (d + 1))
			const h = 1.0 / 64
			up, down := slices.Clone(x), slices.Clone(x)
			up[i] += h
			down[i] -= h
			want := (task.loss(m, up) - task.loss(m, down)) / float64(up[i]-down[i])
			if math.Abs(float64(g[i])-want) > 1e-3*scale {
				t.Fatalf("parameter %d: gradient %v, want %v by differences", i, g[i], want)
			}
		}
	})
}

// No direction leads down from the solution: the loss there is the lowest in its neighbourhood, and the gradient is as short as
// requested.
func TestSolutionIsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		columns, softmax := 1, rapid.Bool().Draw(t, "softmax")
		if softmax {
			columns = rapid.IntRange(2, 4).Draw(t, "columns")
		}
		m, task := randomTask(rng, rapid.IntRange(2, 200).Draw(t, "examples"), 32, columns, softmax)
		tol := task.tolerance(tolerance)
		task.begin(make([]float32, params(columns, m.d)), tol)
		solve(m, task)
		x := task.solver.x
		if task.solver.norm > float64(tol) {
			t.Fatalf("gradient of length %v after %d rounds, want at most %v", task.solver.norm, task.solver.rounds, tol)
		}
		best := task.loss(m, x)
		for range 5 {
			y := slices.Clone(x)
			size := math.Exp(-6 * rng.Float64())
			for i := range columns * (m.d + 1) {
				y[i] += float32(rng.NormFloat64() * size)
			}
			if f := task.loss(m, y); f < best-1e-6 {
				t.Fatalf("loss %v beside the solution, %v at it", f, best)
			}
		}
	})
}

// The result of a task depends only on the task, to the bit: neither on its neighbours in the batch, nor on their number.
func TestTasksAreIndependent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	m, _ := randomTask(rng, 600, 64, 1, false)
	var tasks []*task
	begin := func(t *task) { t.begin(make([]float32, params(len(t.columns), m.d)), 1e-5) }
	for i := range maxColumns + 40 {
		columns := 1
		if i%7 == 0 {
			columns = 2 + i%3
		}
		_, task := randomTask(rng, 600, 32, columns, columns > 1)
		begin(task)
		tasks = append(tasks, task)
	}
	solve(m, tasks...)
	for i, task := range tasks {
		if i%9 != 0 {
			continue
		}
		together := task.solver.x
		alone := *task
		begin(&alone)
		solve(m, &alone)
		if !slices.Equal(alone.solver.x, together) {
			t.Errorf("task %d is solved otherwise alone than beside others", i)
		}
	}
}

// The other sign of every label gives the other sign of every weight.
func TestFlippedLabelsMirrorTheHead(t *testing.T) {
	w := newWorld(8, 2, 1)
	p := &Problem{Concepts: []string{"a"}, Closed: true}
	for i := range 24 {
		p.Examples = append(p.Examples, Example{Embedding: w.picture(i % 2), Labels: []int8{int8(1 - i%2*2)}})
	}
	flipped := &Problem{Concepts: p.Concepts, Closed: true}
	for _, e := range p.Examples {
		flipped.Examples = append(flipped.Examples, Example{Embedding: e.Embedding, Labels: []int8{-e.Labels[0]}})
	}
	a, b := fitHead(t, withStrength(p, 10)), fitHead(t, withStrength(flipped, 10))
	for range 50 {
		e := w.picture(-1)
		if sum := a.Values(nil, e)[0] + b.Values(nil, e)[0]; math.Abs(float64(sum)-1) > 0.01 {
			t.Errorf("values sum to %v, want 1", sum)
		}
	}
}

func TestMatrixHoldsBothPackings(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, size := range [][2]int{{1, 32}, {31, 64}, {33, 40}, {64, 96}, {blockRows, 32}, {2*blockRows + 33, 64}} {
		n, d := size[0], size[1]
		m := newMatrix(n, d)
		want := make([][]float32, m.n)
		for i := range m.n {
			want[i] = make([]float32, m.d)
			if i < n {
				for k := range d {
					want[i][k] = rng.Float32()
				}
				m.set(i, want[i][:d])
			}
		}
		for i := range m.n {
			for k := range m.d {
				byExample := m.examples(i / lanes * lanes)[k*lanes+i%lanes]
				byDim := m.dims(k/lanes*lanes, i/blockRows*blockRows)[i%blockRows*lanes+k%lanes]
				if byExample != want[i][k] || byDim != want[i][k] {
					t.Fatalf("%d×%d: element %d,%d is %v and %v, want %v", n, d, i, k, byExample, byDim, want[i][k])
				}
			}
		}
	}
}

func ExampleFitter() {
	w := newWorld(1, 2, 1)
	p := w.problem(10, "ramen", "soba")
	p.Background = w.background(200)
	f := NewFitter(p)
	for !f.Step() {
	}
	r := f.Result()
	for _, picture := range []int{0, 1, -1} {
		v := r.Head.Values(nil, w.picture(picture))
		fmt.Printf("ramen %.0f, soba %.0f\n", v[0], v[1])
	}
	fmt.Printf("judged by %d heads: ROC AUC %.2f\n", r.Metrics.Folds, r.Metrics.Macro.ROCAUC)
	// Output:
	// ramen 1, soba 0
	// ramen 0, soba 1
	// ramen 0, soba 0
	// judged by 10 heads: ROC AUC 1.00
}
