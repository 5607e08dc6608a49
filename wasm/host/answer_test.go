package host

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// room is an unused memory of so many bytes, all of them for one answer.
type room int64

func (m room) Reserve(bytes int64) bool { return bytes <= int64(m) }

func (m room) Room() int64 { return int64(m) }

func (room) Settle(int64) {}

// TestLargeAnswersAreTheSame compares the module with the native core for answers above the limit and above the host's memory.
func TestLargeAnswersAreTheSame(t *testing.T) {
	testkit.SkipRace(t)
	set := apitest.Tiny(t)
	settings := map[string]string{"max-answer": strconv.Itoa(api.MinMaxAnswer)}
	native := apitest.NewWorld(t, memkv.New(), set, nil, settings)
	module := apitest.NewGuestWorld(t, memkv.New(), set, nil, settings, elsewhere(t, apitest.TinyBundles(t)))
	var items, labels []string
	for i := range 40 {
		items = append(items, fmt.Sprintf(`{"id":"i%d","data":{"image":{"url":"http://a.test/%d.png"},"metadata":{"text":"%s"}}}`, i, i, strings.Repeat("m", 60_000)))
		labels = append(labels, fmt.Sprintf(`{"id":"i%d","data":{"concepts":[{"id":"seen"}]}}`, i))
	}
	for _, r := range []struct {
		api.Request
		want string
	}{
		{api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[` + strings.Join(items, ",") + `]}`)}, `"code":10000`},
		{api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=1000"}, `the largest per_page that fits is 34.`},
		{api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=30", Memory: room(1 << 20)}, `"code":40030`},
		{api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=30", Memory: room(8 << 20)}, `"code":10000`},
		{api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=34"}, `"code":10000`},
		{api.Request{Method: "PATCH", Path: "/v2/inputs", Body: []byte(`{"action":"merge","inputs":[` + strings.Join(labels, ",") + `]}`)}, `shows less than usual`},
	} {
		want, got := native.Serve(t, r.Request), module.Serve(t, r.Request)
		if got.Status != want.Status || !bytes.Equal(got.Body, want.Body) || !bytes.Contains(got.Body, []byte(r.want)) {
			t.Errorf("%s %s: the module answers %d %.300s, natively %d %.300s; want %s", r.Method, r.Path, got.Status, got.Body, want.Status, want.Body, r.want)
		}
	}
}
