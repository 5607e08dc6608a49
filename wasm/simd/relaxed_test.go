//go:build !wasip1

package simd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/simd"
	"github.com/sightline-dev/sightline/web/process"
)

// exact has a module for each exact result that a relaxed dot product may have, by the name of the result. Each computes what the relaxed
// module computes on a machine with that result.
var exact = map[string]func() []byte{"unsigned": simd.Unsigned, "signed": simd.Signed}

// TestQuads compares the modules in exact with Go. It uses them instead of the relaxed module, since wazero does not implement
// relaxed instructions.
func TestQuads(t *testing.T) {
	for name, module := range exact {
		t.Run(name, func(t *testing.T) {
			tested = module
			defer func() { tested = simd.Module }()
			for _, test := range integers {
				test(t)
			}
		})
	}
}

// TestRelaxedInChromium repeats the tests of products with the relaxed module in a browser, and compares the whole memory.
func TestRelaxedInChromium(t *testing.T) {
	testkit.SkipRace(t)
	node := process.Need(t, "node")
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	process.Make(t, "web")
	runtime := filepath.Join(testkit.Root(t), "web", "runtime")
	type outcome struct {
		Dot     string
		Calls   int
		Failure string
	}
	results, dots, operations := make(chan outcome, 1), make(chan string), make(chan []byte)
	mux := http.NewServeMux()
	give := func(kind string, data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(data)
		}
	}
	mux.HandleFunc("/{$}", give("text/html", []byte("<!doctype html><title>Kernels</title>")))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/kernels.wasm", give("application/wasm", simd.Relaxed()))
	mux.HandleFunc("/operations/{dot}", func(w http.ResponseWriter, r *http.Request) {
		dots <- r.PathValue("dot")
		give("application/json", <-operations)(w, r)
	})
	for _, name := range []string{"page.mjs", "replay.mjs"} {
		script, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		mux.HandleFunc("/"+name, give("text/javascript", script))
	}
	mux.Handle("/runtime/", http.StripPrefix("/runtime/", http.FileServer(http.Dir(filepath.Join(runtime, "served", "dist")))))
	mux.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
		var got outcome
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			got.Failure = err.Error()
		}
		results <- got
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	browser := exec.CommandContext(t.Context(), node, filepath.Join(runtime, "test", "pages", "attach", "attach.js"), "/page.mjs")
	browser.Env = append(os.Environ(), "ADDRESS="+srv.URL, "CHROMIUM="+chromium)
	browser.Stderr = os.Stderr
	stay, err := browser.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- browser.Wait() }()
	var got outcome
	for done := false; !done; {
		select {
		case dot := <-dots:
			operations <- recordTests(t, exact[dot], integers)
		case got = <-results:
			done = true
			_ = stay.Close() // at the end of its input the browser ends
			<-ended
		case err := <-ended:
			t.Fatalf("the browser ended: %v", err)
		}
	}
	switch {
	case got.Failure != "":
		t.Error(got.Failure)
	case got.Dot == "":
		t.Skip("the relaxed dot product of this browser on this processor is not exact: a page takes the other module")
	case got.Calls == 0:
		t.Error("no kernel was called")
	}
}
