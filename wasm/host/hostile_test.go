package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// seededReader is a seeded source of random bytes.
type seededReader struct{ *rand.ChaCha8 }

func newSeeded() seededReader { return seededReader{rand.NewChaCha8([32]byte{6})} }

func options(module []byte) Options {
	return Options{Module: module, Now: time.Now, Rand: newSeeded(), MemoryPages: 256}
}

func newRuntime(t testing.TB, o Options) *Runtime {
	t.Helper()
	rt, err := NewRuntime(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := rt.Instances(); n != 0 {
			t.Errorf("%d instances are open", n)
		}
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// testServices returns services in memory: a store, hosted pictures, random bytes, a clock and bundles.
func testServices(t testing.TB) Services {
	t.Helper()
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blob.NewMemory(blob.Options{}), Random: newSeeded()})
	if err != nil {
		t.Fatal(err)
	}
	return Services{
		Store: memkv.New(), Hosted: hosted, Rand: newSeeded(), Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
		Bundles: fstest.MapFS{"general/a": {Data: []byte("aaaa")}, "b": {Data: []byte("b")}},
	}
}

func open(t testing.TB, rt *Runtime, services Services) *Instance {
	t.Helper()
	in, err := rt.Open(context.Background(), services, abi.Settings{Role: abi.Engine, Store: abi.StoreHost})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

func TestAnswers(t *testing.T) {
	in := open(t, newRuntime(t, options(newGuest().encode())), testServices(t))
	ctx := context.Background()
	if got := in.Begin(ctx, &api.Request{Method: "GET", Path: "/v2/models"}); !got.Done() || string(got.Response().Body) != "well" {
		t.Errorf("Begin = %+v", got.Response())
	}
	if value, err := in.Ask(ctx, abi.Query{What: "?"}); err != nil || string(value) != "told" {
		t.Errorf("Ask = %q, %v", value, err)
	}
	if s, err := in.Step(ctx); err != nil || s.More || s.Tasks != nil {
		t.Errorf("Step = %+v, %v", s, err)
	}
	if r := in.Analyse(ctx, &api.Job{Data: []byte("x")}); r.Err != nil {
		t.Errorf("Analyse = %+v", r)
	}
	if in.Bytes() != 64<<10 {
		t.Errorf("%d bytes", in.Bytes())
	}
}

// TestHostileGuests: the host stops each hostile guest and reports the cause to the caller. Another instance of the same module
// continues.
func TestHostileGuests(t *testing.T) {
	tests := []struct {
		name   string
		export string
		body   func(*guest) []byte
		want   string // part of the error of the dead instance
	}{
		{"trap", "serve", func(*guest) []byte { return trap }, "unreachable"},
		{"memory bomb", "serve", func(*guest) []byte { return bomb }, "unreachable"},
		{"deep recursion", "serve", func(g *guest) []byte { return g.recursion("serve") }, "stack overflow"},
		{"answer outside memory", "serve", func(*guest) []byte { return wildAnswer }, abi.ErrRange.Error()},
		{"no answer", "serve", func(*guest) []byte { return noAnswer }, "neither"},
		{"room outside memory", "reserve", func(*guest) []byte { return wildRoom }, abi.ErrRange.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var logs bytes.Buffer
			g := newGuest()
			o := options(g.encode())
			healthy := open(t, newRuntime(t, o), testServices(t))
			g = newGuest()
			g.bodies[tt.export] = tt.body(g)
			o.Module, o.Log = g.encode(), slog.New(slog.NewTextHandler(&logs, nil))
			rt := newRuntime(t, o)
			in, err := rt.Open(context.Background(), testServices(t), abi.Settings{Role: abi.Engine, Store: abi.StoreHost})
			if tt.export == "reserve" {
				if err == nil || !errors.Is(err, ErrCrashed) || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("Open = %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r := &api.Request{Method: "GET", Path: "/v2/models"}
			for range 2 {
				if call := in.Begin(context.Background(), r); !call.Done() || call.Response().Status != 500 {
					t.Errorf("Begin = %+v, want 500", call.Response())
				}
			}
			if err := in.Crashed(); !errors.Is(err, ErrCrashed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Dead = %v, want %q", err, tt.want)
			}
			if !strings.Contains(logs.String(), "module call failed") {
				t.Errorf("the log says %q", logs.String())
			}
			if in.Bytes() != 0 {
				t.Errorf("a dead guest has %d bytes", in.Bytes())
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if got := healthy.Begin(context.Background(), r).Response(); got.Status != 200 {
				t.Errorf("a neighbour answers %+v", got)
			}
		})
	}
}

// TestMemoryIsBounded: a guest that grows its memory as far as it can gets at most MemoryPages.
func TestMemoryIsBounded(t *testing.T) {
	g := newGuest()
	// This guest does what bomb does, but then answers.
	g.bodies["serve"] = code(
		opLoop, blockVoid, i32(1), opMemoryGrow, 0, i32(-1), opI32Ne, opBrIf, 0, opEnd,
		i64(int64(abi.Answer(atRequest, 1))), opEnd)
	rt := newRuntime(t, options(g.encode()))
	in := open(t, rt, testServices(t))
	if _, err := in.call(context.Background(), "serve", []byte{1}); err != nil {
		t.Fatal(err)
	}
	if in.Bytes() != 256<<16 {
		t.Errorf("%d bytes, want the cap, %d", in.Bytes(), 256<<16)
	}
}

// TestRefusedModules: NewRuntime or Open rejects invalid modules, and modules with unknown imports, wrong types or another version.
func TestRefusedModules(t *testing.T) {
	foreign := newGuest()
	foreign.extra = []extra{{"env", "system", "ii", "i"}}
	unknown := newGuest()
	unknown.extra = []extra{{"sightline", "read_file", "iiii", "I"}}
	wrong := newGuest()
	wrong.extra = []extra{{"sightline", "kv_get", "ii", "I"}}
	newer := newGuest()
	newer.version = 2
	tests := map[string]struct {
		module []byte
		want   error
	}{
		"no module":           {[]byte("#!/bin/sh"), ErrModule},
		"nothing":             {nil, ErrModule},
		"a foreign import":    {foreign.encode(), ErrModule},
		"an unknown import":   {unknown.encode(), ErrModule},
		"an import otherwise": {wrong.encode(), ErrModule},
		"a newer ABI":         {newer.encode(), abi.ErrVersion},
		"no exports":          {[]byte("\x00asm\x01\x00\x00\x00"), ErrModule},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rt, err := NewRuntime(context.Background(), options(tt.module))
			if err == nil {
				defer rt.Close(context.Background())
				_, err = rt.Open(context.Background(), testServices(t), abi.Settings{Role: abi.Engine, Store: abi.StoreHost})
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestOldest: Oldest returns the age of the oldest call in progress, for a watchdog.
func TestOldest(t *testing.T) {
	p := newProber(t)
	waits, over := make(chan struct{}), make(chan struct{})
	p.services.Clock = func() time.Time {
		<-waits
		return time.Unix(1_700_000_000, 0)
	}
	go func() {
		defer close(over)
		p.name("now")
	}()
	for p.rt.Oldest() < 50*time.Millisecond {
		runtime.Gosched()
	}
	close(waits)
	<-over
	if d := p.rt.Oldest(); d != 0 {
		t.Errorf("Oldest = %v while nothing runs", d)
	}
}
