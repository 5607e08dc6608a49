package kvtest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
)

// Crasher is a disk that can lose its power.
type Crasher interface {
	// Open opens the store on the disk. An empty disk has an empty store.
	Open() (kv.Store, error)

	// Crash returns the disk after a loss of power at this moment: with all durable data and with percent of the others. The store still
	// works, on the old disk.
	Crash(percent int, rng *rand.Rand) Crasher
}

// Crashes runs one round for each seed: a session whose power fails at random moments. After each of them the store must hold a prefix of
// the batches, at least up to the last one whose wait returned.
func Crashes(t *testing.T, seeds iter.Seq[uint64], blank func() Crasher) {
	for seed := range seeds {
		crashRound(t, seed, blank())
	}
}

func crashRound(t *testing.T, seed uint64, disk Crasher) {
	rng := rand.New(rand.NewPCG(seed, 2))
	session := NewSession(seed, 60, 300)
	from := 0
	for cut := range 3 {
		store, err := disk.Open()
		if err != nil {
			t.Fatalf("seed %d, opening %d: %v", seed, cut, err)
		}
		var p Progress
		p.Durable.Store(int64(from))
		p.Given.Store(int64(from))
		next, least := crashDuring(t, session, store, from, &p, disk, rng)
		if err := store.Close(); err != nil {
			t.Fatalf("seed %d: close: %v", seed, err)
		}
		disk = next
		store, err = disk.Open()
		if err != nil {
			t.Fatalf("seed %d, opening after crash %d: %v", seed, cut, err)
		}
		if from, err = session.Check(store, least, int64(session.Len())); err != nil {
			t.Fatalf("seed %d, crash %d: %v", seed, cut, err)
		}
		if err := store.Close(); err != nil {
			t.Fatalf("seed %d: close: %v", seed, err)
		}
	}
}

// crashDuring runs the session and cuts the power meanwhile.
func crashDuring(t *testing.T, s *Session, store kv.Store, from int, p *Progress, disk Crasher, rng *rand.Rand) (next Crasher, least int64) {
	percent := []int{0, 50, 100}[rng.IntN(3)]
	target := int64(from + rng.IntN(s.Len()-from+1))
	done := make(chan error, 1)
	reached := make(chan struct{})
	var once sync.Once
	go func() {
		done <- s.Run(watchedStore{store, func() {
			if p.Given.Load() >= target {
				once.Do(func() { close(reached) })
			}
		}}, from, p)
		once.Do(func() { close(reached) })
	}()
	<-reached
	least = p.Durable.Load()
	next = disk.Crash(percent, rng)
	if err := <-done; err != nil {
		t.Fatalf("run from %d: %v", from, err)
	}
	return next, least
}

// watchedStore is a store that reports when it gets a batch.
type watchedStore struct {
	kv.Store
	saw func()
}

// Apply implements [kv.Store].
func (w watchedStore) Apply(b *kv.Batch) error {
	defer w.saw()
	return w.Store.Apply(b)
}

// Commit implements [kv.Store].
func (w watchedStore) Commit(b *kv.Batch) (func() error, error) {
	defer w.saw()
	return w.Store.Commit(b)
}

// CommitNothing applies batches, commits an empty one and loses all data that are not durable. The store must still have the applied
// batches.
func CommitNothing(t *testing.T, blank func() Crasher) {
	disk := blank()
	store, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for i := range 3 {
			put(t, store, fmt.Sprint(round, i), "v")
		}
		wait, err := store.Commit(&kv.Batch{})
		if err == nil {
			err = wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		after := disk.Crash(0, rand.New(rand.NewPCG(1, uint64(round))))
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		disk = after
		if store, err = disk.Open(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(list(t, store.Scan, "", ""), "=v"); got != 3*(round+1) {
			t.Errorf("%d keys outlive crash %d, want %d", got, round, 3*(round+1))
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// CommitOrder lets several goroutines commit at once and cuts the power. The store must have a prefix of the order in which Commit was
// called, with all batches whose wait returned.
func CommitOrder(t *testing.T, seeds iter.Seq[uint64], blank func() Crasher) {
	for seed := range seeds {
		commitOrder(t, seed, blank())
	}
}

func commitOrder(t *testing.T, seed uint64, disk Crasher) {
	rng := rand.New(rand.NewPCG(seed, 3))
	session := NewSession(seed, 64, 100)
	store, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	var (
		p     Progress
		order sync.Mutex
		next  int
		group sync.WaitGroup
	)
	for range 8 {
		group.Go(func() {
			for {
				order.Lock()
				i := next
				if next++; i >= session.Len() {
					order.Unlock()
					return
				}
				wait, err := store.Commit(session.steps[i].batch)
				order.Unlock()
				if err == nil {
					err = wait()
				}
				if err != nil {
					t.Errorf("seed %d: commit %d: %v", seed, i, err)
					return
				}
				for old := p.Durable.Load(); old < int64(i+1) && !p.Durable.CompareAndSwap(old, int64(i+1)); {
					old = p.Durable.Load()
				}
			}
		})
	}
	for p.Durable.Load() < int64(rng.IntN(session.Len())) && !t.Failed() {
		runtime.Gosched()
	}
	least := p.Durable.Load()
	after := disk.Crash([]int{0, 50, 100}[rng.IntN(3)], rng)
	group.Wait()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if store, err = after.Open(); err != nil {
		t.Fatalf("seed %d: open after the crash: %v", seed, err)
	}
	if _, err := session.Check(store, least, int64(session.Len())); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
