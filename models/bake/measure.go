package main

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/models/compile"
)

// figures are the measurements for the model card: of the network in float32 and as baked.
type figures struct {
	Calibrated    int // number of pictures from which the ranges were measured
	Pictures      int // number of labelled pictures with a class
	MAPConcepts   int // number of concepts with at least three positives
	Photos        int
	Float, Baked  quality
	Cosine, Worst float64 // of the unit embeddings, baked against float32: mean and minimum over the pictures
	Expected      agreement
}

// quality has figures that are measured against labels.
type quality struct {
	Top1, Top5, MAP float64
	FirstFive       float64 // share of the labelled pictures with a true concept among the first five
	Hits            int     // number of photos with a visible label among the first five concepts
}

// agreement compares our float32 path with the reference implementation.
type agreement struct {
	Top     int     // number of photos with the same first concept
	Ten     float64 // mean share of the reference's first ten among ours
	MaxUnit float64 // largest difference of the embeddings' elements that the reference lists
}

// answer is a network's output for one picture.
type answer struct {
	logits []float64
	unit   []float64
	values []float64 // value of each concept
}

// labelledPicture is a picture with its class and the names of its concepts.
type labelledPicture struct {
	path  string
	class int
	names []string
}

func measure(r *release, baked *nn.Network, eval, photos string) (figures, error) {
	float, err := compile.Network(r.graph, embedding, logits)
	if err != nil {
		return figures{}, err
	}
	set, err := readLabelled(eval, "pictures")
	if err != nil {
		return figures{}, err
	}
	shots, err := readLabelled(photos, "")
	if err != nil {
		return figures{}, err
	}
	f := figures{Pictures: len(set), Photos: len(shots)}
	var sides [2]struct{ set, shots []answer }
	for i, n := range []*nn.Network{float, baked} {
		e, err := newEngine(n)
		if err != nil {
			return f, err
		}
		if sides[i].set, err = r.answers(e, set); err != nil {
			return f, err
		}
		if sides[i].shots, err = r.answers(e, shots); err != nil {
			return f, err
		}
		q := r.quality(set, sides[i].set)
		q.Hits = r.hits(shots, sides[i].shots)
		if i == 0 {
			f.Float = q
		} else {
			f.Baked = q
		}
	}
	f.MAPConcepts = len(r.evaluatedConcepts(set))
	f.Cosine, f.Worst = cosines(sides[0].set, sides[1].set)
	f.Expected = r.agreement(shots, sides[0].shots)
	return f, nil
}

// readLabelled reads a labels.tsv with or without classes: file, [class,] names, …
func readLabelled(dir, pictures string) ([]labelledPicture, error) {
	data, err := os.ReadFile(filepath.Join(dir, "labels.tsv"))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	classed := strings.HasPrefix(lines[0], "file\tclass\t")
	var set []labelledPicture
	for _, line := range lines[1:] {
		col := strings.Split(line, "\t")
		l := labelledPicture{path: filepath.Join(dir, pictures, col[0]), class: -1}
		if classed {
			if l.class, err = strconv.Atoi(col[1]); err != nil {
				return nil, err
			}
			col = col[1:]
		}
		l.names = strings.Split(col[1], "|")
		set = append(set, l)
	}
	return set, nil
}

func (r *release) answers(e *engine, set []labelledPicture) ([]answer, error) {
	var all []answer
	for _, l := range set {
		out, err := e.run(l.path)
		if err != nil {
			return nil, err
		}
		a := answer{logits: wide(out[e.outputs[logits]]), unit: wide(out[e.outputs[embedding]])}
		norm := 0.0
		for _, x := range a.unit {
			norm += x * x
		}
		for i := range a.unit {
			a.unit[i] /= math.Sqrt(norm)
		}
		a.values = r.values(a)
		all = append(all, a)
	}
	return all, nil
}

func wide(t nn.Tensor) []float64 {
	v := make([]float64, len(t.F32))
	for i, x := range t.F32 {
		v[i] = float64(x)
	}
	return v
}

// values returns the calibrated probability of every concept, by the formula of the release's README.
func (r *release) values(a answer) []float64 {
	p := softmax(a.logits)
	h := r.heads.apply(a.unit)
	values := make([]float64, len(r.concepts))
	for i, c := range r.concepts {
		s := 0.0
		for _, k := range c.classes {
			s += p[k]
		}
		s = min(max(s, 1e-6), 1-1e-6)
		z := c.classSlope*math.Log(s/(1-s)) + c.intercept
		if c.head >= 0 {
			z += c.headSlope * h[c.head]
		}
		values[i] = 1 / (1 + math.Exp(-z))
	}
	return values
}

func softmax(logits []float64) []float64 {
	top := slices.Max(logits)
	p := make([]float64, len(logits))
	sum := 0.0
	for i, x := range logits {
		p[i] = math.Exp(x - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// order returns the indices of values, the largest first.
func order(values []float64) []int {
	at := make([]int, len(values))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return at
}

// first returns the names of the n concepts with the highest values that are not hidden.
func (r *release) first(values []float64, n int) []string {
	var names []string
	for _, i := range order(values) {
		if len(names) == n {
			break
		}
		if !r.concepts[i].isHidden() {
			names = append(names, r.concepts[i].name)
		}
	}
	return names
}

func (r *release) quality(set []labelledPicture, got []answer) quality {
	var q quality
	for i, l := range set {
		best := order(got[i].logits)
		if best[0] == l.class {
			q.Top1++
		}
		if slices.Contains(best[:5], l.class) {
			q.Top5++
		}
	}
	n := float64(len(set))
	q.Top1, q.Top5 = q.Top1/n, q.Top5/n
	q.FirstFive = float64(r.hits(set, got)) / n
	judged := r.evaluatedConcepts(set)
	for _, c := range judged {
		values, truth := make([]float64, len(set)), make([]bool, len(set))
		for i, l := range set {
			values[i] = got[i].values[c]
			truth[i] = slices.Contains(l.names, r.concepts[c].name)
		}
		q.MAP += averagePrecision(values, truth) / float64(len(judged))
	}
	return q
}

// evaluatedConcepts returns the concepts with at least three positives.
func (r *release) evaluatedConcepts(set []labelledPicture) []int {
	var at []int
	for c := range r.concepts {
		n := 0
		for _, l := range set {
			if slices.Contains(l.names, r.concepts[c].name) {
				n++
			}
		}
		if n >= 3 {
			at = append(at, c)
		}
	}
	return at
}

// averagePrecision returns the mean, over the true ones, of the share of true ones among those ranked no lower.
func averagePrecision(values []float64, truth []bool) float64 {
	found, sum := 0, 0.0
	for rank, i := range order(values) {
		if truth[i] {
			found++
			sum += float64(found) / float64(rank+1)
		}
	}
	return sum / float64(found)
}

// hits returns the number of pictures with a true name among the first five concepts.
func (r *release) hits(set []labelledPicture, got []answer) int {
	n := 0
	for i, l := range set {
		if slices.ContainsFunc(r.first(got[i].values, 5), func(name string) bool { return slices.Contains(l.names, name) }) {
			n++
		}
	}
	return n
}

func cosines(a, b []answer) (mean, worst float64) {
	worst = 1
	for i := range a {
		dot := 0.0
		for k, x := range a[i].unit {
			dot += x * b[i].unit[k]
		}
		mean += dot / float64(len(a))
		worst = min(worst, dot)
	}
	return mean, worst
}

func (r *release) agreement(shots []labelledPicture, got []answer) agreement {
	var a agreement
	for i, l := range shots {
		at := slices.IndexFunc(r.expected, func(e expectation) bool { return e.photo == filepath.Base(l.path) })
		if at < 0 {
			continue
		}
		e := r.expected[at]
		ours := r.first(got[i].values, len(e.names))
		if ours[0] == e.names[0] {
			a.Top++
		}
		same := 0
		for _, name := range ours {
			if slices.Contains(e.names, name) {
				same++
			}
		}
		a.Ten += float64(same) / float64(len(e.names)) / float64(len(r.expected))
		for k, x := range e.unit {
			a.MaxUnit = max(a.MaxUnit, math.Abs(x-got[i].unit[k]))
		}
	}
	return a
}
