package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// heads are the linear heads on the unit embedding.
type heads struct {
	count, dim int
	weights    []float32 // (count, dim)
	intercepts []float32 // (count)
}

// headsOf takes the heads out of the graph: the Gemm behind the node that brings the embedding to unit length.
func headsOf(g *onnx.Graph) (heads, error) {
	var unit string
	for _, n := range g.Nodes {
		if n.Op == "LpNormalization" && n.In[0] == "embedding" {
			unit = n.Out[0]
		}
	}
	for _, n := range g.Nodes {
		if n.Op != "Gemm" || unit == "" || n.In[0] != unit {
			continue
		}
		w, rows, cols, err := gemmWeights(g, n)
		if err != nil {
			return heads{}, err
		}
		h := heads{count: rows, dim: cols, weights: w, intercepts: make([]float32, rows)}
		if b, ok := g.Init[n.Input(2)]; ok {
			h.intercepts = b.Float32s()
		}
		if len(h.intercepts) != rows {
			return heads{}, fmt.Errorf("%d intercepts for %d heads", len(h.intercepts), rows)
		}
		return h, nil
	}
	return heads{}, fmt.Errorf("the graph has no heads on the unit embedding")
}

// marshal gives heads.f32.
func (h heads) marshal() []byte {
	var b []byte
	for _, v := range append(append([]float32{}, h.weights...), h.intercepts...) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// apply returns the value of every head on a unit embedding.
func (h heads) apply(unit []float64) []float64 {
	out := make([]float64, h.count)
	for j := range out {
		sum := float64(h.intercepts[j])
		for i, w := range h.weights[j*h.dim : (j+1)*h.dim] {
			sum += float64(float64(w) * unit[i])
		}
		out[j] = sum
	}
	return out
}

// gemmWeights returns the weights of a Gemm as (out, in), and both numbers.
func gemmWeights(g *onnx.Graph, n *onnx.Node) (w []float32, out, in int, err error) {
	t, ok := g.Init[n.In[1]]
	if !ok || t.Type != onnx.Float32 || len(t.Shape) != 2 {
		return nil, 0, 0, fmt.Errorf("%s %q: the weights are not a float32 matrix", n.Op, n.Name)
	}
	if n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1 {
		return nil, 0, 0, fmt.Errorf("%s %q: only plain products are quantised", n.Op, n.Name)
	}
	w = t.Float32s()
	if n.Int("transB", 0) != 0 {
		return w, t.Shape[0], t.Shape[1], nil
	}
	in, out = t.Shape[0], t.Shape[1]
	turned := make([]float32, len(w))
	for i := range in {
		for j := range out {
			turned[j*in+i] = w[i*out+j]
		}
	}
	return turned, out, in, nil
}
