package host

import (
	"context"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// BenchmarkStart is what a start of an edge waits for, in parts: the module compiled, or read
// from the cache; an instance for pictures and one for an application, on the released network.
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
			if rt.Compiled() {
				b.Fatal("compiled")
			}
			rt.Close(ctx)
		}
	})
	for name, s := range map[string]abi.Settings{
		"analyser": {Role: abi.Analyser, Store: abi.StoreMemory}, "engine": {Role: abi.Engine, Store: abi.StoreLent},
	} {
		b.Run(name, func(b *testing.B) {
			rt := module(b)
			lent := lend0(b)
			lent.Bundles = models.FS
			var bytes int64
			for b.Loop() {
				lent.Store = memkv.New()
				in, err := rt.Open(ctx, lent, s)
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

// BenchmarkCall is what it costs to cross into a guest and back: a request that a guest made by
// hand answers at once, and one that the module answers, beside the same natively in core/api.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	r := &api.Request{Method: "GET", Path: "/v2/models"}
	b.Run("nothing", func(b *testing.B) {
		in := open(b, newRuntime(b, trusted(newGuest().encode())), lend0(b))
		for b.Loop() {
			in.Begin(ctx, r)
		}
	})
	b.Run("nothing/deadlines", func(b *testing.B) {
		o := options(newGuest().encode())
		o.CallTime = time.Minute
		in := open(b, newRuntime(b, o), lend0(b))
		for b.Loop() {
			in.Begin(ctx, r)
		}
	})
	b.Run("unauthorised", func(b *testing.B) {
		lent := lend0(b)
		lent.Bundles = models.FS
		in, err := module(b).Open(ctx, lent, abi.Settings{Role: abi.Engine, Store: abi.StoreLent})
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

func trusted(module []byte) Options {
	o := options(module)
	o.Trusted = append(o.Trusted, hashOf(module))
	return o
}
