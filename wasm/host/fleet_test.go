package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
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
)

// node is a fleet with the register beside it, and what an edge does around them.
type node struct {
	t       testing.TB
	store   kv.Store
	blobs   *blob.Memory
	hosted  *blob.Hosted
	control *core.Control
	fleet   *Fleet
	strays  int
}

type tenant struct {
	app, key string
	client   core.Client
}

func newNode(t testing.TB, rt *Runtime, change func(*FleetOptions)) *node {
	t.Helper()
	n := &node{t: t, store: memkv.New(), blobs: blob.NewMemory(blob.Options{})}
	bundles, set := apitest.TinyBundles(t), apitest.Tiny(t)
	var err error
	n.hosted, err = blob.OpenHosted(blob.HostedOptions{
		Blobs: n.blobs, Random: newSeeded(), Keep: func(h blob.Hash) bool { return n.control.Keeps(h) },
	})
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return apitest.Start }
	n.control, err = core.OpenControl(core.ControlOptions{
		Store: n.store, Models: set, Hosted: n.hosted, Clock: clock, Rand: newSeeded(),
		Detach: func(app string) { n.fleet.Detach(app) },
	})
	if err != nil {
		t.Fatal(err)
	}
	random := locked{new(sync.Mutex), newSeeded()}
	o := FleetOptions{
		Runtime: rt, Models: set, Rate: auth.Rate{PerSecond: -1}, Strays: func() { n.strays++ },
		Lent: Lent{Store: n.store, Hosted: n.hosted, Bundles: bundles, Tokens: mint{}, Clock: clock, Rand: random},
	}
	if change != nil {
		change(&o)
	}
	if n.fleet, err = NewFleet(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.fleet.Close(), n.control.Close()); err != nil {
			t.Error(err)
		}
		if got := n.fleet.Instances(); got != 0 {
			t.Errorf("%d instances are left", got)
		}
	})
	return n
}

// locked is a source of bytes for many.
type locked struct {
	*sync.Mutex
	seeded
}

func (l locked) Read(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.seeded.Read(p)
}

func (n *node) tenant() tenant {
	n.t.Helper()
	ctx := context.Background()
	app, client, err := n.control.CreateApp(ctx, "", core.NewApp{Name: "test", Language: "en"})
	if err != nil {
		n.t.Fatal(err)
	}
	key, _, err := n.control.CreateKey(ctx, "", core.NewKey{App: app.ID, Scopes: auth.All.Names()})
	if err != nil {
		n.t.Fatal(err)
	}
	return tenant{app.ID, key, client}
}

// serve answers a request as an edge does.
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
	if r.Analysis, r.Err = n.fleet.NewAnalyser(j.Base, raster.Limits{}).Analyse(picture, j.Crop, j.Want); r.Err == nil && j.Keep {
		r.ContentType = "image/png"
		r.Blob, r.Err = n.hosted.Hold(context.Background(), picture)
	}
	return r
}

// background works until there is nothing to do.
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

// anotherRuntime is the module once more, with its own compilation.
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

// TestFleet serves three applications at once: predictions, inputs fetched in the background,
// and searches in what is each one's own.
func TestFleet(t *testing.T) {
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) { o.Analysers = 2 })
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
	if got := n.fleet.Instances(); got < 4 || n.fleet.Bytes() < 1<<20 {
		t.Errorf("%d instances of %d bytes", got, n.fleet.Bytes())
	}
	n.background()
	for i, ten := range tenants {
		n.must(ten, "GET", "/v2/inputs/status", "", `"processed":0,"to_process":0,"errors":5`)
		n.must(ten, "GET", fmt.Sprintf("/v2/inputs/i%d-0", i), "", `"id"`)
	}
	if n.fleet.Deaths() != 0 || n.fleet.Oldest() != 0 {
		t.Errorf("%d deaths, the oldest call is of %v", n.fleet.Deaths(), n.fleet.Oldest())
	}
}
