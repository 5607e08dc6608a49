package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
)

// A host begins a request, does the jobs it asks for, and hands the results back.
func ExampleService() {
	hosted, _ := blob.OpenHosted(blob.HostedOptions{Blobs: blob.NewMemory(blob.Options{}), Random: &apitest.Counter{}})
	service, err := api.New(api.Options{
		Models: apitest.Tiny(new(testing.B)), Hosted: hosted, Rand: &apitest.Counter{},
		Clock: func() time.Time { return apitest.Start },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := service.Begin(context.Background(), &api.Request{
		Method: "POST", Path: "/v2/models/eeed0b6733a644cea07cf4c60f87ebb7/outputs",
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
