package api_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestIncompleteVersionIsNotUsed replicates a trained version before its manifest. Until the manifest arrives, predictions and searches use
// the last complete version.
func TestIncompleteVersionIsNotUsed(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	ask := func(method, path, body string) string {
		t.Helper()
		r := w.Serve(t, api.Request{Method: method, Path: path, Body: []byte(body)})
		if r.Status != 200 {
			t.Fatalf("%s %s = %d %s", method, path, r.Status, r.Body)
		}
		return string(r.Body)
	}
	ask("POST", "/v2/inputs", `{"inputs":[
		{"id":"a","data":{"image":{"base64":"`+picture+`"},"concepts":[{"id":"warm"}]}},
		{"id":"b","data":{"image":{"base64":"`+base64.StdEncoding.EncodeToString(apitest.Picture("blue.png"))+`"},"concepts":[{"id":"cold"}]}}]}`)
	ask("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]}}}}`)
	ask("POST", "/v2/models/own/versions", "")
	w.Step(t, time.Second)
	predict := func() string {
		_, version, ok := strings.Cut(ask("POST", "/v2/models/own/outputs", `{"inputs":[{"data":{"image":{"base64":"`+picture+`"}}}]}`), `"model_version":{"id":"`)
		if !ok {
			t.Fatal("an answer without its version")
		}
		return version[:32]
	}
	search := func() string {
		_, hits, ok := strings.Cut(ask("POST", "/v2/searches", `{"query":{"ands":[{"output":{"data":{"concepts":[{"id":"warm","value":1}]}}}]}}`), `"hits":`)
		if !ok {
			t.Fatal("an answer without hits")
		}
		return hits
	}
	first, found := predict(), search()
	if !strings.Contains(found, `"id":"a"`) {
		t.Fatalf("a search finds %s", found)
	}

	p, err := w.Engine.Partition(w.App)
	if err != nil {
		t.Fatal(err)
	}
	v := p.View()
	model, err := v.Model("own")
	if err == nil {
		err = v.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Repeat("f", 32)
	_, span, err := p.SubmitSpan(t.Context(), partition.Caller{By: "key"}, []log.Body{&log.VersionTrain{Model: model.Dot, Version: next}}, nil)
	if err == nil {
		_, err = p.Submit(t.Context(), "key", []log.Body{
			&log.VersionResult{Model: model.Dot, Version: next, Train: log.Dot{Writer: span.Writer, Seq: span.Last}, Code: 21100, Manifest: blob.Sum([]byte("elsewhere"))},
		}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if body := ask("GET", "/v2/models/own/versions/"+next, ""); !strings.Contains(body, `"code":21100`) {
		t.Fatalf("the log says nothing of the version: %s", body)
	}
	if got := predict(); got != first {
		t.Errorf("version %s predicts, want %s, the last whole one", got, first)
	}
	if got := search(); got != found {
		t.Errorf("a search finds %s, want %s", got, found)
	}
}
