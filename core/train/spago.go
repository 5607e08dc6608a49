package train

import (
	"encoding/gob"
	"fmt"

	"github.com/nlpodyssey/spago/mat"
	"github.com/nlpodyssey/spago/nn"
	"github.com/nlpodyssey/spago/nn/activation"
	"github.com/nlpodyssey/spago/nn/linear"

	"github.com/sightline-dev/sightline/core/predict"
)

// Model is a head as spago has it: a linear layer, W (outputs, Dim) and B (outputs), and the sigmoid or the
// softmax behind it. spago evaluates, trains and serialises it as any of its models; its
// arithmetic is that of the machine, so a served value comes from [Head] alone.
//
// nn.Load trusts the bytes it is given: use it on files of one's own, and
// [Head.UnmarshalBinary] on all others.
type Model struct {
	nn.Module
	Linear     *linear.Model
	Activation *activation.Model
}

func init() {
	gob.Register(&Model{})
}

// Forward returns the probabilities of each unit embedding's outputs.
func (m *Model) Forward(xs ...mat.Tensor) []mat.Tensor {
	return m.Activation.Forward(m.Linear.Forward(xs...)...)
}

// Spago returns the head as a spago model with parameters of its own.
func (h *Head) Spago() *Model {
	n := h.Outputs()
	l := linear.New[float32](predict.Dim, n)
	l.W.ReplaceValue(mat.NewDense[float32](mat.WithShape(n, predict.Dim), mat.WithBacking(h.Weights), mat.WithGrad(true)))
	l.B.ReplaceValue(mat.NewDense[float32](mat.WithShape(n), mat.WithBacking(h.Bias), mat.WithGrad(true)))
	a := activation.Sigmoid
	if h.Exclusive {
		a = activation.Softmax
	}
	return &Model{Linear: l, Activation: activation.New(a)}
}

// FromSpago returns the head of a spago model for concepts, one an output; a softmax may have one
// output more, for none of them. It returns ErrHead for a model of another shape or activation, or
// with parameters that are no numbers. float64 parameters are rounded.
func FromSpago(m *Model, concepts []string) (*Head, error) {
	h := &Head{Concepts: append([]string(nil), concepts...)}
	switch m.Activation.Activation {
	case activation.Sigmoid:
	case activation.Softmax:
		h.Exclusive = true
	default:
		return nil, fmt.Errorf("activation %v: %w", m.Activation.Activation, ErrHead)
	}
	w, b := m.Linear.W.Value(), m.Linear.B.Value()
	if s := w.Shape(); len(s) != 2 || s[1] != predict.Dim || s[0] != b.Size() {
		return nil, fmt.Errorf("weights %v and %d biases: %w", s, b.Size(), ErrHead)
	}
	h.Weights = append(h.Weights, w.Data().F32()...)
	h.Bias = append(h.Bias, b.Data().F32()...)
	if err := h.check(); err != nil {
		return nil, err
	}
	return h, nil
}
