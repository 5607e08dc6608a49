package program

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/pack"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// party is a copy of an application in a folder: an edge's data folder, or the files of a browser.
type party struct {
	t         testing.TB
	name      string
	app       catalog.AppID
	authorize func(method, path, query string, body []byte) ([]api.Field, error)
	store     kv.Store
	blobs     blob.Blobs
	part      *partition.Replica
	closers   []func() error

	machine *replica.Machine
	end     context.CancelFunc // ends a sync
	wanted  func(*replica.Status) bool
	reached *replica.Status  // first status as wanted
	next    []replica.Effect // effects of the step that reached it
}

// edgeKey is the key of the edge in the folders.
var edgeKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// bySignature returns the credential of the edge.
func bySignature(id string) func(method, path, query string, body []byte) ([]api.Field, error) {
	return func(method, path, query string, body []byte) ([]api.Field, error) {
		fields := []api.Field{{Name: "Authorization", Value: feed.Sign(edgeKey, id, system.Now(), method, path, query, body)}}
		if len(body) > 0 {
			fields = append(fields, api.Field{Name: feed.HeadHeader, Value: feed.SignHead(edgeKey, system.Now(), method, path, query, len(body))})
		}
		return fields, nil
	}
}

// openEdge opens the copy in an edge's data folder.
func openEdge(t testing.TB, d *described, dir string) *party {
	t.Helper()
	f, err := data.Open(dir, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := &party{t: t, name: "edge", authorize: bySignature(d.Edge), store: f.Store, blobs: f.Blobs, closers: []func() error{f.Close}}
	x.open(d, partition.ReplicaOptions{})
	return x
}

// openPage opens the copy in the files of a browser.
func openPage(t testing.TB, d *described, name, dir string) *party {
	t.Helper()
	files := storeFiles(dir)
	store, err := memkv.Open(memkv.Options{Files: &memkv.Files{Disk: files, Pair: [2]int{0, 1}, Reserve: 1 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := pack.Open(pack.Options{Files: files, Pair: [2]int{2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.OpenFolder(pictures, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := &party{t: t, name: name, authorize: byKey(d.Key), store: store, blobs: blobs, closers: []func() error{pictures.Close, store.Close}}
	replica := partition.ReplicaOptions{}
	if name == "visitor" { // it stores only the last entries
		replica.KeepBytes = 1 << 10
	}
	x.open(d, replica)
	return x
}

func (x *party) open(d *described, r partition.ReplicaOptions) {
	x.t.Helper()
	var err error
	if x.app, err = catalog.ParseAppID(d.App); err != nil {
		x.t.Fatal(err)
	}
	o := partition.Options{Store: x.store, App: x.app, Clock: system.Now}
	if _, err = system.Random.Read(o.Epoch[:]); err == nil {
		x.part, err = partition.OpenReplica(o, r)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(x.close)
}

// close closes the folder.
func (x *party) close() {
	if x.part == nil {
		return
	}
	errs := []error{x.part.Close()}
	for _, end := range x.closers {
		errs = append(errs, end())
	}
	if x.part = nil; errors.Join(errs...) != nil {
		x.t.Error(errors.Join(errs...))
	}
}

// sync syncs the copy with an origin until both have everything.
func (x *party) sync(origin string) {
	x.t.Helper()
	x.run(origin, func(s *replica.Status) bool { return s.IsSettled() && !s.Audited.IsZero() })
}

// run syncs the copy with an origin until its status is as wanted, and returns the status.
func (x *party) run(origin string, wanted func(*replica.Status) bool) replica.Status {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 5*time.Minute)
	defer cancel()
	o := synclink.Options{Origin: origin, Machine: x, Authorize: x.authorize, Effect: func(replica.Effect) {}, Now: system.Now}
	if x.part.Cursor().Seq == 0 {
		seq, record, err := synclink.Join(ctx, o, x.app.String())
		if err == nil {
			err = register.ApplyAppRecord(ctx, x.store, x.app.String(), seq, record)
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	var err error
	x.machine, err = replica.New(replica.Options{
		App: x.app, Partition: x.part, Store: x.store, Blobs: x.blobs, Live: replica.Once, Audit: time.Nanosecond,
		Rand: rand.NewChaCha8([32]byte{}), Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.end, x.wanted, x.reached = cancel, wanted, nil
	l, err := synclink.New(o)
	if err == nil {
		err = l.Run(ctx)
	}
	if err != nil || x.reached == nil {
		x.t.Fatalf("%s: sync: %v, %+v", x.name, err, x.machine.Status())
	}
	return *x.reached
}

// Step implements [synclink.Stepper].
func (x *party) Step(now time.Time, e replica.Event) ([]replica.Effect, error) {
	effects, err := x.machine.Step(now, e)
	if s := x.machine.Status(); x.reached == nil && x.wanted(&s) {
		x.reached, x.next = &s, effects
		x.end()
	}
	return effects, err
}

// pending returns the number of operations that the origin does not have.
func (x *party) pending() (n int) {
	x.t.Helper()
	if err := x.part.Pending(0, func(uint64, log.Op) bool { n++; return true }); err != nil {
		x.t.Fatal(err)
	}
	return n
}

// frames returns the rows of the kept frames.
func (x *party) frames() (rows [][]byte) {
	x.t.Helper()
	if err := x.part.KeptAfter(0, func(_ uint64, f partition.Frame) bool { rows = append(rows, f.Rows); return true }); err != nil {
		x.t.Fatal(err)
	}
	return rows
}

// storeFiles are numbered files in a folder, like the private files of a browser.
type storeFiles string

func (d storeFiles) open(file int) (*os.File, error) {
	return os.OpenFile(filepath.Join(string(d), strconv.Itoa(file)), os.O_RDWR|os.O_CREATE, 0o600)
}

func (d storeFiles) do(file int, do func(*os.File) error) error {
	f, err := d.open(file)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// Size implements journal.Files.
func (d storeFiles) Size(file int) (n int64, err error) {
	err = d.do(file, func(f *os.File) error {
		info, err := f.Stat()
		if err == nil {
			n = info.Size()
		}
		return err
	})
	return n, err
}

// Read implements journal.Files.
func (d storeFiles) Read(file int, off int64, p []byte) error {
	return d.do(file, func(f *os.File) error { _, err := f.ReadAt(p, off); return err })
}

// Write implements journal.Files.
func (d storeFiles) Write(file int, off int64, p []byte) error {
	return d.do(file, func(f *os.File) error { _, err := f.WriteAt(p, off); return err })
}

// Truncate implements journal.Files.
func (d storeFiles) Truncate(file int, size int64) error {
	return d.do(file, func(f *os.File) error { return f.Truncate(size) })
}

// Sync implements journal.Files.
func (d storeFiles) Sync(file int) error { return d.do(file, (*os.File).Sync) }
