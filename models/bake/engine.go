package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// The preparation of a picture, as the network's README specifies it.
const (
	inputName = "image"
	inputSize = 224
	centre    = 15 // sixteenths of the short side: 93.75 %
)

// engine runs a network on files.
type engine struct {
	session *nn.Session
	decoder *raster.Decoder
	bytes   bool      // the input is uint8; otherwise it is float32 pixel/127.5 - 1
	floats  []float32 // (1, size, size, 3)
	outputs map[string]int
}

func newEngine(n *nn.Network) (*engine, error) {
	plan, err := nn.Compile(n, nn.Options{})
	if err != nil {
		return nil, err
	}
	e := &engine{session: plan.NewSession(), decoder: raster.NewDecoder(raster.Limits{}), outputs: map[string]int{}}
	in := plan.Input()
	if in.Name != inputName || !slices.Equal(in.Shape, []int{1, inputSize, inputSize, 3}) {
		return nil, fmt.Errorf("the network has the input %q of shape %v, want %q", in.Name, in.Shape, inputName)
	}
	e.bytes = in.Type == nn.Uint8
	e.floats = make([]float32, inputSize*inputSize*3)
	for i, v := range plan.Outputs() {
		e.outputs[v.Name] = i
	}
	return e, nil
}

// prepare returns the picture at path as (size, size, 3) RGB bytes, valid until the next call.
func (e *engine) prepare(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	img, err := e.decoder.Decode(data, raster.View{Centre: centre, Box: true, Width: inputSize, Height: inputSize})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return img.Pix, nil
}

// run returns the network's outputs for the picture at path, valid until the next call.
func (e *engine) run(path string) ([]nn.Tensor, error) {
	pix, err := e.prepare(path)
	if err != nil {
		return nil, err
	}
	in := nn.Tensor{Type: nn.Uint8, Shape: []int{1, inputSize, inputSize, 3}, U8: pix}
	if !e.bytes {
		for i, p := range pix {
			e.floats[i] = float32(float64(p)/127.5 - 1)
		}
		in = nn.Tensor{Type: nn.Float32, Shape: in.Shape, F32: e.floats}
	}
	return e.session.Run(in)
}
