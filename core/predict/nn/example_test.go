package nn_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

// A network of a mean over the pixels and a product: build it or read it from a file, compile it once, run it in a session.
func Example() {
	network, err := nn.NewNetwork(nn.Value{Name: "picture", Type: nn.Float32, Shape: []int{1, 2, 1, 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, _ := network.Append(nn.Node{Kind: nn.Pool, Of: 1})
	row, _ := network.Append(nn.Node{Kind: nn.Flatten, Of: mean})
	both, err := network.Append(nn.Node{
		Kind: nn.Gemm, Of: row, Shape: [4]int{2, 2, 1, 1},
		Weights: []float32{1, 1, 1, -1}, Bias: []float32{0, 0}, Lo: 0, Hi: 100,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := network.AddOutput("sum and difference", both); err != nil {
		fmt.Println(err)
		return
	}
	plan, err := nn.Compile(network, nn.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	session := plan.NewSession() // one per thread
	// One line of two pixels with two channels.
	out, err := session.Run(nn.Tensor{Type: nn.Float32, Shape: []int{1, 1, 2, 2}, F32: []float32{2, 4, 4, 6}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out[0].Shape, out[0].F32)
	// Output: [1 2] [8 0]
}
