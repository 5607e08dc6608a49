package catalog

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log/field"
)

// TestPurge deletes all data of a deleted application, in steps of any size, and no data of its neighbours. Their hosted names are before,
// between and after its own.
func TestPurge(t *testing.T) {
	doomed, stays := AppID{7}, AppID{8}
	for _, limit := range []int{1, 2, 5, 1000} {
		store := memkv.New()
		tx := kv.NewOverlay(store)
		for i := range 9 {
			app := []AppID{doomed, stays, {6, 15: 255}}[i%3]
			in := input(uint32(i), "p")
			in.Hosted = [16]byte{byte(i) + 1}
			if err := Write(tx, app).InsertInput(in); err != nil {
				t.Fatal(err)
			}
		}
		control := Write(tx, Control)
		doomedApp := App{ID: doomed.String(), Seq: 5, Name: "x"}
		control.PutApp(&doomedApp)
		control.PutKey(&Key{Hash: [32]byte{1}, App: doomedApp.ID})
		control.PutKey(&Key{Hash: [32]byte{2}, App: stays.String()})
		if err := control.PutClient(&Client{ID: "c", App: doomedApp.ID}); err != nil {
			t.Fatal(err)
		}
		if err := control.DeleteApp(&doomedApp, 9); err != nil {
			t.Fatal(err)
		}
		commit(t, store, tx)
		if _, _, err := HostedInput(store, [16]byte{1}); !errors.Is(err, ErrNotFound) {
			t.Errorf("a picture of a deleted application that is not purged: %v", err)
		}
		parts := 0
		for {
			purges, err := Read(store, Control).Purges()
			if err != nil || len(purges) != 1 || purges[0].App != doomed || purges[0].Seq != 5 {
				t.Fatalf("owed are %+v, %v", purges, err)
			}
			tx.Reset(store)
			more, err := purges[0].Step(tx, limit)
			if err != nil {
				t.Fatal(err)
			}
			if parts++; !more {
				purges[0].Done(tx)
			}
			commit(t, store, tx)
			if !more {
				break
			}
		}
		if want := (9 + limit - 1) / limit; parts != want {
			t.Errorf("%d at a time: %d parts, want %d", limit, parts, want)
		}
		lo, hi := doomed.Range()
		if err := store.Scan(lo, hi, func(key, _ []byte) bool {
			t.Errorf("key %x is left", key)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if n := keys(t, store, []byte{tableHosted}); n != 6 {
			t.Errorf("%d public names are left, want 6", n)
		}
		r := Read(store, Control)
		var left []Key
		if err := r.Keys(func(k Key) bool { left = append(left, k); return true }); err != nil || len(left) != 1 || left[0].App != stays.String() {
			t.Errorf("keys %+v are left, %v", left, err)
		}
		if _, err := r.Client("c"); !errors.Is(err, ErrNotFound) {
			t.Errorf("the client is left: %v", err)
		}
		if purges, err := r.Purges(); len(purges) != 0 || err != nil {
			t.Errorf("owed are %v, %v", purges, err)
		}
	}
}

func commit(t testing.TB, store kv.Store, tx *kv.Overlay) {
	t.Helper()
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPurge: reading an invalid note of a purge returns an error.
func TestDamagedPurge(t *testing.T) {
	for _, note := range []struct {
		id    string
		value []byte
	}{{"short", make([]byte, 8)}, {string(make([]byte, 16)), make([]byte, 7)}} {
		store := memkv.New()
		var b kv.Batch
		b.Put(Control.TidyKey(string(tidyPurge)+note.id), note.value)
		if err := store.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(store, Control).Purges(); !errors.Is(err, field.ErrFormat) {
			t.Errorf("Purges = %v, want ErrFormat", err)
		}
	}
	p := Purge{App: AppID{1}, Seq: 7, from: []byte("x")}
	if got := binary.BigEndian.Uint64(p.encode()); got != 7 {
		t.Errorf("the note has %d, want 7", got)
	}
}
