package train

import (
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/elementary"
	"github.com/sightline-dev/sightline/core/train/kernel"
)

// MaxConcepts is the maximum number of concepts of a head.
const MaxConcepts = 1 << 14

// Head is the trained layer of a model version. It is immutable and safe for concurrent use.
//
//	z = Scale · (W·Q) + b          W·Q in 32 lanes of float32, the rest in float64
//	value of a concept = sigmoid(z), or its share of the softmax over all outputs
//
// An exclusive head may have one output more than concepts, the last one. It means none of the concepts, so that a picture of something
// else scores low on all.
type Head struct {
	Concepts  []string
	Weights   []float32 // (Outputs, Dim)
	Bias      []float32 // (Outputs)
	Exclusive bool
}

// Outputs is the number of outputs: one a concept, and perhaps one for none of them.
func (h *Head) Outputs() int { return len(h.Bias) }

// Values appends the value of each concept for e to dst, in the order of Concepts, 0 to 1. The
// bits are the same on every host, and the same as those of ConceptValues.
func (h *Head) Values(dst []float32, e *predict.Embedding) []float32 {
	n := len(dst)
	for range h.Concepts {
		dst = append(dst, 0)
	}
	var scratch [64]float64
	z := scratch[:]
	if len(h.Bias) > len(z) {
		z = make([]float64, len(h.Bias))
	}
	h.logits(z, e.Q[:], e.Scale)
	for c, p := range h.probabilities(z[:len(h.Bias)])[:len(h.Concepts)] {
		dst[n+c] = float32(p)
	}
	return dst
}

// logits fills z with the outputs of one embedding.
func (h *Head) logits(z []float64, q []int16, scale float32) {
	var s [1]float32
	for o, bias := range h.Bias {
		kernel.Rows(s[:], h.row(o), q)
		z[o] = output(s[0], scale, bias)
	}
}

func (h *Head) row(o int) []float32 { return h.Weights[o*predict.Dim : (o+1)*predict.Dim] }

func output(s, scale, bias float32) float64 {
	return float64(float64(s)*float64(scale)) + float64(bias)
}

// probabilities turns outputs into probabilities in place.
func (h *Head) probabilities(z []float64) []float64 {
	if !h.Exclusive {
		for o, v := range z {
			z[o] = elementary.Logistic(v)
		}
		return z
	}
	top, sum := z[0], 0.0
	for _, v := range z {
		top = max(top, v)
	}
	for o, v := range z {
		z[o] = elementary.Exp(v - top)
		sum += z[o]
	}
	for o := range z {
		z[o] /= sum
	}
	return z
}

// chunk is the number of embeddings that ConceptValues processes at a time.
const chunk = 256

// ConceptValues fills dst with the values of one concept for len(dst) embeddings. q has the embeddings'
// integers, (len(dst), Dim), and scale their scales. The values are equal to those of [Head.Values]. It is for a search that
// needs one concept of very many pictures: it evaluates one weight row per embedding, or all rows if
// the head is exclusive.
func (h *Head) ConceptValues(dst []float32, concept int, q []int16, scale []float32) {
	if !h.Exclusive {
		for len(dst) > 0 {
			n := min(chunk, len(dst))
			kernel.Rows(dst[:n], h.row(concept), q)
			for i, s := range dst[:n] {
				dst[i] = float32(elementary.Logistic(output(s, scale[i], h.Bias[concept])))
			}
			dst, q, scale = dst[n:], q[n*predict.Dim:], scale[n:]
		}
		return
	}
	z := make([]float64, len(h.Bias))
	for i := range dst {
		h.logits(z, q[i*predict.Dim:(i+1)*predict.Dim], scale[i])
		dst[i] = float32(h.probabilities(z)[concept])
	}
}
