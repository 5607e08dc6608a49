//go:build !wasip1

package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestFaultPowerCutAtEveryOperation runs a scripted session of up to 500 calls and cuts the power before each of its file operations.
// It keeps 0, 50 and 100 % of the unsynced bytes. Each of these disks must open with a prefix of the session's batches that
// includes the last synced one.
func TestFaultPowerCutAtEveryOperation(t *testing.T) {
	calls := testkit.Size(t, 50, 125, 500, 500)
	scripts, disks := 0, 0
	for seed := range testkit.Seeds(t, 1, 10) {
		disks += everyOperation(t, kvtest.NewSession(seed, calls, 600), seed)
		scripts++
	}
	t.Logf("%d scripts of %d calls, %d disks opened after a crash, 0 lost, 0 torn", scripts, calls, disks)
}

func everyOperation(t *testing.T, session *kvtest.Session, seed uint64) (disks int) {
	var (
		mem = pebbletest.New()
		p   kvtest.Progress
		one sync.Mutex // one crash at a time
		rng = rand.New(rand.NewPCG(seed, 4))
	)
	cut := func() {
		one.Lock()
		defer one.Unlock()
		for _, percent := range []int{0, 50, 100} {
			least := p.Durable.Load()
			after := power{mem.Cut(percent, rng)}
			if err := holds(session, after, least); err != nil && !t.Failed() {
				t.Errorf("seed %d, disk %d, %d %% of the unsynced: %v", seed, disks, percent, err)
			}
			disks++
		}
	}
	s := open(t, small(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !t.Failed() {
			cut()
		}
		return nil
	}))))
	if err := session.Run(s, 0, &p); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("seed %d: close: %v", seed, err)
	}
	p.Durable.Store(int64(session.Len()))
	cut()
	return disks
}

// holds opens the store on a disk and checks that it has a state of the session with at least its first least batches.
func holds(session *kvtest.Session, disk power, least int64) error {
	s, err := disk.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	_, err = session.Check(s, least, int64(session.Len()))
	return errors.Join(err, s.Close())
}

// fault makes file operation number at fail, counted from 1, and all later ones if forAll is set.
type fault struct {
	at      int64
	forAll  bool
	err     error
	n       atomic.Int64
	stopped atomic.Bool // no operation is counted or fails
}

func (f *fault) MaybeError(errorfs.Op) error {
	if f.stopped.Load() {
		return nil
	}
	if n := f.n.Add(1); n == f.at || f.forAll && n > f.at {
		return f.err
	}
	return nil
}

func (f *fault) String() string {
	return fmt.Sprintf("operation %d: %v, for ever %v", f.at, f.err, f.forAll)
}

// TestFaultEveryError fails the n-th file operation, for all n, with EIO or ENOSPC: alone, or with all later ones. Except in a soak, each
// error is tried in one of these two ways. The session must not hang and can still read. After a failure nothing is acknowledged. A store
// that is opened again has everything that was acknowledged.
func TestFaultEveryError(t *testing.T) {
	from, rounds := testkit.Rounds(t, 200, 2000)
	session := kvtest.NewSession(1, 150, 600)
	counts := map[string]int{}
	for n := from + 1; n <= from+uint64(rounds); n++ {
		for i, err := range []error{syscall.EIO, syscall.ENOSPC, syscall.EIO, syscall.ENOSPC} {
			if !testkit.Soaking() && (i+int(n))%4 >= 2 {
				continue
			}
			for { // the number of operations varies, because syncs are shared
				f := &fault{at: int64(n), forAll: i >= 2, err: err}
				outcome := faultRound(t, session, f)
				if t.Failed() {
					t.Fatalf("at %v", f)
				}
				if f.n.Load() >= f.at {
					counts[outcome]++
					break
				}
				session = kvtest.NewSession(1, session.Len()*5/4, 600)
			}
		}
	}
	t.Logf("operations %d to %d: %v, 0 lost", from+1, from+uint64(rounds), counts)
}

// TestFaultEveryErrorAtOpen fails the n-th file operation, for all n, while a store is created and while a store is opened that must replay
// its logs after a crash. Except in a soak it tries every fourth n. Opening must return. Once the disk works again, the store has
// everything.
func TestFaultEveryErrorAtOpen(t *testing.T) {
	session := kvtest.NewSession(1, 150, 3000)
	mem := pebbletest.New()
	empty := mem.Cut(0, nil)
	s := open(t, small(mem))
	var p kvtest.Progress
	if err := session.Run(s, 0, &p); err != nil {
		t.Fatal(err)
	}
	left := mem.Cut(0, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	step := 4
	switch {
	case testkit.Soaking():
		step = 1
	case testing.Short():
		step = 20
	}
	counts := map[string]int{}
	for i, err := range []error{syscall.EIO, syscall.ENOSPC, syscall.EIO, syscall.ENOSPC} {
		for n := 1 + i%step; openFaulty(t, session, empty, 0, &fault{at: int64(n), forAll: i >= 2, err: err}, counts); n += step {
			continue
		}
		for n := 1 + i%step; openFaulty(t, session, left, p.Durable.Load(), &fault{at: int64(n), forAll: i >= 2, err: err}, counts); n += step {
			continue
		}
	}
	t.Logf("%v, 0 lost", counts)
}

// openFaulty opens the store on a copy of the disk and reports whether the fault was reached.
func openFaulty(t *testing.T, session *kvtest.Session, disk pebbletest.Disk, least int64, f *fault, counts map[string]int) bool {
	t.Helper()
	disk = disk.Cut(0, nil)
	s, err := Open(folder, small(errorfs.Wrap(disk, f)))
	met := f.n.Load() >= f.at
	f.stopped.Store(true)
	switch {
	case err == nil:
		counts["opened"]++
		_ = s.Close() // it may return the fault
	case met:
		counts["refused"]++
	default:
		t.Fatalf("without a fault: %v", err)
	}
	after := disk.Cut(50, rand.New(rand.NewPCG(uint64(f.at), 7)))
	if err := holds(session, power{after}, least); err != nil {
		t.Fatalf("after a fault at %v: %v", f, err)
	}
	return met
}

// faultRound runs the session with the fault and returns the outcome.
func faultRound(t *testing.T, session *kvtest.Session, f *fault) (outcome string) {
	mem := pebbletest.New()
	died := make(chan error, 100)
	o := small(errorfs.Wrap(mem, f))
	o.Fatal = func(err error) { died <- err }
	o.Free = func() (int64, error) { return 1 << 40, nil }
	o.Ballast = 1 << 20
	var p kvtest.Progress
	f.stopped.Store(true)
	s := open(t, o)
	f.stopped.Store(false)
	outcome = afterFault(t, s, session.Run(s, 0, &p), died)
	f.stopped.Store(true)
	if err := s.Close(); (err == nil) != (s.health.failure() == nil) {
		t.Errorf("Close = %v after the failure %v", err, s.health.failure())
	}
	if len(died) > 0 && outcome == "stopped" {
		t.Errorf("Fatal was called again: %v", <-died)
	}
	rng := rand.New(rand.NewPCG(uint64(f.at), 5))
	after := power{mem.Cut([]int{0, 50, 100}[rng.IntN(3)], rng)}
	if err := holds(session, after, p.Durable.Load()); err != nil {
		t.Errorf("opening again: %v", err)
	}
	return outcome
}

// afterFault checks that a failed store rejects all writes, and that a full store can still read. It returns the outcome.
func afterFault(t *testing.T, s *Store, err error, died <-chan error) string {
	b := &kv.Batch{}
	b.Put([]byte("a-counter-of-another"), nil)
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, kv.ErrFailed):
		wait, commitErr := s.Commit(b)
		if wait != nil {
			t.Error("Commit after a failure gives a wait")
		}
		for i, err := range []error{commitErr, s.Apply(b), s.Room(), s.Checkpoint("data/copy")} {
			if !errors.Is(err, kv.ErrFailed) {
				t.Errorf("call %d after the failure = %v, want ErrFailed", i, err)
			}
		}
		<-died // Fatal may be called a little later
		return "stopped"
	case errors.Is(err, kv.ErrFull):
		if _, err := s.Get([]byte("no such key")); !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Get while full = %v, want ErrNotFound", err)
		}
		return "full"
	case kvtest.IsWrongData(err):
		t.Error(err)
	}
	return "a read failed"
}

// TestDamageStore damages one file of a cleanly stopped store or of a checkpoint. Either Open fails, or reads return errors, or all data is
// correct.
func TestDamageStore(t *testing.T) {
	outcomes := map[string]int{}
	rounds := 0
	for seed := range testkit.Seeds(t, 40, 1000) {
		outcomes[damageRound(t, seed)]++
		rounds++
	}
	t.Logf("%d damages: %v, 0 wrong or missing in silence", rounds, outcomes)
}

func damageRound(t *testing.T, seed uint64) (outcome string) {
	rng := rand.New(rand.NewPCG(seed, 6))
	session := kvtest.NewSession(seed%20, 150, 600)
	mem := vfs.NewMem()
	s := open(t, small(mem))
	var p kvtest.Progress
	if err := session.Run(s, 0, &p); err != nil {
		t.Fatal(err)
	}
	dir := folder
	if rng.IntN(2) == 0 {
		dir = "data/copy"
		if err := s.Checkpoint(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	description := damage(t, mem, dir, rng)
	s, err := Open(dir, small(mem))
	if err != nil {
		return "refused"
	}
	_, err = session.Check(s, int64(session.Len()), int64(session.Len()))
	if kvtest.IsWrongData(err) {
		t.Errorf("seed %d: %s: %v", seed, description, err)
	}
	outcome = "harmless"
	if err != nil {
		outcome = "read error"
		if !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("seed %d: %s: reading gives %v, want ErrCorrupt", seed, description, err)
		}
	}
	_ = s.Close() // its error about the damage was returned before
	return outcome
}

// damage flips, overwrites, cuts, lengthens or removes one file of the folder. It returns the file's name and the damage.
func damage(t *testing.T, fsys *vfs.MemFS, dir string, rng *rand.Rand) string {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	name := names[rng.IntN(len(names))]
	path := fsys.PathJoin(dir, name)
	old, err := fsys.UnsafeGetFileDataBuffer(path)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(old)
	at := 0
	if len(data) > 0 {
		at = rng.IntN(len(data))
	}
	action := ""
	switch kind := rng.IntN(8); {
	case kind == 0:
		if err := fsys.Remove(path); err != nil {
			t.Fatal(err)
		}
		return name + " removed"
	case kind == 1 || len(data) == 0:
		action, data = "lengthened", append(data, make([]byte, 1+rng.IntN(5000))...)
	case kind == 2:
		action, data = "cut", data[:at]
	case kind == 3:
		action = "zeroed"
		clear(data[at:min(len(data), at+4096)])
	case kind == 4:
		action = "overwritten"
		for i := at; i < min(len(data), at+512); i++ {
			data[i] = byte(rng.Uint32())
		}
	default:
		action = "flipped"
		data[at] ^= 1 << rng.IntN(8)
	}
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s at %d of %d", name, action, at, len(old))
}

// TestCheckpoint: a checkpoint has all data of its time, also after the store deletes it.
func TestCheckpoint(t *testing.T) {
	mem := vfs.NewMem()
	session := kvtest.NewSession(3, 100, 600)
	s := open(t, small(mem))
	var p kvtest.Progress
	if err := session.Run(s, 0, &p); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint("data/copy"); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint("data/copy"); err == nil {
		t.Error("a checkpoint into a folder that exists gives no error")
	}
	b := &kv.Batch{}
	b.DeleteRange(nil, nil)
	if err := errors.Join(s.Apply(b), s.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := Open("data/copy", small(mem))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(c, int64(session.Len()), int64(session.Len())); err != nil {
		t.Error(err)
	}
	m := c.Metrics()
	if m.DiskBytes == 0 || m.ReadAmp == 0 || !strings.HasPrefix(fmt.Sprintf("%+v", m), "{DiskBytes:") {
		t.Errorf("metrics %+v, want figures", m)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Checkpoint("data/third"); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Checkpoint of a closed store = %v, want ErrClosed", err)
	}
	if m := c.Metrics(); m != (Metrics{}) {
		t.Errorf("metrics of a closed store %+v, want none", m)
	}
}
