package updater

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/release"
)

var errCut = errors.New("cut")

func keyOf(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

const piece = 512

// moduleOf is a module of three pieces.
func moduleOf(name string) []byte {
	return append(bytes.Repeat([]byte(name+" "), 2*piece/(len(name)+1)+1), "the end"...)
}

// world is an edge, what it runs, and its origin.
type world struct {
	t     *testing.T
	dir   *system.Folder
	fs    Folder
	now   time.Time
	own   []byte
	key   ed25519.PublicKey // that the edge knows
	u     *Updater
	log   strings.Builder
	held  bool
	rules uint32

	signer   ed25519.PrivateKey
	manifest release.Manifest
	module   []byte // what the origin sends
	cutAfter int    // requests; 0: never
	asked    []string

	serves string // name of the module that serves
	tried  int
	bad    error  // what a try says
	stuck  error  // what a switch says
	dies   string // name of a module whose instances die
	deaths int64
}

func newWorld(t *testing.T) *world {
	dir, err := system.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, dir: dir, fs: dir, now: time.UnixMilli(1_790_000_000_000), own: []byte("own"), signer: keyOf(1), rules: 1}
	w.key = w.signer.Public().(ed25519.PublicKey)
	w.publish(1, []byte("own"))
	w.start()
	return w
}

// publish has the origin release a module.
func (w *world) publish(version uint64, module []byte) {
	w.module = module
	w.manifest = release.Manifest{
		Channel: release.Stable, Version: version, Module: blob.Sum(module), Size: uint64(len(module)), ABI: 1, Fold: 1,
		NotBefore: w.now, Expires: w.now.Add(24 * time.Hour), Program: fmt.Sprint("p", version),
	}
}

// name is what a module begins with.
func name(module []byte) string { return strings.Fields(string(module))[0] }

// start is a process that begins to serve.
func (w *world) start() {
	w.t.Helper()
	slots, err := OpenSlots(w.fs)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := slots.Start(); err != nil && !errors.Is(err, ErrBack) {
		w.t.Fatal(err)
	}
	w.load()
	w.u = New(Options{
		Slots: slots, Channel: release.Stable, Own: blob.Sum(w.own), ABI: 1, Piece: piece,
		Key:   func() ed25519.PublicKey { return w.key },
		Learn: func(k ed25519.PublicKey) error { w.key = k; return nil },
		Get:   w.get, Fold: func() (uint32, error) { return w.rules, nil },
		Try: func(context.Context, []byte) error {
			w.tried++
			return w.bad
		},
		Switch: func(context.Context) error {
			if w.stuck != nil {
				return w.stuck
			}
			w.load()
			return nil
		},
		Deaths: func() int64 { return w.deaths }, Held: func() bool { return w.held },
		Now:   func() time.Time { return w.now },
		Pause: func(_ context.Context, d time.Duration) { w.pass(d) },
		Log:   slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

// load has the module of the folder serve.
func (w *world) load() {
	w.t.Helper()
	slots, err := OpenSlots(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	module, err := slots.Module()
	if err != nil && module != nil {
		w.t.Log(err)
	}
	if module == nil {
		module = w.own
	}
	w.serves = name(module)
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	if w.serves == w.dies && w.dies != "" {
		w.deaths += 2
	}
}

// get is the origin.
func (w *world) get(_ context.Context, path, rangeOf string) (*http.Response, error) {
	w.asked = append(w.asked, path+" "+rangeOf)
	if w.cutAfter > 0 && len(w.asked) > w.cutAfter {
		return nil, errCut
	}
	answer := func(status int, body []byte) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
	switch {
	case strings.HasSuffix(path, "/releases/"+release.Stable) && w.manifest.Version > 0:
		return answer(200, release.Sign(w.signer, &w.manifest))
	case strings.HasSuffix(path, w.manifest.Module.String()):
		var from, to int
		if n, err := fmt.Sscanf(rangeOf, "bytes=%d-%d", &from, &to); n != 2 || err != nil {
			return answer(400, nil)
		}
		return answer(206, w.module[from:min(to+1, len(w.module))])
	}
	return answer(404, nil)
}

// ask has the edge ask once.
func (w *world) ask() error {
	w.t.Helper()
	return w.u.round(w.t.Context())
}

// want checks which module serves, now and after a start, and what the operator is told.
func (w *world) want(serves string, version uint64, problem string) {
	w.t.Helper()
	s := w.u.Status()
	if w.serves != serves || s.Version != version || !strings.Contains(s.Problem, problem) || (problem == "") != (s.Problem == "") {
		w.t.Errorf("%s serves, %+v; want %s of release %d, problem %q", w.serves, s, serves, version, problem)
	}
	w.load()
	if w.serves != serves {
		w.t.Errorf("a start serves %s, want %s", w.serves, serves)
	}
}

// TestUpdate follows an origin from release to release, and back when its operator goes back.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.want("own", 0, "")
	if err := w.ask(); err != nil {
		t.Fatal(err)
	}
	w.want("own", 1, "") // the same that is in the program: nothing is fetched
	if len(w.asked) != 1 || w.tried != 0 {
		t.Errorf("asked for %q", w.asked)
	}
	w.publish(2, moduleOf("two"))
	if err := w.ask(); err != nil {
		t.Fatal(err)
	}
	w.want("two", 2, "")
	if n := len(w.asked); n != 5 || w.tried != 1 {
		t.Errorf("%d requests, %d tries, want the manifest and three pieces more, and one", n, w.tried)
	}
	w.start()
	w.want("two", 2, "")
	w.publish(3, moduleOf("two")) // the same under another number
	if err := w.ask(); err != nil || w.tried != 1 {
		t.Errorf("%v, %d tries", err, w.tried)
	}
	w.want("two", 3, "")
	w.publish(4, moduleOf("four"))
	if err := w.ask(); err != nil {
		t.Fatal(err)
	}
	w.want("four", 4, "")
	if names, err := w.dir.ReadDir(slotsDir); err != nil || len(names) != 2 {
		t.Errorf("the folder has %q, want two modules", names)
	}
	w.publish(5, w.own)
	if err := w.ask(); err != nil {
		t.Fatal(err)
	}
	w.want("own", 5, "")
	w.manifest.Version = 0 // an origin that releases nothing any more
	if err := w.ask(); err != nil {
		t.Error(err)
	}
	w.want("own", 5, "")
}

// TestRefused holds what an edge does not follow, and that it serves on.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(w *world)
		want   error
	}{
		{"an older release", func(w *world) { w.manifest.Version = 1 }, release.ErrOlder},
		{"another of the same number", func(w *world) { w.publish(2, moduleOf("other")) }, release.ErrOlder},
		{"another's signature", func(w *world) { w.signer = keyOf(2) }, release.ErrSignature},
		{"an expired one", func(w *world) { w.now = w.now.Add(25 * time.Hour) }, release.ErrTime},
		{"another channel", func(w *world) { w.manifest.Channel = "canary" }, release.ErrChannel},
		{"another contract", func(w *world) { w.manifest.ABI = 2 }, release.ErrUnfit},
		{"older rules", func(w *world) { w.rules = 2 }, release.ErrUnfit},
		{"other bytes", func(w *world) { w.publish(3, moduleOf("three")); w.module = moduleOf("fraud") }, nil},
		{"fewer bytes", func(w *world) { w.publish(3, moduleOf("three")); w.module = w.module[:piece+5] }, io.ErrUnexpectedEOF},
		{"no good", func(w *world) { w.publish(3, moduleOf("three")); w.bad = release.ErrUnfit }, release.ErrUnfit},
		{"no memory to try it", func(w *world) { w.publish(3, moduleOf("three")); w.bad = errCut }, errCut},
		{"no way to it", func(w *world) { w.publish(3, moduleOf("three")); w.stuck = errCut }, errCut},
		{"a dead network", func(w *world) { w.cutAfter = 1 }, errCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.publish(2, moduleOf("two"))
			if err := w.ask(); err != nil {
				t.Fatal(err)
			}
			w.publish(2, moduleOf("two"))
			tt.change(w)
			if err := w.ask(); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if w.stuck = nil; w.serves != "two" || w.u.Status().Problem == "" {
				t.Errorf("%s serves, %+v", w.serves, w.u.Status())
			}
			w.load()
			if w.serves != "two" {
				t.Errorf("a start serves %s", w.serves)
			}
		})
	}
}

// TestRefusedOnce tries a module that is no good once, and again when another program is there; and one that could not
// be tried, again.
func TestRefusedOnce(t *testing.T) {
	w := newWorld(t)
	w.publish(2, moduleOf("two"))
	w.bad = errCut
	for want := range 3 {
		if err := w.ask(); err == nil || w.tried != want+1 {
			t.Errorf("%v, %d tries, want %d", err, w.tried, want+1)
		}
	}
	w.bad = fmt.Errorf("%w: another digest", release.ErrUnfit)
	if err := w.ask(); err == nil {
		t.Error("a module that is no good is taken")
	}
	for range 3 {
		if err := w.ask(); err != nil || w.tried != 4 {
			t.Errorf("%v, %d tries, want that it is let be", err, w.tried)
		}
	}
	w.want("own", 0, "another digest")
	w.bad, w.own = nil, []byte("newer")
	w.start()
	ctx, stop := context.WithCancel(t.Context())
	w.u.o.Pause = func(context.Context, time.Duration) { stop() }
	w.u.Run(ctx)
	w.want("two", 2, "")
}

// TestCut goes on where a download was cut, in another process too.
func TestCut(t *testing.T) {
	w := newWorld(t)
	w.publish(2, moduleOf("two"))
	for n := range 3 {
		w.asked, w.cutAfter = nil, 2
		if err := w.ask(); (err == nil) != (n == 2) {
			t.Errorf("after %d pieces: %v", n+1, err)
		}
		w.start()
	}
	w.want("two", 2, "")
}

// TestDying returns to the module before when instances of the new one die, and when whole processes do.
func TestDying(t *testing.T) {
	w := newWorld(t)
	w.publish(2, moduleOf("two"))
	w.dies = "two"
	if err := w.ask(); !errors.Is(err, ErrBack) {
		t.Errorf("instances die: %v", err)
	}
	w.want("own", 0, "have died")
	w.publish(3, moduleOf("three"))
	w.u.o.Pause = func(context.Context, time.Duration) {} // a process that ends before anything is proved
	ctx, stop := context.WithCancel(t.Context())
	w.u.o.Switch = func(context.Context) error { stop(); return nil }
	if err := w.u.take(ctx, &w.manifest); err != nil {
		t.Fatal(err)
	}
	for n := range maxTries {
		w.start()
		if want := map[bool]string{true: "own", false: "three"}[n == maxTries-1]; w.serves != want {
			t.Errorf("start %d serves %s, want %s", n+1, w.serves, want)
		}
	}
	w.want("own", 0, "starts have ended")
	w.publish(4, moduleOf("four"))
	if err := w.ask(); err != nil {
		t.Error(err)
	}
	w.want("four", 4, "")
	for v, name := range []string{"five", "six"} { // the next one comes before the first has proved itself
		w.publish(uint64(5+v), moduleOf(name))
		if _, err := w.u.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.dies = "six"
	if err := w.u.prove(t.Context()); !errors.Is(err, ErrBack) || w.serves != "four" {
		t.Errorf("%v, %s serves, want the last that has proved itself", err, w.serves)
	}
	for range 2 * maxTries {
		w.start()
	}
	w.want("four", 4, "have died")
}

// TestRun asks every hour, learns the key that it was never told, and lets an operator's module be.
func TestRun(t *testing.T) {
	w := newWorld(t)
	w.key, w.held = nil, true
	began, hours := w.now, 0
	ctx, stop := context.WithCancel(t.Context())
	w.u.o.Pause = func(_ context.Context, d time.Duration) {
		w.pass(d)
		if d != askEvery {
			return
		}
		switch hours++; hours {
		case 1:
			if len(w.asked) > 0 {
				t.Errorf("asked for %q while the operator's module serves", w.asked)
			}
			w.held = false
		case 2:
			w.want("own", 1, "")
			w.publish(2, moduleOf("two"))
		case 3:
			w.want("two", 2, "")
			stop()
		}
	}
	w.u.Run(ctx)
	if d := w.now.Sub(began); hours != 3 || d < 3*time.Hour || d > 4*time.Hour || !bytes.Equal(w.key, w.signer.Public().(ed25519.PublicKey)) {
		t.Errorf("%d pauses in %v, key %x", hours, d, w.key)
	}
	if s := w.u.Status(); s.Program != "p2" || s.Asked.IsZero() {
		t.Errorf("status %+v", s)
	}
}

// failing is a folder that does so many things, and then nothing any more: a process that ends there.
type failing struct {
	Folder
	left *int
}

func (f failing) do() error {
	if *f.left--; *f.left < 0 {
		return errCut
	}
	return nil
}

func (f failing) Create(name string) (blob.File, error) {
	if err := f.do(); err != nil {
		return nil, err
	}
	file, err := f.Folder.Create(name)
	return failingFile{file, f}, err
}

func (f failing) Rename(from, to string) error {
	if err := f.do(); err != nil {
		return err
	}
	return f.Folder.Rename(from, to)
}

func (f failing) Remove(name string) error {
	if err := f.do(); err != nil {
		return err
	}
	return f.Folder.Remove(name)
}

func (f failing) SyncDir(name string) error {
	if err := f.do(); err != nil {
		return err
	}
	return f.Folder.SyncDir(name)
}

type failingFile struct {
	blob.File
	f failing
}

// Write writes half of what it should when it is cut.
func (x failingFile) Write(p []byte) (int, error) {
	if err := x.f.do(); err != nil {
		n, _ := x.File.Write(p[:len(p)/2])
		return n, err
	}
	return x.File.Write(p)
}

// TestEnds ends the process at every step of a change: a start serves the old module or the new, and then goes
// over to the new one.
func TestEnds(t *testing.T) {
	old, changed := 0, 0
	for n := 0; ; n++ {
		w := newWorld(t)
		w.publish(2, moduleOf("two"))
		if err := w.ask(); err != nil {
			t.Fatal(err)
		}
		left := n
		w.fs = failing{w.dir, &left}
		slots, err := OpenSlots(w.fs)
		if err != nil {
			t.Fatal(err)
		}
		w.u.o.Slots = slots
		w.publish(3, moduleOf("three"))
		err = w.ask()
		w.load()
		switch w.serves {
		case "two":
			old++
		case "three":
			changed++
		default:
			t.Fatalf("after %d steps %s serves", n, w.serves)
		}
		w.fs = w.dir
		w.start()
		if again := w.ask(); again != nil {
			t.Fatalf("after %d steps: %v", n, again)
		}
		if w.want("three", 3, ""); err == nil {
			break
		}
	}
	if old < 10 || changed < 3 {
		t.Errorf("%d ends before the change and %d after", old, changed)
	}
}

// TestDamagedSlots serves what is whole: the module before, or the program's own.
func TestDamagedSlots(t *testing.T) {
	w := newWorld(t)
	for v, name := range []string{"two", "three"} {
		w.publish(uint64(2+v), moduleOf(name))
		if err := w.ask(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"two", "own"} {
		s, err := OpenSlots(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Current
		if want == "own" {
			r = s.Previous
		}
		if err := replace(w.dir, slotsDir, fileOf(r.Module), []byte("rubbish")); err != nil {
			t.Fatal(err)
		}
		if w.load(); w.serves != want {
			t.Errorf("%s serves, want %s", w.serves, want)
		}
	}
	for _, text := range []string{"", "{", `{"seen":{"sha256":"x"}}`, `{"current":{"version":1}}`} {
		if err := replace(w.dir, ".", stateFile, []byte(text)); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSlots(w.dir)
		if err == nil || s == nil || s.InForce() != nil {
			t.Errorf("%q: %+v, %v, want the program's own and why", text, s, err)
		}
	}
}
