package train

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/sightline-dev/sightline/core/predict"
)

// The weight of examples without a label for a concept of the model, in parts of the weight of the positives, and the number of examples
// of each kind that are used.
const (
	backgroundShare = 0.1  // ../../models: measured on unrelated photos
	unlabelledShare = 0.02 // of all unlabelled examples together
	unlabelledMost  = 0.02 // of one unlabelled example at most, since it may show the concept
	balanceMost     = 10   // weight of one example among few against many of the other sign

	maxOther      = 8192 // examples labelled with other concepts alone
	maxUnlabelled = 4096 // examples without a true label
)

// row is an example in the matrix.
type row struct {
	example   int // index in Problem.Examples, or −1 − index in Background
	embedding *predict.Embedding
	labels    []int8
	kind      kind
	positive  bool // some label is True
	other     bool // Example.Other
	hash      uint64
	fold      int // fold in which it is held out; −1: none
}

type kind uint8

const (
	labelled   kind = iota // has a label for a concept of the model
	other                  // is labelled true with other concepts alone
	unlabelled             // neither
	background
)

// row returns example i as a row, or false if the example does not take part.
func (p *Problem) row(i int) (row, bool) {
	e := &p.Examples[i]
	if e.Embedding == nil || e.Embedding.Scale == 0 {
		return row{}, false // not analysed, or a picture that shows nothing
	}
	r := row{example: i, embedding: e.Embedding, labels: e.Labels, other: e.Other, kind: unlabelled, fold: -1}
	for _, l := range e.Labels {
		if l != Unknown {
			r.kind = labelled
		}
		r.positive = r.positive || l == True
	}
	if r.kind == unlabelled && e.Other {
		r.kind = other
	}
	if p.Closed && r.kind != labelled {
		return row{}, false
	}
	r.hash = hashOf(r.embedding)
	return r, true
}

// arrange sorts the rows of all examples that take part into an order that depends on their content
// alone: by kind, then by a hash of the embedding, which scatters pictures that were uploaded together.
// It appends the background.
func (p *Problem) arrange(rows []row) []row {
	slices.SortFunc(rows, compareRows)
	rows = thin(rows)
	if !p.Closed {
		for i := range p.Background {
			rows = append(rows, row{example: -1 - i, embedding: &p.Background[i], kind: background, fold: -1})
		}
	}
	return rows
}

// hashOf returns the FNV-1a hash of the embedding's bytes.
func hashOf(e *predict.Embedding) uint64 {
	b, _ := e.AppendBinary(make([]byte, 0, predict.EmbeddingBytes)) // never fails
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// compareRows compares rows by everything that a fit reads of them.
func compareRows(a, b row) int {
	if by := cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.hash, b.hash)); by != 0 {
		return by
	}
	if by := cmp.Or(slices.Compare(a.embedding.Q[:], b.embedding.Q[:]), slices.Compare(a.labels, b.labels)); by != 0 {
		return by
	}
	if a.other == b.other {
		return 0
	}
	if b.other {
		return -1
	}
	return 1
}

// thin drops the rows above the maximum number of their kind, if it has one. The rows are in the order of a
// hash, so the rest is a fair sample.
func thin(rows []row) []row {
	limits := map[kind]int{other: maxOther, unlabelled: maxUnlabelled}
	seen := map[kind]int{}
	return slices.DeleteFunc(rows, func(r row) bool {
		n, bounded := limits[r.kind]
		seen[r.kind]++
		return bounded && seen[r.kind] > n
	})
}

// sameEmbedding reports whether two rows show the same picture.
func sameEmbedding(a, b *row) bool {
	return a.hash == b.hash && a.embedding.Q == b.embedding.Q
}

// label returns the label of row r for concept c, including the one that follows from its other labels.
func (p *Problem) label(r *row, c int) int8 {
	switch {
	case r.kind == other:
		return False // in a closed environment there are no such rows
	case r.kind != labelled:
		return Unknown
	case r.labels[c] != Unknown:
		return r.labels[c]
	case r.positive || (!p.Closed && r.other):
		return False
	}
	return Unknown
}

// sigmoidColumn weighs the rows for concept c alone. It returns false if no row is a positive. sum is
// the weight of all rows, by which the column's weights have been divided.
func (p *Problem) sigmoidColumn(rows []row, n, c int) (col column, sum float64, ok bool) {
	var positives, negatives, others, backgrounds int
	for i := range rows {
		switch p.label(&rows[i], c) {
		case True:
			positives++
		case False:
			negatives++
		default:
			p.count(&rows[i], &others, &backgrounds)
		}
	}
	if positives == 0 {
		return column{}, 0, false
	}
	pos := float64(positives)
	of := p.shares(pos, others, backgrounds)
	weights := make([]float64, len(rows))
	col = column{w: make([]float32, n), y: make([]float32, n)}
	for i := range rows {
		switch p.label(&rows[i], c) {
		case True:
			weights[i], col.y[i] = 1, 1
		case False:
			weights[i] = min(pos/float64(negatives), balanceMost)
		default:
			weights[i] = of(&rows[i])
		}
		sum += weights[i]
	}
	for i, w := range weights {
		col.w[i] = float32(w / sum)
	}
	return col, sum, true
}

// count counts a row without a label for a concept.
func (p *Problem) count(r *row, others, backgrounds *int) {
	switch {
	case r.kind == background:
		*backgrounds++
	case !p.Closed:
		*others++
	}
}

// shares returns a function that returns the weight of a row without a label for a concept.
func (p *Problem) shares(positives float64, others, backgrounds int) func(*row) float64 {
	return func(r *row) float64 {
		switch {
		case r.kind == background:
			return float64(backgroundShare*positives) / float64(backgrounds)
		case p.Closed:
			return 0
		}
		return min(float64(unlabelledShare*positives)/float64(others), unlabelledMost)
	}
}

// softmaxColumns weighs the rows for all concepts with a positive together; classes has their indices.
// Unless the environment is closed there is one more column, for pictures that show none of them.
func (p *Problem) softmaxColumns(rows []row, n int, classes []int) (cols []column, sum float64) {
	outputs := len(classes)
	if !p.Closed {
		outputs++
	}
	targets := make([][]float64, len(rows)) // nil: weight by shares
	totals := make([]float64, outputs)
	var others, backgrounds int
	for i := range rows {
		if targets[i] = p.target(&rows[i], classes, outputs); targets[i] == nil {
			p.count(&rows[i], &others, &backgrounds)
			continue
		}
		for o, t := range targets[i] {
			totals[o] += t
		}
	}
	positives := 0.0
	for _, t := range totals[:len(classes)] {
		positives += t
	}
	mean := positives / float64(len(classes))
	of := p.shares(positives, others, backgrounds)
	weights := make([]float64, len(rows))
	cols = make([]column, outputs)
	for o := range cols {
		cols[o].y = make([]float32, n)
	}
	for i, target := range targets {
		if target == nil {
			weights[i] = of(&rows[i])
			if !p.Closed {
				cols[outputs-1].y[i] = 1
			}
		}
		for o, t := range target {
			weights[i] += float64(t * min(mean/totals[o], balanceMost))
			cols[o].y[i] = float32(t)
		}
		sum += weights[i]
	}
	w := make([]float32, n)
	for i, v := range weights {
		w[i] = float32(v / sum)
	}
	for o := range cols {
		cols[o].w = w
	}
	return cols, sum
}

// target returns the distribution over the outputs for a labelled row: even over its true
// concepts; else "none of them"; else, if one of them must be shown, even over those that it does not
// deny. It returns nil for a row without a target.
func (p *Problem) target(r *row, classes []int, outputs int) []float64 {
	t := make([]float64, outputs)
	n := 0.0
	mark := func(want int8) {
		for o, c := range classes {
			if r.labels[c] == want {
				t[o] = 1
				n++
			}
		}
	}
	switch {
	case r.kind == other:
		t[outputs-1], n = 1, 1
	case r.kind != labelled:
		return nil
	default:
		if mark(True); n == 0 && !p.Closed {
			t[outputs-1], n = 1, 1
		} else if n == 0 {
			mark(Unknown)
		}
	}
	if n == 0 {
		return nil
	}
	for o := range t {
		t[o] /= n
	}
	return t
}
