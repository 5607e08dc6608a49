// Package spago writes a head as a model of spago (github.com/nlpodyssey/spago v1.1), which a Go program can load and train further. It
// also reads such a model.
//
//	train.Head ──Write──▶ file ──nn.Load──▶ Model ──spago's optimisers──▶ nn.Dump ──▶ file ──Read──▶ train.Head
//
// A program that does not import this package declares a struct with the fields of [Model]: gob matches fields by name.
//
// Only this package imports spago. Heads are trained, stored and evaluated without it, and the WebAssembly module does not contain it.
package spago

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/nlpodyssey/spago/mat"
	"github.com/nlpodyssey/spago/mat/fbs/dense"
	"github.com/nlpodyssey/spago/nn"
	"github.com/nlpodyssey/spago/nn/activation"
	"github.com/nlpodyssey/spago/nn/linear"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// Model is a head as a spago model: a linear layer with W (outputs, 256) and B (outputs), followed by the sigmoid or the softmax. spago's
// arithmetic differs in the last bits between machines, so served values come only from [train.Head].
type Model struct {
	nn.Module
	Linear     *linear.Model
	Activation *activation.Model
	Concepts   []string // IDs, in the order of the outputs. A softmax may have one more output, for pictures without any
	Embedding  string   // identity of the embeddings that the model needs, in hex
}

// Forward returns the values of the outputs for each unit embedding.
func (m *Model) Forward(xs ...mat.Tensor) []mat.Tensor {
	return m.Activation.Forward(m.Linear.Forward(xs...)...)
}

// Write writes a head. embedding is the identity of the embeddings that the head needs.
func Write(w io.Writer, h *train.Head, embedding string) error {
	n := h.Outputs()
	l := linear.New[float32](predict.Dim, n)
	l.W.ReplaceValue(mat.NewDense[float32](mat.WithShape(n, predict.Dim), mat.WithBacking(h.Weights), mat.WithGrad(true)))
	l.B.ReplaceValue(mat.NewDense[float32](mat.WithShape(n), mat.WithBacking(h.Bias), mat.WithGrad(true)))
	a := activation.Sigmoid
	if h.Exclusive {
		a = activation.Softmax
	}
	return nn.Dump(&Model{Linear: l, Activation: activation.New(a), Concepts: h.Concepts, Embedding: embedding}, w)
}

// storedModel is a [Model] as Read decodes it. It skips the state of an optimiser.
type storedModel struct {
	Linear     struct{ W, B struct{ Matrix matrix } }
	Activation *struct{ Activation activation.Activation }
	Concepts   []string
	Embedding  string
}

// Read reads a model from a file. It returns its head and the identity of the embeddings that the head needs. It rounds float64 parameters.
// The error wraps [train.ErrHead]. The file need not be trusted: memory is proportional to its size.
func Read(file []byte) (h *train.Head, embedding string, err error) {
	defer func() { // gob and flatbuffers panic on some malformed files
		if r := recover(); r != nil {
			h, embedding, err = nil, "", fmt.Errorf("not a spago model: %v: %w", r, train.ErrHead)
		}
	}()
	for own, theirs := range names {
		file = bytes.ReplaceAll(file, []byte(theirs), []byte(own))
	}
	var m storedModel
	if err := gob.NewDecoder(bytes.NewReader(file)).Decode(&m); err != nil {
		return nil, "", fmt.Errorf("not a spago model: %w: %w", err, train.ErrHead)
	}
	h, err = m.head()
	return h, m.Embedding, err
}

func (m *storedModel) head() (*train.Head, error) {
	switch {
	case m.Activation == nil || m.Linear.W.Matrix == nil || m.Linear.B.Matrix == nil:
		return nil, fmt.Errorf("no Linear.W, Linear.B or Activation: %w", train.ErrHead)
	case len(m.Concepts) == 0 || m.Embedding == "":
		return nil, fmt.Errorf("no Concepts or Embedding; keep these fields of the exported model: %w", train.ErrHead)
	}
	w, b := m.Linear.W.Matrix.values(), m.Linear.B.Matrix.values()
	if len(w.shape) != 2 || w.shape[1] != predict.Dim {
		return nil, fmt.Errorf("shape %v of Linear.W, want %d columns: %w", w.shape, predict.Dim, train.ErrHead)
	}
	if w.shape[0] != len(b.data) {
		return nil, fmt.Errorf("%d rows of Linear.W and %d values of Linear.B: %w", w.shape[0], len(b.data), train.ErrHead)
	}
	h := &train.Head{Concepts: m.Concepts, Weights: w.data, Bias: b.data}
	switch m.Activation.Activation {
	case activation.Sigmoid:
	case activation.Softmax:
		h.Exclusive = true
	default:
		return nil, fmt.Errorf("activation %v, want Sigmoid or Softmax: %w", m.Activation.Activation, train.ErrHead)
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	return h, nil
}

// names maps the gob names of the types that read matrices here to the names of spago's types in a file. Both have the same length, so
// that replacing them keeps a file valid. spago's own types allocate as many dimensions as a file claims, up to 32 GB.
var names = map[string]string{"*our.Dense[float32]": "*mat.Dense[float32]", "*our.Dense[float64]": "*mat.Dense[float64]"}

func init() {
	gob.RegisterName("*our.Dense[float32]", &dense32{})
	gob.RegisterName("*our.Dense[float64]", &dense64{})
}

// matrix is a matrix of a file.
type matrix interface{ values() *tensor }

// tensor is a matrix or a vector.
type tensor struct {
	shape []int
	data  []float32
}

func (t *tensor) values() *tensor { return t }

type (
	dense32 struct{ tensor }
	dense64 struct{ tensor }
)

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It panics on malformed bytes, which [Read] turns into an error.
func (d *dense32) UnmarshalBinary(b []byte) error {
	raw := dense.GetRootAsDenseFloat32(b, 0)
	if raw.Dtype() != dense.DTypeFloat32 {
		return fmt.Errorf("matrix of type %d: %w", raw.Dtype(), train.ErrHead)
	}
	return d.read(raw.ShapeLength(), raw.Shape, raw.DataLength(), raw.Data, len(b)/4)
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It panics on malformed bytes, which [Read] turns into an error.
func (d *dense64) UnmarshalBinary(b []byte) error {
	raw := dense.GetRootAsDenseFloat64(b, 0)
	if raw.Dtype() != dense.DTypeFloat64 {
		return fmt.Errorf("matrix of type %d: %w", raw.Dtype(), train.ErrHead)
	}
	return d.read(raw.ShapeLength(), raw.Shape, raw.DataLength(), func(i int) float32 { return float32(raw.Data(i)) }, len(b)/8)
}

// read reads a matrix of at most limit values.
func (t *tensor) read(dims int, shape func(int) int32, n int, value func(int) float32, limit int) error {
	if dims < 1 || dims > 2 || n > limit {
		return fmt.Errorf("matrix of %d dimensions and %d values: %w", dims, n, train.ErrHead)
	}
	t.shape, t.data = make([]int, dims), make([]float32, n)
	size := 1
	for i := range t.shape {
		t.shape[i] = int(shape(i))
		if t.shape[i] < 0 || t.shape[i] > n {
			return fmt.Errorf("matrix with a dimension of %d and %d values: %w", t.shape[i], n, train.ErrHead)
		}
		size *= t.shape[i]
	}
	if size != n {
		return fmt.Errorf("matrix of shape %v with %d values: %w", t.shape, n, train.ErrHead)
	}
	for i := range t.data {
		t.data[i] = value(i)
	}
	return nil
}
