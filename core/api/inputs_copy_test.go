package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// TestTakenIDAtReplica: a replica that rejects an id or a URL as taken answers like its origin. It queues no operation, and no conflict
// results.
func TestTakenIDAtReplica(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", pond)
	a.origin("POST /inputs", `{"inputs":[{"id":"lost","data":{"image":{"url":"http://pictures.test/missing.png"}}}]}`)
	a.Origin.Step(t, time.Minute)
	a.Pull(t)
	if got := a.to(a.Origin, "GET /inputs/lost", ""); !strings.Contains(string(got.Body), `"code":30002`) {
		t.Fatalf("an input that failed: %s", got.Body)
	}
	duplicates := `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/white.png"}}},` +
		`{"id":"puddle","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	mixed := `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/white.png"}}},` +
		`{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"}}},` +
		`{"id":"lake","data":{"image":{"url":"http://pictures.test/black.png"}}},` +
		`{"id":"lost","data":{"image":{"url":"http://pictures.test/half.png"}}}]}`
	for _, body := range []string{duplicates, mixed} {
		replica, origin := a.to(a.World, "POST /inputs", body), a.to(a.Origin, "POST /inputs", body)
		if diff := cmp.Diff(fmt.Sprint(origin.Status, string(origin.Body)), fmt.Sprint(replica.Status, string(replica.Body))); diff != "" {
			t.Errorf("another answer than the origin's (-want +got):\n%s", diff)
		}
		if body == duplicates {
			if written := strings.Contains(fmt.Sprint(replica.Header), "X-Sightline"); replica.Status != 400 || written {
				t.Errorf("what is taken is answered with %d, %v", replica.Status, replica.Header)
			}
			a.stands(0, 0, 0)
		}
	}
	a.stands(0, 2, 0)
	if diff := cmp.Diff([]string{"lake", "lost"}, a.list("GET /sync/outbox", "input_id")); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
	for _, id := range []string{"lake", "lost"} { // so that the replica's operations are the first with these ids
		a.origin("DELETE /inputs/"+id, "")
	}
	a.Push(t)
	a.Pull(t)
	a.stands(0, 0, 0)
}

// TestReplicaRejectsLikeOrigin checks that a replica answers like its origin about unchangeable pictures, equal files, the training set of
// a version whose inputs were deleted, and insufficient credentials.
func TestReplicaRejectsLikeOrigin(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", `{"inputs":[{"id":"r1","data":{"image":{"url":"http://pictures.test/red.png?1"},"concepts":[{"id":"warm"}]}},`+
		`{"id":"r2","data":{"image":{"url":"http://pictures.test/red.png?2"},"concepts":[{"id":"warm"}]}},`+
		`{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"warm","value":false}]}}]}`)
	a.origin("POST /models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
	a.origin("POST /models/heat/versions", "")
	a.Origin.Step(t, time.Second)
	a.origin("DELETE /inputs/b", "")
	a.Pull(t)

	app, err := catalog.ParseAppID(a.App)
	if err != nil {
		t.Fatal(err)
	}
	records := catalog.Read(a.Origin.Store, app)
	m, err := records.Model("heat")
	if err != nil {
		t.Fatal(err)
	}
	version, err := records.Version(m.Dot, m.Newest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := records.Object(version.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	var objects kv.Batch
	catalog.PutObject(&objects, app, manifest)
	if err := a.World.Store.Apply(&objects); err != nil {
		t.Fatal(err)
	}

	weak := &replicaCalls{Replica: apitest.NewReplica(t, apitest.Tiny(t), map[string]string{"owner": "anna", "scopes": "Inputs_Get"}), TB: t}
	for _, tt := range []struct {
		of                        *replicaCalls
		call, body, authorization string
		status                    int
		want                      string
	}{
		{a, "PATCH /inputs", `{"inputs":[{"id":"r1","data":{"image":{"crop":[0,0,1,0.5]}}}]}`, "", 400, "a stored picture cannot be changed"},
		{a, "GET /inputs", "", "", 200, "Input 'r1' has the same file."},
		{a, "GET /models/heat/versions/" + version.ID + "/inputs", "", "", 200, "The input was deleted."},
		{a, "GET /inputs", "", "Key unknown", 401, "invalid key"},
		{weak, "DELETE /inputs", `{"ids":["r1"]}`, "", 403, `lacks Inputs:Add, Inputs:Delete"`},
	} {
		answer := func(w *apitest.World) string {
			method, path, _ := strings.Cut(tt.call, " ")
			r := api.Request{Method: method, Path: "/v2" + path, Body: []byte(tt.body), Authorization: tt.authorization}
			got := w.Serve(t, r)
			return fmt.Sprint(got.Status, " ", string(got.Body))
		}
		replica, origin := answer(tt.of.World), answer(tt.of.Origin)
		if diff := cmp.Diff(origin, replica); diff != "" || !strings.HasPrefix(replica, fmt.Sprint(tt.status)) || !strings.Contains(replica, tt.want) {
			t.Errorf("%s: %s, want %d and %q (-origin +copy):\n%s", tt.call, replica, tt.status, tt.want, diff)
		}
	}
}

// TestAnswerWhilePulling: a replica answers a change with the changed inputs, though they have come back from the origin before the answer. They
// follow another input there, so their ordinals have changed.
func TestAnswerWhilePulling(t *testing.T) {
	a := newReplicaCalls(t)
	a.do("POST /inputs", pond)
	a.origin("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)
	a.Push(t)
	store := &waitingStore{Store: a.World.Store}
	if err := a.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	a.Open(t, store)
	for _, tt := range []struct{ call, body, want string }{
		{"PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"wet"}]}}]}`, `"id":"wet"`},
		{"POST /inputs", `{"inputs":[{"id":"sea","data":{"image":{"url":"http://pictures.test/white.png"},"metadata":{"deep":true}}}]}`, `"deep":true`},
	} {
		pulled := false
		store.waited = func() {
			if strings.HasPrefix(tt.call, "POST") {
				a.origin("POST /inputs", `{"inputs":[{"id":"river","data":{"image":{"url":"http://pictures.test/black.png"}}}]}`)
				a.Push(t)
			}
			a.Pull(t)
			pulled = true
		}
		if answer, _ := a.do(tt.call, tt.body); !pulled || !strings.Contains(answer, tt.want) {
			t.Errorf("%s, pulled %t: %s, want %s", tt.call, pulled, answer, tt.want)
		}
	}
}

// waitingStore calls waited once, after a commit.
type waitingStore struct {
	kv.Store
	waited func()
}

func (s *waitingStore) Commit(b *kv.Batch) (wait func() error, err error) {
	durable, err := s.Store.Commit(b)
	waited := s.waited
	if waited == nil || err != nil {
		return durable, err
	}
	s.waited = nil
	return func() error {
		err := durable()
		waited()
		return err
	}, nil
}
