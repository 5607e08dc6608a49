package instance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/sync/replica"
)

// statusText returns the answer of the replica's own endpoint /v2/sync/path, and checks that it contains parts.
func (k *replicaPage) statusText(t testing.TB, path string, parts ...string) string {
	t.Helper()
	body := k.fetch(t, 200, "GET", "/v2/sync/"+path, "", "")
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("%s: %s, want %s", path, body, part)
		}
	}
	return body
}

// TestReplicaStatus checks that a replica's status shows its durable, pending, sent and conflicting operations, also after a restart.
func TestReplicaStatus(t *testing.T) {
	s := newSource(t)
	s.add(t, "red", "red.png")
	disk := journaltest.NewDisk()
	k, guestErr := s.keep(t, disk, true)
	if guestErr != nil {
		t.Fatal(guestErr)
	}
	k.statusText(t, "status", `"origin":"https://origin.example","phase":"stopped","cursor":0,"head":0,"queued":0,"sent":0,"conflicts":0}`)
	k.handle(t, replica.Begin{})
	k.settle(t)
	k.statusText(t, "status", `"phase":"current"`, `"contact":"2026-`, `"as_of":"2026-`, `"queued":0`)

	k.down = true
	r := k.answer(t, &api.Request{
		Method: "PATCH", Path: "/v2/inputs", Body: []byte(`{"action":"merge","inputs":[{"id":"red","data":{"concepts":[{"id":"warm"}]}}]}`),
	})
	header := fmt.Sprint(r.Header)
	_, operations, local := strings.Cut(header, "{X-Sightline-Durability local} {X-Sightline-Operations ")
	writer, span, _ := strings.Cut(operations, ":")
	if r.Status != 200 || !local || len(writer) != 16 || !strings.HasPrefix(span, "1-1}") {
		t.Fatalf("%d %s, %s", r.Status, r.Body, header)
	}
	k.handle(t, replica.LocalWrite{})
	queued := k.statusText(t, "outbox", `"writer":"`+writer+`","seq":1,`, `"kind":"input_labels","input_id":"red","content":{"concepts":[{"id":"warm","name":"warm","value":1}]},"state":"queued"`)
	k.statusText(t, "status", `"queued":1,"sent":0`, `"problem":"`, `"retry":"`)
	if err := s.delete(t, "red"); err != nil {
		t.Fatal(err)
	}
	k.restart(t, disk)
	if got := k.statusText(t, "outbox"); got != queued {
		t.Errorf("after a restart the outbox is %s, was %s", got, queued)
	}
	k.down = false
	k.handle(t, replica.Begin{})
	k.settle(t)
	k.statusText(t, "outbox", `"operations":[]`)
	k.statusText(t, "status", `"queued":0,"sent":0,"conflicts":1`)
	k.restart(t, disk)
	k.handle(t, replica.Begin{}) // the replica pulls again what the restart lost
	k.settle(t)
	k.statusText(t, "conflicts", `"id":"`+writer+`-1"`, `"input_id":"red","content":{"concepts":[{"id":"warm","name":"warm","value":1}]},"verdict":"gone","reason":"The input was already deleted."`)
	k.fetch(t, 404, "DELETE", "/v2/sync/conflicts/"+writer+"-2", "", "")
	k.fetch(t, 200, "DELETE", "/v2/sync/conflicts/"+writer+"-1", "", "")
	k.restart(t, disk)
	k.statusText(t, "conflicts", `"conflicts":[]`)
	if done := k.fetch(t, 404, "PUT", "/v2/sync/session", "", ""); !strings.Contains(done, `"code":11101`) {
		t.Errorf("a call of the protocol: %s", done)
	}

	alone := openPage(t, apitest.TinyBundles(t), nil)
	r = alone.answer(t, &api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[` + picture("red", "red.png", "") + `]}`)})
	if header := fmt.Sprint(r.Header); r.Status != 200 || !strings.Contains(header, "{X-Sightline-Durability origin}") || strings.Contains(header, "{X-Sightline-Operations") {
		t.Errorf("a page's own application: %d %s, %s", r.Status, r.Body, header)
	}
	if body := alone.fetch(t, 404, "GET", "/v2/sync/outbox", "", ""); !strings.Contains(body, "is not a replica") {
		t.Errorf("the outbox of a page's own application: %s", body)
	}
}

// delete deletes an input at the origin.
func (s *source) delete(t testing.TB, id string) error {
	t.Helper()
	c := s.Engine.Begin(t.Context(), &api.Request{Method: "DELETE", Path: "/v2/inputs/" + id, Authorization: "Key " + s.Key})
	if r := c.Response(); r.Status != 200 {
		return fmt.Errorf("%d %s", r.Status, r.Body)
	}
	return nil
}

// restart opens the replica again on the same disk, without closing it.
func (k *replicaPage) restart(t testing.TB, disk *journaltest.Disk) {
	t.Helper()
	next, guestErr := k.from.keep(t, disk, false)
	if guestErr != nil {
		t.Fatal(guestErr)
	}
	next.down, next.now = k.down, k.now
	*k = *next
}

// TestDuplicatesAtReplica: a replica lists duplicates in the same bytes as its origin, for inputs of the first sync and of later ones. It
// has no thumbnails of them.
func TestDuplicatesAtReplica(t *testing.T) {
	s := newSource(t)
	s.add(t, "red", "red.png")
	s.add(t, "again", "red.png")
	disk := journaltest.NewDisk()
	k, guestErr := s.keep(t, disk, true)
	if guestErr != nil {
		t.Fatal(guestErr)
	}
	k.handle(t, replica.Begin{})
	k.settle(t)
	s.addPart(t, "part", "red.png")
	k.restart(t, disk)
	k.handle(t, replica.Begin{})
	k.settle(t)
	for _, path := range []string{"/v2/inputs/red/duplicates", "/v2/duplicates"} {
		want := s.read(t, path)
		for _, tier := range []string{"same_file", "re_encoded"} {
			if !strings.Contains(want, `"tier":"`+tier+`"`) {
				t.Fatalf("the origin answers %s without %s: %s", path, tier, want)
			}
		}
		if got := k.fetch(t, 200, "GET", path, "", ""); got != want {
			t.Errorf("%s: the copy answers %s, want %s", path, got, want)
		}
	}
}
