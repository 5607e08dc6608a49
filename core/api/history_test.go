package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api/apitest"
)

// pastOf returns an input's history as one line per operation, and whether it is complete.
func (a *replicaCalls) pastOf(call string) (lines []string, complete bool) {
	a.Helper()
	answer, _ := a.do(call, "")
	var got struct {
		Complete   bool
		Operations []struct {
			Kind, State, By string
			Seq, Position   int
			Remembered      bool
			Content         json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte("{"+strings.TrimPrefix(answer, ",")), &got); err != nil {
		a.Fatalf("%s: %s: %v", call, answer, err)
	}
	for _, op := range got.Operations {
		line := op.Kind + " " + op.State
		if op.Remembered {
			line += ", remembered"
		}
		if op.Seq > 0 {
			line += ", numbered"
		}
		if op.Position > 0 {
			line += ", placed"
		}
		lines = append(lines, line+" "+string(op.Content))
	}
	return lines, got.Complete
}

func (a *replicaCalls) past(call string, wantComplete bool, want ...string) {
	a.Helper()
	lines, complete := a.pastOf(call)
	if diff := cmp.Diff(want, lines); diff != "" || complete != wantComplete {
		a.Errorf("%s: complete %t, want %t (-want +got):\n%s", call, complete, wantComplete, diff)
	}
}

// TestHistoryAtReplica follows an input's history at a replica. It shows others' operations as the input's record has them. It shows local
// operations until the origin's log is known to contain them.
func TestHistoryAtReplica(t *testing.T) {
	a := newReplicaCalls(t)
	later := func() { a.Origin.Step(t, time.Second) }
	a.origin("POST /inputs", pond)
	later()
	a.origin("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"water"},{"id":"deep","value":false}],"metadata":{"a":1},"geo":{"geo_point":{"longitude":1,"latitude":2}}}}]}`)
	later()
	a.origin("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"deep"}]}}]}`)
	a.Pull(t)
	const (
		deep     = `{"concepts":[{"id":"deep","name":"deep","value":1}]}`
		geo      = `{"geo":{"geo_point":{"longitude":1,"latitude":2}}}`
		creation = `{"url":"http://pictures.test/red.png"}`
	)
	remembered := []string{
		"input_labels confirmed, remembered " + deep,
		"input_geo confirmed, remembered " + geo,
		`input_meta confirmed, remembered {"metadata":[{"action":"set","path":["a"],"value":1}]}`,
		`input_labels confirmed, remembered {"concepts":[{"id":"water","name":"water","value":1}]}`,
		"input_create confirmed, remembered, numbered " + creation,
	}
	a.past("GET /inputs/pond/history", false, remembered...)

	a.do("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"blue"}]}}]}`)
	blue := `{"concepts":[{"id":"blue","name":"blue","value":1}]}`
	a.past("GET /inputs/pond/history", false, append([]string{"input_labels queued, numbered " + blue}, remembered...)...)
	a.Push(t)
	a.past("GET /inputs/pond/history?per_page=1", false, "input_labels sent, numbered "+blue)
	a.past("GET /inputs/pond/history?page=6&per_page=1", false, remembered[4])

	// The replica knows all operations on an input that it has not sent yet.
	a.do("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"blue"}]}}]}`)
	a.do("PATCH /inputs/lake/outputs", `{"action":"merge","outputs":[{"data":{"concepts":[{"id":"blue","value":0.25}]}}]}`)
	a.past("GET /inputs/lake/history", true,
		`outputs_patch queued, numbered {"concepts":[{"id":"blue","name":"blue","value":0.25}]}`,
		`input_create queued, numbered {"url":"http://pictures.test/blue.png","concepts":[{"id":"blue","name":"blue","value":1}]}`)
	a.Push(t)
	a.Pull(t)
	lines, complete := a.pastOf("GET /inputs/lake/history")
	if complete || len(lines) != 2 || !strings.HasPrefix(lines[0], "outputs_patch confirmed, numbered") {
		t.Errorf("once it is confirmed: complete %t, %q", complete, lines)
	}

	// The origin has all operations, with their positions.
	if r := a.to(a.Origin, "GET /inputs/pond/history", ""); r.Status != 200 ||
		strings.Count(string(r.Body), `"position":`) != 7 || !strings.Contains(string(r.Body), `"complete":true`) {
		t.Errorf("at the origin: %d %s", r.Status, r.Body)
	}
}

// TestHistoryOfDeletedInput: the answer names the author and the time of a deletion while they are stored here: in the log, or at a replica
// that deleted the input or pulled the deletion.
func TestHistoryOfDeletedInput(t *testing.T) {
	a := newReplicaCalls(t)
	a.origin("POST /inputs", pond)
	a.origin("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)
	a.Pull(t)
	unknown := func(to func() int, name string) {
		t.Helper()
		if got := to(); got != 404 {
			t.Errorf("%s: %d", name, got)
		}
	}
	unknown(func() int { return a.to(a.Origin, "GET /inputs/sea/history", "").Status }, "an input that never was")
	a.do("DELETE /inputs/pond", "")
	a.past("GET /inputs/pond/history", false, "input_delete queued, numbered {}")
	a.Push(t)
	a.past("GET /inputs/pond/history", false, "input_delete sent, numbered {}")
	at := func(id string) (kind string, position int) {
		t.Helper()
		r := a.to(a.Origin, "GET /inputs/"+id+"/history", "")
		var got struct {
			Complete   bool
			Operations []struct {
				Kind, By string
				Position int
			}
		}
		if err := json.Unmarshal(r.Body, &got); err != nil || r.Status != 200 || len(got.Operations) != 1 || got.Complete || got.Operations[0].By == "" {
			t.Fatalf("%s at the origin: %d %s", id, r.Status, r.Body)
		}
		return got.Operations[0].Kind, got.Operations[0].Position
	}
	if kind, position := at("pond"); kind != "input_delete" || position != 5 {
		t.Errorf("pond went by %s at %d", kind, position)
	}
	a.origin("DELETE /inputs", `{"delete_all":true}`)
	a.origin("DELETE /inputs", `{"delete_all":true}`)
	if kind, position := at("lake"); kind != "input_delete_all" || position != 6 {
		t.Errorf("lake went by %s at %d", kind, position)
	}
	if _, position := at("pond"); position != 5 {
		t.Errorf("pond went at %d", position)
	}
	a.Pull(t)
	unknown(func() int { return a.to(a.World, "GET /inputs/lake/history", "").Status }, "a copy that was told that all went")
	a.origin("POST /inputs", `{"inputs":[{"id":"sea","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)
	a.origin("DELETE /inputs/sea", "")
	a.Pull(t)
	replica, origin := a.to(a.World, "GET /inputs/sea/history", ""), a.to(a.Origin, "GET /inputs/sea/history", "")
	if replica.Status != 200 || string(replica.Body) != string(origin.Body) {
		t.Errorf("deleted elsewhere: %d %s, want %s", replica.Status, replica.Body, origin.Body)
	}
	a.origin("POST /inputs", pond)
	if r := a.to(a.Origin, "GET /inputs/pond/history", ""); r.Status != 200 || strings.Count(string(r.Body), `"kind":`) != 1 || !strings.Contains(string(r.Body), "input_create") {
		t.Errorf("another with the id: %d %s", r.Status, r.Body)
	}
}

// newest returns the newest operations that a world lists, one line each.
func (a *replicaCalls) newest(w *apitest.World, query string) (lines []string, total int, complete bool) {
	a.Helper()
	r := a.to(w, "GET /sync/history"+query, "")
	var got struct {
		Total      int
		Complete   bool
		Operations []struct {
			Kind, State, By string
			Position        int
			Input           string `json:"input_id"`
		}
	}
	if err := json.Unmarshal(r.Body, &got); err != nil || r.Status != 200 {
		a.Fatalf("%d %s: %v", r.Status, r.Body, err)
	}
	for _, op := range got.Operations {
		line := strings.TrimSpace(op.Kind + " " + op.Input + " " + op.State)
		if op.Position > 0 {
			line += ", placed"
		}
		lines = append(lines, line)
	}
	return lines, got.Total, got.Complete
}

// TestNewestOperations lists the newest operations of an application. An origin has all of them with their positions. A replica lists its
// pending ones first, and then those that it pulled. Results and upkeep, such as the rules that begin a log, are in neither list.
func TestNewestOperations(t *testing.T) {
	a := newReplicaCalls(t)
	check := func(w *apitest.World, query string, wantTotal int, want ...string) {
		t.Helper()
		lines, total, complete := a.newest(w, query)
		if diff := cmp.Diff(want, lines); diff != "" || total != wantTotal || !complete {
			t.Errorf("total %d, want %d, complete %t (-want +got):\n%s", total, wantTotal, complete, diff)
		}
	}
	a.origin("POST /inputs", pond)
	a.origin("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"water"}]}}]}`)
	const labels, create = "input_labels pond confirmed, placed", "input_create pond confirmed, placed"
	check(a.Origin, "", 2, labels, create)
	a.Pull(t)
	check(a.World, "", 2, labels, create)

	a.do("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"water","value":false}]}}]}`)
	check(a.World, "", 3, "input_labels pond queued", labels, create)
	a.Push(t)
	check(a.World, "?per_page=2", 3, "input_labels pond sent", labels)
	check(a.World, "?per_page=2&page=2", 3, create)
	a.Pull(t)
	check(a.World, "", 3, labels, labels, create)

	for range 60 {
		a.origin("PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"metadata":{"a":1}}}]}`)
	}
	a.Pull(t)
	for _, w := range []*apitest.World{a.Origin, a.World} {
		if lines, total, complete := a.newest(w, "?per_page=1000"); len(lines) != 50 || total != 50 || !complete {
			t.Errorf("%d operations, total %d, complete %t", len(lines), total, complete)
		}
	}
}
