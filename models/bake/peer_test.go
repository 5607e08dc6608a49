package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/models"
)

// layer is one step between stored tensors: what testdata/layers.mjs runs.
type layer struct {
	Model   string            `json:"model"`
	Inputs  map[string][3]any `json:"inputs"` // file, type, dims
	Outputs map[string]string `json:"outputs"`

	out onnx.Value
}

// TestLayersAgreeWithPeer runs every layer of the baked network alone, on what our own engine stored
// before it, in ONNX Runtime: integers within one step, floats within a millionth of the largest. It needs
// node, and onnxruntime-node in the folder that PEER_MODULES names (models/peers/node_modules otherwise).
func TestLayersAgreeWithPeer(t *testing.T) {
	modules := os.Getenv("PEER_MODULES")
	if modules == "" {
		modules = filepath.Join(proof.Root(t), "models", "peers", "node_modules")
	}
	if _, err := os.Stat(filepath.Join(modules, "onnxruntime-node")); err != nil {
		t.Skipf("the peer is missing: %v", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skipf("node is missing: %v", err)
	}
	picture := proof.Shared(t, "model", "calibration", "001.jpg")
	data, err := models.FS.ReadFile("general-v1.3/network.onnx")
	if err != nil {
		t.Fatal(err)
	}
	g, err := onnx.Read(data, onnx.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours := storedValues(t, g, picture, dir)
	layers := cut(t, g, dir)
	list, err := json.Marshal(layers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "layers.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("node", "testdata/layers.mjs", modules, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	apart, total := 0, 0
	for _, l := range layers {
		theirs, err := os.ReadFile(filepath.Join(dir, l.Outputs[l.out.Name]))
		if err != nil {
			t.Fatal(err)
		}
		off, most := compare(l.out.Type, ours[l.out.Name], theirs)
		apart, total = apart+off, total+len(theirs)/l.out.Type.Size()
		if most > 1 {
			t.Errorf("%s: %v apart", l.out.Name, most)
		}
	}
	t.Logf("%d layers: %d of %d elements one step apart", len(layers), apart, total)
	if len(layers) < 60 || apart > total/1000 {
		t.Errorf("%d layers, %d of %d elements apart: want over 60 and at most a thousandth", len(layers), apart, total)
	}
}

// storedValues runs our engine on a picture and writes every tensor between the layers to dir.
func storedValues(t *testing.T, g *onnx.Graph, picture, dir string) map[string][]byte {
	t.Helper()
	open := *g
	open.Outputs = slices.Clone(g.Outputs)
	values, err := g.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		if n.Op == "QuantizeLinear" {
			open.Outputs = append(open.Outputs, values[n.Out[0]])
		}
	}
	e, err := newEngine(&open)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.run(picture)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]byte{inputName: turned(e, picture, t)}
	for i, v := range open.Outputs {
		stored[v.Name] = tensorBytes(out[i])
	}
	for _, n := range g.Nodes {
		if n.Op == "Flatten" {
			stored[n.Out[0]] = stored[n.In[0]]
		}
	}
	for name, b := range stored {
		if err := os.WriteFile(filepath.Join(dir, name+".in"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return stored
}

// turned is the prepared picture in ONNX's order, channels first.
func turned(e *engine, picture string, t *testing.T) []byte {
	t.Helper()
	pix, err := e.prepare(picture)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(pix))
	for i, p := range pix {
		b[i%3*inputSize*inputSize+i/3] = p
	}
	return b
}

func tensorBytes(t nn.Tensor) []byte {
	switch t.Type {
	case onnx.Uint8:
		return slices.Clone(t.U8)
	case onnx.Uint16:
		var b []byte
		for _, x := range t.U16 {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	var b []byte
	for _, x := range t.F32 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// cut makes a graph of its own of every Conv, Add, GlobalAveragePool and Gemm, from stored tensors to the
// stored or float result, and writes each to dir.
func cut(t *testing.T, g *onnx.Graph, dir string) []layer {
	t.Helper()
	values, err := g.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	makes := map[string]*onnx.Node{}
	for _, n := range g.Nodes {
		makes[n.Out[0]] = n
	}
	var layers []layer
	for _, n := range g.Nodes {
		var last *onnx.Node
		switch n.Op {
		case "QuantizeLinear":
			last = n
		case "Gemm":
			last = n
		default:
			continue
		}
		l := layer{Model: fmt.Sprintf("%d.onnx", len(layers)), Inputs: map[string][3]any{}, Outputs: map[string]string{}, out: values[last.Out[0]]}
		l.Outputs[l.out.Name] = fmt.Sprintf("%d.out", len(layers))
		part := &onnx.Graph{Name: "layer", Opset: g.Opset, Init: map[string]*onnx.Tensor{}, Outputs: []onnx.Value{l.out}}
		var need func(name string, depth int)
		need = func(name string, depth int) {
			if c, ok := g.Init[name]; ok {
				part.Init[name] = c
				return
			}
			v, m := values[name], makes[name]
			if v.Type != onnx.Float32 && depth > 0 { // stored before this layer
				if _, ok := l.Inputs[name]; !ok {
					part.Inputs = append(part.Inputs, v)
					l.Inputs[name] = [3]any{name + ".in", v.Type.String(), v.Shape}
				}
				return
			}
			for _, in := range m.In {
				need(in, depth+1)
			}
			if !slices.Contains(part.Nodes, m) {
				part.Nodes = append(part.Nodes, m)
			}
		}
		need(last.Out[0], 0)
		if err := os.WriteFile(filepath.Join(dir, l.Model), part.Marshal(), 0o600); err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	return layers
}

// compare counts elements that differ, and gives the largest difference: in steps, or for floats in
// millionths of the largest value.
func compare(typ onnx.DType, a, b []byte) (off int, most float64) {
	at := func(b []byte, i int) float64 {
		switch typ {
		case onnx.Uint8:
			return float64(b[i])
		case onnx.Uint16:
			return float64(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	if len(a) != len(b) {
		return len(a), math.Inf(1)
	}
	n, top := len(a)/typ.Size(), 0.0
	for i := range n {
		x, y := at(a, i), at(b, i)
		top = max(top, math.Abs(y))
		most = max(most, math.Abs(x-y))
		if x != y && typ != onnx.Float32 {
			off++
		}
	}
	if typ == onnx.Float32 {
		most /= top * 1e-6
	}
	return off, most
}
