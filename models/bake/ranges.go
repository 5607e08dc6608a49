package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// span is the smallest and largest value that an activation took.
type span struct{ lo, hi float32 }

// activations names the values that are quantised by their range: what a Conv, its Clip or an Add gives.
func activations(g *onnx.Graph) []string {
	clipped := map[string]bool{}
	for _, n := range g.Nodes {
		if n.Op == "Clip" {
			clipped[n.In[0]] = true
		}
	}
	var names []string
	for _, n := range g.Nodes {
		switch n.Op {
		case "Conv", "Add", "Clip":
			if !clipped[n.Out[0]] {
				names = append(names, n.Out[0])
			}
		}
	}
	return names
}

// measureRanges runs the float32 network on the pictures with the activations as outputs. It uses the
// kernels' generic path, whose sums are the same on every machine.
func measureRanges(g *onnx.Graph, pictures []string) (map[string]span, error) {
	defer kernel.Levels.Force(cpu.Generic)()
	open := *g
	open.Outputs = nil
	for _, name := range activations(g) {
		open.Outputs = append(open.Outputs, onnx.Value{Name: name, Type: onnx.Float32})
	}
	e, err := newEngine(&open)
	if err != nil {
		return nil, err
	}
	ranges := map[string]span{}
	for _, path := range pictures {
		out, err := e.run(path)
		if err != nil {
			return nil, err
		}
		for i, v := range open.Outputs {
			r := ranges[v.Name] // holds 0, as every quantised range must
			for _, x := range out[i].F32 {
				r.lo, r.hi = min(r.lo, x), max(r.hi, x)
			}
			ranges[v.Name] = r
		}
	}
	for name, r := range ranges {
		if !(r.hi > r.lo) || r.hi-r.lo > 1e6 {
			return nil, fmt.Errorf("%q ranges from %v to %v", name, r.lo, r.hi)
		}
	}
	return ranges, nil
}
