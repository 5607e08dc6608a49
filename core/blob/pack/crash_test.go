package pack_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/blobtest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// moment is a state of a pack, with the number of disk operations at which it was reached.
type moment struct {
	ops     int // operations of the disk
	state   string
	durable bool // whether the state is durable when the next one begins
}

// run runs a script and returns the states between its changes.
func run(t testing.TB, d *journaltest.Disk, steps []step) []moment {
	t.Helper()
	f := mustOpen(t, d)
	moments := []moment{{ops: d.Ops(), state: state(t, f), durable: true}}
	for _, s := range steps {
		if s.op == "write" { // the file exists before it has contents
			if w, err := f.Create(s.to); err != nil {
				s.sync = false
			} else {
				moments = append(moments, moment{ops: d.Ops(), state: state(t, f)})
				_, err1 := w.Write(s.data)
				if err := errors.Join(err1, w.Close()); err != nil {
					t.Fatal(err)
				}
				if s.sync {
					if err := f.SyncDir("b"); err != nil {
						t.Fatal(err)
					}
				}
			}
		} else if err := s.do(f); err != nil && class(err) == fmt.Sprint(err) {
			t.Fatal(err)
		} else {
			s.sync = s.sync && err == nil
		}
		moments = append(moments, moment{ops: d.Ops(), state: state(t, f), durable: s.sync})
	}
	return moments
}

// stride is the distance in bytes between the places at which a test cuts. It is larger in short tests.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

// TestCutAnywhere kills the program at each byte of a script, and cuts the power at each of its calls. The remaining state is one of the
// script's states, starting at the last synced one. Each file has one extent, because a file with several may be cut between two.
func TestCutAnywhere(t *testing.T) {
	for seed := range testkit.Seeds(t, 2, 100) {
		rng := rand.New(rand.NewPCG(seed, 32))
		steps := script(rng, 40)
		for i := range steps {
			steps[i].data = steps[i].data[:min(len(steps[i].data), 90)] // one extent
		}
		d := journaltest.NewDisk()
		moments := run(t, d, steps)
		check := func(name string, after *journaltest.Disk, at int) {
			t.Helper()
			got := state(t, mustOpen(t, after))
			least := 0
			for i, m := range moments {
				if m.ops <= at && m.durable {
					least = i
				}
			}
			if !slices.ContainsFunc(moments[least:], func(m moment) bool { return m.state == got }) {
				t.Fatalf("seed %d, %s: a state that never was, or is over:\n%s", seed, name, got)
			}
		}
		cuts := 0
		for at := range d.Ops() {
			for n := 0; n < max(1, d.Len(at)); n += stride() {
				check(fmt.Sprintf("cut at byte %d of call %d", n, at), d.At(at, n), at)
				cuts++
			}
			for range 3 {
				check(fmt.Sprintf("power lost at call %d", at), d.CrashAt(at, rng.IntN(100), rng), at)
			}
		}
		if cuts < 2000/stride() {
			t.Errorf("seed %d: only %d cuts", seed, cuts)
		}
	}
}

// TestHostedNamesSurviveFaults adds and removes pictures, and makes any call fail or cuts the power there. Every name that Add returned and
// Remove did not delete has its picture.
func TestHostedNamesSurviveFaults(t *testing.T) {
	for seed := range testkit.Seeds(t, 60, 5000) {
		rng := rand.New(rand.NewPCG(seed, 33))
		d := journaltest.NewDisk()
		contents := map[string][]byte{}
		for range 4 {
			fsys := mustOpen(t, d)
			h, err := blob.OpenHosted(blob.HostedOptions{FS: fsys, Blobs: openFolder(t, fsys), Random: blobtest.Random(rng.Uint64())})
			if err != nil {
				t.Fatal(err)
			}
			blobs := openFolder(t, fsys)
			for name, data := range contents {
				p, err := h.Lookup(name, blobtest.Noon())
				if err != nil {
					t.Fatalf("seed %d: name %s is lost: %v", seed, name, err)
				}
				if got, err := blobs.Get(t.Context(), p.Hash); err != nil || !bytes.Equal(got, data) {
					t.Fatalf("seed %d: picture of %s: %d bytes, %v, want %d", seed, name, len(got), err, len(data))
				}
			}
			d.FailAt(1+rng.IntN(200), true)
			for err == nil {
				if rng.IntN(3) > 0 || len(contents) == 0 {
					data := make([]byte, 1+rng.IntN(500))
					data[0] = byte(rng.IntN(256))
					var name string
					if name, _, err = h.Add(t.Context(), blob.AppID{}, data, "image/png", time.Time{}); err == nil {
						contents[name] = data
					}
					continue
				}
				for name := range contents {
					delete(contents, name)
					err = h.Remove(t.Context(), name)
					break
				}
			}
			if !errors.Is(err, kv.ErrFailed) {
				t.Fatalf("seed %d: %v, want ErrFailed", seed, err)
			}
			d.FailAt(0, false)
			d = d.Crash(rng.IntN(101), rng)
		}
	}
}
