package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// joiner is a fleet with a replica of a source.
type joiner struct {
	testing.TB
	*Fleet
	from              *source
	placed, snapshots int
}

func newJoiner(t testing.TB, from *source, rt *Runtime) *joiner {
	t.Helper()
	j := openJoiner(t, from, rt, memkv.New())
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// openJoiner returns a joiner whose replica is in store.
func openJoiner(t testing.TB, from *source, rt *Runtime, store kv.Store) *joiner {
	t.Helper()
	services := testServices(t)
	services.Store, services.Bundles = store, models.FS
	data, seq, err := from.engine.Register.AppRecord(from.app, from.edge)
	if err == nil {
		err = register.ApplyAppRecord(context.Background(), store, from.app, seq, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	services.AppRecords = &book{app: from.app, seq: seq}
	j := &joiner{TB: t, from: from}
	j.Fleet, err = NewFleet(FleetOptions{
		Runtime: rt, Services: services,
		Replica: func(string) *abi.Replica {
			return &abi.Replica{Name: "copy", Live: replica.Once, Wants: wire.Wants{Vectors: wire.VectorsQ16}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// follow syncs the replica until its cursor is at the source's head. It fails the test after an error.
func (j *joiner) follow() {
	j.Helper()
	if err := j.try(); err != nil {
		j.Fatal(err)
	}
}

// try does what follow does, and returns the error.
func (j *joiner) try() error {
	j.Helper()
	ctx := context.Background()
	for events := []replica.Event{replica.Begin{}}; len(events) > 0; events = events[1:] {
		done, err := j.Sync(ctx, j.from.app, events[0])
		if err != nil {
			return err
		}
		if done.Status.Cursor == j.from.part.Log().Head() {
			return nil
		}
		for _, x := range done.Effects {
			switch x := x.(type) {
			case replica.InstallSnapshot:
				if err := j.ApplySnapshot(ctx, j.from.app, x.Manifest); err != nil {
					return err
				}
				j.snapshots++
				events = []replica.Event{nil, replica.Begin{}}
			case replica.Ask:
				answer, err := j.answer(&x)
				if err != nil {
					return err
				}
				events = append(events, answer)
			}
		}
	}
	return errors.New("the copy does not come to the end")
}

func (j *joiner) answer(a *replica.Ask) (replica.Answer, error) {
	j.Helper()
	x := j.from.answer(j, a)
	if !a.Place {
		return x, nil
	}
	hash, err := blob.ParseHash(path.Base(a.Path))
	if err == nil {
		x.Sum = hash
		x.Placed, err = j.Place(context.Background(), j.from.app, hash, x.Body)
	}
	if x.Placed {
		j.placed++
		x.Body = nil
	}
	return x, err
}

// says returns the replica's answers about its inputs, and about those most similar to input id.
func (j *joiner) says(id string) (text string) {
	j.Helper()
	for _, r := range []api.Request{
		{Method: "GET", Path: "/v2/inputs/status"},
		{Method: "GET", Path: "/v2/inputs"},
		{Method: "POST", Path: "/v2/searches", Body: fmt.Appendf(nil, `{"query":{"ands":[{"output":{"input":{"id":%q}}}]}}`, id)},
		{Method: "POST", Path: "/v2/searches", Body: []byte(`{"query":{"ands":[{"input":{"data":{"concepts":[{"id":"concept-7","value":1}]}}}]}}`)},
	} {
		r.Authorization = "Key " + j.from.key
		call := j.Begin(context.Background(), &r)
		if !call.Done() || call.Response().Status != 200 {
			j.Fatalf("%s %s: %d %s", r.Method, r.Path, call.Response().Status, call.Response().Body)
		}
		var all struct { // leaves out the id of a search
			Counts, Inputs, Hits json.RawMessage
		}
		if err := json.Unmarshal(call.Response().Body, &all); err != nil {
			j.Fatal(err)
		}
		text += fmt.Sprintf("%s %s %s\n", all.Counts, all.Inputs, all.Hits)
	}
	return text
}

// TestHostInstallsSnapshot: a replica whose host installed the snapshot answers like one whose instance did.
func TestHostInstallsSnapshot(t *testing.T) {
	testkit.SkipRace(t)
	s := newSource(t, 3_000)
	s.do = wire.DoRebase
	id := s.idAt(t, 7)
	reference := newJoiner(t, s, anotherRuntime(t))
	w, err := reference.writer(s.app)
	if err != nil {
		t.Fatal(err)
	}
	w.guestSnapshots = true
	reference.follow()
	if reference.placed != 0 || reference.snapshots != 0 {
		t.Errorf("by the instance: %d pieces were placed, %d snapshots taken", reference.placed, reference.snapshots)
	}
	want := reference.says(id)
	own := newJoiner(t, s, anotherRuntime(t))
	own.follow()
	if own.placed < 8 || own.snapshots != 1 {
		t.Errorf("%d pieces were placed, %d snapshots taken", own.placed, own.snapshots)
	}
	if got := own.says(id); got != want {
		t.Errorf("the copy that was joined natively says\n%.2000s\nthe other\n%.2000s", got, want)
	}
	if in := own.Runtime().Instances(); in != 1 {
		t.Errorf("%d instances are open", in)
	}
}

// TestInstanceInstallsSnapshot: if the host cannot install a snapshot, the instance does.
func TestInstanceInstallsSnapshot(t *testing.T) {
	testkit.SkipRace(t)
	s := newSource(t, 3_000)
	s.do = wire.DoRebase
	j := newJoiner(t, s, anotherRuntime(t))
	ctx := context.Background()
	if placed, err := j.Place(ctx, s.app, blob.Hash{}, []byte("no piece")); placed || err != nil {
		t.Errorf("without an instance: %v, %v", placed, err)
	}
	if _, err := j.Sync(ctx, s.app, nil); err != nil {
		t.Fatal(err)
	}
	if placed, err := j.Place(ctx, s.app, blob.Hash{}, []byte("no piece")); placed || err != nil {
		t.Errorf("no piece: %v, %v", placed, err)
	}
	if err := j.ApplySnapshot(ctx, s.app, []byte("no manifest")); err != nil {
		t.Fatal(err)
	}
	j.follow()
	if j.placed != 0 || j.snapshots != 0 {
		t.Errorf("%d pieces were placed, %d snapshots taken after one that could not be", j.placed, j.snapshots)
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	if placed, err := j.Place(ended, s.app, blob.Hash{}, nil); placed || !errors.Is(err, context.Canceled) {
		t.Errorf("nobody wants it any more: %v, %v", placed, err)
	}
}

// mortal is a store that fails after some writes. Earlier writes are stored, later ones are not.
type mortal struct {
	kv.Store
	writes int
	last   int // number of writes before it fails; below 0: it never does
}

var errKilled = errors.New("killed")

func (m *mortal) write() error {
	if m.writes == m.last {
		return errKilled
	}
	m.writes++
	return nil
}

// Apply implements [kv.Store].
func (m *mortal) Apply(b *kv.Batch) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Store.Apply(b)
}

// Commit implements [kv.Store].
func (m *mortal) Commit(b *kv.Batch) (wait func() error, err error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Store.Commit(b)
}

// TestHostInstallsSnapshotAfterKills kills a host at a write while it installs a snapshot: at every 16th, every fourth in make nightly,
// each in make soak. After the next start the host installs the snapshot, and the replica answers as one that was never killed.
func TestHostInstallsSnapshotAfterKills(t *testing.T) {
	testkit.SkipRace(t)
	s := newSource(t, 3_000)
	s.do = wire.DoRebase
	id := s.idAt(t, 7)
	reference := &mortal{Store: memkv.New(), last: -1}
	j := openJoiner(t, s, anotherRuntime(t), reference)
	before := reference.writes
	j.follow()
	want, writes := j.says(id), reference.writes
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j.snapshots != 1 || writes-before < 12 {
		t.Fatalf("%d snapshots taken with %d writes", j.snapshots, writes-before)
	}
	for last := before; last < writes; last += testkit.Size(t, 16, 16, 4, 1) {
		store := &mortal{Store: memkv.New(), last: last}
		j := openJoiner(t, s, anotherRuntime(t), store)
		if err := j.try(); err == nil {
			t.Errorf("killed at write %d of %d it joined all the same", last, writes)
		}
		_ = j.Close() // its store fails, so Close does too
		j = openJoiner(t, s, anotherRuntime(t), store.Store)
		j.follow()
		if got := j.says(id); got != want {
			t.Errorf("killed at write %d of %d the copy says\n%.2000s\nnot\n%.2000s", last, writes, got, want)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCollectorRunsDuringCalls: in a page, the garbage collector also runs within the one call that installs a snapshot.
func TestCollectorRunsDuringCalls(t *testing.T) {
	testkit.SkipRace(t)
	s := newSource(t, 10_000)
	s.do = wire.DoRebase
	register, seq, err := s.engine.Register.AppRecord(s.app, s.edge)
	if err != nil {
		t.Fatal(err)
	}
	services := testServices(t)
	services.Bundles, services.Files = models.FS, journaltest.NewDisk()
	in, err := module(t).Open(t.Context(), services, abi.Settings{
		Role: abi.Engine, App: s.app, Store: abi.StoreFiles, OpenDoor: true,
		Replica: &abi.Replica{
			Name: "page", Live: replica.Once, Wants: wire.Wants{Vectors: wire.VectorsQ16}, Origin: "https://origin.example",
			RegisterSeq: seq, Register: register,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.follow(t, in)
	if got := in.Bytes() >> 20; got > 150 { // it has 90 MB, and had 206 MB without collections in the call
		t.Errorf("the instance has %d MB", got)
	}
}
