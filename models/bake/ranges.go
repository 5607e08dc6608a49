package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/models/compile"
	"github.com/sightline-dev/sightline/models/onnx"
)

// span is the smallest and largest value that an activation took.
type span struct{ lo, hi float32 }

// activations returns the names of the values that are quantised by their range: the results of a Conv, its Clip or an Add.
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
			if !clipped[n.Out] {
				names = append(names, n.Out)
			}
		}
	}
	return names
}

// measuredNetwork is a float32 network with the range of each activation, by the number of its value.
type measuredNetwork struct {
	network *nn.Network
	ranges  map[int]span
}

// measureRanges runs the float32 network on the pictures, with the activations as outputs before the named ones. It uses the kernels'
// generic path, whose sums are the same on every machine.
func measureRanges(g *onnx.Graph, pictures []string, outputs ...string) (measuredNetwork, error) {
	defer kernel.Levels.Force(cpu.Generic)()
	names := activations(g)
	m := measuredNetwork{ranges: map[int]span{}}
	var err error
	if m.network, err = compile.Network(g, append(names, outputs...)...); err != nil {
		return m, err
	}
	e, err := newEngine(m.network)
	if err != nil {
		return m, err
	}
	open := m.network.Outputs()[:len(names)]
	for _, path := range pictures {
		out, err := e.run(path)
		if err != nil {
			return m, err
		}
		for i, v := range open {
			r := m.ranges[v.Of] // holds 0, as every quantised range must
			for _, x := range out[i].F32 {
				r.lo, r.hi = min(r.lo, x), max(r.hi, x)
			}
			m.ranges[v.Of] = r
		}
	}
	for _, v := range open {
		if r := m.ranges[v.Of]; !(r.hi > r.lo) || r.hi-r.lo > 1e6 {
			return m, fmt.Errorf("%q ranges from %v to %v", v.Name, r.lo, r.hi)
		}
	}
	return m, nil
}
