package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTakenAtCopy: what a copy refuses because an id or an address is taken it has refused for good: it
// answers as its origin does, nothing waits, and no conflict comes of it.
func TestTakenAtCopy(t *testing.T) {
	a := newCopyAsked(t)
	a.origin("POST /inputs", pond)
	a.origin("POST /inputs", `{"inputs":[{"id":"lost","data":{"image":{"url":"http://pictures.test/missing.png"}}}]}`)
	a.Origin.Step(t, time.Minute)
	a.Pull(t)
	if got := a.to(a.Origin, "GET /inputs/lost", ""); !strings.Contains(string(got.Body), `"code":30002`) {
		t.Fatalf("an input that failed: %s", got.Body)
	}
	taken := `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/white.png"}}},` +
		`{"id":"puddle","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	mixed := `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/white.png"}}},` +
		`{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"}}},` +
		`{"id":"lake","data":{"image":{"url":"http://pictures.test/black.png"}}},` +
		`{"id":"lost","data":{"image":{"url":"http://pictures.test/half.png"}}}]}`
	for _, body := range []string{taken, mixed} {
		here, there := a.to(a.World, "POST /inputs", body), a.to(a.Origin, "POST /inputs", body)
		if diff := cmp.Diff(fmt.Sprint(there.Status, string(there.Body)), fmt.Sprint(here.Status, string(here.Body))); diff != "" {
			t.Errorf("another answer than the origin's (-want +got):\n%s", diff)
		}
		if body == taken {
			if written := strings.Contains(fmt.Sprint(here.Header), "X-Sightline"); here.Status != 400 || written {
				t.Errorf("what is taken is answered with %d, %v", here.Status, here.Header)
			}
			a.stands(0, 0, 0)
		}
	}
	a.stands(0, 2, 0)
	if diff := cmp.Diff([]string{"lake", "lost"}, a.list("GET /sync/outbox", "input_id")); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
	for _, id := range []string{"lake", "lost"} { // so that the copy is first
		a.origin("DELETE /inputs/"+id, "")
	}
	a.Push(t)
	a.Pull(t)
	a.stands(0, 0, 0)
}
