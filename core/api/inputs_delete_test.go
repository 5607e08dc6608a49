//go:build !wasip1

package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestDeletingAllIsAnsweredAtOnce checks that the answer does not wait for the cleanup, which then completes. It runs on Pebble, where
// deleting a range costs as much as deleting a key.
func TestDeletingAllIsAnsweredAtOnce(t *testing.T) {
	n := 300
	if testkit.Timing() {
		n = 10_000
	}
	store, err := pebblekv.Open("store", pebblekv.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, nil)
	best := time.Hour
	for range 3 {
		fill(t, w, n)
		start := time.Now()
		got := w.Serve(t, api.Request{Method: "DELETE", Path: "/v2/inputs", Body: []byte(`{"delete_all":true}`)})
		if best = min(best, time.Since(start)); got.Status != 200 {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		if left := w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs"}); !strings.Contains(string(left.Body), `"inputs":[]`) {
			t.Errorf("%s", left.Body)
		}
		w.Step(t, 0)
	}
	t.Logf("deleting %d inputs is answered after %v", n, best)
	if testkit.Timing() && best > 100*time.Millisecond {
		t.Errorf("deleting %d inputs is answered after %v", n, best)
	}
	if err := w.Engine.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
