package program

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// making makes the archives.
type making struct {
	t    *testing.T
	dir  string // the parent of all folders
	d    described
	site *origin01
}

// folder returns the path of a folder.
func (m *making) folder(name string) string { return filepath.Join(m.dir, name) }

// TestMakeFolders makes the archives that TestFolders opens, if -make-folders is set. Only the program of version 0.1.0 makes them.
func TestMakeFolders(t *testing.T) {
	if !*makeFolders {
		t.Skip("-make-folders is not set")
	}
	m := &making{t: t, dir: t.TempDir(), d: described{Inputs: map[string]contents{}}}
	for _, name := range []string{"browser", "visitor"} {
		if err := os.Mkdir(m.folder(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.begin()
	edge, page := m.open("edge"), m.open("browser")
	m.add("in-0", "in-1", "in-2", "in-3", "in-4", "in-5")
	edge.sync(m.site.base)
	page.sync(m.site.base)
	mustRun(t, "backup", m.folder("backup"), "--data", m.folder("origin"))
	m.add("late-0", "late-1")
	m.writeOnline(edge, page)
	edge = m.makeConflicts(edge)
	page = m.rollBack(page)
	edge.sync(m.site.base)
	m.addPending(edge, page)
	m.close(edge)
	m.close(page)
	if err := m.site.Stop(); err != nil {
		t.Fatal(err)
	}
	m.give()
	for _, name := range []string{"origin", "edge", "browser", "backup", "restored", "visitor"} {
		archive(t, name, m.folder(name))
	}
	m.record()
	text, err := json.MarshalIndent(&m.d, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(folders01, "folders.json"), append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// begin starts the origin with an application and an edge.
func (m *making) begin() {
	m.t.Helper()
	m.site = startFolder(m.t, m.folder("origin"), "")
	apps, err := control.Apps.Do(m.t.Context(), m.site.Server, control.Nothing{})
	if err != nil {
		m.t.Fatal(err)
	}
	m.d.App, m.d.Key = apps[0].ID, keyOf(strings.TrimPrefix(m.site.base, "http://"))
	engine := m.site.Engine.(native)
	if m.site.part, err = engine.Partition(m.d.App); err != nil {
		m.t.Fatal(err)
	}
	token, e, err := engine.Register.CreateEdge(m.t.Context(), register.Caller{}, "shop", []string{m.d.App})
	if err != nil {
		m.t.Fatal(err)
	}
	m.d.Edge = e.ID
	enrol(m.t, own(m.t), m.site.base, e.ID, token, edgeKey)
}

// open opens a copy.
func (m *making) open(name string) *party {
	m.t.Helper()
	if name == "edge" {
		return openEdge(m.t, &m.d, m.folder(name))
	}
	return openPage(m.t, &m.d, name, m.folder(name))
}

// close closes a copy, and notes its contents.
func (m *making) close(x *party) {
	m.t.Helper()
	m.d.Inputs[x.name] = visible(m.t, x.part)
	x.close()
}

// add adds inputs at the origin.
func (m *making) add(ids ...string) {
	m.t.Helper()
	var body []cli.Object
	for _, id := range ids {
		body = append(body, cli.Object{"id": id, "data": cli.Object{
			"image":    cli.Object{"base64": base64.StdEncoding.EncodeToString(dots(m.t, seedOf(id), 24))},
			"concepts": []cli.Object{{"id": "north", "value": 1}},
		}})
	}
	b, err := json.Marshal(cli.Object{"inputs": body})
	if err != nil {
		m.t.Fatal(err)
	}
	if code, got := callInputs(m.t, own(m.t), "POST", m.site.base+"/v2/inputs", b); code != 200 {
		m.t.Fatalf("POST /v2/inputs = %d %+v", code, got.Status)
	}
}

// seedOf returns the seed of an input's picture.
func seedOf(id string) (seed uint64) {
	for _, c := range []byte(id) {
		seed = seed*31 + uint64(c)
	}
	return seed
}

// write submits operations of a copy's user.
func (x *party) write(bodies ...log.Body) {
	x.t.Helper()
	if _, err := x.part.Submit(x.t.Context(), "key", bodies, nil); err != nil {
		x.t.Fatal(err)
	}
}

// create stores a picture, and returns the operation that creates an input of it.
func (x *party) create(id string) log.Body {
	x.t.Helper()
	h, err := x.blobs.Put(x.t.Context(), bytes.NewReader(dots(x.t, seedOf(id), 24)), blob.Hash{})
	if err != nil {
		x.t.Fatal(err)
	}
	return &log.InputCreate{ID: id, Blob: h, ContentType: "image/png", Hosted: [16]byte(h[:16]), Labels: []log.Label{{Concept: "south", Value: log.True}}}
}

// label returns the operation that gives an input a concept.
func (x *party) label(id, concept string) log.Body {
	x.t.Helper()
	return &log.InputLabels{Input: x.dot(id), Labels: []log.Label{{Concept: concept, Value: log.True}}}
}

// remove returns the operation that deletes an input.
func (x *party) remove(id string) log.Body {
	x.t.Helper()
	return &log.InputDelete{Input: x.dot(id)}
}

// dot returns the name of the operation that created an input.
func (x *party) dot(id string) log.Dot {
	x.t.Helper()
	v := x.part.View()
	in, err := v.InputByID(id)
	if err != nil {
		x.t.Fatal(err)
	}
	_ = v.Close()
	return in.Dot
}

// writeOnline has both copies write and delete, in two lives of the edge.
func (m *making) writeOnline(edge, page *party) {
	m.t.Helper()
	page.sync(m.site.base)
	page.write(page.create("of-page"), page.label("in-0", "seen"))
	page.sync(m.site.base)
	edge.sync(m.site.base)
	edge.write(edge.create("of-edge"), edge.label("of-page", "seen"), edge.remove("in-5"))
	edge.sync(m.site.base)
	page.sync(m.site.base)
	page.write(page.label("late-0", "seen"))
	page.sync(m.site.base)
	m.visit()
}

// visit has another browser join. It deletes an input that the backup lacks.
func (m *making) visit() {
	m.t.Helper()
	x := m.open("visitor")
	x.sync(m.site.base)
	x.write(x.create("of-visitor"), x.remove("late-1"))
	x.write(x.label("of-visitor", "seen"))
	x.sync(m.site.base)
	x.close()
}

// makeConflicts has the edge label three inputs that the origin deletes meanwhile.
func (m *making) makeConflicts(edge *party) *party {
	m.t.Helper()
	edge.close()
	edge = m.open("edge") // another life
	for i := 1; i <= 3; i++ {
		id := fmt.Sprint("in-", i)
		edge.write(edge.label(id, "too-late"))
		m.d.Conflicts = append(m.d.Conflicts, id)
	}
	for _, id := range m.d.Conflicts {
		if code, got := callInputs(m.t, own(m.t), "DELETE", m.site.base+"/v2/inputs/"+id, nil); code != 200 {
			m.t.Fatalf("DELETE = %d %+v", code, got.Status)
		}
	}
	edge.sync(m.site.base)
	checkConflicts(m.t, edge, m.d.Conflicts)
	return edge
}

// rollBack has the browser's disk go back to an image. It takes another site then.
func (m *making) rollBack(page *party) *party {
	m.t.Helper()
	site := page.part.Site()
	page.close()
	image := m.folder("image")
	if err := os.CopyFS(image, os.DirFS(m.folder("browser"))); err != nil {
		m.t.Fatal(err)
	}
	page = m.open("browser")
	page.write(page.label("in-0", "first-timeline"))
	page.sync(m.site.base)
	page.close()
	if err := os.RemoveAll(m.folder("browser")); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(image, m.folder("browser")); err != nil {
		m.t.Fatal(err)
	}
	page = m.open("browser")
	page.write(page.label("in-0", "second-timeline"))
	page.sync(m.site.base)
	if page.part.Site() == site {
		m.t.Errorf("the browser still writes as site %d", site)
	}
	return page
}

// addPending has both copies write what the origin does not get.
func (m *making) addPending(edge, page *party) {
	m.t.Helper()
	edge.write(edge.create("waiting-0"), edge.create("waiting-1"), edge.remove("late-0"))
	for i := edge.pending(); i < edgePending; i++ {
		edge.write(edge.label([]string{"in-0", "in-4", "waiting-0", "of-page"}[i%4], fmt.Sprint("waiting-", i)))
	}
	page.write(page.create("waiting-page"), page.label("of-edge", "waiting"), page.label("in-4", "waiting"))
	page.write(page.label("waiting-page", "waiting"), page.remove("of-page"))
	if n := page.pending(); n != pagePending {
		m.t.Fatalf("%d writes of the browser are pending", n)
	}
}

// give restores the backup, and has the visitor give back what it keeps: its own writes.
func (m *making) give() {
	m.t.Helper()
	m.d.Inputs["origin"] = m.contents("origin")
	m.d.Inputs["backup"] = m.contents("backup")
	mustRun(m.t, "restore", m.folder("backup"), "--data", m.folder("restored"))
	m.site = startFolder(m.t, m.folder("restored"), m.d.App)
	x := m.open("visitor")
	x.sync(m.site.base)
	m.checkNotes(x.name, x.store, "kept/", "left/")
	m.close(x)
	if err := m.site.Stop(); err != nil {
		m.t.Fatal(err)
	}
	m.d.Inputs["restored"] = m.contents("restored")
	f, err := data.Open(m.folder("restored"), data.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	m.checkNotes("restored", f.Store, "early/", "moved/")
	if err := f.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// contents returns the inputs in a folder that no process has open.
func (m *making) contents(name string) (out contents) {
	m.t.Helper()
	dir := m.folder(name)
	if name == "backup" {
		dir = filepath.Join(m.t.TempDir(), "data")
		mustRun(m.t, "restore", m.folder(name), "--data", dir)
	}
	f, err := data.Open(dir, data.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	app, err := catalog.ParseAppID(m.d.App)
	if err != nil {
		m.t.Fatal(err)
	}
	return inputsOf(m.t, catalog.Read(f.Store, app))
}

// checkNotes checks that a store has local records of the application with the names.
func (m *making) checkNotes(name string, r kv.Reader, notes ...string) {
	m.t.Helper()
	app, err := catalog.ParseAppID(m.d.App)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, note := range notes {
		lo, n := app.LocalKey(note), 0
		hi := bytes.Clone(lo)
		hi[len(hi)-1]++
		if err := r.Scan(lo, hi, func(_, _ []byte) bool { n++; return true }); err != nil || n == 0 {
			m.t.Errorf("%s has %d records %s, %v", name, n, note, err)
		}
	}
}

// record syncs the copies with the origin and with the restored one, and records their requests.
func (m *making) record() {
	m.t.Helper()
	var all []request01
	for _, folder := range []string{"origin", "restored"} {
		o := startFolder(m.t, unpack(m.t, folder), m.d.App)
		for _, x := range []*party{openEdge(m.t, &m.d, unpack(m.t, "edge")), openPage(m.t, &m.d, "browser", unpack(m.t, "browser"))} {
			r := newRecorder(m.t, folder, x.name, o.base)
			x.sync(r.base)
			all = append(all, r.requests()...)
		}
		if folder == "origin" {
			m.d.Merged = visible(m.t, o.part)
		}
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(folders01, "requests.json"), append(text, '\n'), 0o600)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// recorder is a proxy in front of an origin that records requests.
type recorder struct {
	base, folder, by string
	forward          *httputil.ReverseProxy
	mu               sync.Mutex
	all              []*request01
}

func newRecorder(t testing.TB, folder, by, base string) *recorder {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{folder: folder, by: by, forward: &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) }, FlushInterval: -1}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.base = s.URL
	return r
}

// ServeHTTP records a request and forwards it.
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x := &request01{Folder: r.folder, By: r.by, Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery, Header: http.Header{}, Body: body}
	for _, name := range []string{"Accept", "Content-Type", "Content-Range", "Range", "Sync-Site"} {
		if v := req.Header.Values(name); v != nil {
			x.Header[name] = v
		}
	}
	r.mu.Lock()
	r.all = append(r.all, x)
	r.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.forward.ServeHTTP(&statusWriter{w, &x.Status}, req)
}

// requests returns the recorded requests, without repeated GETs.
func (r *recorder) requests() (out []request01) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, x := range r.all {
		key := x.Method + x.Path + x.Query
		if !seen[key] || x.Method != http.MethodGet {
			out = append(out, *x)
		}
		seen[key] = true
	}
	return out
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status *int
}

func (w *statusWriter) WriteHeader(status int) {
	*w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the proxy flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
