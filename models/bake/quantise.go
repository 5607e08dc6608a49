package main

import (
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// levels says how a quantised activation is stored: value = (q - zero) · scale.
type levels struct {
	name  string // of the stored tensor
	scale float32
	zero  int32
	top   int64 // largest q that occurs
	typ   onnx.DType
}

// quantiser rewrites a float32 network into QDQ form, node by node.
type quantiser struct {
	from    *onnx.Graph
	to      *onnx.Graph
	ranges  map[string]span
	shapes  map[string]onnx.Value
	clip    map[string]*onnx.Node // by the value that it clips
	stored  map[string]levels     // by the float32 network's name of the value
	floated map[string]string     // stored name → its DequantizeLinear
}

// quantise returns g in the form that models/README.md gives, without what lies behind "unit".
func quantise(g *onnx.Graph, ranges map[string]span) (*onnx.Graph, error) {
	g = &onnx.Graph{Name: g.Name, Opset: g.Opset, Inputs: g.Inputs, Outputs: g.Outputs, Nodes: g.Nodes, Init: g.Init}
	shapes, err := g.Infer(map[string][]int{inputName: {1, 3, inputSize, inputSize}})
	if err != nil {
		return nil, err
	}
	z := &quantiser{
		from: g, ranges: ranges, shapes: shapes,
		to:   &onnx.Graph{Name: g.Name, Opset: 21, Init: map[string]*onnx.Tensor{}},
		clip: map[string]*onnx.Node{}, stored: map[string]levels{}, floated: map[string]string{},
	}
	for _, n := range g.Nodes {
		if n.Op == "Clip" {
			z.clip[n.In[0]] = n
		}
	}
	z.input()
	for _, n := range g.Nodes {
		if err := z.node(n); err != nil {
			return nil, fmt.Errorf("%s %q: %w", n.Op, n.Name, err)
		}
	}
	if len(z.to.Outputs) != 2 {
		return nil, fmt.Errorf("the network has outputs %v, want embedding and logits", g.Outputs)
	}
	// What is written must read, and its shapes must fit.
	again, err := onnx.Read(z.to.Marshal(), onnx.Limits{})
	if err != nil {
		return nil, err
	}
	_, err = again.Infer(nil)
	return again, err
}

// input stores bytes as they are: p stands for (p - 128) / 127.5. The half step to the float32 network's
// p/127.5 - 1 goes into the bias of the convolution that reads it.
func (z *quantiser) input() {
	z.to.Inputs = []onnx.Value{{Name: inputName, Type: onnx.Uint8, Shape: []int{1, 3, inputSize, inputSize}}}
	z.stored[inputName] = levels{name: inputName, scale: 1 / 127.5, zero: 128, top: 255, typ: onnx.Uint8}
}

// halfStep is what every input is less than the float32 network's: (p - 127.5)/127.5 - (p - 128)/127.5.
const halfStep = 0.5 / 127.5

func (z *quantiser) node(n *onnx.Node) error {
	switch n.Op {
	case "Conv":
		return z.conv(n)
	case "Clip", "LpNormalization":
		return nil // the range of the stored result says the same; "unit" is the engine's work
	case "Add":
		return z.add(n)
	case "GlobalAveragePool":
		return z.pool(n)
	case "Flatten":
		return z.flatten(n)
	case "Gemm":
		if _, ok := z.stored[n.In[0]]; !ok {
			return nil // the heads, on what is not quantised
		}
		return z.gemm(n)
	}
	return fmt.Errorf("%w: quantisation does not support it", onnx.ErrOperator)
}

// result chooses how the value that n gives is stored: after its Clip, if it has one.
func (z *quantiser) result(n *onnx.Node) (name string, l levels, err error) {
	name = n.Out[0]
	clip := z.clip[name]
	if clip != nil {
		name = clip.Out[0]
	}
	r, ok := z.ranges[name]
	if !ok {
		return "", levels{}, fmt.Errorf("no range for %q", name)
	}
	if clip != nil {
		lo, hi := z.bound(clip, 1), z.bound(clip, 2)
		if lo != 0 || r.lo < 0 || r.hi > hi {
			return "", levels{}, fmt.Errorf("%q is clipped to %v…%v but ranges over %v", name, lo, hi, r)
		}
	}
	l = levels{name: name + "_q", top: 255, typ: onnx.Uint8}
	l.scale = float32((float64(r.hi) - float64(r.lo)) / 255)
	l.zero = int32(math.RoundToEven(min(255, max(0, -float64(r.lo)/float64(l.scale)))))
	z.stored[name] = l
	return name, l, nil
}

func (z *quantiser) bound(clip *onnx.Node, i int) float32 {
	t, ok := z.from.Init[clip.Input(i)]
	if !ok || t.Len() != 1 || t.Type != onnx.Float32 {
		return float32(math.NaN())
	}
	return t.Float32s()[0]
}

func (z *quantiser) conv(n *onnx.Node) error {
	in, ok := z.stored[n.In[0]]
	if !ok {
		return fmt.Errorf("%q is not quantised", n.In[0])
	}
	t := z.from.Init[n.In[1]]
	if t == nil || t.Type != onnx.Float32 {
		return fmt.Errorf("the weights are not a float32 constant")
	}
	w, out := t.Float32s(), t.Shape[0]
	bias, err := z.bias(n, out)
	if err != nil {
		return err
	}
	if n.In[0] == inputName {
		addHalfStep(bias, w)
	}
	name, l, err := z.result(n)
	if err != nil {
		return err
	}
	weights, offsets, err := z.linear(n.Name, w, t.Shape, bias, in)
	if err != nil {
		return err
	}
	raw := name + "_f"
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{
		Name: n.Name, Op: "Conv", In: []string{z.float(in), weights, offsets}, Out: []string{raw}, Attr: n.Attr,
	})
	z.store(raw, l)
	return nil
}

// addHalfStep adds what the half step of the input comes to under the weights of each output.
func addHalfStep(bias []float64, w []float32) {
	each := len(w) / len(bias)
	for j := range bias {
		sum := 0.0
		for _, x := range w[j*each : (j+1)*each] {
			sum += float64(x)
		}
		bias[j] += float64(sum * halfStep)
	}
}

// bias returns input 2 of a Conv or Gemm, or zeros.
func (z *quantiser) bias(n *onnx.Node, out int) ([]float64, error) {
	bias := make([]float64, out)
	if n.Input(2) == "" {
		return bias, nil
	}
	t := z.from.Init[n.In[2]]
	if t == nil || t.Type != onnx.Float32 || t.Len() != out {
		return nil, fmt.Errorf("the bias is not a float32 constant of length %d", out)
	}
	for i, v := range t.Float32s() {
		bias[i] = float64(v)
	}
	return bias, nil
}

func (z *quantiser) add(n *onnx.Node) error {
	a, ok := z.stored[n.In[0]]
	b, ok2 := z.stored[n.In[1]]
	if !ok || !ok2 {
		return fmt.Errorf("%v are not both quantised", n.In)
	}
	name, l, err := z.result(n)
	if err != nil {
		return err
	}
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{Name: n.Name, Op: "Add", In: []string{z.float(a), z.float(b)}, Out: []string{name + "_f"}})
	z.store(name+"_f", l)
	return nil
}

// pool stores the mean of H·W bytes as their exact sum.
func (z *quantiser) pool(n *onnx.Node) error {
	in, ok := z.stored[n.In[0]]
	if !ok {
		return fmt.Errorf("%q is not quantised", n.In[0])
	}
	shape := z.shapes[n.In[0]].Shape
	area := shape[2] * shape[3]
	if area*255 > math.MaxUint16 {
		return fmt.Errorf("a sum of %d bytes needs more than 16 bits", area)
	}
	name := n.Out[0]
	l := levels{
		name: name + "_q", scale: float32(float64(in.scale) / float64(area)),
		zero: in.zero * int32(area), top: int64(area) * 255, typ: onnx.Uint16,
	}
	z.stored[name] = l
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{Name: n.Name, Op: "GlobalAveragePool", In: []string{z.float(in)}, Out: []string{name + "_f"}})
	z.store(name+"_f", l)
	return nil
}

// flatten moves stored elements.
func (z *quantiser) flatten(n *onnx.Node) error {
	in, ok := z.stored[n.In[0]]
	if !ok {
		return fmt.Errorf("%q is not quantised", n.In[0])
	}
	out := in
	out.name = n.Out[0] + "_q"
	z.stored[n.Out[0]] = out
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{Name: n.Name, Op: "Flatten", In: []string{in.name}, Out: []string{out.name}, Attr: n.Attr})
	return nil
}

// gemm multiplies stored features; its float32 result is an output of the network.
func (z *quantiser) gemm(n *onnx.Node) error {
	in := z.stored[n.In[0]]
	w, out, cols, err := gemmWeights(z.from, n)
	if err != nil {
		return err
	}
	bias, err := z.bias(n, out)
	if err != nil {
		return err
	}
	weights, offsets, err := z.linear(n.Name, w, []int{out, cols}, bias, in)
	if err != nil {
		return err
	}
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{
		Name: n.Name, Op: "Gemm", In: []string{z.float(in), weights, offsets}, Out: n.Out,
		Attr: map[string]onnx.Attr{"transB": {Kind: onnx.AttrInt, I: 1}},
	})
	z.to.Outputs = append(z.to.Outputs, onnx.Value{Name: n.Out[0], Type: onnx.Float32, Shape: []int{1, out}})
	return nil
}
