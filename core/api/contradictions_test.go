package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contradictions returns the contradictions that a world lists, in short: field, subject, values with the one that serves marked.
func (a *replicaCalls) contradictions(at func(call, body string) []byte) (all []string, ids []string) {
	a.Helper()
	var answer struct {
		Conflicts []struct {
			ID, Verdict, Field, Written string
			Input                       string `json:"input_id"`
			Concept                     string `json:"concept_id"`
			Model                       string `json:"model_id"`
			Path                        []string
			Values                      []struct {
				Value   json.RawMessage
				Deleted bool
				Serves  bool
				By      string
			}
		}
	}
	if err := json.Unmarshal(at("GET /sync/conflicts", ""), &answer); err != nil {
		a.Fatal(err)
	}
	for _, c := range answer.Conflicts {
		if c.Verdict != "contradiction" {
			continue
		}
		text := strings.Join(append([]string{c.Field, c.Written, c.Input + c.Model, c.Concept}, c.Path...), " ")
		for _, v := range c.Values {
			value := string(v.Value)
			if v.Deleted {
				value = "deleted"
			}
			if v.Serves {
				value += "*"
			}
			if v.By == "" {
				value += " by nobody"
			}
			text += " " + value
		}
		all, ids = append(all, strings.Join(strings.Fields(text), " ")), append(ids, c.ID)
	}
	return all, ids
}

// TestContradictions writes to the same registers at an origin and a replica that have no contact, compares what both list afterwards, and
// decides all of it.
func TestContradictions(t *testing.T) {
	a := newReplicaCalls(t)
	at := func(replica bool) func(call, body string) []byte {
		return func(call, body string) []byte {
			w := a.Origin
			if replica {
				w = a.World
			}
			r := a.to(w, call, body)
			if r.Status != 200 {
				t.Fatalf("%s: %d %s", call, r.Status, r.Body)
			}
			return r.Body
		}
	}
	origin, replica := at(false), at(true)
	sync := func() {
		a.Push(t)
		a.Pull(t)
	}
	origin("POST /inputs", pond)
	origin("POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)
	origin("POST /concepts", `{"concepts":[{"id":"town","name":"Town"}]}`)
	origin("POST /models", `{"model":{"id":"way","name":"Way"}}`)
	sync()
	for i, write := range []func(call, body string) []byte{origin, replica} {
		geo := fmt.Sprintf(`{"geo_point":{"longitude":%d,"latitude":2}}`, i)
		write("PATCH /inputs", fmt.Sprintf(`{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"town","value":%d}],"metadata":{"a":{"b":%[1]d},"same":1},"geo":%s}}]}`, i, geo))
		write("PATCH /concepts", fmt.Sprintf(`{"action":"overwrite","concepts":[{"id":"town","name":"Town %d"}]}`, i))
		write("PATCH /models", fmt.Sprintf(`{"action":"overwrite","models":[{"id":"way","name":"Way %d"}]}`, i))
	}
	origin("PATCH /inputs", `{"action":"merge","inputs":[{"id":"lake","data":{"concepts":[{"id":"town","value":1}]}}]}`)
	replica("DELETE /inputs/lake", "")
	sync()
	want := []string{
		"label pond town 0 1*",
		"metadata pond a b 0 1*",
		`place pond {"geo_point":{"longitude":0,"latitude":2}} {"geo_point":{"longitude":1,"latitude":2}}*`,
		`name town "Town 0" "Town 1"*`,
		`name way "Way 0" "Way 1"*`,
		"deletion label lake town 1 deleted*",
	}
	got, ids := a.contradictions(origin)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the origin lists (-want +got):\n%s", diff)
	}
	// The replica does not have the origin's operations, and so not their keys.
	got, idsAtReplica := a.contradictions(replica)
	for i := range got {
		got[i] = strings.Replace(got[i], " by nobody", "", 1)
	}
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(ids, idsAtReplica) {
		t.Errorf("the replica lists %v, want %v (-want +got):\n%s", idsAtReplica, ids, diff)
	}
	for host, want := range map[*func(call, body string) []byte]int{&origin: 2, &replica: 0} { // the label and the place
		if list := (*host)("GET /inputs/pond/history", ""); strings.Count(string(list), `"verdict":"superseded"`) != want {
			t.Errorf("the history has not %d operations that do not count: %s", want, list)
		}
	}
	if status := string(replica("GET /sync/status", "")); !strings.Contains(status, `"conflicts":6`) {
		t.Errorf("the status of the replica is %s, want 6 conflicts", status)
	}
	for _, bad := range []string{`{}`, `{"keep":-1}`, `{"keep":2}`, `{"keep":"1"}`} {
		if r := a.to(a.Origin, "PATCH /sync/conflicts/"+ids[0], bad); r.Status != 400 {
			t.Errorf("PATCH %s: %d %s", bad, r.Status, r.Body)
		}
	}
	if r := a.to(a.Origin, "PATCH /sync/conflicts/c-0123456789abcdef", `{"keep":0}`); r.Status != 404 {
		t.Errorf("PATCH of no contradiction: %d %s", r.Status, r.Body)
	}
	if r := a.to(a.Origin, "PATCH /sync/conflicts/"+ids[5], `{"keep":0}`); r.Status != 400 {
		t.Errorf("PATCH of a deletion: %d %s", r.Status, r.Body)
	}
	for i, id := range ids {
		if i < 3 {
			replica("PATCH /sync/conflicts/"+id, `{"keep":0}`)
		} else {
			origin("DELETE /sync/conflicts/"+id, "")
		}
	}
	sync()
	for name, at := range map[string]func(call, body string) []byte{"origin": origin, "replica": replica} {
		if left, _ := a.contradictions(at); left != nil {
			t.Errorf("the %s still lists %v", name, left)
		}
		for call, want := range map[string]string{
			"GET /inputs/pond":   `"metadata":{"a":{"b":0},"same":1},"geo":{"geo_point":{"longitude":0,`,
			"GET /concepts/town": `"name":"Town 1"`,
			"GET /models/way":    `"name":"Way 1"`,
		} {
			if answer := string(at(call, "")); !strings.Contains(answer, want) {
				t.Errorf("%s at the %s answers %s, want %s", call, name, answer, want)
			}
		}
	}
}
