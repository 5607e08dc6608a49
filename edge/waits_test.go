package main_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// slowURLs makes one application wait for slow URLs in more calls than an edge works on at once. Meanwhile another application's calls and
// the same application's calls with base64 are answered, and the edge is ready and alive.
func slowURLs(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "slow")
	_, otherKey, _ := owner(t, binary, data, "other")
	srv := serve(t, binary, data)
	release := make(chan struct{})
	slowServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		http.NotFound(w, r)
	}))
	defer slowServer.Close()
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	predict := "/v2/models/" + general + "/outputs"
	byURL := func(n int) object {
		return object{"inputs": slices.Repeat([]object{{"data": object{"image": object{"url": slowServer.URL}}}}, n)}
	}
	first, other := srv.as(t, key), srv.as(t, otherKey)
	var attack sync.WaitGroup
	var ended atomic.Int64
	for i := range 4 + 32 {
		n := 8
		if i < 4 {
			n = 128
		}
		attack.Go(func() {
			defer ended.Add(1)
			status, out, err := first.do("POST", predict, byURL(n))
			for status == 503 { // more calls came at once than the edge works on; waiting calls leave their places later
				status, out, err = first.do("POST", predict, byURL(n))
			}
			if status != 400 || err != nil {
				t.Errorf("a call with %d slow URLs: %d, %v, %.300v, want 400", n, status, err, out)
			}
		})
	}
	for !strings.Contains(get(t, srv.base+"/metrics", 200), "\nsightline_waiting 768\n") {
		if ended.Load() > 0 {
			t.Fatal("a call with slow URLs ended before all of them waited")
		}
		system.Pause(t.Context(), 10*time.Millisecond)
	}
	get(t, srv.base+"/readyz", 200)
	get(t, srv.base+"/healthz", 200)
	byBase64 := object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, photos(t)[0])}}}}}
	other.must("POST", predict, byBase64)
	first.must("POST", predict, byBase64)
	free()
	attack.Wait()
	srv.terminate(t)
}
