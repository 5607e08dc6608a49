package control

import (
	"encoding/hex"
	"fmt"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/core/training"
)

// Head is the head of a model's version. For an embedding x, output i is weights[i]·x + biases[i]. The value of a concept is the sigmoid of
// its output or, if concepts are mutually exclusive, its share of the softmax over all outputs.
type Head struct {
	Model     string      `json:"model_id"`
	Version   string      `json:"version_id"`
	Embedding string      `json:"embedding"` // identity of the matching embeddings, in hex
	Exclusive bool        `json:"concepts_mutually_exclusive"`
	Concepts  []string    `json:"concepts"` // IDs, in the order of the outputs
	Weights   [][]float32 `json:"weights"`  // 256 weights for each output; with softmax a last output may represent none of the concepts
	Biases    []float32   `json:"biases"`   // one for each output
}

// HeadOf returns the exported form of h. The result shares the weights of h.
func HeadOf(h *training.ModelHead) Head {
	out := Head{
		Model: h.Model, Version: h.Version, Embedding: hex.EncodeToString(h.Base[:]),
		Exclusive: h.Head.Exclusive, Concepts: h.Head.Concepts, Weights: make([][]float32, h.Head.Outputs()), Biases: h.Head.Bias,
	}
	for i := range out.Weights {
		out.Weights[i] = h.Head.Weights[i*predict.Dim : (i+1)*predict.Dim]
	}
	return out
}

// ModelHead converts h back to the argument of [HeadOf]. The error wraps train.ErrHead.
func (h *Head) ModelHead() (*training.ModelHead, error) {
	out := &training.ModelHead{Model: h.Model, Version: h.Version}
	base, err := hex.DecodeString(h.Embedding)
	if err != nil || len(base) != len(out.Base) {
		return nil, fmt.Errorf("embedding %.100q, want %d hex digits: %w", h.Embedding, 2*len(out.Base), train.ErrHead)
	}
	out.Base = [32]byte(base)
	if len(h.Weights) != len(h.Biases) {
		return nil, fmt.Errorf("%d rows of weights and %d biases: %w", len(h.Weights), len(h.Biases), train.ErrHead)
	}
	out.Head = train.Head{Concepts: h.Concepts, Exclusive: h.Exclusive, Bias: h.Biases, Weights: make([]float32, 0, len(h.Weights)*predict.Dim)}
	for i, row := range h.Weights {
		if len(row) != predict.Dim {
			return nil, fmt.Errorf("%d weights of output %d, want %d: %w", len(row), i, predict.Dim, train.ErrHead)
		}
		out.Head.Weights = append(out.Head.Weights, row...)
	}
	return out, out.Head.Check()
}
