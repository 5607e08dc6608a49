package host

import (
	"context"
	"runtime"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestFlatMemory serves many requests with one instance, including predictions with their pictures, searches and refusals. After the
// first tenth, neither the guest's memory grows, apart from allocations between two collections, nor the host's. Without a yield at the
// end of each export, the guest's collector would not run, and some thousand requests would exhaust the memory.
func TestFlatMemory(t *testing.T) {
	rounds := testkit.Size(t, 600, 1_000, 6_000, 100_000)
	w := apitest.NewGuestWorld(t, memkv.New(), apitest.Tiny(t), nil, nil, elsewhere(t, apitest.TinyBundles(t)))
	var guest guestOf
	open := 0
	requests := []api.Request{
		{Method: "GET", Path: "/v2/models"},
		{Method: "POST", Path: general, Body: []byte(predictBody("half.png"))},
		{Method: "GET", Path: "/v2/models/aaa03c23b3724a16a56b629203edc62c/output_info"},
		{Method: "POST", Path: "/v2/searches", Body: []byte(`{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"red"}]}}}]}}`)},
		{Method: "GET", Path: "/v2/nothing"},
		{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"id":"same","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)},
	}
	w.Opened = func(g apitest.Guest) { guest, open = g.(guestOf), open+1 }
	host := func() uint64 {
		w.Accounts.Spent = nil // the world records every call for other tests
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first [3]int64
	for i := range rounds {
		w.Serve(t, requests[i%len(requests)])
		if i == rounds/10 {
			first = [3]int64{guest.Bytes(), guest.analyser.Bytes(), int64(host())}
		}
	}
	last := [3]int64{guest.Bytes(), guest.analyser.Bytes(), int64(host())}
	m, err := guest.Memory(context.Background())
	if err != nil || open != 1 {
		t.Fatalf("%v, %d instances", err, open)
	}
	t.Logf("%d requests: guest %d, analyser %d, host %d bytes; then %d; the guest's heap %d", rounds, first[0], first[1], first[2], last, m.Heap)
	const nameBytes = 512     // bytes for the name of a predicted picture, which is stored for a day
	const headroom = 16 << 20 // bytes that a guest allocates before a collection, which the first tenth may not reach
	for i, name := range []string{"the guest", "the analyser", "the host"} {
		may := int64(4<<20 + headroom)
		if i == 2 {
			may = int64(4<<20 + rounds/len(requests)*nameBytes)
		}
		if name == "the host" && !testkit.Timing() {
			continue // the host's memory depends on when its collector runs
		}
		if last[i] > first[i]+may {
			t.Errorf("%s has %d bytes after %d requests, %d after a tenth of them", name, last[i], rounds, first[i])
		}
	}
}
