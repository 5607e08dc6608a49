package train

import (
	"github.com/sightline-dev/sightline/core/predict/elementary"
	"github.com/sightline-dev/sightline/core/train/kernel"
)

// maxColumns bounds the number of columns that are evaluated at once, so that a step stays short.
const maxColumns = 128

// column is one output of a task over all rows of the matrix. Tasks may share columns.
type column struct {
	w []float32 // (n) weight of each example
	y []float32 // (n) target of the output, 0 to 1
}

// task is one convex problem over the rows of a matrix:
//
//	Σ w·loss(Wx + b, y) + ridge/2·(|W|² + |b|²/100)
//
// where loss is the logistic one for a single column, and for a softmax the cross entropy over
// its columns, whose weights are the same. The parameters are (columns, d) weights followed by
// the biases in units of biasUnit, and zeros up to a multiple of 32.
type task struct {
	columns []column
	softmax bool
	without []int32 // rows left out, ascending
	ridge   float32
	solver  lbfgs
	g       []float32 // gradient, summed block by block

	skipped int // number of rows of without before the current block
}

// biasRidge is the share of the ridge on the biases. It keeps them finite where one class is
// missing and hardly moves them elsewhere.
const biasRidge = 0.01

// biasUnit is the unit of a bias. An output's bias adds to every example alike, and a weight only a sixteenth or so. In units of 1 the
// biases would curve far more than the weights, and the solver would spend half of its steps on them. A power of two scales without
// rounding.
const biasUnit = 1.0 / 8

// params returns the number of parameters of a task with c columns over d dimensions.
func params(c, d int) int { return c*d + up(c) }

// begin starts the task at the parameters x. tol is the length of the gradient at which it ends.
func (t *task) begin(x []float32, tol float32) {
	// The curvature is at most |(x, 1)|² = 2 times that of the loss: a quarter, and a half for the
	// softmax. A first step of its inverse cannot overshoot.
	first := float32(2)
	if t.softmax {
		first = 1
	}
	t.g = make([]float32, len(x))
	t.solver.begin(x, first, tol)
}

// batch solves tasks over one matrix side by side, so that a matrix product serves many of
// them. The result of a task does not depend on the other tasks.
type batch struct {
	m      *matrix
	queue  []*task // waiting tasks
	active []*task // tasks in work
	total  int     // number of all tasks

	a     []float32 // (columns, d) the weights at the trials
	z     []float32 // (columns, blockRows) outputs, then their residuals
	part  []float32 // (columns, d) gradient of one block
	ones  []float32 // (blockRows)
	top   []float32 // (blockRows) of a softmax: the largest output
	sum   []float32 // (blockRows) of a softmax: the sum of the exponentials
	block int       // first row of the next block
}

func newBatch(m *matrix, tasks []*task) *batch {
	b := &batch{m: m, queue: tasks, total: len(tasks)}
	b.ones, b.top, b.sum = make([]float32, blockRows), make([]float32, blockRows), make([]float32, blockRows)
	for i := range b.ones {
		b.ones[i] = 1
	}
	return b
}

// step evaluates one block of examples. After the last block it moves every task. It reports whether all tasks are solved.
func (b *batch) step() (done bool) {
	if b.block == 0 {
		if b.fill(); len(b.active) == 0 {
			return true
		}
	}
	from, to := b.block, min(b.block+blockRows, b.m.n)
	b.forward(from, to)
	c := 0
	for _, t := range b.active {
		z := b.z[c*blockRows:]
		t.residuals(b, z, from, to)
		b.sumBiases(t, z, to-from)
		c += len(t.columns)
	}
	b.backward(from, to)
	b.block = to
	if to == b.m.n {
		b.block = 0
		b.move()
	}
	return false
}

// fill moves tasks from the queue to active and gathers the weights at their trials.
func (b *batch) fill() {
	columns := b.columns()
	for len(b.queue) > 0 && (columns == 0 || columns+len(b.queue[0].columns) <= maxColumns) {
		columns += len(b.queue[0].columns)
		b.active = append(b.active, b.queue[0])
		b.queue = b.queue[1:]
	}
	d := b.m.d
	if len(b.a) < columns*d {
		b.a, b.part = make([]float32, columns*d), make([]float32, columns*d)
		b.z = make([]float32, columns*blockRows)
	}
	a := b.a
	for _, t := range b.active {
		a = a[copy(a, t.solver.trial[:len(t.columns)*d]):]
		clear(t.g)
		t.skipped = 0
	}
}

func (b *batch) columns() int {
	n := 0
	for _, t := range b.active {
		n += len(t.columns)
	}
	return n
}

// forward fills z with the outputs of the examples, without the biases.
func (b *batch) forward(from, to int) {
	d, columns := b.m.d, b.columns()
	for i := from; i < to; i += lanes {
		kernel.Product(b.z[i-from:], blockRows, b.a, d, columns, b.m.examples(i), d)
	}
}

// backward adds residuals × examples to the gradients.
func (b *batch) backward(from, to int) {
	d, columns := b.m.d, b.columns()
	for k := 0; k < d; k += lanes {
		kernel.Product(b.part[k:], d, b.z, blockRows, columns, b.m.dims(k, from), to-from)
	}
	part := b.part
	for _, t := range b.active {
		n := len(t.columns) * d
		kernel.Axpy(t.g[:n], 1, part[:n])
		part = part[n:]
	}
}

// residuals turns the outputs z of the rows from … to−1 into weighted residuals.
func (t *task) residuals(b *batch, z []float32, from, to int) {
	n := to - from
	bias := t.solver.trial[len(t.columns)*b.m.d:]
	if t.softmax {
		t.shares(b, z, bias, from, to)
	} else {
		c := t.columns[0]
		kernel.LogisticResidual(z[:n], z[:n], bias[0]*biasUnit, c.w[from:to], c.y[from:to])
	}
	for ; t.skipped < len(t.without) && int(t.without[t.skipped]) < to; t.skipped++ {
		for j := range t.columns {
			z[j*blockRows+int(t.without[t.skipped])-from] = 0
		}
	}
}

func (t *task) shares(b *batch, z, bias []float32, from, to int) {
	n := to - from
	top, sum := b.top[:n], b.sum[:n]
	for i := range top {
		top[i], sum[i] = negative, 0
	}
	for j := range t.columns {
		kernel.Max(top, z[j*blockRows:][:n], bias[j]*biasUnit)
	}
	for j := range t.columns {
		kernel.Exp(z[j*blockRows:][:n], bias[j]*biasUnit, top, sum)
	}
	for j, c := range t.columns {
		kernel.SoftmaxResidual(z[j*blockRows:][:n], z[j*blockRows:][:n], sum, c.w[from:to], c.y[from:to])
	}
}

// negative is below every output.
const negative = -1e30

func (b *batch) sumBiases(t *task, z []float32, n int) {
	g := t.g[len(t.columns)*b.m.d:]
	for j := range t.columns {
		g[j] += float32(biasUnit * kernel.Dot(z[j*blockRows:][:n], b.ones[:n]))
	}
}

// move gives every task its gradient and removes the solved ones.
func (b *batch) move() {
	active := b.active[:0]
	for _, t := range b.active {
		n := len(t.columns) * b.m.d
		kernel.Axpy(t.g[:n], t.ridge, t.solver.trial[:n])
		kernel.Axpy(t.g[n:], t.ridge*(biasRidge*biasUnit*biasUnit), t.solver.trial[n:])
		t.solver.observe(t.g)
		if !t.solver.done {
			active = append(active, t)
			continue
		}
		t.g = nil
		t.solver = lbfgs{x: t.solver.x, rounds: t.solver.rounds, norm: t.solver.norm, done: true}
	}
	clear(b.active[len(active):])
	b.active = active
}

// progress returns the share of the work that is done. A task's share is how far the length of its gradient has
// fallen towards the tolerance, on a logarithmic scale.
func (b *batch) progress() float64 {
	done := float64(b.total - len(b.queue) - len(b.active))
	for _, t := range b.active {
		if s := &t.solver; s.norm < s.start {
			done += elementary.Log(s.start/s.norm) / elementary.Log(s.start/float64(s.tol))
		}
	}
	return min(1, done/float64(max(b.total, 1)))
}

// isFinished reports whether every task is solved.
func (b *batch) isFinished() bool { return len(b.queue) == 0 && len(b.active) == 0 }
