package node

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
)

// day is the start of the tests of ages.
var day = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

var anApp = catalog.AppID{7}.String()

func ageOf(t testing.TB, store kv.Store, now time.Time) *keyAge {
	t.Helper()
	a, err := openKeyAge(store, anApp, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAgeGrows walks an age through restarts and a clock that is set: it only grows until the origin is heard.
func TestAgeGrows(t *testing.T) {
	store, now := memkv.New(), day
	a := ageOf(t, store, now)
	look := func(want time.Duration) {
		t.Helper()
		if old, err := a.look(now); old != want || err != nil {
			t.Errorf("the age is %v, %v, want %v", old, err, want)
		}
	}
	look(never)
	if err := a.reset(now); err != nil {
		t.Fatal(err)
	}
	look(0)
	now = now.Add(30 * time.Hour)
	look(30 * time.Hour)
	now = day // the clock is set back
	look(30 * time.Hour)
	now = now.Add(time.Hour)
	look(31 * time.Hour)
	a = ageOf(t, store, now)
	look(31 * time.Hour)
	now = now.Add(-10 * time.Hour)
	a = ageOf(t, store, now)
	look(31 * time.Hour)
	now = now.Add(20 * time.Hour)
	a = ageOf(t, store, now) // for 20 hours nothing ran
	if old, err := a.look(now); old < 41*time.Hour || err != nil {
		t.Errorf("after 20 hours in which nothing ran the age is %v, %v", old, err)
	}
	if err := a.reset(now); err != nil {
		t.Fatal(err)
	}
	a = ageOf(t, store, now)
	look(0)
}

// TestAgeIsMonotone sets clocks and restarts at random. An age that was too old stays so until the origin is heard. A restart forgets at
// most a minute of the time that passed.
func TestAgeIsMonotone(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		store, now := memkv.New(), day
		a := ageOf(t, store, now)
		if err := a.reset(now); err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		for range 200 {
			switch rng.IntN(6) {
			case 0:
				now = now.Add(-time.Duration(rng.Int64N(int64(48 * time.Hour))))
			case 1:
				a, last = ageOf(t, store, now), max(last-storeInterval, 0)
			case 2:
				if err := a.reset(now); err != nil {
					t.Fatal(err)
				}
				last = 0
			default:
				now = now.Add(time.Duration(rng.Int64N(int64(3 * time.Hour))))
			}
			old, err := a.look(now)
			if err != nil || old < last {
				t.Fatalf("seed %d: the age is %v, %v after %v", seed, old, err, last)
			}
			last = old
		}
	}
}

// writes counts what is written to a store.
type writes struct {
	kv.Store
	n int
}

func (w *writes) Apply(b *kv.Batch) error {
	w.n++
	return w.Store.Apply(b)
}

// TestAgeIsStoredOnceAMinute hears the origin again and again for an hour: the age is stored once a minute. After a stored old age, hearing
// the origin is stored at once.
func TestAgeIsStoredOnceAMinute(t *testing.T) {
	store := &writes{Store: memkv.New()}
	now := day
	a := ageOf(t, store, now)
	for range 3600 {
		if err := a.reset(now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if store.n < 59 || store.n > 61 {
		t.Errorf("in an hour the age was written %d times, want 60", store.n)
	}
	now = now.Add(time.Hour)
	if _, err := a.look(now); err != nil {
		t.Fatal(err)
	}
	if err := a.reset(now); err != nil {
		t.Fatal(err)
	}
	if old, err := ageOf(t, store, now).look(now); old != 0 || err != nil {
		t.Errorf("after a restart the age is %v, %v, want 0", old, err)
	}
	a.end()
	before := store.n
	if err := a.reset(now.Add(time.Hour)); err != nil || store.n != before {
		t.Errorf("%v; it is kept when the application is gone", err)
	}
}

// TestDamagedAge: invalid bytes give an error.
func TestDamagedAge(t *testing.T) {
	store := memkv.New()
	var b kv.Batch
	b.Put(catalog.AppID{7}.LocalKey("heard"), []byte{9})
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeyAge(store, anApp, day); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
	if _, err := openKeyAge(store, "nothing", day); err == nil {
		t.Error("opened for what is no application")
	}
}

// newAppRecord returns a register of an application for an edge.
func newAppRecord(maxStale uint64) *catalog.AppRecord {
	return &catalog.AppRecord{
		Epoch: log.Epoch{1}, App: anApp,
		Record: catalog.App{Dot: log.Dot{Writer: 1, Seq: 1}, Seq: 1, ID: anApp, Name: "n", Language: "en", MaxStale: maxStale},
		Client: catalog.Client{ID: "c", App: anApp, Secret: [32]byte{3}, Generation: 7},
		Edge:   catalog.Edge{ID: "e", Apps: []string{anApp}, Key: [32]byte{4}, Site: 2},
	}
}

// lone is an edge's copies without anything that runs.
func lone(t testing.TB, store kv.Store, now *time.Time) *replicaSet {
	t.Helper()
	c := &replicaSet{
		identity: &identity{Origin: "http://127.0.0.1:1", Seed: make([]byte, 32), ID: "e", Apps: []string{anApp}}, store: store,
		log: slog.New(slog.DiscardHandler), now: func() time.Time { return *now },
	}
	if err := c.loadApps(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStaleEdgeStopsWritesThenReads has an edge hear nothing for longer and longer: it writes no more, then reads no more, over a restart
// and a clock that is set back, and does both again when it hears the origin.
func TestStaleEdgeStopsWritesThenReads(t *testing.T) {
	read, write := &api.Request{Method: "POST", Path: "/v2/searches"}, &api.Request{Method: "POST", Path: "/v2/inputs"}
	for _, tt := range []struct {
		seconds uint64
		limit   time.Duration
	}{{0, register.DefaultMaxStale}, {7200, 2 * time.Hour}, {604800, register.RefuseStale}} {
		store, now := memkv.New(), day
		c := lone(t, store, &now)
		admits := func(wantRead, wantWrite error) {
			t.Helper()
			for r, want := range map[*api.Request]error{read: wantRead, write: wantWrite} {
				if err := c.admit(t.Context(), anApp, r); !errors.Is(err, want) {
					t.Errorf("%d s, %s after %v: %v, want %v", tt.seconds, r.Path, now.Sub(day), err, want)
				}
			}
		}
		admits(auth.ErrKeysUnverified, auth.ErrKeysUnverified)
		if got, known := c.keysAge(anApp); !known || !got.Known.IsZero() {
			t.Errorf("keys that were never heard of: %+v, %v", got, known)
		}
		if err := c.applyAppRecord(t.Context(), c.of(anApp), 5, newAppRecord(tt.seconds).Encode()); err != nil {
			t.Fatal(err)
		}
		admits(nil, nil)
		now = day.Add(tt.limit)
		admits(nil, nil)
		if got, _ := c.keysAge(anApp); !got.Known.Equal(day) || got.Writes != tt.limit || got.Reads != register.RefuseStale {
			t.Errorf("keys of %v: %+v, want writes for %v", day, got, tt.limit)
		}
		now = now.Add(time.Minute)
		if tt.limit < register.RefuseStale {
			admits(nil, auth.ErrWritesSuspended)
			c = lone(t, store, &now)
			admits(nil, auth.ErrWritesSuspended)
			now = day
			admits(nil, auth.ErrWritesSuspended)
			now = day.Add(register.RefuseStale)
		}
		now = now.Add(register.RefuseStale)
		admits(auth.ErrKeysUnverified, auth.ErrKeysUnverified)
		c = lone(t, store, &now)
		admits(auth.ErrKeysUnverified, auth.ErrKeysUnverified)
		if s := c.status(); len(s) != 1 || s[0].Admits != "nothing" || s[0].KeysAge < int64(register.RefuseStale/time.Second) {
			t.Errorf("status %+v", s)
		}
		now = day
		admits(auth.ErrKeysUnverified, auth.ErrKeysUnverified)
		if err := c.of(anApp).age.reset(now); err != nil {
			t.Fatal(err)
		}
		admits(nil, nil)
		if s := c.status(); s[0].Admits != "" || s[0].KeysAge != 0 {
			t.Errorf("status %+v", s)
		}
		if err := c.admit(t.Context(), "another", write); err != nil {
			t.Errorf("an application of the edge's own: %v", err)
		}
	}
}
