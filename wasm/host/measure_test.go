package host

import (
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// BenchmarkStart measures the parts of an edge's start: to compile the module, or to read it from the cache; to open an analyser and an
// instance of an application, with the released network.
func BenchmarkStart(b *testing.B) {
	ctx := context.Background()
	o := moduleOptions(b)
	runtime := func(b *testing.B, c *Cache) *Runtime {
		o.Cache = c
		rt, err := NewRuntime(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		return rt
	}
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			runtime(b, nil).Close(ctx)
		}
	})
	b.Run("cached", func(b *testing.B) {
		c := sharedCache(b)
		runtime(b, c).Close(ctx)
		for b.Loop() {
			rt := runtime(b, c)
			if rt.WasCompiled() {
				b.Fatal("compiled")
			}
			rt.Close(ctx)
		}
	})
	for name, s := range map[string]abi.Settings{
		"analyser": {Role: abi.Analyser, Store: abi.StoreMemory}, "engine": {Role: abi.Engine, Store: abi.StoreHost},
	} {
		b.Run(name, func(b *testing.B) {
			rt := module(b)
			services := testServices(b)
			services.Bundles = models.FS
			var bytes int64
			for b.Loop() {
				services.Store = memkv.New()
				in, err := rt.Open(ctx, services, s)
				if err != nil {
					b.Fatal(err)
				}
				bytes = in.Bytes()
				in.Close()
			}
			b.ReportMetric(float64(bytes)/(1<<20), "MB")
		})
	}
}

// BenchmarkCall measures a call into a guest and back: a request to a guest with a constant answer, and one to the module. core/api
// measures the same natively.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	r := &api.Request{Method: "GET", Path: "/v2/models"}
	b.Run("nothing", func(b *testing.B) {
		in := open(b, newRuntime(b, options(newGuest().encode())), testServices(b))
		for b.Loop() {
			in.Begin(ctx, r)
		}
	})
	b.Run("unauthorised", func(b *testing.B) {
		services := testServices(b)
		services.Bundles = models.FS
		in, err := module(b).Open(ctx, services, abi.Settings{Role: abi.Engine, Store: abi.StoreHost})
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		for b.Loop() {
			if got := in.Begin(ctx, r).Response(); got.Status != 401 {
				b.Fatalf("%+v", got)
			}
		}
	})
}

// reportCPUTime reports the processor time of the process in addition to elapsed time, which varies on a busy machine.
func reportCPUTime(b *testing.B) (report func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// BenchmarkPredict measures a prediction for one photo in base64 with the released network: natively,
// and with an instance of an application and an analyser.
func BenchmarkPredict(b *testing.B) {
	set, err := predict.Load(models.FS)
	if err != nil {
		b.Fatal(err)
	}
	photos, err := fs.Glob(os.DirFS(filepath.Join(testkit.Root(b), "web", "samples")), "*.jpg")
	if err != nil || len(photos) == 0 {
		b.Fatal(err, len(photos))
	}
	var bodies [][]byte
	for _, name := range photos {
		data, err := os.ReadFile(filepath.Join(testkit.Root(b), "web", "samples", name))
		if err != nil {
			b.Fatal(err)
		}
		bodies = append(bodies, []byte(`{"inputs":[{"data":{"image":{"base64":"`+base64.StdEncoding.EncodeToString(data)+`"}}}]}`))
	}
	for name, openGuest := range map[string]apitest.OpenGuest{"native": nil, "module": elsewhere(b, models.FS)} {
		b.Run(name, func(b *testing.B) {
			w := apitest.NewGuestWorld(b, memkv.New(), set, nil, nil, openGuest)
			defer reportCPUTime(b)()
			i := 0
			for b.Loop() {
				if got := w.Serve(b, api.Request{Method: "POST", Path: general, Body: bodies[i%len(bodies)]}); got.Status != 200 {
					b.Fatalf("%d %s", got.Status, got.Body)
				}
				i++
			}
		})
	}
}

// BenchmarkAnalyse measures only the analysis in BenchmarkPredict.
func BenchmarkAnalyse(b *testing.B) {
	photo, err := os.ReadFile(filepath.Join(testkit.Root(b), "web", "samples", "01-canal-in-venice.jpg"))
	if err != nil {
		b.Fatal(err)
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		b.Fatal(err)
	}
	job := &api.Job{Data: photo, Want: predict.WantConcepts}
	b.Run("native", func(b *testing.B) {
		a := set.NewAnalyser(raster.Limits{})
		defer reportCPUTime(b)()
		for b.Loop() {
			if _, err := a.Analyse(photo, job.Crop, job.Want); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("module", func(b *testing.B) {
		services := testServices(b)
		services.Bundles = models.FS
		in, err := module(b).Open(context.Background(), services, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		defer reportCPUTime(b)()
		for b.Loop() {
			if r := in.Analyse(context.Background(), job); r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	})
}
