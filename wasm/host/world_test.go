package host

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
)

// theRuntime is the runtime of the module, compiled once for all tests of the process.
var theRuntime struct {
	once sync.Once
	rt   *Runtime
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if rt := theRuntime.rt; rt != nil {
		rt.Close(context.Background())
	}
	os.Exit(code)
}

// moduleOptions returns the options with which an edge runs the module.
func moduleOptions(t testing.TB) Options {
	t.Helper()
	o := options(prebuilt.Guest(t))
	o.MemoryPages = 0
	return o
}

func module(t testing.TB) *Runtime {
	t.Helper()
	o := moduleOptions(t)
	o.Cache = sharedCache(t)
	theRuntime.once.Do(func() { theRuntime.rt, theRuntime.err = NewRuntime(context.Background(), o) })
	if theRuntime.err != nil {
		t.Fatal(theRuntime.err)
	}
	return theRuntime.rt
}

// guestOf implements apitest.Guest with an instance of the module and an analyser.
type guestOf struct {
	*Instance
	analyser *Instance
}

// Analyse analyses the picture in j.Data as a page does. The instance must have the role of an analyser.
func (in *Instance) Analyse(ctx context.Context, j *api.Job) api.Result {
	answer, err := in.call(ctx, "analyse", abi.AppendJob(nil, j))
	if err != nil {
		return api.Result{Err: api.ErrInternal}
	}
	r, err := abi.ParseResult(answer)
	if err := in.invalidAnswer(err); err != nil {
		return api.Result{Err: api.ErrInternal}
	}
	return r.Result
}

// Close drops the instance without closing it, as a crash does. A world does not close its native engine either.
func (g guestOf) Close() error { return g.Kill() }

func (g guestOf) Take(_ time.Time, n int) ([]core.Task, error) {
	return g.Instance.Take(context.Background(), n)
}

func (g guestOf) Step(ctx context.Context, _ time.Time) (bool, error) {
	s, err := g.Instance.Step(ctx)
	return s.More, err
}

func (g guestOf) Analyse(media []byte, j *api.Job) api.Result {
	job := *j
	job.URL, job.Data, job.Keep = "", media, false
	return g.analyser.Analyse(context.Background(), &job)
}

// elsewhere returns a function that opens guests of the module with bundles, for one application each.
func elsewhere(t testing.TB, bundles fs.FS) apitest.OpenGuest {
	t.Helper()
	rt := module(t)
	clock := func() time.Time { return apitest.Start }
	analyser, err := rt.Open(context.Background(), Services{Bundles: bundles, Clock: clock, Rand: newSeeded()}, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := analyser.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(t testing.TB, o core.Options, app string) apitest.Guest {
		t.Helper()
		services := Services{
			Store: o.Store, Hosted: o.Hosted, Bundles: bundles, Tokens: o.Tokens, Clock: o.Clock, Rand: o.Rand,
		}
		s := abi.Settings{
			Role: abi.Engine, App: app, Store: abi.StoreHost, PublicURL: o.PublicURL, PublicAppID: o.PublicAppID, KeepPredicted: o.PredictedTTL,
			MaxBytes: uint32(o.JSON.Bytes), MaxMembers: uint32(o.JSON.Members), MaxAnswer: uint64(o.MaxAnswer),
			Rate: uint32(max(o.Rate.PerSecond, 0)), Burst: uint32(o.Rate.Burst),
		}
		in, err := rt.Open(context.Background(), services, s)
		if err != nil {
			t.Fatal(err)
		}
		return guestOf{in, analyser}
	}
}

// TestTranscripts replays the transcripts of core/api on the module. The answers have the same bytes as native ones.
func TestTranscripts(t *testing.T) {
	testkit.SkipRace(t)
	set, bundles := apitest.Tiny(t), apitest.TinyBundles(t)
	replay(t, filepath.Join("core", "api", "testdata"), set, bundles, nil)
}

// TestReleasedTranscripts replays the transcripts that use the released network and photographs.
func TestReleasedTranscripts(t *testing.T) {
	testkit.SkipRace(t)
	set, err := predict.LoadTables(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	replay(t, filepath.Join("core", "api", "testdata", "released"), set, models.FS, os.DirFS(filepath.Join(testkit.Root(t), "web", "samples")))
}

func replay(t *testing.T, dir string, set *predict.Set, bundles, files fs.FS) {
	open := elsewhere(t, bundles)
	apitest.RunForms(t, apitest.Host{
		Files: apitest.WithoutAccounts(os.DirFS(filepath.Join(testkit.Root(t), dir))),
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			w := apitest.NewGuestWorld(t, memkv.New(), set, files, settings, open)
			return func(r api.Request) api.Response { return w.Serve(t, r) }
		},
	})
}

// TestOutputsWait reads the outputs of an input right after it was added by URL. The call in the module pauses until the background has
// analysed the picture.
func TestOutputsWait(t *testing.T) {
	w := apitest.NewGuestWorld(t, memkv.New(), apitest.Tiny(t), nil, nil, elsewhere(t, apitest.TinyBundles(t)))
	pauses := 0
	w.Pause = func(time.Duration) error {
		if pauses++; pauses == 2 {
			for w.Round(t) {
			}
		}
		return nil
	}
	add := `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	if got := w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(add)}); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/a/outputs"})
	if got.Status != 200 || !strings.Contains(string(got.Body), `"outputs":[{"id":`) || pauses != 2 {
		t.Errorf("after %d pauses: %d %s; want outputs after 2", pauses, got.Status, got.Body)
	}
}
