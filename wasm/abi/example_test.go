package abi_test

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// A host writes a request in two parts directly into the guest's memory: the head, then the body. The
// guest parses both.
func ExampleAppendRequestHead() {
	r := api.Request{Method: "POST", Path: "/v2/models/m/outputs", Body: []byte(`{"inputs":[]}`)}
	head := abi.AppendRequestHead(nil, &r)
	memory := append(head, r.Body...) // in the guest's memory, starting at the address from reserve

	got, err := abi.ParseRequest(memory)
	fmt.Println(got.Method, got.Path, string(got.Body), err)
	// Output: POST /v2/models/m/outputs {"inputs":[]} <nil>
}

// An error keeps its code and its text.
func ExampleCode_Err() {
	code, text := abi.CodeOf(fmt.Errorf("%w: HEIC", raster.ErrUnsupported))
	err := code.Err(text)
	fmt.Println(code, err)
	// Output: 4 picture format not supported: HEIC
}
