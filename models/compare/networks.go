package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/models/compile"
	"github.com/sightline-dev/sightline/models/onnx"
)

// networks compares our engine with ONNX Runtime: in int8 with the float32 parent and with the same integers, and in float32.
func (b *bench) networks(node *program) []comparison {
	parent := filepath.Join(b.shared, "model-next", "general.onnx")
	mobile := filepath.Join(b.shared, "onnx", "mobilenet_v2_1.0_224.onnx")
	shipped := filepath.Join("models", "general-v1.3", "network.plan")
	integers := filepath.Join(b.dir, "qdq.onnx")
	run := func(path string) measure {
		opened := sync.OnceValues(func() (*session, error) { return open(path) })
		return func(n int) (float64, error) {
			s, err := opened()
			if err != nil {
				return 0, err
			}
			return repeat(n, s.run)
		}
	}
	runPeer := func(path string) measure { return node.time(map[string]any{"peer": "onnxruntime", "model": path}) }
	written := sync.OnceValue(func() error { return writeQDQ(integers, shipped) })
	quantised := runPeer(integers)
	const float = "ONNX Runtime, float32"
	return []comparison{
		{work: "the general network, int8", rival: float, bar: bars{0.3, 0.6}, ours: run(shipped), peer: runPeer(parent)},
		{
			work: "the general network, int8", rival: "ONNX Runtime, the same int8 (QDQ)", bar: both(0.95), ours: run(shipped),
			peer: func(n int) (float64, error) {
				if err := written(); err != nil {
					return 0, err
				}
				return quantised(n)
			},
		},
		{work: "the general network, float32", rival: float, bar: bars{1, 0.95}, ours: run(parent), peer: runPeer(parent)},
		{work: "MobileNetV2 1.0 at 224 px, float32", rival: float, bar: both(1), ours: run(mobile), peer: runPeer(mobile)},
	}
}

// session is a compiled network with a fixed input.
type session struct {
	*nn.Session
	in nn.Tensor
}

func open(path string) (*session, error) {
	network, err := read(path)
	if err != nil {
		return nil, err
	}
	plan, err := nn.Compile(network, nn.Options{})
	if err != nil {
		return nil, err
	}
	s := &session{Session: plan.NewSession(), in: nn.Tensor{Type: plan.Input().Type, Shape: plan.Input().Shape}}
	s.in.U8, s.in.F32 = make([]uint8, s.in.Len()), make([]float32, s.in.Len())
	for i := range s.in.U8 {
		s.in.U8[i], s.in.F32[i] = uint8(i*37), float32(i%255)/127-1
	}
	return s, nil
}

// read reads a plan file, or an ONNX file without the parts that the product computes outside of the network: unit embedding and heads.
func read(path string) (*nn.Network, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(path) == ".plan" {
		return nn.Read(data)
	}
	g, err := onnx.Read(data)
	if err != nil {
		return nil, err
	}
	outputs := slices.DeleteFunc(g.Outputs, func(name string) bool { return name == "unit" || name == "heads" })
	return compile.Network(g, outputs...)
}

func (s *session) run() error {
	_, err := s.Run(s.in)
	return err
}
