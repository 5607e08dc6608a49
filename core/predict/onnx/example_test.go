package onnx_test

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// A network of one convolution is written, read back, and its shapes are inferred for a picture of 8 × 8.
func Example() {
	g := &onnx.Graph{
		Name: "edges", Opset: 13,
		Inputs:  []onnx.Value{{Name: "image", Type: onnx.Float32, Shape: []int{-1, 1, -1, -1}}},
		Outputs: []onnx.Value{{Name: "edges", Type: onnx.Float32}},
		Init: map[string]*onnx.Tensor{
			"w": onnx.FromFloat32s("w", []int{1, 1, 1, 3}, []float32{-1, 0, 1}),
		},
		Nodes: []*onnx.Node{{Name: "difference", Op: "Conv", In: []string{"image", "w"}, Out: []string{"edges"}}},
	}
	read, err := onnx.Read(g.Marshal(), onnx.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := read.Infer(map[string][]int{"image": {1, 1, 8, 8}})
	fmt.Println(values["edges"].Type, values["edges"].Shape, err)

	g.Nodes[0].Op = "Gremlin"
	_, err = onnx.Read(g.Marshal(), onnx.Limits{})
	fmt.Println(errors.Is(err, onnx.ErrOperator), err)
	// Output:
	// float32 [1 1 8 6] <nil>
	// true unsupported ONNX operator: Gremlin
}
