package nn_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
	"pgregory.net/rapid"
)

// FuzzCompile compiles whatever the reader lets through and runs it on zeros: an error or a
// result, no panic, and no memory beyond the limit.
func FuzzCompile(f *testing.F) {
	for seed := range 6 {
		f.Add(rapid.Custom(func(t *rapid.T) []byte { return growFloatNet(t).g.Marshal() }).Example(seed))
		f.Add(rapid.Custom(func(t *rapid.T) []byte {
			n, _ := growIntNet(t)
			return n.g.Marshal()
		}).Example(seed))
	}
	const memory = 4 << 20
	f.Fuzz(func(t *testing.T, model []byte) {
		g, err := onnx.Read(model, onnx.Limits{Bytes: 1 << 20, Nodes: 200, Memory: memory})
		if err != nil {
			return
		}
		p, err := nn.Compile(g, nn.Options{Memory: memory, Work: 1 << 26})
		if err != nil {
			return
		}
		if n := p.SessionBytes() + p.WeightBytes(); n > memory {
			t.Fatalf("plan of %d bytes, limit %d", n, memory)
		}
		var in []nn.Tensor
		for _, v := range p.Inputs() {
			x := nn.Tensor{Type: v.Type, Shape: v.Shape}
			n := x.Len()
			x.F32, x.U8, x.I8, x.U16, x.I32, x.I64 = make([]float32, n), make([]uint8, n), make([]int8, n), make([]uint16, n), make([]int32, n), make([]int64, n)
			in = append(in, x)
		}
		_, _ = p.NewSession().Run(in)
	})
}
