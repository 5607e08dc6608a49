package instance_test

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
	"github.com/sightline-dev/sightline/wasm/guest/instance"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// guest is an instance that tests call with encoded messages, and the function that does its jobs.
type guest struct {
	*instance.Instance
	host      *host
	work      func(api.Job) abi.Result
	move      func(time.Duration) // advances the clock
	taskCount int                 // number of background tasks so far
}

// host serves an instance without a module. It keeps the lines that the instance logs.
type host struct {
	*hostcalls.Host
	lines []string
	older int // number of calls of Older
}

func newHost(l hostcalls.Services) *host {
	h, err := hostcalls.New(l, "")
	if err != nil {
		panic(err) // hostcalls.New fails only for a wrong application
	}
	return &host{Host: h}
}

var _ hostapi.Imports = (*host)(nil)

func (h *host) Log(level int32, line string) { h.lines = append(h.lines, fmt.Sprint(level, " ", line)) }

func (h *host) Older(base *[32]byte, name string, dst []byte) int64 {
	h.older++
	return h.Host.Older(base, name, dst)
}

// Lines returns the lines logged since the last call.
func (h *host) Lines() []string {
	lines := h.lines
	h.lines = nil
	return lines
}

// names lists the files of bundles.
func names(bundles fs.FS) []string {
	all, err := hostcalls.Names(bundles)
	if err != nil {
		panic(err)
	}
	return all
}

func newInstance(h *host) *instance.Instance { return &instance.Instance{Imports: h} }

// open opens an instance with settings and the bundles of the host.
func open(t testing.TB, h *host, s abi.Settings) *guest {
	t.Helper()
	g := &guest{Instance: newInstance(h), host: h}
	if h.Bundles != nil {
		s.Bundles = names(h.Bundles)
	}
	guestErr, err := abi.ParseDone(g.Open(s.Marshal()))
	if err != nil || guestErr != nil {
		t.Fatalf("Open = %v, %v", guestErr, err)
	}
	return g
}

// ask returns a copy of the answer to a query, and fails the test if there is none.
func (g *guest) ask(t testing.TB, q abi.Query) []byte {
	t.Helper()
	value, guestErr, err := abi.ParseReply(g.Ask(q.Marshal()))
	if guestErr != nil || err != nil {
		t.Fatalf("%s: %v, %v", q.What, guestErr, err)
	}
	return append([]byte(nil), value...)
}

// answer returns the response to a request, after it has done the jobs of the call.
func (g *guest) answer(t testing.TB, r *api.Request) api.Response {
	t.Helper()
	s := readServeResult(t, g.Serve(abi.AppendRequest(nil, r)))
	for s.Call != 0 {
		results := make([]abi.Result, len(s.Jobs))
		for n, j := range s.Jobs {
			results[n] = g.work(j)
		}
		s = readServeResult(t, g.Resume(abi.AppendResults(nil, s.Call, results)))
	}
	return s.Response
}

// readServeResult parses a copy of data, as a host does: the next call overwrites data.
func readServeResult(t testing.TB, data []byte) abi.ServeResult {
	t.Helper()
	s, err := abi.ParseServeResult(append([]byte(nil), data...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rest advances the clock by d, and does background work until none is left.
func (g *guest) rest(t testing.TB, d time.Duration) {
	t.Helper()
	g.move(d)
	step := abi.Step{Take: 1}
	for range 100_000 {
		out, err := abi.ParseStepResult(append([]byte(nil), g.Step(step.Marshal())...))
		if err != nil || out.Error != "" {
			t.Fatalf("step: %q, %v", out.Error, err)
		}
		step.Done = nil
		for _, task := range out.Tasks {
			g.taskCount++
			step.Done = append(step.Done, abi.TaskResult{Task: task.Number, Result: g.work(task.Job)})
		}
		if !out.More && len(out.Tasks) == 0 {
			return
		}
	}
	t.Fatal("the background does not come to an end")
}

// newGuest opens an instance over a world's store and pictures, for one application. If app is empty, the instance serves all
// applications, and newGuest closes the world's engine.
func newGuest(t testing.TB, w *apitest.World, app string, bundles fs.FS, settings map[string]string) *guest {
	t.Helper()
	s := abi.Settings{
		Role: abi.Engine, App: app, Store: abi.StoreHost, PublicURL: settings["public-url"], PublicAppID: settings["public-app-id"],
		Tokens: true,
	}
	for name, limit := range map[string]*uint32{"max-bytes": &s.MaxBytes, "max-members": &s.MaxMembers} {
		if value, ok := settings[name]; ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			*limit = uint32(n)
		}
	}
	if maxAnswer, ok := settings["max-answer"]; ok {
		n, err := strconv.ParseUint(maxAnswer, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s.MaxAnswer = n
	}
	if rate, ok := settings["rate"]; ok {
		if _, err := fmt.Sscanf(rate, "%d,%d", &s.Rate, &s.Burst); err != nil {
			t.Fatal(err)
		}
	}
	if app == "" {
		if err := w.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		defer setAside(t, w)()
	}
	g := open(t, newHost(hostcalls.Services{
		Store: w.Store, Hosted: w.Hosted, Bundles: bundles, Tokens: w.Tokens,
		Clock: func() time.Time { return w.Now }, Rand: &w.IDs,
	}), s)
	g.work = func(j api.Job) abi.Result { return abi.Result{Result: w.RunJob(j)} }
	g.move = func(d time.Duration) { w.Now = w.Now.Add(d) }
	return g
}

// setAside makes w draw ids from another range until undo is called.
func setAside(t testing.TB, w *apitest.World) (undo func()) {
	t.Helper()
	var next [8]byte
	if _, err := w.IDs.Read(next[:]); err != nil {
		t.Fatal(err)
	}
	w.IDs.Counter = apitest.NewCounter(1 << 48)
	return func() { w.IDs.Counter = apitest.NewCounter(binary.BigEndian.Uint64(next[:]) - 1) }
}

// show replaces the name of a credential in a transcript's request with the credential.
func show(w *apitest.World, r *api.Request) {
	switch {
	case r.Authorization == "" && r.Session == "":
		r.Authorization = "Key " + w.Key
	case r.Authorization == "client":
		r.Authorization = apitest.Basic(w.Client)
	case r.Authorization == "none":
		r.Authorization = ""
	}
}

// transcripts returns a host that replays transcripts on an instance over a world. If one is true, the instance serves one application.
func transcripts(files fs.FS, one bool, set *predict.Set, bundles, pictures fs.FS) apitest.Host {
	return apitest.Host{
		Files: files,
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			w := apitest.NewWorld(t, memkv.New(), set, pictures, settings)
			app := ""
			if one {
				app = w.App
			}
			g := newGuest(t, w, app, bundles, settings)
			return func(r api.Request) api.Response {
				if r.Method == "STEP" {
					d, err := time.ParseDuration(r.Path)
					if err != nil {
						t.Fatal(err)
					}
					g.rest(t, d)
					return api.Response{}
				}
				show(w, &r)
				return g.answer(t, &r)
			}
		},
	}
}

// page is the world of an instance in a page: it has only the instance's own store, and no keys.
type page struct {
	*guest
	now      time.Time
	analyser *guest
	ids      apitest.Counter
	names    apitest.Counter
}

// Read implements [io.Reader] as a page's random source does in tests: names of pictures come from a separate source.
func (p *page) Read(b []byte) (int, error) {
	if len(b) < 512 {
		return p.ids.Read(b)
	}
	for n := 0; n < len(b); n += 16 {
		if _, err := p.names.Read(b[n : n+16]); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

// openPage opens a page on files, with the default settings except for more.
func openPage(t testing.TB, bundles fs.FS, disk journal.Files, more ...func(*abi.Settings)) *page {
	t.Helper()
	p := &page{now: apitest.Start, names: *apitest.NewCounter(1 << 32)}
	h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return p.now }, Rand: p, Files: disk})
	p.analyser = open(t, newHost(hostcalls.Services{Bundles: bundles, Clock: h.Clock, Rand: p}), abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	s := abi.Settings{Role: abi.Engine, Store: abi.StoreMemory, OpenDoor: true}
	if disk != nil {
		s.Store = abi.StoreFiles
	}
	for _, set := range more {
		set(&s)
	}
	p.guest = open(t, h, s)
	p.guest.move = func(d time.Duration) { p.now = p.now.Add(d) }
	p.guest.work = p.do
	return p
}

// do does a job as a page's host does: it fetches the picture and analyses it in another instance. If the job has Keep, it also returns
// the picture.
func (p *page) do(j api.Job) abi.Result {
	if j.Data == nil && j.URL != "" {
		name, _, _ := strings.Cut(strings.TrimPrefix(j.URL, "http://pictures.test/"), "?")
		if j.Data = apitest.Picture(name); len(j.Data) == 0 {
			return abi.Result{Result: api.Result{Err: api.ErrFetch}}
		}
	}
	r, err := abi.ParseResult(append([]byte(nil), p.analyser.Analyse(abi.AppendJob(nil, &j))...))
	if err != nil {
		r.Err = err
	}
	if j.Keep && r.Err == nil {
		r.Picture = j.Data
	}
	return r
}
