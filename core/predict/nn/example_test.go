package nn_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// A network of one product and an activation: compile once, run in a session.
func Example() {
	g := &onnx.Graph{
		Name: "sum and difference", Opset: 13,
		Inputs:  []onnx.Value{{Name: "x", Type: onnx.Float32, Shape: []int{-1, 2}}},
		Outputs: []onnx.Value{{Name: "y", Type: onnx.Float32, Shape: []int{-1, 2}}},
		Nodes: []*onnx.Node{
			{Name: "product", Op: "MatMul", In: []string{"x", "w"}, Out: []string{"both"}},
			{Name: "positive", Op: "Relu", In: []string{"both"}, Out: []string{"y"}},
		},
		Init: map[string]*onnx.Tensor{"w": onnx.FromFloat32s("w", []int{2, 2}, []float32{1, 1, 1, -1})},
	}
	plan, err := nn.Compile(g, nn.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	session := plan.NewSession() // one per thread
	out, err := session.Run([]nn.Tensor{{Type: onnx.Float32, Shape: []int{1, 2}, F32: []float32{3, 5}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out[0].Shape, out[0].F32)
	// Output: [1 2] [8 0]
}
