package instance_test

import (
	"bytes"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/instance"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// tripping is a host. If now or get is set, this function panics once; if fails is set, KVGet fails once.
type tripping struct {
	*host
	now, get, fails bool
}

func (h *tripping) Now() int64 {
	if h.now {
		h.now = false
		panic("now")
	}
	return h.host.Now()
}

func (h *tripping) KVGet(snapshot uint32, key, dst []byte) int64 {
	if h.get {
		h.get = false
		panic("get")
	}
	if h.fails {
		h.fails = false
		return -int64(abi.Damaged)
	}
	return h.host.KVGet(snapshot, key, dst)
}

// TestPanics: a panic or a failure of the store fails only the call in which it happens.
func TestPanics(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	g := newGuest(t, w, w.App, apitest.TinyBundles(t), nil)
	h := &tripping{host: g.host}
	g.Imports = h
	g2 := &guest{Instance: &instance.Instance{Imports: h}, host: g.host, work: g.work, move: g.move}
	s := abi.Settings{Role: abi.Both, App: w.App, Store: abi.StoreHost, Bundles: names(h.Bundles), PictureTime: time.Hour}
	h.get = true
	if guestErr, err := abi.ParseDone(g2.Open(s.Marshal())); !errors.Is(guestErr, api.ErrInternal) || err != nil {
		t.Fatalf("a panic in open is %v, %v", guestErr, err)
	}
	if guestErr, err := abi.ParseDone(g2.Open(s.Marshal())); guestErr != nil || err != nil {
		t.Fatalf("opened again: %v, %v", guestErr, err)
	}
	get := api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + w.Key}
	want := g2.answer(t, &get)
	h.get = true
	if r := g2.answer(t, &get); r.Status != 500 || !bytes.Contains(r.Body, []byte(`"code":99009`)) || !bytes.Contains(r.Body, []byte(`"inputs":[]`)) {
		t.Errorf("a panic in a request is %d %s", r.Status, r.Body)
	}
	if lines := strings.Join(h.Lines(), "\n"); !strings.Contains(lines, "panic in request: get") || !strings.Contains(lines, "trouble_test.go") {
		t.Errorf("logged: %s", lines)
	}
	h.fails = true
	if r := g2.answer(t, &get); r.Status != 500 {
		t.Errorf("a damaged store's answer is %d %s", r.Status, r.Body)
	}
	if lines := strings.Join(h.Lines(), "\n"); !strings.Contains(lines, "8 GET /v2/inputs: ") || !strings.Contains(lines, kv.ErrCorrupt.Error()) {
		t.Errorf("logged: %s", lines)
	}
	if r := g2.answer(t, &get); r.Status != 200 || !bytes.Equal(r.Body, want.Body) {
		t.Errorf("afterwards: %d %s", r.Status, r.Body)
	}
	h.now = true
	job := api.Job{Data: apitest.Picture("red.png"), Want: predict.WantConcepts}
	if r, err := abi.ParseResult(g2.Analyse(abi.AppendJob(nil, &job))); !errors.Is(r.Err, api.ErrInternal) || err != nil {
		t.Errorf("a panic in an analysis is %v, %v", r.Err, err)
	}
	if r, err := abi.ParseResult(g2.Analyse(abi.AppendJob(nil, &job))); r.Err != nil || err != nil {
		t.Errorf("afterwards: %v, %v", r.Err, err)
	}
	h.now = true
	if s, err := abi.ParseStepResult(g2.Step((&abi.Step{}).Marshal())); s.Error == "" || err != nil {
		t.Errorf("a panic in a step is %+v, %v", s, err)
	}
	if s, err := abi.ParseStepResult(g2.Step((&abi.Step{}).Marshal())); s.Error != "" || err != nil {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
}

func TestRoles(t *testing.T) {
	bundles := apitest.TinyBundles(t)
	h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}})
	job := api.Job{Data: apitest.Picture("red.png"), Want: predict.WantConcepts | predict.WantColors | predict.WantThumb, Keep: true}
	get := abi.AppendRequest(nil, &api.Request{Method: "GET", Path: "/v2/models"})

	engine := open(t, h, abi.Settings{Role: abi.Engine, Store: abi.StoreMemory})
	if r, err := abi.ParseResult(engine.Analyse(abi.AppendJob(nil, &job))); r.Err == nil || err != nil {
		t.Errorf("an engine analyses: %+v, %v", r, err)
	}
	if s := readServeResult(t, engine.Serve(get)); s.Response.Status != 401 {
		t.Errorf("an engine answers %d", s.Response.Status)
	}
	if guestErr, _ := abi.ParseDone(engine.Open((&abi.Settings{Role: abi.Engine, Store: abi.StoreMemory}).Marshal())); !errors.Is(guestErr, api.ErrOptions) {
		t.Errorf("opened twice: %v", guestErr)
	}
	if s := readServeResult(t, engine.Serve(get)); s.Response.Status >= 500 {
		t.Error("an instance that was opened twice is closed")
	}

	analyser := open(t, h, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	if s := readServeResult(t, analyser.Serve(get)); s.Response.Status != 500 {
		t.Errorf("an analyser answers %d", s.Response.Status)
	}
	if s, err := abi.ParseStepResult(analyser.Step((&abi.Step{Take: 1}).Marshal())); s.Error == "" || err != nil {
		t.Errorf("an analyser steps: %+v, %v", s, err)
	}
	r, err := abi.ParseResult(analyser.Analyse(abi.AppendJob(nil, &job)))
	if err != nil || r.Err != nil || r.ContentType != "image/png" {
		t.Fatalf("analysis = %+v, %v", r, err)
	}
	want, err := apitest.Tiny(t).NewAnalyser(raster.Limits{}).Analyse(job.Data, job.Crop, job.Want)
	if err != nil || !bytes.Equal(abi.AppendAnalysis(nil, &r.Analysis), abi.AppendAnalysis(nil, &want)) {
		t.Errorf("analysis = %+v, want %+v, %v", r.Analysis, want, err)
	}
	for name, want := range map[string]error{"torn.png": raster.ErrCorrupt, "heic.jpg": raster.ErrCorrupt, "text.html": raster.ErrUnsupported, "huge.png": raster.ErrTooLarge} {
		job := api.Job{Data: apitest.Picture(name), Want: predict.WantConcepts}
		_, native := apitest.Tiny(t).NewAnalyser(raster.Limits{}).Analyse(job.Data, job.Crop, job.Want)
		r, err := abi.ParseResult(analyser.Analyse(abi.AppendJob(nil, &job)))
		if err != nil || !errors.Is(r.Err, want) || r.Err.Error() != native.Error() {
			t.Errorf("%s: %v, %v, want %v", name, r.Err, err, native)
		}
	}
}

func TestInvalidSettings(t *testing.T) {
	bundles := apitest.TinyBundles(t)
	tests := []struct {
		name    string
		bundles fs.FS
		s       abi.Settings
		want    error
	}{
		{"no bundles", nil, abi.Settings{Role: abi.Engine, Store: abi.StoreMemory}, predict.ErrBundle},
		{"no network", nil, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory}, predict.ErrBundle},
		{"an application in a new store", bundles, abi.Settings{Role: abi.Engine, Store: abi.StoreMemory, App: strings.Repeat("a", 32)}, api.ErrOptions},
		{"an application that is not there", bundles, abi.Settings{Role: abi.Engine, Store: abi.StoreHost, App: strings.Repeat("a", 32)}, register.ErrApplication},
		{"an address that is none", bundles, abi.Settings{Role: abi.Engine, Store: abi.StoreMemory, PublicURL: "x"}, api.ErrOptions},
	}
	for _, tt := range tests {
		h := newHost(hostcalls.Services{Store: memkv.New(), Bundles: tt.bundles, Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}})
		i := &instance.Instance{Imports: h}
		if tt.bundles != nil {
			tt.s.Bundles = names(tt.bundles)
		}
		if guestErr, err := abi.ParseDone(i.Open(tt.s.Marshal())); !errors.Is(guestErr, tt.want) || err != nil {
			t.Errorf("%s: %v, %v, want %v", tt.name, guestErr, err, tt.want)
		}
		if guestErr, err := abi.ParseDone(i.Open([]byte{9})); !errors.Is(guestErr, field.ErrFormat) || err != nil {
			t.Errorf("%s: an envelope that is none: %v, %v", tt.name, guestErr, err)
		}
	}
}

// TestPictureTime: the analysis of a picture fails if it takes longer than PictureTime.
func TestPictureTime(t *testing.T) {
	now := apitest.Start
	h := newHost(hostcalls.Services{Bundles: apitest.TinyBundles(t), Rand: &apitest.Counter{}, Clock: func() time.Time {
		now = now.Add(40 * time.Millisecond)
		return now
	}})
	g := open(t, h, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory, PictureTime: 30 * time.Millisecond})
	job := api.Job{Data: apitest.Picture("red.png"), Want: predict.WantConcepts}
	if r, err := abi.ParseResult(g.Analyse(abi.AppendJob(nil, &job))); !errors.Is(r.Err, raster.ErrExpired) || err != nil {
		t.Errorf("a picture that takes too long: %v, %v", r.Err, err)
	}
}

// TestOlderNetworks: an analyser uses the network that the job names, also an older one.
func TestOlderNetworks(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	h := newHost(hostcalls.Services{
		Bundles: apitest.TinyNextBundles(t), Rand: &apitest.Counter{}, Clock: func() time.Time { return apitest.Start },
		Older: func(base [32]byte) (fs.FS, error) {
			if base == old.Base() {
				return apitest.TinyBundles(t), nil
			}
			return nil, fs.ErrNotExist
		},
	})
	g := open(t, h, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	for _, set := range []*predict.Set{next, old, next} {
		job := api.Job{Data: apitest.Picture("red.png"), Want: predict.WantConcepts, Base: set.Base()}
		r, err := abi.ParseResult(g.Analyse(abi.AppendJob(nil, &job)))
		want, wantErr := set.NewAnalyser(raster.Limits{}).Analyse(job.Data, job.Crop, job.Want)
		if err != nil || wantErr != nil || r.Err != nil || r.Analysis.Embedding != want.Embedding {
			t.Errorf("by base %x: %v, %v", job.Base[:4], r.Err, err)
		}
	}
	job := api.Job{Data: apitest.Picture("red.png"), Base: [32]byte{1}}
	if r, err := abi.ParseResult(g.Analyse(abi.AppendJob(nil, &job))); r.Err == nil || err != nil {
		t.Errorf("by a network that is not there: %+v, %v", r, err)
	}
	if n := h.older; n == 0 || n > 200 {
		t.Errorf("older was called %d times", n)
	}
}

// TestUnknownCallsAndTasks resumes unknown calls, and returns results of unknown tasks.
func TestUnknownCallsAndTasks(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	g := newGuest(t, w, w.App, apitest.TinyBundles(t), nil)
	if s := readServeResult(t, g.Resume(abi.AppendResults(nil, 7, nil))); s.Response.Status != 500 {
		t.Errorf("a call that is not under way: %+v", s)
	}
	if s, err := abi.ParseStepResult(g.Step((&abi.Step{Done: []abi.TaskResult{{Task: 9}}}).Marshal())); err != nil || s.Error != "" {
		t.Errorf("a task that is not under way: %+v, %v", s, err)
	}
	r := api.Request{
		Method: "POST", Path: "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", Authorization: "Key " + w.Key,
		Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}},{"data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`),
	}
	first, second := readServeResult(t, g.Serve(abi.AppendRequest(nil, &r))), readServeResult(t, g.Serve(abi.AppendRequest(nil, &r)))
	if first.Call == 0 || second.Call == 0 || first.Call == second.Call || len(first.Jobs) != 2 {
		t.Fatalf("calls %d and %d", first.Call, second.Call)
	}
	busy := abi.Result{Result: api.Result{Err: api.ErrBusy}}
	if s := readServeResult(t, g.Resume(abi.AppendResults(nil, first.Call, []abi.Result{busy, busy}))); s.Response.Status != 503 {
		t.Errorf("a call that was given up: %d %s", s.Response.Status, s.Response.Body)
	}
	if s := readServeResult(t, g.Resume(abi.AppendResults(nil, second.Call, []abi.Result{g.work(second.Jobs[0])}))); s.Response.Status < 400 {
		t.Errorf("a result is missing: %d %s", s.Response.Status, s.Response.Body)
	}
	if s := readServeResult(t, g.Resume(abi.AppendResults(nil, first.Call, nil))); s.Response.Status != 500 {
		t.Errorf("a call that is resumed twice: %+v", s)
	}
}

// TestMemoryStaysFlat serves many requests. The memory of the instance does not grow with their number.
func TestMemoryStaysFlat(t *testing.T) {
	n := testkit.Size(t, 1000, 5_000, 100_000, 100_000)
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	g := newGuest(t, w, w.App, apitest.TinyBundles(t), nil)
	done := map[string]abi.Result{}
	work := func(j api.Job) abi.Result {
		r, ok := done[j.URL]
		if !ok {
			r = g.work(j)
			done[j.URL] = r
		}
		return r
	}
	key := "Key " + w.Key
	requests := []api.Request{
		{Method: "GET", Path: "/v2/models", Query: "per_page=3", Authorization: key},
		{Method: "GET", Path: "/v2/inputs/none", Authorization: key},
		{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + strings.Repeat("0", 32)},
		{
			Method: "POST", Path: "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", Authorization: key,
			Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`),
		},
		{Method: "POST", Path: "/v2/concepts/searches", Authorization: key, Body: []byte(`{"concept_query":{"name":"re*"}}`)},
	}
	round := func(i int) {
		s := readServeResult(t, g.Serve(abi.AppendRequest(nil, &requests[i%len(requests)])))
		if s.Call != 0 {
			s = readServeResult(t, g.Resume(abi.AppendResults(nil, s.Call, []abi.Result{work(s.Jobs[0])})))
		}
		if s.Response.Status >= 500 {
			t.Fatalf("request %d: %d %s", i, s.Response.Status, s.Response.Body)
		}
		if i%100 == 0 {
			g.Step((&abi.Step{Take: 1}).Marshal())
		}
	}
	heap := func() uint64 {
		w.Accounts.Spent = nil // the world records every call
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for i := range n / 10 {
		round(i)
	}
	before := heap()
	for i := range n {
		round(i)
	}
	if after := heap(); testkit.Timing() && after > before+256<<10 {
		t.Errorf("%d bytes before, %d after %d requests", before, after, n)
	}
	if snapshots, scans := g.host.Open(); snapshots > 2 || scans > 0 {
		t.Errorf("%d snapshots, %d scans are open", snapshots, scans)
	}
}

// FuzzInstance calls exports with any bytes: every answer is an envelope, and the instance continues.
func FuzzInstance(f *testing.F) {
	r := api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)}
	job := api.Job{Data: apitest.Picture("red.png"), Want: predict.WantConcepts}
	f.Add(byte(0), abi.AppendRequest(nil, &r))
	f.Add(byte(1), abi.AppendResults(nil, 1, []abi.Result{{}}))
	f.Add(byte(2), (&abi.Step{Take: 3, Done: []abi.TaskResult{{Task: 1}}}).Marshal())
	f.Add(byte(3), abi.AppendJob(nil, &job))
	f.Add(byte(4), (&abi.Query{What: abi.AskMemory}).Marshal())
	f.Add(byte(5), (&abi.Settings{Role: abi.Both, Store: abi.StoreMemory}).Marshal())
	bundles := apitest.TinyBundles(f)
	h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}})
	g := open(f, h, abi.Settings{Role: abi.Both, Store: abi.StoreMemory, OpenDoor: true})
	f.Fuzz(func(t *testing.T, export byte, data []byte) {
		if q, err := abi.ParseQuery(data); err == nil && q.What == abi.AskClose {
			return
		}
		var err error
		switch export % 6 {
		case 0:
			_, err = abi.ParseServeResult(g.Serve(data))
		case 1:
			_, err = abi.ParseServeResult(g.Resume(data))
		case 2:
			_, err = abi.ParseStepResult(g.Step(data))
		case 3:
			_, err = abi.ParseResult(g.Analyse(data))
		case 4:
			_, _, err = abi.ParseReply(g.Ask(data))
		case 5:
			_, err = abi.ParseDone(g.Open(data))
		}
		if err != nil {
			t.Errorf("export %d answers %x with what is no envelope: %v", export%6, data, err)
		}
		if lines := h.Lines(); len(lines) > 0 {
			t.Errorf("export %d, %x: %s", export%6, data, lines)
		}
		if s := readServeResult(t, g.Serve(abi.AppendRequest(nil, &api.Request{Method: "GET", Path: "/v2/inputs/status"}))); s.Response.Status != 200 {
			t.Errorf("afterwards: %d %s", s.Response.Status, s.Response.Body)
		}
	})
}
