package abi_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// A host writes a request in two parts, straight into the guest's memory, and reads what the guest
// answers.
func ExampleAppendRequestHead() {
	r := api.Request{Method: "POST", Path: "/v2/models/m/outputs", Body: []byte(`{"inputs":[]}`)}
	head := abi.AppendRequestHead(nil, &r)
	memory := append(head, r.Body...) // in the guest's, from reserve's address on

	got, err := abi.ParseRequest(memory)
	fmt.Println(got.Method, got.Path, string(got.Body), err)
	// Output: POST /v2/models/m/outputs {"inputs":[]} <nil>
}

// An error keeps its meaning and its words.
func ExampleCode_Err() {
	code, text := abi.CodeOf(fmt.Errorf("%w: HEIC", raster.ErrUnsupported))
	err := code.Err(text)
	fmt.Println(code, err)
	// Output: 4 picture format not supported: HEIC
}
