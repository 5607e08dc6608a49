package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
)

// BenchmarkPredictCall measures the service alone, in a call of 128 URLs with five concepts each, without downloads and analyses.
func BenchmarkPredictCall(b *testing.B) {
	set := apitest.Tiny(b)
	w := apitest.NewWorld(b, memkv.New(), set, nil, nil)
	inputs := make([]string, 0, 128)
	for i := range 128 {
		inputs = append(inputs, fmt.Sprintf(`{"data":{"image":{"url":"https://pictures.example/%d.jpg"}}}`, i))
	}
	r := api.Request{
		Method: "POST", Path: "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", Authorization: "Key " + w.Key,
		Body: []byte(`{"inputs":[` + strings.Join(inputs, ",") + `],"model":{"output_info":{"output_config":{"max_concepts":5}}}}`),
	}
	results := make([]api.Result, 128)
	for i := range results {
		values := make([]float32, len(set.General().Concepts))
		for k := range values {
			values[k] = float32((k*7+i)%100) / 101
		}
		results[i].Analysis = predict.Analysis{Has: predict.WantConcepts, General: values}
	}
	b.ReportAllocs()
	for b.Loop() {
		call := w.Engine.Begin(context.Background(), &r)
		call.Resume(results)
		if got := call.Response(); got.Status != 200 {
			b.Fatalf("%d %s", got.Status, got.Body)
		}
	}
}
