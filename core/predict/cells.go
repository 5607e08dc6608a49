package predict

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Cells holds the network's outputs for each cell of the last map, which the network pools (7 × 7 cells in the default network). A cell's
// outputs are the network's outputs for a picture whose cells are all like this one. All layers after the pool are linear. So the mean
// over the cells is the output for the picture, and each cell's output is the contribution of that cell.
type Cells struct {
	Height  int       `wire:"1"`
	Width   int       `wire:"2"`
	Classes int       `wire:"3"`
	Rows    []float32 `wire:"4,func=Floats,type=bytes"` // (Height·Width, Classes + Dim) logits, then the embedding before it is brought to unit length

	// Box is the part of the upright picture that the network saw. The cells divide it.
	Box raster.Crop `wire:"5,func=Box,type=bytes (32)"`
}

// Valid reports whether c has all its numbers, each number is finite, and the box lies in the picture.
func (c *Cells) Valid() bool {
	for _, n := range [...]int{c.Height, c.Width, c.Classes} {
		if n < 1 || n > math.MaxUint16 {
			return false
		}
	}
	if b := c.Box; !(b.Top >= 0 && b.Top < b.Bottom && b.Bottom <= 1 && b.Left >= 0 && b.Left < b.Right && b.Right <= 1) {
		return false
	}
	if int64(len(c.Rows)) != int64(c.Height)*int64(c.Width)*int64(c.Classes+Dim) {
		return false
	}
	for _, v := range c.Rows {
		if !(math.Abs(float64(v)) <= math.MaxFloat32) {
			return false
		}
	}
	return true
}

// logits returns the logits of cell i, counted row by row. The slice is part of c.
func (c *Cells) logits(i int) []float32 { return c.Rows[i*(c.Classes+Dim):][:c.Classes] }

// embedding returns the embedding of cell i. The slice is part of c.
func (c *Cells) embedding(i int) []float32 { return c.Rows[i*(c.Classes+Dim)+c.Classes:][:Dim] }

// whole returns the network's output for the picture, the mean over the cells.
func (c *Cells) whole() (logits []float32, embedding []float64) {
	sums := make([]float64, c.Classes+Dim)
	n := c.Height * c.Width
	for i := range n {
		for j, v := range c.Rows[i*len(sums):][:len(sums)] {
			sums[j] += float64(v)
		}
	}
	logits = make([]float32, c.Classes)
	for j := range sums {
		sums[j] /= float64(n)
		if j < c.Classes {
			logits[j] = float32(sums[j])
		}
	}
	return logits, sums[c.Classes:]
}

// Support returns how much each cell supports a head, given by its weights (Dim) on the unit embedding. The results are from 0 to 1, with 1
// for the cell that supports it most. They are the same bits on every host.
func (c *Cells) Support(weights []float32) []float32 {
	shares := make([]float64, c.Height*c.Width)
	for i := range shares {
		shares[i] = along(weights, c.embedding(i))
	}
	return normalise(shares)
}

func along(weights, embedding []float32) float64 {
	sum := 0.0
	for i, w := range weights[:Dim] {
		sum += float64(float64(w) * float64(embedding[i]))
	}
	return sum
}

// normalise returns the shares, divided by the largest, with 0 for each below 0. All are 0 if none is above 0.
func normalise(shares []float64) []float32 {
	largest := 0.0
	for _, v := range shares {
		largest = max(largest, v)
	}
	out := make([]float32, len(shares))
	for i, v := range shares {
		if v > 0 {
			out[i] = float32(v / largest)
		}
	}
	return out
}

// Activations returns, for each of the concepts at places in m.Concepts, how much of each cell supports it: (Height·Width) numbers of 0
// to 1, with 1 for the cell that supports it most. m must belong to s and have the type concept. It returns ErrNetwork if c comes from
// another network.
//
// A concept's value grows with the logits of its classes, each by its share of the concept's probability,
// and with its head (values.go). Both are means over the cells, so a cell's part is
//
//	class_slope · Σ share·(logit of the cell − mean of all logits of the cell) + head_slope · weights·embedding of the cell / length
//
// The mean is subtracted because a softmax ignores a constant that is added to all logits. The length is that of the whole picture's
// embedding. A negative part, which lowers the concept's value, counts as 0.
func (s *Set) Activations(m *Model, c *Cells, places []int) ([][]float32, error) {
	if c.Classes != s.classes || !c.Valid() {
		return nil, ErrNetwork
	}
	logits, embedding := c.whole()
	e := evidence{ev: s.evaluator, c: c, exps: make([]float64, len(logits)), means: make([]float64, c.Height*c.Width)}
	if _, err := exponentials(e.exps, logits); err != nil {
		return nil, err
	}
	for _, v := range embedding {
		e.length += float64(v * v)
	}
	e.length = math.Sqrt(e.length)
	for i := range e.means {
		for _, l := range c.logits(i) {
			e.means[i] += float64(l)
		}
		e.means[i] /= float64(c.Classes)
	}
	out := make([][]float32, len(places))
	for k, place := range places {
		if m == s.general {
			out[k] = normalise(e.of(place, true))
		} else {
			out[k] = normalise(e.of(s.evaluator.food[place], false))
		}
	}
	return out, nil
}

// evidence holds the inputs of Activations.
type evidence struct {
	ev     *evaluator
	c      *Cells
	exps   []float64 // (classes) exponentials of the picture's logits
	means  []float64 // (cells) mean of all logits of each cell
	length float64   // length of the picture's embedding
}

// of returns each cell's contribution to the value of concept place of the general model, from its classes. If heads is set, it adds the
// contribution of the concept's head.
func (e *evidence) of(place int, heads bool) []float64 {
	r := &e.ev.rules[place]
	total := sum(e.exps, r.classes)
	var weights []float32 // nil if there is no head
	if heads && r.head >= 0 && e.length > 0 {
		weights = e.ev.weights[r.head*Dim:][:Dim]
	}
	out := make([]float64, len(e.means))
	for i := range out {
		v, l := 0.0, e.c.logits(i)
		for _, j := range r.classes {
			share := 1 / float64(len(r.classes)) // if all classes have probability 0
			if total > 0 {
				share = e.exps[j] / total
			}
			v += float64(share * (float64(l[j]) - e.means[i]))
		}
		out[i] = float64(r.classSlope * v)
		if weights != nil {
			out[i] += float64(r.headSlope * (along(weights, e.c.embedding(i)) / e.length))
		}
	}
	return out
}
