package main

import (
	"os"
	"path/filepath"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// networkCases compare our engine with ONNX Runtime on the float32 network, ours once in the
// same arithmetic and once as the bundle ships it, in int8.
func networkCases(peer *node, shared string) []comparison {
	parent := filepath.Join(shared, "model", "general.onnx")
	mobile := filepath.Join(shared, "onnx", "mobilenet_v2_1.0_224.onnx")
	shipped := filepath.Join("models", "general-v1.3", "network.onnx")
	network := func(name string, limit float64, ours, theirs string) comparison {
		var s *session
		return comparison{name, limit, func(n int) (float64, error) {
			if s == nil {
				var err error
				if s, err = open(ours); err != nil {
					return 0, err
				}
			}
			return repeat(n, s.run)
		}, func(n int) (float64, error) {
			return peer.ask(map[string]any{"peer": "onnxruntime", "model": theirs, "n": n})
		}}
	}
	if _, err := os.Stat(parent); err != nil {
		return nil // the networks are test data that not everybody has
	}
	return []comparison{
		network("general int8, ONNX Runtime float32", 0.5, shipped, parent),
		network("general float32, ONNX Runtime float32", 1.0, parent, parent),
		network("MobileNetV2-1.0 float32, ONNX Runtime", 1.0, mobile, mobile),
	}
}

// session is a compiled network with an input that does not change.
type session struct {
	*nn.Session
	in []nn.Tensor
}

func open(path string) (*session, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	graph, err := onnx.Read(data, onnx.Limits{})
	if err != nil {
		return nil, err
	}
	plan, err := nn.Compile(graph, nn.Options{})
	if err != nil {
		return nil, err
	}
	s := &session{Session: plan.NewSession()}
	for _, v := range plan.Inputs() {
		t := nn.Tensor{Type: v.Type, Shape: v.Shape}
		if v.Type == onnx.Uint8 {
			t.U8 = make([]uint8, t.Len())
			for i := range t.U8 {
				t.U8[i] = uint8(i * 37)
			}
		} else {
			t.F32 = make([]float32, t.Len())
			for i := range t.F32 {
				t.F32[i] = float32(i%255)/127 - 1
			}
		}
		s.in = append(s.in, t)
	}
	return s, nil
}

func (s *session) run() error {
	_, err := s.Run(s.in)
	return err
}
