package nn_test

import (
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// toQDQ returns a convolutional float32 network in QDQ form: int8 weights per output channel, bytes
// between the operators, exact uint16 sums after the global pool, float32 results. Activation
// ranges are guesses (0..6 after a Clip, -8..8 otherwise), so the answers are poor; the
// operators, shapes and amounts of work are those of a network quantised with care.
func toQDQ(g *onnx.Graph) *onnx.Graph {
	b := &builder{g: &onnx.Graph{Name: g.Name, Opset: 21, Init: map[string]*onnx.Tensor{}}, next: 1000}
	z := &rewriter{builder: b, old: g, stored: map[string]stored{}, alias: map[string]string{}}
	in := g.Inputs[0]
	shape := slices.Clone(in.Shape)
	shape[0] = 1
	b.g.Inputs = []onnx.Value{{Name: in.Name, Type: onnx.Uint8, Shape: shape}}
	z.stored[in.Name] = stored{name: in.Name, scale: 1 / 127.5, zero: 128, typ: onnx.Uint8}
	for _, n := range g.Nodes {
		z.node(n)
	}
	for _, o := range g.Outputs {
		if name, ok := z.alias[o.Name]; ok && o.Name != "heads" {
			b.g.Outputs = append(b.g.Outputs, onnx.Value{Name: name, Type: onnx.Float32, Shape: o.Shape})
		}
	}
	return b.g
}

type rewriter struct {
	*builder
	old    *onnx.Graph
	stored map[string]stored // by the old name
	alias  map[string]string // old name to the new name of the same float
}

func (z *rewriter) node(n *onnx.Node) {
	switch n.Op {
	case "Conv", "Gemm":
		x, ok := z.stored[n.In[0]]
		if !ok {
			return
		}
		names := z.constants(n, x)
		real := z.add(n.Op, n.Attr, append([]string{z.dequantise(x)}, names...)...)
		z.alias[n.Out[0]] = real
		if n.Op == "Conv" && !z.clipped(n.Out[0]) {
			z.quantise(n.Out[0], real, 16.0/255, 128, onnx.Uint8)
		}
	case "Clip":
		real := z.add("Clip", nil, z.alias[n.In[0]], z.floats([]float64{0}), z.floats([]float64{6}))
		z.quantise(n.Out[0], real, 6.0/255, 0, onnx.Uint8)
	case "Add":
		a, b := z.stored[n.In[0]], z.stored[n.In[1]]
		z.quantise(n.Out[0], z.add("Add", nil, z.dequantise(a), z.dequantise(b)), 16.0/255, 128, onnx.Uint8)
	case "GlobalAveragePool":
		x := z.stored[n.In[0]]
		z.quantise(n.Out[0], z.add(n.Op, nil, z.dequantise(x)), x.scale/49, 0, onnx.Uint16)
	case "Flatten":
		x := z.stored[n.In[0]]
		x.name = z.add("Flatten", n.Attr, x.name)
		z.stored[n.Out[0]] = x
	}
}

func (z *rewriter) clipped(name string) bool {
	return slices.ContainsFunc(z.old.Nodes, func(n *onnx.Node) bool { return n.Op == "Clip" && n.In[0] == name })
}

func (z *rewriter) dequantise(x stored) string {
	f := &intNet{builder: z.builder}
	return f.dequantised(x)
}

func (z *rewriter) quantise(old, real string, scale float32, zero int, typ onnx.DType) {
	f := &intNet{builder: z.builder}
	f.quantised(real, stored{scale: scale, zero: zero, typ: typ})
	z.stored[old] = f.last()
}

// constants adds n's weights as int8 per output channel and its bias as int32.
func (z *rewriter) constants(n *onnx.Node, x stored) []string {
	w, bias := z.old.Init[n.In[1]], z.old.Init[n.In[2]].Float32s()
	outs := len(bias)
	per := w.Len() / outs
	f := w.Float32s()
	axis := 0
	at := func(j, k int) int { return j*per + k }
	if n.Op == "Gemm" && n.Int("transB", 0) == 0 {
		axis = 1
		at = func(j, k int) int { return k*outs + j }
	}
	scales, inScales := make([]float64, outs), make([]float64, outs)
	bytes, words := make([]int8, len(f)), make([]int32, outs)
	for j := range outs {
		top := 1e-2
		for k := range per {
			top = max(top, math.Abs(float64(f[at(j, k)])))
		}
		scales[j] = float64(float32(top / 127))
		inScales[j] = float64(float32(scales[j] * float64(x.scale)))
		for k := range per {
			bytes[at(j, k)] = int8(math.RoundToEven(float64(f[at(j, k)]) / scales[j]))
		}
		words[j] = int32(float64(bias[j]) / inScales[j])
	}
	wt, bt := onnx.FromInt8s(z.name("w"), w.Shape, bytes), onnx.FromInt32s(z.name("b"), []int{outs}, words)
	z.g.Init[wt.Name], z.g.Init[bt.Name] = wt, bt
	return []string{
		z.add("DequantizeLinear", map[string]onnx.Attr{"axis": intAttr(axis)}, wt.Name, z.floats(scales, outs)),
		z.add("DequantizeLinear", map[string]onnx.Attr{"axis": intAttr(0)}, bt.Name, z.floats(inScales, outs)),
	}
}
