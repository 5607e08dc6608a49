package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// replicaCalls is a replica with short helpers for API calls. Calls and answers name its first writer W1, the next one W2.
type replicaCalls struct {
	*apitest.Replica
	testing.TB
	writers []string // texts of the replica's writers
}

func newReplicaCalls(t testing.TB) *replicaCalls {
	t.Helper()
	return &replicaCalls{Replica: apitest.NewReplica(t, apitest.Tiny(t), map[string]string{"owner": "anna"}), TB: t}
}

// to sends a call, such as "GET /inputs", to a world.
func (a *replicaCalls) to(w *apitest.World, call, body string) api.Response {
	a.Helper()
	for i, w := range a.writers {
		call = strings.ReplaceAll(call, fmt.Sprint("W", i+1), w)
	}
	method, path, _ := strings.Cut(call, " ")
	path, query, _ := strings.Cut(path, "?")
	return w.Serve(a.TB, api.Request{Method: method, Path: "/v2" + path, Query: query, Body: []byte(body)})
}

// do makes a call that must succeed. It returns the answer without its status, and the X-Sightline headers.
func (a *replicaCalls) do(call, body string) (answer string, wrote string) {
	a.Helper()
	r := a.to(a.World, call, body)
	if r.Status != 200 {
		a.Fatalf("%s: %d %s", call, r.Status, r.Body)
	}
	for _, f := range r.Header {
		if strings.HasPrefix(f.Name, "X-Sightline-") {
			wrote = strings.TrimPrefix(wrote+" "+f.Value, " ")
		}
	}
	answer = strings.TrimPrefix(string(r.Body), `{"status":{"code":10000,"description":"Ok"}`)
	if _, operations, ok := strings.Cut(wrote, "local "); ok {
		if w, _, _ := strings.Cut(operations, ":"); !slices.Contains(a.writers, w) {
			a.writers = append(a.writers, w)
		}
	}
	for i, w := range a.writers {
		answer, wrote = strings.ReplaceAll(answer, w, fmt.Sprint("W", i+1)), strings.ReplaceAll(wrote, w, fmt.Sprint("W", i+1))
	}
	return answer, wrote
}

// list returns one member of every element in a call's list.
func (a *replicaCalls) list(call, member string) (values []string) {
	a.Helper()
	answer, _ := a.do(call, "")
	var members map[string]any
	if err := json.Unmarshal([]byte("{"+strings.TrimPrefix(answer, ",")), &members); err != nil {
		a.Fatalf("%s: %s: %v", call, answer, err)
	}
	for _, list := range members {
		rows, _ := list.([]any)
		for _, row := range rows {
			values = append(values, fmt.Sprint(row.(map[string]any)[member]))
		}
	}
	return values
}

func (a *replicaCalls) origin(call, body string) {
	a.Helper()
	if r := a.to(a.Origin, call, body); r.Status != 200 {
		a.Fatalf("%s: %d %s", call, r.Status, r.Body)
	}
}

const pond = `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`

// TestOutbox follows a write from the replica's answer to the origin's log and back.
func TestOutbox(t *testing.T) {
	a := newReplicaCalls(t)
	if got, _ := a.do("GET /sync/outbox", ""); got != `,"operations":[]}` {
		t.Errorf("before anything: %s", got)
	}
	a.origin("POST /inputs", pond)
	a.Pull(t)
	if _, wrote := a.do("POST /concepts", `{"concepts":[{"id":"water","name":"water"}]}`); wrote != "local W1:1-1" {
		t.Errorf("the answer to the first write says %q", wrote)
	}
	_, wrote := a.do("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"water"}]}}]}`)
	if want := "local W1:2-2"; wrote != want {
		t.Errorf("the answer to a write says %q, want %q", wrote, want)
	}
	_, wrote = a.do("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"water","value":0}]}}]}`)
	if want := "local W1:3-3"; wrote != want {
		t.Errorf("the answer to a change says %q, want %q", wrote, want)
	}
	if _, wrote = a.do("GET /inputs", ""); wrote != "" {
		t.Errorf("the answer to a reader says %q", wrote)
	}
	if _, wrote = a.do("POST /models/aaa03c23b3724a16a56b629203edc62c/outputs", `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`); wrote != "" {
		t.Errorf("the answer to a prediction says %q", wrote)
	}
	want := `,"operations":[` +
		`{"writer":"W1","seq":1,"at":"2026-11-21T18:00:00.000000Z","by":"BY","kind":"concept_create","concept_id":"water","content":{"name":"water"},"state":"queued"},` +
		`{"writer":"W1","seq":2,"at":"2026-11-21T18:00:00.000000Z","by":"BY","kind":"input_create","input_id":"lake","content":{"url":"http://pictures.test/blue.png","concepts":[{"id":"water","name":"water","value":1}]},"state":"queued"},` +
		`{"writer":"W1","seq":3,"at":"2026-11-21T18:00:00.000000Z","by":"BY","kind":"input_labels","input_id":"pond","content":{"concepts":[{"id":"water","name":"water","value":0}]},"state":"queued"}]}`
	want = strings.ReplaceAll(want, "BY", auth.ByKey(auth.HashKey(a.Key)))
	if got, _ := a.do("GET /sync/outbox", ""); got != want {
		t.Errorf("outbox:\n%s\nwant\n%s", got, want)
	}
	for query, want := range map[string][]string{
		"?per_page=2": {"1", "2"}, "?page=2&per_page=2": {"3"}, "?page=3&per_page=2": nil, "?page=9": nil, "?page=1099511627776&per_page=1000": nil, "": {"1", "2", "3"},
	} {
		if diff := cmp.Diff(want, a.list("GET /sync/outbox"+query, "seq")); diff != "" {
			t.Errorf("outbox%s (-want +got):\n%s", query, diff)
		}
	}
	a.stands(0, 3, 0)
	a.Push(t)
	if diff := cmp.Diff([]string{"sent", "sent", "sent"}, a.list("GET /sync/outbox", "state")); diff != "" {
		t.Errorf("after they were sent (-want +got):\n%s", diff)
	}
	a.do("DELETE /inputs/pond", "")
	a.Restart(t)
	if diff := cmp.Diff([]string{"sent", "sent", "sent", "queued"}, a.list("GET /sync/outbox", "state")); diff != "" {
		t.Errorf("after one more and a restart (-want +got):\n%s", diff)
	}
	a.stands(3, 1, 0)
	a.Pull(t)
	if diff := cmp.Diff([]string{"4"}, a.list("GET /sync/outbox", "seq")); diff != "" {
		t.Errorf("after three came back (-want +got):\n%s", diff)
	}
	a.Push(t)
	a.Pull(t)
	if got, _ := a.do("GET /sync/outbox", ""); got != `,"operations":[]}` {
		t.Errorf("when all is confirmed: %s", got)
	}
	a.stands(0, 0, 0)
}

// TestReplicaRejectsDeletionOfUnknownInput: a replica that is not in sync rejects deletions of inputs that it never had, since its origin
// may have them. A repeated deletion succeeds. A replica in sync answers like its origin.
func TestReplicaRejectsDeletionOfUnknownInput(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/blue.png"}}},{"id":"dune","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)
	a.origin("POST /models", `{"model":{"id":"wet"}}`)
	a.Pull(t)
	a.origin("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/green.png"}}}]}`)
	a.origin("POST /models", `{"model":{"id":"dry"}}`)
	ids := func(list string) string { return `{"ids":[` + list + `]}` }
	refused := func(call, body, details string) {
		t.Helper()
		r := a.to(a.World, call, body)
		want := `{"status":{"code":30102,"description":"Input does not exist","details":"` + details + `"}}`
		if strings.Contains(call, "models") {
			want = `{"status":{"code":11101,"description":"Resource does not exist","details":"` + details + `"}}`
		}
		if r.Status != 404 || string(r.Body) != want {
			t.Errorf("%s %s: %d %s, want 404 %s", call, body, r.Status, r.Body, want)
		}
	}
	rest := " This replica is not in sync with its origin, which may have more. Nothing was deleted. Try again when the replica is in sync, or at the origin."
	a.SyncStatus.Phase = "connecting"
	refused("DELETE /inputs", ids(`"pond","lake"`), "Unknown here: lake."+rest)
	refused("DELETE /models", ids(`"wet","dry"`), "Unknown here: dry."+rest)
	a.stands(0, 0, 0)
	for range 2 { // repeats the deletion, like a client that did not get the answer
		a.do("DELETE /inputs", ids(`"pond"`))
		a.do("DELETE /models", ids(`"wet"`))
	}
	a.stands(0, 2, 0)
	a.Push(t)
	a.Pull(t)
	a.do("DELETE /inputs", ids(`"pond"`))
	refused("DELETE /inputs", ids(`"sea"`), "Unknown here: sea."+rest)
	a.do("DELETE /inputs", ids(`"lake"`))
	a.SyncStatus.Phase = "current"
	if got, wrote := a.do("DELETE /inputs", ids(`"dune","sea"`)); got != "}" || wrote != "local W1:4-4" {
		t.Errorf("in sync: %s %s", got, wrote)
	}
	a.SyncStatus.Phase = "unreachable"
	a.do("DELETE /inputs", `{"delete_all":true}`)
	a.do("DELETE /inputs", ids(`"sea"`)) // already deleted by delete_all
}

// stands checks the counts in the sync status.
func (a *replicaCalls) stands(sent, queued, conflicts int) {
	a.Helper()
	got, _ := a.do("GET /sync/status", "")
	if want := fmt.Sprintf(`"queued":%d,"sent":%d,"conflicts":%d`, queued, sent, conflicts); !strings.Contains(got, want) {
		a.Errorf("status %s, want %s", got, want)
	}
}

func TestReplicaStatus(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", pond)
	want := `,"copy":{"app_id":"` + a.App + `","origin":"https://origin.test","phase":"current","cursor":0,"head":0,"queued":0,"sent":0,"conflicts":0}}`
	if got, _ := a.do("GET /sync/status", ""); got != want {
		t.Errorf("status %s, want %s", got, want)
	}
	a.Pull(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	a.SyncStatus = api.SyncStatus{
		Origin: "https://origin.test", Phase: "connecting", Head: 7, Contact: at, AsOf: at.Add(time.Second), Denied: "the key was deleted", Problem: "no route", Limit: "Calls", Retry: at.Add(time.Minute),
	}
	want = `,"copy":{"app_id":"` + a.App + `","origin":"https://origin.test","phase":"connecting","cursor":3,"head":7,"contact":"2026-01-02T03:04:05.000006Z",` +
		`"as_of":"2026-01-02T03:04:06.000006Z","queued":0,"sent":0,"conflicts":0,"denied":"the key was deleted","problem":"no route","limit":"Calls","retry":"2026-01-02T03:05:05.000006Z"}}`
	if got, _ := a.do("GET /sync/status", ""); got != want {
		t.Errorf("status %s, want %s", got, want)
	}
	a.do("POST /concepts", `{"concepts":[{"id":"a","name":"a"}]}`)
	a.HasStatus = false
	want = `,"copy":{"app_id":"` + a.App + `","phase":"stopped","cursor":3,"head":3,"queued":1,"sent":0,"conflicts":0}}`
	if got, _ := a.do("GET /sync/status", ""); got != want {
		t.Errorf("status of a copy that nobody keeps %s, want %s", got, want)
	}
}

// TestAnswersWithoutReplica checks the answers of an application that is not a replica. Its writes name the origin as their durability.
func TestAnswersWithoutReplica(t *testing.T) {
	a := newReplicaCalls(t)
	for _, call := range []string{"GET /sync/status", "GET /sync/outbox", "GET /users/me/apps/" + a.App + "/sync/status"} {
		r := a.to(a.Origin, call, "")
		if r.Status != 404 || !bytes.Contains(r.Body, []byte(`"code":11101`)) || !bytes.Contains(r.Body, []byte("is not a replica")) {
			t.Errorf("%s at the origin: %d %s", call, r.Status, r.Body)
		}
	}
	r := a.to(a.Origin, "POST /inputs", pond)
	want := []api.Field{
		{Name: "Access-Control-Allow-Origin", Value: "*"},
		{Name: "X-Sightline-Durability", Value: "origin"},
		{Name: "Access-Control-Expose-Headers", Value: "Retry-After, X-Sightline-Calls-Left, X-Sightline-Durability, X-Sightline-Operations, X-Sightline-Notice"},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Errorf("the answer's headers (-want +got):\n%s", diff)
	}
	// One of two inputs is added.
	r = a.to(a.Origin, "POST /inputs", `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/red.png"}}},{"id":"sea","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)
	if diff := cmp.Diff(want, r.Header); diff != "" || r.Status != 207 {
		t.Errorf("the headers of %d (-want +got):\n%s", r.Status, diff)
	}
	if r = a.to(a.Origin, "POST /inputs", `{"inputs":[{}]}`); len(r.Header) != 1 {
		t.Errorf("the headers of what was not done are %v", r.Header)
	}
}

// TestNewApplicationsAndKeysReportStorage checks that answers to an account's new applications and keys report that the origin stored them.
func TestNewApplicationsAndKeysReportStorage(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /login", `{"email":"anna@example.com","password":"anna's password"}`)
	for call, body := range map[string]string{
		"apps": `{"apps":[{"name":"garden"}]}`, "keys": `{"keys":[{"scopes":["All"],"apps":[{"id":"` + a.App + `","user_id":"me"}]}]}`,
	} {
		r := a.Origin.Serve(t, api.Request{Method: "POST", Path: "/v2/users/me/" + call, Session: "session-1", Body: []byte(body)})
		if !strings.Contains(fmt.Sprint(r.Header), "{X-Sightline-Durability origin}") {
			t.Errorf("%s: %d %s, %v", call, r.Status, r.Body, r.Header)
		}
	}
}

// TestConflicts checks the text of each verdict. A conflict stays until it is dismissed.
func TestConflicts(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", pond)
	a.origin("POST /models", `{"model":{"id":"way","name":"way"}}`)
	a.Pull(t)
	a.do("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"},"metadata":{"depth":3}}}]}`) // 1
	a.do("POST /inputs", `{"inputs":[{"id":"sea","data":{"image":{"url":"http://pictures.test/white.png","crop":[0,0,0.5,1]}}}]}`)     // 2
	a.do("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"metadata":{"a":{"b":1}}}}]}`)                             // 3
	a.do("PATCH /models", `{"action":"overwrite","models":[{"id":"way","name":"road"}]}`)                                              // 4
	a.do("POST /concepts", `{"concepts":[{"id":"blue","name":"azul"}]}`)                                                               // 5
	a.do("POST /workflows", `{"workflows":[{"id":"flow","nodes":[{"id":"n","model":{"id":"aaa03c23b3724a16a56b629203edc62c"}}]}]}`)    // 6
	a.do("PATCH /inputs", `{"action":"merge","inputs":[{"id":"lake","data":{"geo":{"geo_point":{"longitude":1.5,"latitude":2}}}}]}`)   // 7
	a.origin("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/black.png"}}},{"id":"ocean","data":{"image":{"url":"http://pictures.test/white.png"}}}]}`)
	a.origin("DELETE /inputs/pond", "")
	a.origin("DELETE /models/way", "")
	a.origin("POST /concepts", `{"concepts":[{"id":"blue","name":"bleu"}]}`)
	a.Push(t)
	a.Pull(t)
	by := auth.ByKey(auth.HashKey(a.Key))
	row := func(seq int, rest string) string {
		return fmt.Sprintf(`{"id":"W1-%d","writer":"W1","seq":%[1]d,"at":"2026-11-21T18:00:00.000000Z","by":"%s",%s}`, seq, by, rest)
	}
	want := []string{
		row(1, `"kind":"input_create","input_id":"lake","content":{"url":"http://pictures.test/blue.png","metadata":{"depth":3}},"verdict":"duplicate","reason":"Another input with this ID already existed.","position":10`),
		row(2, `"kind":"input_create","input_id":"sea","content":{"url":"http://pictures.test/white.png","crop":[0,0,0.5,1]},"verdict":"duplicate","reason":"Input \"ocean\" already has this URL.","position":11`),
		row(3, `"kind":"input_meta","input_id":"pond","content":{"metadata":[{"action":"set","path":["a","b"],"value":1}]},"verdict":"gone","reason":"The input was already deleted.","position":12`),
		row(4, `"kind":"model_patch","model_id":"way","content":{"name":"road"},"verdict":"gone","reason":"The model was already deleted.","position":13`),
		row(5, `"kind":"concept_create","concept_id":"blue","content":{"name":"azul"},"verdict":"duplicate","reason":"Another concept with this ID already existed.","position":14`),
		row(7, `"kind":"input_geo","input_id":"lake","content":{"geo":{"geo_point":{"longitude":1.5,"latitude":2}}},"verdict":"gone","reason":"The input it refers to was rejected.","position":16`),
	}
	if got, _ := a.do("GET /sync/conflicts", ""); got != `,"dropped":0,"conflicts":[`+strings.Join(want, ",")+`]}` {
		t.Errorf("conflicts:\n%s\nwant\n%s", strings.ReplaceAll(got, `},{"id":"W1-`, "},\n{\"id\":\"W1-"), strings.Join(want, ",\n"))
	}
	a.stands(0, 0, len(want))
	for query, want := range map[string][]string{
		"?per_page=2": {"W1-1", "W1-2"}, "?page=3&per_page=2": {"W1-5", "W1-7"}, "?page=4&per_page=2": nil, "?page=2&per_page=5": {"W1-7"},
	} {
		if diff := cmp.Diff(want, a.list("GET /sync/conflicts"+query, "id")); diff != "" {
			t.Errorf("conflicts%s (-want +got):\n%s", query, diff)
		}
	}
	a.dismiss(t, len(want))
}

// dismiss dismisses conflict W1-4 of n and checks that the other conflicts stay.
func (a *replicaCalls) dismiss(t *testing.T, n int) {
	t.Helper()
	for _, id := range []string{"W1-6", "2-1", "W1", "W1-", "-1", "0W1-1", "W1-01", "W1-1-", "+W1-1", "2-99999999999999999999999", "4294967298-1", "x-y"} {
		if r := a.to(a.World, "DELETE /sync/conflicts/"+id, ""); r.Status != 404 || !bytes.Contains(r.Body, []byte("conflict_id '"+strings.ReplaceAll(id, "W1", a.writers[0])+"' not found")) {
			t.Errorf("DELETE %s: %d %s", id, r.Status, r.Body)
		}
	}
	a.stands(0, 0, n)
	if got, wrote := a.do("DELETE /sync/conflicts/W1-4", ""); got != "}" || wrote != "" {
		t.Errorf("DELETE: %s %s", got, wrote)
	}
	if r := a.to(a.World, "DELETE /sync/conflicts/W1-4", ""); r.Status != 404 {
		t.Errorf("DELETE again: %d %s", r.Status, r.Body)
	}
	want := []string{"W1-1", "W1-2", "W1-3", "W1-5", "W1-7"}
	for _, when := range []string{"after one was dismissed", "after a restart", "after another pull"} {
		if diff := cmp.Diff(want, a.list("GET /sync/conflicts", "id")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		if when == "after one was dismissed" {
			a.Restart(t)
		} else {
			a.origin("DELETE /inputs", `{"delete_all":true}`)
			a.Pull(t)
		}
	}
}

// refuse makes the origin refuse all queued operations of the replica, and makes the replica pull the verdicts.
func (a *replicaCalls) refuse(why string) {
	a.Helper()
	var ops []log.Op
	if err := a.Partition(a.TB).Pending(0, func(_ uint64, op log.Op) bool { ops = append(ops, op); return true }); err != nil {
		a.Fatal(err)
	}
	for i := range ops {
		partition.Refuse(&ops[i], why)
	}
	origin, err := a.Origin.Engine.Origin(a.App)
	if err == nil {
		_, _, err = origin.Accept(a.Context(), ops, nil)
	}
	if err != nil {
		a.Fatal(err)
	}
	a.Pull(a.TB)
}

// contents returns bodies of every kind in an application's log, with their displayed form.
func contents(red *predict.Concept, in, model log.Dot) []struct {
	body log.Body
	want string
} {
	h := blob.Hash{0xab}
	sum := "ab" + strings.Repeat("00", 31)
	name := "road"
	return []struct {
		body log.Body
		want string
	}{
		{
			&log.InputCreate{
				ID: "lake", Blob: h, ContentType: "image/png", Hosted: [16]byte{1}, Crop: raster.Crop{Bottom: 1, Right: 0.5}, AllowDuplicate: true, MergeIfEqual: true,
				Labels: []log.Label{{Concept: red.ID, Value: log.True}, {Concept: "b", Value: log.Removed}}, Meta: []byte(`{"a": 1}`), Geo: &log.Point{Longitude: 1, Latitude: -2.5},
			},
			`"kind":"input_create","input_id":"lake","content":{"hosted":"http://127.0.0.1:8080/hosted/01000000000000000000000000000000","sha256":"` + sum + `","content_type":"image/png",` +
				`"crop":[0,0,1,0.5],"concepts":[{"id":"` + red.ID + `","name":"red","value":1},{"id":"b","name":"b","value":null}],"metadata":{"a": 1},` +
				`"geo":{"geo_point":{"longitude":1,"latitude":-2.5}},"allow_duplicate_url":true,"merge_if_equal":true}`,
		},
		{&log.InputFetched{Input: in, Code: 30002, Detail: "404"}, `"kind":"input_fetched","input_id":"pond","content":{"status":{"code":30002,"description":"Download failed; check URL","details":"404"}}`},
		{
			&log.InputFetched{Input: in, Code: 30000, Blob: h, ContentType: "image/png"},
			`"kind":"input_fetched","input_id":"pond","content":{"status":{"code":30000,"description":"Download complete"},"sha256":"` + sum + `","content_type":"image/png"}`,
		},
		{&log.InputLabels{Input: in, Labels: []log.Label{{Concept: "b", Value: log.False}}}, `"kind":"input_labels","input_id":"pond","content":{"concepts":[{"id":"b","name":"b","value":0}]}`},
		{
			&log.InputMeta{Input: in, Writes: []log.MetaWrite{{Action: log.MetaSet, JSON: []byte(`{"x":null}`)}, {Path: []string{"a"}, Action: log.MetaRemove}, {Path: []string{"b", "c"}, Action: log.MetaAppend, JSON: []byte("[1]")}}},
			`"kind":"input_meta","input_id":"pond","content":{"metadata":[{"action":"set","path":[],"value":{"x":null}},{"action":"remove","path":["a"]},{"action":"append","path":["b","c"],"value":[1]}]}`,
		},
		{&log.InputMeta{Input: in, Writes: []log.MetaWrite{{JSON: []byte("{")}}}, `"kind":"input_meta","input_id":"pond","content":{"metadata":[{"action":"set","path":[],"value":"{"}]}`},
		{&log.InputGeo{Input: in}, `"kind":"input_geo","input_id":"pond","content":{"geo":null}`},
		{&log.InputDelete{Input: log.Dot{Writer: 9, Seq: 9}}, `"kind":"input_delete","content":{}`},
		{&log.InputDeleteAll{Barrier: true, Upto: []log.Dot{{Writer: 9}}}, `"kind":"input_delete_all","content":{"barrier":true}`},
		{
			&log.OutputsPatch{Input: log.Dot{}, Edits: []log.OutputEdit{{Concept: "b", Value: 0.25}, {Concept: "c", Removed: true}}},
			`"kind":"outputs_patch","content":{"concepts":[{"id":"b","name":"b","value":0.25},{"id":"c","name":"c","value":null}]}`,
		},
		{&log.ConceptCreate{ID: "new", Name: "bee", Language: "en"}, `"kind":"concept_create","concept_id":"new","content":{"name":"bee","language":"en"}`},
		{&log.ConceptName{ID: "new", Name: "wasp"}, `"kind":"concept_name","concept_id":"new","content":{"name":"wasp"}`},
		{&log.ConceptDelete{ID: "new"}, `"kind":"concept_delete","concept_id":"new","content":{}`},
		{
			&log.ModelCreate{ID: "m", Name: "em", Version: "v1", Concepts: []string{"b"}, Config: []log.Setting{{Name: "language", JSON: []byte(`"en"`)}}},
			`"kind":"model_create","model_id":"m","version_id":"v1","content":{"name":"em","concepts":[{"id":"b","name":"b"}],"output_config":[{"name":"language","value":"en"}]}`,
		},
		{
			&log.ModelPatch{Model: model, Name: &name, Config: []log.Setting{{Name: "x"}}, Add: []string{"b"}, Remove: []string{"c"}, Version: "v2"},
			`"kind":"model_patch","model_id":"way","version_id":"v2","content":{"name":"road","added_concepts":[{"id":"b","name":"b"}],"removed_concepts":[{"id":"c","name":"c"}],"output_config":[{"name":"x","value":null}]}`,
		},
		{&log.VersionTrain{Model: model, Version: "v3"}, `"kind":"version_train","model_id":"way","version_id":"v3","content":{}`},
		{
			&log.VersionResult{Model: model, Version: "v3", Code: 21100, Manifest: h},
			`"kind":"version_result","model_id":"way","version_id":"v3","content":{"status":{"code":21100,"description":"Model trained successfully"},"manifest":"` + sum + `"}`,
		},
		{&log.VersionDelete{Model: model, Version: "v3"}, `"kind":"version_delete","model_id":"way","version_id":"v3","content":{}`},
		{&log.ModelDelete{Model: model}, `"kind":"model_delete","model_id":"way","content":{}`},
		{&log.ModelDeleteAll{}, `"kind":"model_delete_all","content":{}`},
		{
			&log.WorkflowCreate{ID: "flow", Nodes: []log.WorkflowNode{{ID: "n", Model: "aaa03c23b3724a16a56b629203edc62c", Version: "v"}, {ID: "o", Model: "way"}}},
			`"kind":"workflow_create","workflow_id":"flow","content":{"nodes":[{"id":"n","model_id":"aaa03c23b3724a16a56b629203edc62c","version_id":"v"},{"id":"o","model_id":"way"}]}`,
		},
		{&log.WorkflowDelete{}, `"kind":"workflow_delete","content":{}`},
		{&log.Feedback{Model: "way", Version: "v1", JSON: []byte(`{"id":"x"}`)}, `"kind":"feedback","model_id":"way","version_id":"v1","content":{"feedback":{"id":"x"}}`},
		{&log.Refused{Reason: "lost"}, `"kind":"refused","content":{"reason":"lost"}`},
		{&log.Horizon{At: 1}, `"kind":"horizon","content":{"number":51,"data":`},
		{&log.NetworkSwitch{}, `"kind":"network_switch","content":{"number":52,"data":`},
		{&log.Rules{}, `"kind":"rules","content":{"number":54,"data":`},
		{&log.Unknown{Kind: 99, Data: []byte{8, 1}}, `"kind":"unknown","content":{"number":99,"data":`},
	}
}

// TestContentsOfOperations checks the displayed form of operations of every kind, in the outbox and as conflicts that the origin refused.
func TestContentsOfOperations(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", pond)
	a.origin("POST /models", `{"model":{"id":"way","name":"way"}}`)
	a.Pull(t)
	in, err := a.Origin.Input("pond")
	if err != nil {
		t.Fatal(err)
	}
	v := a.Partition(t).View()
	model, err := v.Model("way")
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	all := contents(&apitest.Tiny(t).General().Concepts[0], in.Dot, model.Dot)
	kinds := map[log.Kind]bool{}
	for _, c := range all {
		if _, err := a.Partition(t).Submit(t.Context(), "", []log.Body{c.body}, nil); err != nil {
			t.Fatal(err)
		}
		kinds[log.KindOf(c.body)] = true
	}
	for _, b := range logtest.Bodies() {
		if k := log.KindOf(b); k < 64 && !kinds[k] { // kinds from 64 belong to the control log
			t.Errorf("no %s among the contents", k)
		}
	}
	for _, call := range []string{"GET /sync/outbox?per_page=100", "GET /sync/conflicts?per_page=100"} {
		if strings.Contains(call, "conflicts") {
			a.refuse("scope: not here")
		}
		answer, _ := a.do(call, "")
		rows := strings.Split(answer, `"at":`)[1:]
		if len(rows) != len(all) {
			t.Fatalf("%s: %d rows, want %d: %s", call, len(rows), len(all), answer)
		}
		for i, row := range rows {
			_, got, _ := strings.Cut(row, ",")
			if !strings.HasPrefix(got, all[i].want) {
				t.Errorf("%s: %s\nwant %s", call, got, all[i].want)
			}
			if strings.Contains(call, "conflicts") && !strings.Contains(got, `"verdict":"refused","reason":"The origin rejected it: scope: not here."`) {
				t.Errorf("%s", got)
			}
		}
	}
}

// TestAnyOperationIsValidJSON shows operations with random contents. The answer is always valid JSON.
func TestAnyOperationIsValidJSON(t *testing.T) {
	a := newReplicaCalls(t)
	rapid.Check(t, func(r *rapid.T) {
		body := logtest.Op(r).Body
		if rules, ok := body.(*log.Rules); ok {
			rules.Version %= fold.Version + 1 // newer rules would stop the replica
		}
		_, span, err := a.Partition(t).SubmitSpan(t.Context(), partition.Caller{By: rapid.String().Draw(r, "by")}, []log.Body{body}, nil)
		if err != nil {
			r.Fatal(err)
		}
		kinds := a.list(fmt.Sprintf("GET /sync/outbox?per_page=1&page=%d", span.Last), "kind")
		if want := []string{log.KindOf(body).String()}; !slices.Equal(kinds, want) {
			r.Fatalf("%T is shown as %v", body, kinds)
		}
	})
}
