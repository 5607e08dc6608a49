package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// write is a write that the test requested from a host.
type write struct {
	at    *host
	life  int    // number of the host's store at that time
	kind  string // add, meta, label, concept or delete
	id    string // ID of the input or the concept
	mark  string // unique content: a name in the metadata, or a concept
	acked bool   // the host acknowledged it; otherwise its effect is unknown
	lost  bool   // possibly no host has it any longer
}

// place is the progress that a replica reports.
type place struct {
	Phase                      string
	Cursor, Head, Queued, Sent uint64
	Problem                    string
}

func (r *round) place(h *host) place {
	h.place = place{}
	status, out, err := r.ask(h, "GET", "/v2/sync/status", nil)
	if err != nil || status != 200 || !convert(out["copy"].(object), &h.place) {
		h.place.Problem = fmt.Sprintf("%d, %v, %v", status, err, out)
	}
	return h.place
}

// idle reports whether all connected replicas are in sync with the origin.
func (r *round) idle() bool {
	seq, _ := r.witness().digest()
	for _, h := range r.hosts[1:] {
		if h.way.cuts() {
			continue
		}
		if p := r.place(h); p.Phase != "current" || p.Queued+p.Sent > 0 || p.Cursor != seq {
			return false
		}
	}
	return true
}

func (r *round) witness() *witness {
	return &witness{t: r.t, app: r.app, key: r.key, origin: func() string { return r.hosts[0].srv.base }}
}

// view is the state that a host shows.
type view struct {
	inputs    map[string]object
	concepts  map[string]bool
	conflicts []string
	deleted   map[string]bool // inputs with a deletion in the origin's log
	log       []string        // operations in the origin's log
}

// look returns the state that a host shows. The host must be running.
func (r *round) look(h *host) *view {
	r.t.Helper()
	v := &view{inputs: map[string]object{}, concepts: map[string]bool{}, deleted: map[string]bool{}}
	list := r.must(h, "GET", "/v2/inputs?per_page=1000")["inputs"].([]any)
	for _, in := range list {
		id := at(r.t, in, "id").(string)
		v.inputs[id] = in.(object)
		h.seen[id] = true
	}
	for _, c := range r.must(h, "GET", "/v2/concepts?per_page=1000")["concepts"].([]any) {
		v.concepts[at(r.t, c, "id").(string)] = true
	}
	status, out, err := r.ask(h, "GET", "/v2/sync/conflicts?per_page=1000", nil)
	if err != nil || status != 200 && h.way != nil {
		r.t.Fatalf("%s: conflicts: %d, %v, %v", h.name, status, err, out)
	}
	all, _ := out["conflicts"].([]any)
	for _, c := range all {
		text, err := json.Marshal(c)
		if err != nil {
			r.t.Fatal(err)
		}
		v.conflicts = append(v.conflicts, string(text))
	}
	if h.way == nil {
		r.readLog(v)
	}
	for _, w := range r.writes {
		if w.kind != "delete" && v.lists(w) {
			r.reported[w] = true
		}
	}
	return v
}

// readLog reads the deletions of the origin's log.
func (r *round) readLog(v *view) {
	r.t.Helper()
	body, ok := r.witness().get("/v2/sync/changes?since=0&live=0&app=" + r.app)
	if !ok {
		r.t.Fatal("the origin's log cannot be read")
	}
	var in wire.Reader
	_, _ = in.Write(body)
	ids := map[log.Dot]string{}
	for {
		f, more, err := in.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if !more {
			return
		}
		if f.Type != wire.TypeEntries {
			continue
		}
		m, err := wire.DecodeEntriesFrame(f.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		entries, err := log.DecodeRows(m.Rows, m.From)
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range entries {
			v.log = append(v.log, fmt.Sprintf("%d: %v %T %+v", entries[i].Seq, entries[i].Op.Dot, entries[i].Op.Body, entries[i].Op.Body))
			switch b := entries[i].Op.Body.(type) {
			case *log.InputCreate:
				ids[entries[i].Op.Dot] = b.ID
			case *log.InputDelete:
				v.deleted[ids[b.Input]] = true
			}
		}
	}
}

// lists reports whether a conflict has the content of a write.
func (v *view) lists(w *write) bool {
	return slices.ContainsFunc(v.conflicts, func(c string) bool { return strings.Contains(c, `"`+w.mark+`"`) })
}

// shows reports whether a write had its effect.
func (v *view) shows(w *write) bool {
	if w.kind == "concept" {
		return v.concepts[w.id]
	}
	in, ok := v.inputs[w.id]
	if !ok || w.kind == "delete" {
		return !ok && w.kind == "delete"
	}
	data, _ := in["data"].(object)
	switch w.kind {
	case "meta":
		meta, _ := data["metadata"].(object)
		return meta[w.mark] == marker
	case "label":
		all, _ := data["concepts"].([]any)
		return slices.ContainsFunc(all, func(c any) bool { return c.(object)["id"] == w.mark })
	}
	return true
}

// has reports whether a host has a write and can send it to the others.
func (r *round) has(h *host, v *view, w *write) bool {
	own := w.at == h && w.life == h.life
	switch {
	case w.kind != "delete":
		return v.shows(w) || v.lists(w)
	case h.way == nil:
		return v.deleted[w.id]
	}
	return v.shows(w) && (own || h.seen[w.id])
}

// agree compares the digests of all hosts, which must be in sync. It stops the edges.
func (r *round) agree() {
	t := r.t
	seq, want := r.witness().digest()
	for _, h := range r.hosts[1:] {
		if h.page != nil {
			var got struct {
				Seq    uint64
				Digest string
			}
			if h.page.do("digest", nil, &got); got.Seq != seq || got.Digest != want {
				t.Errorf("the page is at %d with digest %s, the origin at %d with %s", got.Seq, got.Digest, seq, want)
			}
			continue
		}
		r.stop(h)
		if got := digestOf(t, h.data, r.app); got != want {
			t.Errorf("the digest of %s is %s, the origin's %s", h.name, got, want)
		}
	}
}

// lostPicture reports whether a host's conflicts list the picture of an input as lost: neither the restored origin nor its replicas have
// it.
func (v *view) lostPicture(id string) bool {
	return slices.ContainsFunc(v.conflicts, func(c string) bool {
		return strings.Contains(c, `"input_id":"`+id+`"`) && strings.Contains(c, "the bytes of the picture are lost")
	})
}

// check compares the state of all hosts with the acknowledged writes.
func (r *round) check() {
	t := r.t
	adds, ends := map[string]bool{}, map[string]bool{} // inputs that any host was asked to add, and to delete
	for _, w := range r.writes {
		adds[w.id] = adds[w.id] || w.kind == "add"
		ends[w.id] = ends[w.id] || w.kind == "delete"
	}
	views := make([]*view, len(r.hosts))
	for i, h := range r.hosts {
		views[i] = r.look(h)
		r.Conflicts += len(views[i].conflicts)
		for id, in := range views[i].inputs {
			if !adds[id] {
				t.Errorf("%s has input %s, for which nobody asked", h.name, id)
			}
			if h.page == nil && !views[0].lostPicture(id) {
				r.picture(h, id, in)
			}
		}
	}
	for _, w := range r.writes {
		if w.kind == "delete" && w.acked && !w.lost {
			r.Deleted++
		}
		if !w.acked || w.lost || w.kind != "delete" && (ends[w.id] || r.reported[w]) {
			continue
		}
		for i, h := range r.hosts {
			if !views[i].shows(w) {
				in, _ := json.Marshal(views[i].inputs[w.id])
				t.Errorf("seed %d: %s lacks %s %s of %s, which %s acknowledged; it has %.600s", r.seed, h.name, w.kind, w.mark, w.id, w.at.name, in)
			}
		}
	}
	if t.Failed() {
		for i, h := range r.hosts {
			t.Logf("conflicts of %s:\n%s", h.name, strings.Join(views[i].conflicts, "\n"))
		}
		for _, w := range r.writes {
			t.Logf("%s of %s by %s, life %d: %s, acknowledged %v, without a copy %v", w.kind, w.id, w.at.name, w.life, w.mark, w.acked, w.lost)
		}
		t.Logf("the origin's log:\n%s", strings.Join(views[0].log, "\n"))
	}
}

// picture compares the picture that a host has of an input with the one that was sent.
func (r *round) picture(h *host, id string, in object) {
	r.t.Helper()
	address, err := url.Parse(at(r.t, in, "data", "image", "url").(string))
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := asking.Get(h.srv.base + address.Path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK || !bytes.Equal(got.Bytes(), r.pictures[id]) {
		r.t.Errorf("seed %d: %s has another picture of %s: %d, %d bytes, %v", r.seed, h.name, id, res.StatusCode, got.Len(), err)
	}
}
