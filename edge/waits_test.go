package main_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/system"
)

// slowURLs has one application wait for slow URLs in more calls than an edge works on at once. Meanwhile another application's calls
// and the same application's calls with base64 are answered, and the edge is ready and alive.
func slowURLs(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "slow")
	_, otherKey, _ := owner(t, binary, data, "other")
	srv := serve(t, binary, data)
	release := make(chan struct{})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		http.NotFound(w, r)
	}))
	defer elsewhere.Close()
	predict := "/v2/models/" + general + "/outputs"
	byURL := func(n int) object {
		return object{"inputs": slices.Repeat([]object{{"data": object{"image": object{"url": elsewhere.URL}}}}, n)}
	}
	first, other := srv.as(t, key), srv.as(t, otherKey)
	var attack sync.WaitGroup
	for i := range 4 + 32 {
		n := 8
		if i < 4 {
			n = 128
		}
		attack.Go(func() {
			if status, out, err := first.do("POST", predict, byURL(n)); status != 400 || err != nil {
				t.Errorf("a call with %d slow URLs: %d, %v, %.300v, want 400", n, status, err, out)
			}
		})
	}
	for !strings.Contains(get(t, srv.base+"/metrics", 200), "\nsightline_waiting 768\n") {
		system.Pause(t.Context(), 10*time.Millisecond)
	}
	get(t, srv.base+"/readyz", 200)
	get(t, srv.base+"/healthz", 200)
	byBase64 := object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, photos(t)[0])}}}}}
	other.must("POST", predict, byBase64)
	first.must("POST", predict, byBase64)
	close(release)
	attack.Wait()
	srv.terminate(t)
}
