package api_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// fill adds n inputs with the same picture, which only the first call analyses.
func fill(b testing.TB, w *apitest.World, n int) {
	b.Helper()
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	for at := 0; at < n; at += 100 {
		if got := w.Serve(b, api.Request{Method: "POST", Path: "/v2/inputs", Body: additions(at, min(100, n-at), picture)}); got.Status != 200 {
			b.Fatalf("%d %s", got.Status, got.Body)
		}
	}
}

func additions(from, n int, picture string) []byte {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":"input %d","data":{"image":{"base64":"%s"},"concepts":[{"id":"nice"}],"metadata":{"n":%d}}}`, from+i, picture, from+i)
	}
	return []byte(`{"inputs":[` + strings.Join(items, ",") + `]}`)
}

// BenchmarkAddInputs measures a call that adds inputs, without the analysis of its picture, which exists.
func BenchmarkAddInputs(b *testing.B) {
	w := apitest.NewWorld(b, memkv.New(), apitest.Tiny(b), nil, nil)
	fill(b, w, 100)
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	at := 100
	for b.Loop() {
		if got := w.Serve(b, api.Request{Method: "POST", Path: "/v2/inputs", Body: additions(at, 128, picture)}); got.Status != 200 {
			b.Fatalf("%d %s", got.Status, got.Body)
		}
		at += 128
	}
	b.ReportMetric(128*float64(b.N)/b.Elapsed().Seconds(), "inputs/s")
}

func BenchmarkListInputs(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		w := apitest.NewWorld(b, memkv.New(), apitest.Tiny(b), nil, nil)
		fill(b, w, n)
		for _, query := range []string{"", "per_page=1000", fmt.Sprintf("page=%d", n/20)} {
			b.Run(fmt.Sprintf("n=%d/%s", n, query), func(b *testing.B) {
				for b.Loop() {
					if got := w.Serve(b, api.Request{Method: "GET", Path: "/v2/inputs", Query: query}); got.Status != 200 {
						b.Fatalf("%d", got.Status)
					}
				}
			})
		}
	}
}
