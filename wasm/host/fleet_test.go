package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// node is a fleet with its register, and does the jobs and the background work as an edge does.
type node struct {
	t           testing.TB
	store       kv.Store
	blobs       *blob.Memory
	hosted      *blob.HostedNames
	control     *register.Register
	fleet       *Fleet
	orphanScans int
	deaths      deaths
}

// deaths is a log handler that counts the guests of a fleet that died.
type deaths struct{ atomic.Int64 }

func (d *deaths) Enabled(context.Context, slog.Level) bool { return true }
func (d *deaths) WithAttrs([]slog.Attr) slog.Handler       { return d }
func (d *deaths) WithGroup(string) slog.Handler            { return d }

func (d *deaths) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "discarded a failed module instance" {
		d.Add(1)
	}
	return nil
}

type tenant struct {
	app, key string
	client   register.Client
}

func newNode(t testing.TB, rt *Runtime, change func(*FleetOptions)) *node {
	t.Helper()
	n := &node{t: t, store: memkv.New(), blobs: blob.NewMemory(blob.Options{})}
	bundles, set := apitest.TinyBundles(t), apitest.Tiny(t)
	var err error
	n.hosted, err = blob.OpenHosted(blob.HostedOptions{
		Blobs: n.blobs, Random: newSeeded(), References: func(h blob.Hash) bool { return n.control.References(h) },
		AppDeleted: func(app blob.AppID) (bool, error) { return n.control.HostedAppDeleted(app) },
	})
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return apitest.Start }
	n.control, err = register.Open(register.Options{
		Store: n.store, Models: set, Hosted: n.hosted, Clock: clock, Rand: newSeeded(),
		Detach: func(app string) { n.fleet.Detach(app) },
	})
	if err != nil {
		t.Fatal(err)
	}
	random := lockedReader{new(sync.Mutex), newSeeded()}
	o := FleetOptions{
		Runtime: rt, Models: set, Rate: auth.Rate{PerSecond: -1}, CollectOrphans: func() { n.orphanScans++ },
		Services: Services{Store: n.store, Hosted: n.hosted, Bundles: bundles, Tokens: mint{}, Clock: clock, Rand: random, Log: slog.New(&n.deaths)},
	}
	if change != nil {
		change(&o)
	}
	if n.fleet, err = NewFleet(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.fleet.Close(), n.control.Close()); err != nil {
			t.Error(err)
		}
		if got := n.fleet.Runtime().Instances(); got != 0 {
			t.Errorf("%d instances are left", got)
		}
	})
	return n
}

// lockedReader is a source of random bytes that is safe for concurrent use.
type lockedReader struct {
	*sync.Mutex
	seededReader
}

func (l lockedReader) Read(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.seededReader.Read(p)
}

func (n *node) tenant() tenant {
	n.t.Helper()
	ctx := context.Background()
	app, client, err := n.control.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "test", Language: "en"})
	if err != nil {
		n.t.Fatal(err)
	}
	key, _, err := n.control.CreateKey(ctx, register.Caller{}, register.NewKey{App: app.ID, Scopes: auth.All.Names()})
	if err != nil {
		n.t.Fatal(err)
	}
	return tenant{app.ID, key, client}
}

// serve answers a request and does the jobs of its call, as an edge does.
func (n *node) serve(r *api.Request) api.Response {
	call := n.fleet.Begin(context.Background(), r)
	for !call.Done() {
		call.Resume(n.work(call.Jobs()))
	}
	return call.Response()
}

func (n *node) work(jobs []api.Job) []api.Result {
	results := make([]api.Result, len(jobs))
	for i, j := range jobs {
		results[i] = n.job(&j)
	}
	return results
}

func (n *node) job(j *api.Job) (r api.Result) {
	picture := j.Data
	if j.Data == nil && j.URL == "" {
		if picture, r.Err = n.blobs.Get(context.Background(), j.Blob); r.Err != nil {
			return r
		}
	}
	if name, ok := strings.CutPrefix(j.URL, "http://pictures.test/"); ok {
		if picture = apitest.Picture(name); picture == nil {
			return api.Result{Err: api.ErrFetch}
		}
	}
	a, err := n.fleet.NewAnalyser(j.Base, raster.Limits{})
	if err != nil {
		return api.Result{Err: err}
	}
	if r.Analysis, r.Err = a.Analyse(picture, j.Crop, j.Want); r.Err == nil && j.Keep {
		r.ContentType = "image/png"
		r.Blob, r.Err = n.hosted.Pin(context.Background(), picture)
	}
	return r
}

// background does background work until none is left.
func (n *node) background() {
	n.t.Helper()
	ctx := context.Background()
	for range 1000 {
		tasks, err := n.fleet.Take(apitest.Start, 4)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, t := range tasks {
			if err := n.fleet.Done(ctx, t, core.Result{Picture: n.job(t.Picture)}); err != nil {
				n.t.Fatal(err)
			}
		}
		more, err := n.fleet.Step(ctx, apitest.Start)
		if err != nil {
			n.t.Fatal(err)
		}
		if !more && len(tasks) == 0 {
			return
		}
	}
	n.t.Fatal("the background does not come to an end")
}

func (n *node) ask(t tenant, method, path, body string) api.Response {
	return n.serve(&api.Request{Method: method, Path: path, Authorization: "Key " + t.key, Body: []byte(body)})
}

func (n *node) must(t tenant, method, path, body string, want string) {
	n.t.Helper()
	if got := n.ask(t, method, path, body); got.Status != 200 || !bytes.Contains(got.Body, []byte(want)) {
		n.t.Errorf("%s %s = %d %s, want %q", method, path, got.Status, got.Body, want)
	}
}

// anotherRuntime returns a new runtime of the module, with its own compilation.
func anotherRuntime(t testing.TB) *Runtime {
	t.Helper()
	o := moduleOptions(t)
	o.Cache = sharedCache(t)
	rt, err := NewRuntime(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

const general = "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs"

func predictBody(name string) string {
	return `{"inputs":[{"data":{"image":{"base64":"` + base64.StdEncoding.EncodeToString(apitest.Picture(name)) + `"}}}]}`
}

// TestFleet serves three applications at once: predictions, inputs fetched in the background, and searches in the data of each.
func TestFleet(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	var tenants []tenant
	for range 3 {
		tenants = append(tenants, n.tenant())
	}
	var all sync.WaitGroup
	for i, ten := range tenants {
		all.Go(func() {
			for k := range 5 {
				n.must(ten, "POST", general, predictBody("red.png"), `"name":"red"`)
				n.must(ten, "POST", "/v2/inputs", fmt.Sprintf(`{"inputs":[{"id":"i%d-%d","data":{"image":{"url":"http://pictures.test/blue.png?%d"}}}]}`, i, k, k), `"code":30001`)
			}
		})
	}
	all.Wait()
	if got := n.fleet.Runtime().Instances(); got < 3 || n.fleet.Bytes() < 1<<20 {
		t.Errorf("%d instances of %d bytes", got, n.fleet.Bytes())
	}
	n.background()
	for i, ten := range tenants {
		n.must(ten, "GET", "/v2/inputs/status", "", `"processed":0,"to_process":0,"errors":5`)
		n.must(ten, "GET", fmt.Sprintf("/v2/inputs/i%d-0", i), "", `"id"`)
	}
	if n.deaths.Load() != 0 || n.fleet.Runtime().Oldest() != 0 {
		t.Errorf("%d deaths, the oldest call is of %v", n.deaths.Load(), n.fleet.Runtime().Oldest())
	}
}

// moods returns a guest that behaves by the first letter of a request's method: it traps for T, takes all memory for M, recurses
// for R, and answers anything else.
func moods(answer string) []byte {
	g := newGuest()
	mood := func(letter byte, body []byte) []byte {
		// The envelope is a version, a tag and a length before the method.
		return code(i32(atRequest+3), opI32Load8U, 0, 0, i32(int32(letter)), opI32Eq, opIf, blockVoid, body, opEnd)
	}
	grow := code(opLoop, blockVoid, i32(1), opMemoryGrow, 0, i32(-1), opI32Ne, opBrIf, 0, opEnd, opUnreachable)
	recursion := code(opLocalGet, 0, opCall, uleb(4), opDrop) // calls serve, function 4: the guest has no imports
	at := 8 << 10
	g.data = append(g.data, segment{at, abi.AppendResponse(nil, &api.Response{Status: 200, Body: []byte(answer)})})
	g.bodies["serve"] = code(
		mood('T', code(opUnreachable)), mood('M', grow), mood('R', recursion),
		i64(int64(abi.Answer(uint32(at), uint32(len(g.data[0].bytes))))), opEnd)
	return g.encode()
}

// TestHostileFleet: the guest of one application dies in several ways. Its next request succeeds,
// and meanwhile every request to another application does.
func TestHostileFleet(t *testing.T) {
	rt, err := NewRuntime(context.Background(), options(moods("well")))
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, rt, nil)
	hostile, neighbour := n.tenant(), n.tenant()
	stop := make(chan struct{})
	var all sync.WaitGroup
	served := 0
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				n.must(neighbour, "GET", "/v2/models", "", "well")
				served++
			}
		}
	})
	for _, mood := range []string{"T", "M", "R", "T"} {
		if got := n.ask(hostile, mood, "/v2/models", ""); got.Status != 500 {
			t.Errorf("%s = %d %s", mood, got.Status, got.Body)
		}
		n.must(hostile, "GET", "/v2/models", "", "well")
	}
	close(stop)
	all.Wait()
	if served == 0 || n.deaths.Load() != 4 {
		t.Errorf("the neighbour was served %d times, %d deaths", served, n.deaths.Load())
	}
	// After maxDeaths deaths in a row, the fleet refuses calls of the application as busy for a while.
	for range maxDeaths {
		n.ask(hostile, "T", "/v2/models", "")
	}
	if got := n.ask(hostile, "GET", "/v2/models", ""); got.Status != 503 {
		t.Errorf("after %d deaths in a row: %d %s", maxDeaths, got.Status, got.Body)
	}
	n.must(neighbour, "GET", "/v2/models", "", "well")
}
