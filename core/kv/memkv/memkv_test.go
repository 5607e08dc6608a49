package memkv_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

func TestStore(t *testing.T) {
	kvtest.Store(t, func(testing.TB) kv.Store { return memkv.New() })
}

func TestStoreWithJournal(t *testing.T) {
	kvtest.Store(t, func(t testing.TB) kv.Store { return open(t, &batches{}) })
}

func TestCrashes(t *testing.T) {
	kvtest.Crashes(t, testkit.Seeds(t, 60, 2000), func() kvtest.Crasher { return &batches{} })
}

func TestCommitNothing(t *testing.T) {
	kvtest.CommitNothing(t, func() kvtest.Crasher { return &batches{} })
}

func TestCommitOrder(t *testing.T) {
	kvtest.CommitOrder(t, testkit.Seeds(t, 20, 200), func() kvtest.Crasher { return &batches{} })
}

func open(t testing.TB, j *batches) *memkv.Store {
	t.Helper()
	s, err := memkv.Open(memkv.Options{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// batches is a journal in memory: a list of batches. A crash may cut its tail.
type batches struct {
	mu         sync.Mutex
	all        [][]byte
	durable    int
	failAppend error
	failWait   error
}

func (j *batches) Open() (kv.Store, error) {
	return memkv.Open(memkv.Options{Journal: j})
}

func (j *batches) Replay(yield func(batch []byte) error) error {
	for _, b := range j.all {
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

func (j *batches) Append(batch []byte) (wait func() error, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failAppend != nil {
		return nil, j.failAppend
	}
	j.all = append(j.all, slices.Clone(batch))
	n := len(j.all)
	return func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.failWait != nil {
			return j.failWait
		}
		j.durable = max(j.durable, n)
		return nil
	}, nil
}

func (j *batches) Crash(percent int, rng *rand.Rand) kvtest.Crasher {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.durable
	for n < len(j.all) && rng.IntN(100) < percent {
		n++
	}
	return &batches{all: slices.Clone(j.all[:n]), durable: n}
}

func TestDamagedJournal(t *testing.T) {
	for _, bad := range [][]byte{nil, {9}, {1, 9}} {
		_, err := memkv.Open(memkv.Options{Journal: &batches{all: [][]byte{bad}}})
		if !errors.Is(err, kv.ErrCorrupt) || !errors.Is(err, kv.ErrBatch) {
			t.Errorf("Open of a journal with %x = %v, want ErrCorrupt", bad, err)
		}
	}
}

func batch(key, value string) *kv.Batch {
	b := &kv.Batch{}
	b.Put([]byte(key), []byte(value))
	return b
}

// TestFailures: after the first failure nothing is acknowledged and nothing is written to the journal.
func TestFailures(t *testing.T) {
	broken := errors.New("no more")
	t.Run("append", func(t *testing.T) {
		j := &batches{}
		s := open(t, j)
		waitBefore, err := s.Commit(batch("a", "1"))
		if err != nil {
			t.Fatal(err)
		}
		j.failAppend = broken
		if err := s.Apply(batch("b", "1")); !errors.Is(err, kv.ErrFailed) || !errors.Is(err, broken) {
			t.Errorf("Apply = %v, want ErrFailed", err)
		}
		j.failAppend = nil
		_, err = s.Commit(batch("c", "1"))
		for i, err := range []error{err, s.Apply(batch("c", "1")), s.Room(), waitBefore()} {
			if !errors.Is(err, kv.ErrFailed) {
				t.Errorf("call %d after the failure = %v, want ErrFailed", i, err)
			}
		}
		if len(j.all) != 1 {
			t.Errorf("%d batches journalled, want 1", len(j.all))
		}
		if _, err := s.Get([]byte("b")); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("Get of what failed = %v, want ErrNotFound", err)
		}
	})
	t.Run("wait", func(t *testing.T) {
		j := &batches{failWait: broken}
		s := open(t, j)
		wait, err := s.Commit(batch("a", "1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := wait(); !errors.Is(err, kv.ErrFailed) {
			t.Errorf("wait = %v, want ErrFailed", err)
		}
		if err := s.Apply(batch("b", "1")); !errors.Is(err, kv.ErrFailed) {
			t.Errorf("Apply = %v, want ErrFailed", err)
		}
		if err := s.Close(); !errors.Is(err, kv.ErrFailed) {
			t.Errorf("Close = %v, want ErrFailed", err)
		}
	})
}

// TestCloseMakesBatchesDurable: Close makes applied batches durable.
func TestCloseMakesBatchesDurable(t *testing.T) {
	j := &batches{}
	s := open(t, j)
	if err := errors.Join(s.Apply(batch("a", "1")), s.Apply(batch("b", "1")), s.Close()); err != nil {
		t.Fatal(err)
	}
	if j.durable != 2 {
		t.Errorf("%d batches durable after Close, want 2", j.durable)
	}
}

func TestRoom(t *testing.T) {
	s, err := memkv.Open(memkv.Options{MaxBytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		batch *kv.Batch
		full  bool
	}{
		{batch("key", "1234567"), false},
		{batch("key", "12345678"), true},
		{batch("key", "1234567"), false},
		{batch("b", "12"), true},
	}
	deletion := &kv.Batch{}
	deletion.Delete([]byte("b"))
	ranged := &kv.Batch{}
	ranged.DeleteRange(nil, nil)
	ranged.Put([]byte("123"), []byte("1234567"))
	steps = append(steps, []struct {
		batch *kv.Batch
		full  bool
	}{{deletion, false}, {ranged, false}, {batch("b", ""), true}}...)
	for i, step := range steps {
		if err := s.Apply(step.batch); err != nil {
			t.Fatal(err)
		}
		if err := s.Room(); errors.Is(err, kv.ErrFull) != step.full {
			t.Errorf("step %d: Room = %v, want full %v", i, err, step.full)
		}
	}
}

func ExampleStore_Commit() {
	store := memkv.New()
	var b kv.Batch
	b.Put([]byte("input/1"), []byte("ramen"))
	b.Put([]byte("input/2"), []byte("soba"))
	wait, err := store.Commit(&b)
	if err != nil {
		fmt.Println(err)
	}
	if err := wait(); err != nil {
		fmt.Println(err)
	}
	_ = store.Scan([]byte("input/"), []byte("input0"), func(key, value []byte) bool {
		fmt.Printf("%s %s\n", key, value)
		return true
	})
	// Output:
	// input/1 ramen
	// input/2 soba
}
