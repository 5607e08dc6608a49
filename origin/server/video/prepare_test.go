package video

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestPrepare has films and a server prepare a decoder at once. One of them compiles, with progress, and the others wait. A second decoder of
// the user need not compile.
func TestPrepare(t *testing.T) {
	testkit.Nightly(t) // it compiles
	var percents []int
	log := &countingLog{Handler: slog.DiscardHandler}
	o := Options{Cache: t.TempDir(), Scratch: t.TempDir(), Key: [32]byte{1}, Log: slog.New(log), Progress: func(percent int) { percents = append(percents, percent) }}
	d := decoder(t, o)
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if _, err := d.Prepare(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	film := writeFilm(t, newFilm(t, 2))
	if shots, err := all(t, d, film, every(100)); len(shots) != 2 || err != nil {
		t.Errorf("%d frames, %v", len(shots), err)
	}
	running.Wait()
	second := decoder(t, o)
	compiled, err := second.Prepare(t.Context())
	if err != nil {
		t.Error(err)
	}
	if n := log.compiled.Load(); n != 1 || compiled {
		t.Errorf("compiled %d times, and %t with the compiled modules", n, compiled)
	}
	if len(percents) < 2 || !slices.IsSorted(percents) || percents[len(percents)-1] != 100 || slices.Index(percents, 100) != len(percents)-1 {
		t.Errorf("progress: %v", percents)
	}
	noneLeft(t, d)
}

// countingLog counts the compilations of the module of videos.
type countingLog struct {
	slog.Handler
	compiled atomic.Int32
}

func (l *countingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *countingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "compiled the decoder of videos" {
		l.compiled.Add(1)
	}
	return nil
}

// TestPrepareWaits has a call come while the module is compiled. It waits until its own limit, or until the compilation ends.
func TestPrepareWaits(t *testing.T) {
	module := decoder(t, Options{}).o.Module
	synctest.Test(t, func(t *testing.T) {
		d := decoder(t, Options{Module: module, Cache: t.TempDir()})
		d.preparation.running = make(chan struct{})
		limited, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		begun := system.Now()
		if compiled, err := d.Prepare(limited); compiled || !errors.Is(err, context.DeadlineExceeded) || system.Now().Sub(begun) != 3*time.Second {
			t.Errorf("Prepare = %t, %v after %v", compiled, err, system.Now().Sub(begun))
		}
		ended := make(chan error)
		go func() {
			_, err := d.Prepare(t.Context())
			ended <- err
		}()
		synctest.Wait()
		d.preparation.mu.Lock()
		d.preparation.done = true
		close(d.preparation.running)
		d.preparation.mu.Unlock()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestPrepareNothing prepares decoders that need no compilation.
func TestPrepareNothing(t *testing.T) {
	for name, o := range map[string]Options{
		"system's": {System: "/usr/bin/ffmpeg", Cache: t.TempDir()}, "without a cache": {Module: "/none"}, "without a module": {Module: "/none", Cache: t.TempDir()},
	} {
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if compiled, err := d.Prepare(t.Context()); compiled || err != nil {
			t.Errorf("%s: %t, %v", name, compiled, err)
		}
	}
}

// TestUnpackedModule compares the contents of the modules' files with their hashes.
func TestUnpackedModule(t *testing.T) {
	d := decoder(t, Options{})
	for m, info := range moduleInfos {
		module, err := readModule(raster.Module(m), d.file(raster.Module(m)))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != info.unpacked {
			t.Errorf("the SHA-256 of module %d is %x", m, sum)
		}
	}
}
