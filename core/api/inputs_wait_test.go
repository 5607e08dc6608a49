package api_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestOutputsWaitForAnalysis reads and corrects the outputs of an input right after it was added by URL. The call waits until the
// background has analysed the input. Without an analysis it answers after 1.5 seconds, and at once if its host lets it not wait.
func TestOutputsWaitForAnalysis(t *testing.T) {
	const correction = `{"action":"merge","outputs":[{"data":{"concepts":[{"id":"ai_red","value":0.125}]}}]}`
	for _, tt := range []struct {
		name, method, body string
		analyse            bool  // the background works during the third pause
		refusal            error // of the host
		stuck              bool  // the host's clock stands still
		waited             time.Duration
		want               string
	}{
		{"read", "GET", "", true, nil, false, 150 * time.Millisecond, `"outputs":[{"id":`},
		{"corrected", "PATCH", correction, true, nil, false, 150 * time.Millisecond, `"value":0.125`},
		{"never analysed", "GET", "", false, nil, false, 1500 * time.Millisecond, `"outputs":[]`},
		{"never analysed and corrected", "PATCH", correction, false, nil, false, 1500 * time.Millisecond, `"outputs":[]`},
		{"a clock that stands still", "GET", "", false, nil, true, 1500 * time.Millisecond, `"outputs":[]`},
		{"a host without places", "GET", "", false, api.ErrBusy, false, 50 * time.Millisecond, `"outputs":[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
			add := `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
			if got := w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(add)}); got.Status != 200 {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			var waited time.Duration
			w.Pause = func(d time.Duration) error {
				waited += d
				if !tt.stuck {
					w.Now = w.Now.Add(d)
				}
				if tt.analyse && waited >= 150*time.Millisecond {
					for w.Round(t) {
					}
				}
				return tt.refusal
			}
			got := w.Serve(t, api.Request{Method: tt.method, Path: "/v2/inputs/a/outputs", Body: []byte(tt.body)})
			if got.Status != 200 || !bytes.Contains(got.Body, []byte(tt.want)) || waited != tt.waited {
				t.Errorf("after %v: %d %s; want %s after %v", waited, got.Status, got.Body, tt.want, tt.waited)
			}
			waited = 0
			if got = w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/none/outputs"}); got.Status != 404 || waited != 0 {
				t.Errorf("a missing input: %d after %v", got.Status, waited)
			}
		})
	}
}
