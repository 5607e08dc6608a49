package train

import (
	"cmp"
	"slices"
)

// Number of parts into which the labelled examples are divided: as many as the most frequent concept has
// pictures, up to maxFolds. With up to ten, each picture is evaluated by a head of all the others. With
// thousands of examples there are fewer folds.
const (
	maxFolds   = 10
	manyRows   = 2000
	manyFolds  = 5
	hugeRows   = 20000
	hugeFolds  = 3
	leastFolds = 2
)

// evaluation cross-validates a fitted problem. Each fold's head is fitted starting at the final head's
// weights, which are close to its own.
type evaluation struct {
	f         *Fitter
	k         int
	dealt     bool
	positives []int     // number of positives of each concept
	counts    [][]int   // number of positives of each concept, by fold
	foldRows  [][]int32 // rows of each fold, ascending
	tasks     [][]*task // tasks of each fold; nil: no positive is left
	solving   *batch
	scored    int   // number of folds whose rows have values
	head      *Head // head of fold scored; unscored has the fold's rows without values
	unscored  []int32
	values    []float32 // (rows, concepts) by a head that was not trained on the row
	judged    int       // number of concepts with figures
	confused  bool
	tops      []top // of the rows with labels
	checked   int   // number of concepts with checked labels
	metrics   *Metrics
}

func newEvaluation(f *Fitter) *evaluation { return &evaluation{f: f, metrics: UnevaluatedMetrics(f.p)} }

// deal assigns a fold to every row. With fewer than leastFolds folds it assigns none.
func (e *evaluation) deal() {
	f := e.f
	e.dealt = true
	if e.k = f.p.folds(f.rows); e.k < leastFolds {
		return
	}
	e.metrics.Folds = e.k
	e.counts = assign(f.p, f.rows, e.k)
	e.positives = f.p.positives(f.rows)
	e.foldRows = make([][]int32, e.k)
	for i := range f.rows {
		if k := f.rows[i].fold; k >= 0 {
			e.foldRows[k] = append(e.foldRows[k], int32(i))
		}
	}
}

// begin creates the batch of all tasks.
func (e *evaluation) begin() {
	var all []*task
	for _, tasks := range e.tasks {
		for _, t := range tasks {
			if t != nil {
				all = append(all, t)
			}
		}
	}
	e.solving = newBatch(e.f.m, all)
	e.values = make([]float32, len(e.f.rows)*len(e.f.p.Concepts))
}

// addFoldTasks creates the tasks of the next fold. They continue from the solution of the head's tasks. A concept without a positive outside
// the fold has no task.
func (e *evaluation) addFoldTasks() {
	f, k := e.f, len(e.tasks)
	tasks := make([]*task, len(f.tasks))
	for i, t := range f.tasks {
		if !t.softmax && e.positives[f.classes[i]] == e.counts[k][f.classes[i]] {
			continue
		}
		tasks[i] = &task{columns: t.columns, softmax: t.softmax, ridge: t.ridge, without: e.foldRows[k]}
		tasks[i].begin(slices.Clone(t.solver.x), t.tolerance(foldTolerance))
	}
	e.tasks = append(e.tasks, tasks)
}

// folds returns the number of folds for the rows. Fewer than two are too few for an evaluation.
func (p *Problem) folds(rows []row) int {
	counts := make([]int, len(p.Concepts))
	speaking := 0
	for i := range rows {
		r := &rows[i]
		if r.kind != labelled && r.kind != other {
			break
		}
		speaking++
		if r.kind != labelled || (i > 0 && rows[i-1].kind == labelled && sameEmbedding(&rows[i-1], r)) {
			continue
		}
		for c, l := range r.labels {
			if l == True {
				counts[c]++
			}
		}
	}
	limit := maxFolds
	switch {
	case speaking > hugeRows:
		limit = hugeFolds
	case speaking > manyRows:
		limit = manyFolds
	}
	return min(limit, slices.Max(counts))
}

// assign assigns a fold to every row that has a label, and to the background, by the iterative
// stratification of Sechidis et al. (2011): the rarest concept first, so that each fold has its share of
// every concept. Copies of one picture get the same fold. It returns, for each fold, the number of positives of each
// concept and then the number of rows without a positive.
func assign(p *Problem, rows []row, k int) (counts [][]int) {
	concepts := len(p.Concepts)
	positives := p.positives(rows)
	rarest := p.classes(rows)
	slices.SortStableFunc(rarest, func(a, b int) int { return cmp.Compare(positives[a], positives[b]) })

	d := &dealer{rows: rows, counts: make([][]int, k), sizes: make([]int, k), of: map[uint64]int{}}
	for f := range d.counts {
		d.counts[f] = make([]int, concepts+1)
	}
	for _, c := range rarest {
		for i := range rows {
			if rows[i].kind != labelled {
				break
			}
			if rows[i].fold < 0 && rows[i].labels[c] == True {
				d.deal(i, c)
			}
		}
	}
	for i := range rows {
		switch r := &rows[i]; {
		case r.kind == background:
			r.fold = (-1 - r.example) % k
		case r.fold < 0 && r.kind != unlabelled:
			d.deal(i, concepts)
		}
	}
	return d.counts
}

// dealer deals rows to folds.
type dealer struct {
	rows   []row
	counts [][]int // (folds, concepts + 1) positives so far; the last counts rows without one
	sizes  []int   // (folds)
	of     map[uint64]int
}

// deal puts row i into the fold with the fewest rows of concept c, or into the fold of its copy.
func (d *dealer) deal(i, c int) {
	r := &d.rows[i]
	to, known := d.of[r.hash]
	if !known {
		to = 0
		for f := range d.counts {
			if by := cmp.Or(cmp.Compare(d.counts[f][c], d.counts[to][c]), cmp.Compare(d.sizes[f], d.sizes[to])); by < 0 {
				to = f
			}
		}
		d.of[r.hash] = to
	}
	r.fold = to
	d.sizes[to]++
	if !r.positive {
		d.counts[to][len(d.counts[to])-1]++
		return
	}
	for c, l := range r.labels {
		if l == True {
			d.counts[to][c]++
		}
	}
}

// step does the next part of the work and reports whether the metrics are complete.
func (e *evaluation) step() (done bool) {
	switch {
	case !e.dealt:
		e.deal()
	case e.k < leastFolds:
		return true
	case len(e.tasks) < e.k:
		e.addFoldTasks()
	case e.solving == nil:
		e.begin()
	case !e.solving.isFinished():
		e.solving.step()
	case e.scored < e.k:
		e.score()
	case e.judged < len(e.f.p.Concepts):
		e.metrics.Concepts[e.judged] = e.judge(e.judged)
		e.judged++
	case !e.confused:
		e.metrics.average()
		e.confuse()
		e.findTops()
		e.confused = true
	case e.checked < len(e.f.p.Concepts):
		e.checkLabels(e.checked)
		e.checked++
	default:
		e.listWeakest()
		return true
	}
	return false
}

func (e *evaluation) progress() float64 {
	if e.dealt && e.k < leastFolds {
		return 1
	}
	if e.solving == nil {
		return 0
	}
	concepts := len(e.f.p.Concepts)
	return 0.8*e.solving.progress() + 0.1*float64(e.scored)/float64(e.k) + 0.1*float64(e.judged)/float64(concepts)
}

// score computes the values of the next rows of the current fold.
func (e *evaluation) score() {
	f, k := e.f, e.scored
	if e.head == nil {
		e.head, e.unscored = f.head(e.tasks[k]), e.foldRows[k]
	}
	concepts := len(f.p.Concepts)
	n := min(blockRows, len(e.unscored))
	for _, i := range e.unscored[:n] {
		at := int(i) * concepts
		e.head.Values(e.values[at:at:at+concepts], f.rows[i].embedding)
	}
	if e.unscored = e.unscored[n:]; len(e.unscored) == 0 {
		e.head = nil
		e.scored++
	}
}

// value returns the value of concept c by a head that was not trained on row i.
func (e *evaluation) value(i, c int) float32 { return e.values[i*len(e.f.p.Concepts)+c] }
