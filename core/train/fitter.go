package train

import "github.com/sightline-dev/sightline/core/predict"

const (
	// Measured with ten photos of each of two concepts: at 100 the head finds more of the other photos of them and accepts more unrelated
	// photos, at 1,000 fewer of both. TestTenPhotosSuffice of package models shows the results of 250. It is scikit-learn's C.
	defaultStrength = 250

	// A task ends when its gradient is shorter than this share of the ridge. Since the objective
	// curves at least as much as the ridge, weights are then within that distance of the minimum, and so
	// is the output of every unit embedding.
	tolerance     = 0.01
	foldTolerance = 0.05
	smallest      = 1e-6 // below it float32 sums are noise

	// neverOutput is the output of a concept without a positive: a value of 2·10⁻⁹.
	neverOutput = -20
)

// Fitter fits a head in steps. It is for one goroutine at a time.
type Fitter struct {
	p        *Problem
	strength float64 // how far the data may pull the weights: the penalty is |W|²/(2·strength) against 1 for each positive example
	looked   int     // number of examples that look has read
	hasLabel bool    // one of the read examples has a label
	ordered  bool
	rows     []row
	m        *matrix
	packed   int // number of rows in m
	classes  []int
	tasks    []*task // of the head
	solving  *batch
	folds    *evaluation // nil until the head is solved
	reached  float64     // Progress so far
	result   *Result
	err      error
}

// NewFitter returns a fitter for a problem. Step checks the problem, and Err returns its errors.
func NewFitter(p *Problem) *Fitter { return &Fitter{p: p, strength: defaultStrength} }

// classes returns the indices of the concepts with a positive, ascending.
func (p *Problem) classes(rows []row) []int {
	var classes []int
	for c, n := range p.positives(rows) {
		if n > 0 {
			classes = append(classes, c)
		}
	}
	return classes
}

// positives returns the number of positives of each concept.
func (p *Problem) positives(rows []row) []int {
	counts := make([]int, len(p.Concepts))
	for i := range rows {
		if rows[i].positive {
			for c, l := range rows[i].labels {
				if l == True {
					counts[c]++
				}
			}
		}
	}
	return counts
}

// Step does a few milliseconds of work, up to some tens with tens of thousands of examples, and
// reports whether the fitter has ended: with a result, or with an error.
func (f *Fitter) Step() (done bool) {
	if f.result == nil && f.err == nil {
		if err := f.step(); err != nil {
			*f = Fitter{err: err, reached: f.reached}
		}
	}
	return f.result != nil || f.err != nil
}

func (f *Fitter) step() error {
	switch {
	case f.looked == 0 || f.looked < len(f.p.Examples):
		return f.look()
	case !f.hasLabel:
		f.finish()
	case !f.ordered:
		return f.order()
	case f.packed < len(f.rows):
		f.pack()
	case f.solving == nil:
		f.addTask()
	case f.folds != nil:
		if f.folds.step() {
			f.finish()
		}
	case !f.solving.step():
	default:
		f.folds = newEvaluation(f)
	}
	return nil
}

// looks is the number of examples that a step reads.
const looks = 2048

// look checks the next examples and makes rows of those that take part in the fit.
func (f *Fitter) look() error {
	if f.looked == 0 {
		if err := f.p.check(); err != nil {
			return err
		}
		f.rows = make([]row, 0, len(f.p.Examples)+len(f.p.Background))
	}
	to := min(f.looked+looks, len(f.p.Examples))
	for i := f.looked; i < to; i++ {
		labelled, err := f.p.checkExample(i)
		if err != nil {
			return err
		}
		f.hasLabel = f.hasLabel || labelled
		if r, ok := f.p.row(i); ok {
			f.rows = append(f.rows, r)
		}
	}
	f.looked = max(to, 1) // a problem without examples has been looked at as well
	return nil
}

// order arranges the rows and finds the concepts that a head can be trained for.
func (f *Fitter) order() error {
	f.rows = f.p.arrange(f.rows)
	if len(f.rows) == 0 || f.rows[0].kind != labelled {
		return ErrNoExamples
	}
	f.classes = f.p.classes(f.rows)
	switch {
	case len(f.classes) == 0:
		return ErrNoPositives
	case f.p.Exclusive && len(f.classes) < 2:
		return ErrSingleClass
	}
	f.m = newMatrix(len(f.rows), predict.Dim)
	f.ordered = true
	return nil
}

// pack puts the next rows into the matrix.
func (f *Fitter) pack() {
	for range blockRows {
		if f.packed == len(f.rows) {
			return
		}
		f.m.setEmbedding(f.packed, f.rows[f.packed].embedding)
		f.packed++
	}
}

// addTask creates the next task and, after the last one, the batch of all tasks.
func (f *Fitter) addTask() {
	var t *task
	if f.p.Exclusive {
		cols, sum := f.p.softmaxColumns(f.rows, f.m.n, f.classes)
		t = &task{columns: cols, softmax: true, ridge: f.ridge(sum)}
	} else {
		col, sum, _ := f.p.sigmoidColumn(f.rows, f.m.n, f.classes[len(f.tasks)])
		t = &task{columns: []column{col}, ridge: f.ridge(sum)}
	}
	t.begin(make([]float32, params(len(t.columns), f.m.d)), t.tolerance(tolerance))
	f.tasks = append(f.tasks, t)
	if f.p.Exclusive || len(f.tasks) == len(f.classes) {
		f.solving = newBatch(f.m, f.tasks)
	}
}

// ridge returns the penalty of a task whose weights have been divided by sum.
func (f *Fitter) ridge(sum float64) float32 { return float32(1 / float64(f.strength*sum)) }

func (t *task) tolerance(share float32) float32 { return max(share*t.ridge, smallest) }

// head returns the head of solved tasks.
func (f *Fitter) head(tasks []*task) *Head {
	h := never(f.p)
	if len(tasks) == 0 {
		return h
	}
	if !f.p.Exclusive {
		for i, t := range tasks {
			if t != nil { // nil: a fold without a positive
				h.set(f.classes[i], t, 0)
			}
		}
		return h
	}
	outputs := f.classes
	if f.p.Closed {
		h.Weights, h.Bias = h.Weights[:len(h.Concepts)*predict.Dim], h.Bias[:len(h.Concepts)]
	} else {
		outputs = append(outputs[:len(outputs):len(outputs)], len(h.Concepts))
	}
	for j, o := range outputs {
		h.set(o, tasks[0], j)
	}
	return h
}

// never returns a head by which no concept is present.
func never(p *Problem) *Head {
	n := len(p.Concepts)
	h := &Head{Concepts: append([]string(nil), p.Concepts...), Exclusive: p.Exclusive}
	if p.Exclusive {
		n++
	}
	h.Weights, h.Bias = make([]float32, n*predict.Dim), make([]float32, n)
	for c := range p.Concepts {
		h.Bias[c] = neverOutput
	}
	return h
}

// set copies output j of a solved task to output o.
func (h *Head) set(o int, t *task, j int) {
	d := predict.Dim
	copy(h.row(o), t.solver.x[j*d:(j+1)*d])
	h.Bias[o] = t.solver.x[len(t.columns)*d+j] * biasUnit
}

func (f *Fitter) finish() {
	f.result = &Result{Head: f.head(f.tasks)}
	if f.folds == nil {
		f.result.Metrics = UnevaluatedMetrics(f.p)
	} else {
		f.result.Metrics = f.folds.metrics
	}
	*f = Fitter{result: f.result}
}

// Result returns the result after Step returned true. It returns nil before that and after an error.
func (f *Fitter) Result() *Result { return f.result }

// Err returns the reason why there is no result after Step returned true: ErrProblem, or, for labels that give no head, ErrNoExamples,
// ErrNoPositives or ErrSingleClass. Without any label for the model's concepts the head finds nothing, which is not an error.
func (f *Fitter) Err() error { return f.err }

// Progress returns the share of the work that is done, 0 to 1. It never falls.
func (f *Fitter) Progress() float64 {
	if f.result != nil {
		return 1
	}
	now := f.reached
	if f.m != nil {
		now = 0.05 * float64(f.packed) / float64(len(f.rows))
	}
	if f.solving != nil {
		now += 0.35 * f.solving.progress()
	}
	if f.folds != nil {
		now += 0.6 * f.folds.progress()
	}
	f.reached = max(f.reached, now)
	return f.reached
}
