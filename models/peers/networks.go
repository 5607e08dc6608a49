package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/models/compile"
	"github.com/sightline-dev/sightline/models/onnx"
)

// networkCases compare our engine with ONNX Runtime on the float32 network, ours once in the
// same arithmetic and once as the bundle ships it, in int8.
func networkCases(peer *node, shared string) []comparison {
	parent := filepath.Join(shared, "model", "general.onnx")
	mobile := filepath.Join(shared, "onnx", "mobilenet_v2_1.0_224.onnx")
	shipped := filepath.Join("models", "general-v1.3", "network.plan")
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

// read reads a plan file, or an ONNX file without what the product computes outside of the network: the unit embedding and heads.
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
