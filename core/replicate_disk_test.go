//go:build !wasip1

package core_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/register"
)

// leaks returns the files below a folder that contain the marker.
func leaks(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(marker)) {
			names = append(names, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestEmptiedReplicaLeavesNothingOnDisk empties a replica on disk, at once or after a crash and a restart, and scans the store's files for
// its data.
func TestEmptiedReplicaLeavesNothingOnDisk(t *testing.T) {
	for _, way := range []string{"at once", "after a crash"} {
		t.Run(way, func(t *testing.T) {
			dir := t.TempDir()
			opened := func() *pebblekv.Store {
				t.Helper()
				store, err := pebblekv.Open(dir, pebblekv.Options{MemTableBytes: 64 << 10})
				if err != nil {
					t.Fatal(err)
				}
				return store
			}
			store := opened()
			l := newFixture(t)
			c := copyOf(t, l.open(t))
			name := "the " + marker
			if _, err := c.origin.Register.ChangeApp(t.Context(), register.Caller{}, c.app, register.AppChange{Name: &name}); err != nil {
				t.Fatal(err)
			}
			c.store = store
			c.take(t)
			c.writeMarkers(t)
			c.checkEnded(t, false)
			c.deleteApp(t, 0)
			var err error
			if data, seq := c.register(t); way == "at once" {
				err = register.ApplyAppRecord(t.Context(), store, c.app, seq, data)
			} else {
				err = c.applyRecordOnly(t, store, data, seq)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.checkEnded(t, true)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if way == "after a crash" && len(leaks(t, dir)) == 0 {
				t.Fatal("the marker is found nowhere before the copy is emptied: the search is broken")
			}
			store = opened() // deletes the logs that the store kept for reuse
			if err := register.PurgeDeleted(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if names := leaks(t, dir); len(names) != 0 {
				t.Errorf("the marker is left in %v", names)
			}
		})
	}
}

// checkEnded checks whether the names of the application's predicted pictures end.
func (c *appReplica) checkEnded(t *testing.T, want bool) {
	t.Helper()
	id, err := catalog.ParseAppID(c.app)
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := register.ReadOnly(register.Options{Store: c.store}).HostedAppDeleted(id); ended != want || err != nil {
		t.Errorf("Ended = %v, %v, want %v", ended, err, want)
	}
}

// writeMarkers writes notes with the marker to the replica's store. They are larger than its memory table, so some are in table files.
func (c *appReplica) writeMarkers(t *testing.T) {
	t.Helper()
	id, err := catalog.ParseAppID(c.app)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		var b kv.Batch
		b.Put(id.LocalKey(string(rune('a'+i))), bytes.Repeat([]byte(marker+" "), 1000))
		wait, err := c.store.Commit(&b)
		if err == nil {
			err = wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// applyRecordOnly applies the app record of a deleted application and deletes nothing, as if a crash followed.
func (c *appReplica) applyRecordOnly(t *testing.T, store kv.Store, data []byte, seq uint64) error {
	t.Helper()
	x, err := catalog.DecodeAppRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	tx := kv.NewOverlay(store)
	if newer, err := catalog.Write(tx, catalog.Control).ApplyAppRecord(&x, seq); !newer || err != nil {
		t.Fatalf("taken %v, %v", newer, err)
	}
	return store.Apply(tx.Batch())
}
