package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/models/onnx"
)

// heads are the linear heads on the unit embedding.
type heads struct {
	count, dim int
	weights    []float32 // (count, dim)
	intercepts []float32 // (count)
}

// headsOf returns the heads in the graph: the Gemm after the node that normalizes the embedding to unit length.
func headsOf(g *onnx.Graph) (heads, error) {
	var unit string
	for _, n := range g.Nodes {
		if n.Op == "LpNormalization" && n.In[0] == "embedding" {
			unit = n.Out
		}
	}
	for _, n := range g.Nodes {
		if n.Op != "Gemm" || unit == "" || n.In[0] != unit {
			continue
		}
		w, bias, err := g.Product(n)
		if err != nil {
			return heads{}, err
		}
		return heads{count: w.Shape[0], dim: w.Shape[1], weights: w.Floats, intercepts: bias}, nil
	}
	return heads{}, fmt.Errorf("the graph has no heads on the unit embedding")
}

// marshal returns the content of heads.f32.
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
