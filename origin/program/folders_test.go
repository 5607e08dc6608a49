package program

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// The archives in testdata/0.1.0, which the program of version 0.1.0 made:
//
//	origin     data folder of an origin
//	edge       an edge of it, with 40 pending writes and 3 conflicts
//	browser    store of a browser, with 5 pending writes
//	backup     backup of the origin, which lacks its last writes
//	restored   an origin that was restored from the backup, and got a part of the lost writes back
//	visitor    store of the browser that gave them back, under a new site
//
// folders.json describes them, and requests.json has the requests that the edge and the browser send to the origins.
const (
	folders01   = "testdata/0.1.0"
	edgePending = 40
	pagePending = 5
)

// described is the content of folders.json.
type described struct {
	App, Key, Edge string              // ids of the application and the edge, and the application's key
	Inputs         map[string]contents // by archive
	Conflicts      []string            // ids of the inputs of the edge's conflicts
	Merged         contents            // of all copies once they have synced with the origin, or with a restored one
}

// contents are the ids of inputs, with the concepts that are true of each.
type contents map[string][]string

// inputsOf returns the inputs in a state.
func inputsOf(t testing.TB, r catalog.Reader) contents {
	t.Helper()
	out := contents{}
	err := r.Inputs(0, func(in catalog.Input) bool {
		concepts := []string{}
		for _, l := range in.Labels {
			if l.Value == log.True {
				concepts = append(concepts, l.Concept)
			}
		}
		slices.Sort(concepts)
		out[in.ID] = concepts
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// visible returns the inputs that a partition shows.
func visible(t testing.TB, p interface{ View() *partition.View }) contents {
	t.Helper()
	v := p.View()
	out := inputsOf(t, v.Reader)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func checkContents(t testing.TB, name string, got, want contents) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inputs of %s (-want +got):\n%s", name, diff)
	}
}

// origin01 is an origin on one of the folders.
type origin01 struct {
	*server.Server
	base string
	part *partition.Origin
}

// startFolder serves a data folder, in which no write is too old.
func startFolder(t testing.TB, dir string, app string) *origin01 {
	t.Helper()
	s, o := testSettings(t), &origin{}
	o.retention.MaxOffline = 100 * 365 * 24 * time.Hour
	s.Data, s.Bundles, s.Options = dir, apitest.TinyBundles(t), o.options()
	srv, base := startOrigin(t, s)
	x := &origin01{Server: srv, base: base}
	if app != "" {
		var err error
		if x.part, err = srv.Engine.(native).Origin(app); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// checkDigest compares the confirmed state of a copy with the origin's state.
func (o *origin01) checkDigest(x *party) {
	x.t.Helper()
	digest := func(read func(func(kv.Reader) error) error) (d [32]byte) {
		err := read(func(r kv.Reader) (err error) {
			d, err = fold.Digest(r, x.app)
			return err
		})
		if err != nil {
			x.t.Fatal(err)
		}
		return d
	}
	theirs := digest(func(do func(kv.Reader) error) error { return do(o.Folder.Store) })
	if ours := digest(x.part.ReadConfirmed); ours != theirs {
		x.t.Errorf("digests %x of %s and %x of the origin", ours, x.name, theirs)
	}
}

// unpack unpacks an archive into a new folder.
func unpack(t testing.TB, name string) (dir string) {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join(folders01, name+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readDescribed reads folders.json.
func readDescribed(t testing.TB) (d described) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folders01, "folders.json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(data), &d)
	return d
}

// TestFoldersOfOldVersion opens the folders that the program of version 0.1.0 made, and syncs the copies with each of the origins. Nothing
// is lost: pending writes arrive, conflicts stay, and what was deleted does not return.
func TestFoldersOfOldVersion(t *testing.T) {
	testkit.SkipRace(t)
	d := readDescribed(t)
	for _, name := range []string{"origin", "backup", "restored"} {
		t.Run(name, func(t *testing.T) {
			dir := unpack(t, name)
			if name == "backup" {
				restored := filepath.Join(t.TempDir(), "data")
				mustRun(t, "restore", dir, "--data", restored)
				dir = restored
			}
			o := startFolder(t, dir, d.App)
			checkContents(t, name, visible(t, o.part), d.Inputs[name])
			copies := []*party{openEdge(t, &d, unpack(t, "edge")), openPage(t, &d, "browser", unpack(t, "browser"))}
			for i, want := range []int{edgePending, pagePending} {
				x := copies[i]
				checkContents(t, x.name, visible(t, x.part), d.Inputs[x.name])
				if got := x.pending(); got != want {
					t.Errorf("%d writes of %s are pending, want %d", got, x.name, want)
				}
			}
			checkConflicts(t, copies[0], d.Conflicts)
			if name == "restored" {
				copies = append(copies, openPage(t, &d, "visitor", unpack(t, "visitor")))
			}
			for range 2 {
				for _, x := range copies {
					x.sync(o.base)
				}
			}
			checkContents(t, name, visible(t, o.part), d.Merged)
			for _, x := range copies {
				checkContents(t, x.name, visible(t, x.part), d.Merged)
				o.checkDigest(x)
			}
			checkConflicts(t, copies[0], d.Conflicts)
			err := o.part.Conflicts(func(c partition.Conflict) bool {
				if !slices.Contains(d.Conflicts, c.ID) { // it may list what it got back from the edge
					t.Errorf("the origin lists %s: %s", c.ID, c.Verdict.Detail)
				}
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// checkConflicts checks the ids of the inputs in the conflicts of a copy.
func checkConflicts(t testing.TB, x *party, want []string) {
	t.Helper()
	got := []string{}
	err := x.part.Conflicts(func(c partition.Conflict) bool {
		got = append(got, c.ID)
		return true
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s lists conflicts of %v, %v; want %v", x.name, got, err, want)
	}
}

// request01 is a request that a copy sent to an origin, and the status of the answer.
type request01 struct {
	Folder, By, Method, Path, Query string
	Header                          http.Header `json:",omitempty"`
	Body                            []byte      `json:",omitempty"`
	Status                          int
}

// TestRecordedRequests sends the requests that an edge and a page of version 0.1.0 sent to the origins, also those in the middle of giving
// back. The origin refuses each request about a log for its version, and takes nothing of it. Other requests, for pictures, get the same status
// as then. The restored origin is an exception: it lacks the writes that named these pictures.
func TestRecordedRequests(t *testing.T) {
	d := readDescribed(t)
	data, err := os.ReadFile(filepath.Join(folders01, "requests.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []request01
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for _, folder := range []string{"origin", "restored"} {
		o := startFolder(t, unpack(t, folder), d.App)
		head := o.part.Log().Head()
		for i := range all {
			r := &all[i]
			if r.Folder != folder {
				continue
			}
			calls[r.By+" "+r.call()] = true
			status, body := r.send(t, &d, o.base)
			switch r.call() {
			case "have", "GET blobs", "PUT blobs":
				if status >= 400 && status != 404 || folder == "origin" && status != r.Status {
					t.Errorf("%s: %s %s?%s by the %s = %d %.200q, want %d", folder, r.Method, r.Path, r.Query, r.By, status, body, r.Status)
				}
			default:
				refusal, err := wire.DecodeRefusal(body)
				if status != 426 || err != nil || refusal.Code != wire.RefusedProtocol || refusal.Min != 2 || refusal.Max != 2 || refusal.Detail == "" {
					t.Errorf("%s: %s %s?%s by the %s = %d %.200q, want 426 protocol", folder, r.Method, r.Path, r.Query, r.By, status, body)
				}
			}
		}
		checkContents(t, folder, visible(t, o.part), d.Inputs[folder])
		if got := o.part.Log().Head(); got != head {
			t.Errorf("%s: the log has %d entries, had %d", folder, got, head)
		}
	}
	want := []string{"browser GET blobs"} // the edge has all pictures
	for _, by := range []string{"browser", "edge"} {
		for _, call := range []string{"PUT blobs", "back", "changes", "digest", "have", "push", "session", "snapshot"} {
			want = append(want, by+" "+call)
		}
	}
	if got := slices.Sorted(maps.Keys(calls)); !slices.Equal(got, want) {
		t.Errorf("recorded are %v, want %v", got, want)
	}
}

// TestOldOrigin has copies meet an origin of version 0.1.0, which refuses their sessions, and one that replaces the origin while they give
// back, which finds their messages malformed. They report it, do not ask again at once, and keep everything for an origin of their version.
func TestOldOrigin(t *testing.T) {
	d := readDescribed(t)
	dir := filepath.Join(t.TempDir(), "data")
	mustRun(t, "restore", unpack(t, "backup"), "--data", dir)
	o := startFolder(t, dir, d.App)
	copies := []*party{openEdge(t, &d, unpack(t, "edge")), openPage(t, &d, "browser", unpack(t, "browser"))}
	protocol := wire.Refusal{Code: wire.RefusedProtocol, Detail: "versions 1 to 1 of the protocol are supported", Min: 1, Max: 1}
	for name, old := range map[string]map[string]*wire.Refusal{
		"always":                                {"session": &protocol, "back": &protocol, "push": &protocol},
		"while they give back":                  {"back": {Code: wire.RefusedFormat, Detail: "back: malformed record"}},
		"while they give back, for its version": {"back": &protocol},
	} {
		for _, x := range copies {
			kept, pending := x.frames(), x.pending()
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				refusal := old[strings.TrimPrefix(r.URL.Path, "/v2/sync/")]
				if refusal == nil {
					sendOn(w, r, o.base)
					return
				}
				w.Header().Set("Content-Type", wire.ContentType)
				w.WriteHeader(refusal.Status())
				_, _ = w.Write(refusal.Encode())
			}))
			s := x.run(proxy.URL, func(s *replica.Status) bool { return s.Problem != "" })
			proxy.Close()
			for _, e := range x.next {
				if a, ok := e.(replica.Ask); ok {
					t.Errorf("%s: %s then asks %s %s at once", name, x.name, a.Method, a.Path)
				}
			}
			if !strings.Contains(s.Problem, "protocol") && !strings.Contains(s.Problem, "malformed") {
				t.Errorf("%s: %s reports %q", name, x.name, s.Problem)
			}
			if len(kept) == 0 || !slices.EqualFunc(x.frames(), kept, bytes.Equal) || x.pending() != pending {
				t.Errorf("%s: %s keeps %d frames and %d writes, kept %d and %d", name, x.name, len(x.frames()), x.pending(), len(kept), pending)
			}
			checkContents(t, x.name, visible(t, x.part), d.Inputs[x.name])
		}
		checkConflicts(t, copies[0], d.Conflicts)
	}
	for range 2 {
		for _, x := range copies {
			x.sync(o.base)
		}
	}
	for _, x := range copies {
		checkContents(t, x.name, visible(t, x.part), d.Merged)
	}
}

// sendOn sends a request on, and returns the answer.
func sendOn(w http.ResponseWriter, r *http.Request, base string) {
	to, err := url.Parse(base)
	if err != nil {
		panic(err)
	}
	httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
}

// call returns the name of the call.
func (r *request01) call() string {
	switch first, rest, _ := strings.Cut(strings.TrimPrefix(r.Path, "/v2/sync/"), "/"); {
	case first == "blobs" && rest == "have":
		return "have"
	case first == "blobs":
		return r.Method + " blobs"
	default:
		return first
	}
}

// send sends the request with a credential of now.
func (r *request01) send(t testing.TB, d *described, base string) (status int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.Method, base+r.Path+"?"+r.Query, bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = r.Header.Clone()
	authorize := byKey(d.Key)
	if r.By == "edge" {
		authorize = bySignature(d.Edge)
	}
	fields, err := authorize(r.Method, r.Path, r.Query, r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		req.Header.Set(f.Name, f.Value)
	}
	res, err := own(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}
