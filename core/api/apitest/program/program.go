// Package program draws random programs of calls on inputs, and compares each answer with a reference
// model. The model has an application's inputs from a client's view, and a second implementation of
// the rules of the interface.
//
//	seed ──▶ add, patch, delete, read, search, count, work, kill ──▶ world ──▶ answers
//	                               └──▶ model ────────────────────────────────▶ the same?
//
// A seed always gives the same program, regardless of the answers.
package program

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
)

// Program is a running random program.
type Program struct {
	testing.TB

	// Answered is called with every answer; may be nil.
	Answered func(r *api.Request, a api.Response)

	world *apitest.World
	model model
	draw  generator
	trace []byte
}

// New returns the program of a seed, for a fresh world.
func New(t testing.TB, w *apitest.World, seed uint64) *Program {
	return &Program{TB: t, world: w, draw: generator{rand.New(rand.NewPCG(seed, 8))}}
}

// Trace returns the calls so far, one on each line.
func (p *Program) Trace() string { return string(p.trace) }

// Step makes one call, runs background work, or replaces the engine as after a crash. Then it lists all
// inputs. An answer that differs from the model's fails the test.
func (p *Program) Step() {
	switch p.draw.IntN(12) {
	case 0, 1, 2:
		p.add()
	case 3, 4, 5:
		p.patch()
	case 6:
		p.delete()
	case 7:
		p.world.Step(p.TB, 0)
		p.model.step()
		p.note("STEP")
	case 8:
		p.world.Open(p.TB, p.world.Store)
		p.note("KILL")
	case 9:
		p.read()
	case 10:
		p.search()
	default:
		p.counts()
	}
	p.list()
}

func (p *Program) note(format string, args ...any) {
	p.trace = fmt.Appendf(append(p.trace, '\n'), format, args...)
}

func (p *Program) serve(r api.Request) api.Response {
	a := p.world.Serve(p.TB, r)
	if p.Answered != nil {
		p.Answered(&r, a)
	}
	return a
}

// call sends a request, compares the answer's status with http, and returns the answer's body.
func (p *Program) call(method, path string, body any, http int) map[string]any {
	p.Helper()
	r := api.Request{Method: method, Path: path}
	if body != nil {
		r.Body = marshal(body)
	}
	p.note("%s %s %s", method, path, r.Body)
	got := p.serve(r)
	if got.Status != http {
		p.Errorf("%s %s %s = %d %s, want %d", method, path, r.Body, got.Status, got.Body, http)
	}
	var out map[string]any
	if err := json.Unmarshal(got.Body, &out); err != nil {
		p.Fatal(err)
	}
	return out
}

// items compares the inputs in an answer with the model's.
func (p *Program) items(got map[string]any, want []map[string]any) {
	p.Helper()
	list := got["inputs"].([]any)
	for i, in := range list {
		list[i] = plain(in.(map[string]any))
	}
	if len(list) != len(want) {
		p.Errorf("%d inputs, want %d", len(list), len(want))
		return
	}
	for i := range want {
		if diff := cmp.Diff(any(want[i]), list[i]); diff != "" {
			p.Errorf("input %d (-want +got):\n%s", i, diff)
		}
	}
}

// overallStatus returns the HTTP status of a call whose items have these codes. good are the codes of success.
func overallStatus(codes []int, good ...int) int {
	n := 0
	for _, code := range codes {
		if slices.Contains(good, code) {
			n++
		}
	}
	switch n {
	case len(codes):
		return 200
	case 0:
		return 400
	}
	return 207
}

func (p *Program) add() {
	var sent []any
	var codes []int
	var want []map[string]any
	for range 1 + p.draw.IntN(4) {
		in := &modelInput{id: p.draw.id(), labels: map[string]bool{}, meta: absent{}, geo: p.draw.geo()}
		labels := p.draw.labels()
		for id, value := range labels {
			in.labels[id] = value
		}
		if p.draw.IntN(2) == 0 {
			if in.meta = p.draw.meta(0); in.meta == nil {
				in.meta = absent{}
			}
		}
		image, allow := map[string]any{}, p.draw.IntN(4) == 0
		if p.draw.IntN(3) == 0 {
			in.code, image["base64"] = 30000, p.draw.picture()
		} else {
			in.code, in.url = 30001, addresses[p.draw.IntN(len(addresses))].url
			image["url"], image["allow_duplicate_url"] = in.url, allow
		}
		data := p.draw.data(labels, in.meta, in.geo)
		data["image"] = image
		sent = append(sent, map[string]any{"id": in.id, "data": data})
		if p.draw.IntN(12) == 0 { // a malformed input fails without the others
			data["geo"] = map[string]any{"longitude": 181, "latitude": 0}
			codes = append(codes, 30104)
		} else {
			codes = append(codes, p.model.add(in, allow))
		}
		code := codes[len(codes)-1]
		if code == in.code {
			want = append(want, in.json(code))
			continue
		}
		failed := &modelInput{id: in.id, url: in.url, meta: absent{}}
		want = append(want, failed.json(code))
	}
	got := p.call("POST", "/v2/inputs", map[string]any{"inputs": sent}, overallStatus(codes, 30000, 30001))
	p.items(got, want)
}

func (p *Program) patch() {
	action := []string{"merge", "remove", "overwrite"}[p.draw.IntN(3)]
	var sent []any
	var codes []int
	var ids []string
	for range 1 + p.draw.IntN(3) {
		id, labels, geo := p.draw.id(), p.draw.labels(), p.draw.geo()
		var meta any = absent{}
		if p.draw.IntN(2) == 0 {
			meta = p.draw.meta(0)
		}
		sent = append(sent, map[string]any{"id": id, "data": p.draw.data(labels, meta, geo)})
		ids = append(ids, id)
		if in := p.model.find(id); in == nil {
			codes = append(codes, 30102)
		} else {
			in.patch(action, labels, meta, geo)
			codes = append(codes, 30200)
		}
	}
	var want []map[string]any
	for i, id := range ids {
		in := p.model.find(id)
		if in == nil {
			in = &modelInput{id: id, meta: absent{}}
		}
		item := in.json(codes[i])
		if in.url == "" && codes[i] == 30200 {
			item["data"].(map[string]any)["image"] = map[string]any{}
		}
		want = append(want, item)
	}
	body := map[string]any{"inputs": sent, "action": action}
	if action == "merge" && p.draw.IntN(2) == 0 {
		delete(body, "action")
	}
	p.items(p.call("PATCH", "/v2/inputs", body, overallStatus(codes, 30200)), want)
}

func (p *Program) delete() {
	switch p.draw.IntN(4) {
	case 0:
		p.call("DELETE", "/v2/inputs", map[string]any{"delete_all": true}, 200)
		p.model.inputs = nil
	case 1:
		ids := []string{p.draw.id(), p.draw.id()}
		p.call("DELETE", "/v2/inputs", map[string]any{"ids": ids}, 200)
		for _, id := range ids {
			p.model.delete(p.model.find(id))
		}
	case 2:
		p.call("DELETE", "/v2/inputs", nil, 400)
	default:
		id := p.draw.id()
		in := p.model.find(id)
		http := 200
		if in == nil {
			http = 404
		}
		p.call("DELETE", "/v2/inputs/"+url.PathEscape(id), nil, http)
		p.model.delete(in)
	}
}

func (p *Program) read() {
	id := p.draw.id()
	in := p.model.find(id)
	if in == nil {
		p.call("GET", "/v2/inputs/"+id, nil, 404)
		return
	}
	got := p.call("GET", "/v2/inputs/"+id, nil, 200)["input"].(map[string]any)
	if diff := cmp.Diff(in.json(0), plain(got)); diff != "" {
		p.Errorf("input %s (-want +got):\n%s", id, diff)
	}
}

// list compares all inputs, page by page.
func (p *Program) list() {
	size := 1 + p.draw.IntN(4)
	for page := 0; ; page++ {
		from := min(page*size, len(p.model.inputs))
		rows := p.model.inputs[from:min(from+size, len(p.model.inputs))]
		http := 200
		var want []map[string]any
		for _, in := range rows {
			if want = append(want, in.json(0)); in.hasFailed() {
				http = 207
			}
		}
		r := api.Request{Method: "GET", Path: "/v2/inputs", Query: fmt.Sprintf("page=%d&per_page=%d", page+1, size)}
		got := p.serve(r)
		var out map[string]any
		if err := json.Unmarshal(got.Body, &out); err != nil || got.Status != http {
			p.Fatalf("page %d = %d %s, %v, want %d\n%s", page+1, got.Status, got.Body, err, http, p.trace)
		}
		p.items(out, want)
		if len(rows) == 0 {
			return
		}
	}
}

func (p *Program) counts() {
	want := map[string]any{"processed": 0.0, "to_process": 0.0, "errors": 0.0}
	for _, in := range p.model.inputs {
		switch in.code {
		case 30000:
			want["processed"] = want["processed"].(float64) + 1
		case 30001:
			want["to_process"] = want["to_process"].(float64) + 1
		default:
			want["errors"] = want["errors"].(float64) + 1
		}
	}
	got := p.call("GET", "/v2/inputs/status", nil, 200)["counts"]
	if diff := cmp.Diff(any(want), got); diff != "" {
		p.Errorf("counts (-want +got):\n%s", diff)
	}
}

// search searches for inputs with one clause about the input.
func (p *Program) search() {
	var clause map[string]any
	var matches func(*modelInput) bool
	switch p.draw.IntN(3) {
	case 0:
		concept, value := []string{"cat", "dog", "long name"}[p.draw.IntN(3)], p.draw.IntN(2) == 0
		clause = map[string]any{"data": map[string]any{"concepts": []any{map[string]any{"id": concept, "value": value}}}}
		matches = func(in *modelInput) bool {
			v, ok := in.labels[concept]
			return ok && v == value
		}
	case 1:
		address := addresses[p.draw.IntN(len(addresses))].url
		clause = map[string]any{"data": map[string]any{"image": map[string]any{"url": address}}}
		matches = func(in *modelInput) bool { return in.url == address }
	default:
		id := p.draw.id()
		clause = map[string]any{"id": id}
		matches = func(in *modelInput) bool { return in.id == id }
	}
	body := map[string]any{"query": map[string]any{"ands": []any{map[string]any{"input": clause}}}}
	var got, want []string
	for _, hit := range p.call("POST", "/v2/searches", body, 200)["hits"].([]any) {
		h := hit.(map[string]any)
		if h["score"] != 1.0 {
			p.Errorf("score %v, want 1", h["score"])
		}
		got = append(got, h["input"].(map[string]any)["id"].(string))
	}
	for _, in := range p.model.inputs {
		if matches(in) {
			want = append(want, in.id)
		}
	}
	if !slices.Equal(got, want) {
		p.Errorf("%s finds %v, want %v", marshal(body), got, want)
	}
}
