package api_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
)

// A host begins a request, does its jobs and passes the results to Resume.
func ExampleService() {
	t := new(testing.B)
	world := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	call := world.Engine.Begin(context.Background(), &api.Request{
		Method: "POST", Path: "/v2/models/eeed0b6733a644cea07cf4c60f87ebb7/outputs", Authorization: "Key " + world.Key,
		Body: []byte(`{"inputs":[{"data":{"image":{"url":"https://pictures.example/beach.jpg"}}}]}`),
	})
	for _, job := range call.Jobs() {
		fmt.Println("fetch and analyse", job.URL)
	}
	sand := predict.ColorShare{W3C: predict.Color{Name: "Wheat", Hex: "#f5deb3"}, RawHex: "#f1d9b0", Value: 0.5}
	call.Resume([]api.Result{{Analysis: predict.Analysis{Has: predict.WantColors, Colors: []predict.ColorShare{sand}}}})
	response := call.Response()
	fmt.Println(call.Done(), response.Status, response.ContentType)
	// Output:
	// fetch and analyse https://pictures.example/beach.jpg
	// true 200 application/json; charset=UTF-8
}
