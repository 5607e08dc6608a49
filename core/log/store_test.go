package log_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

var settings = log.Options{Prefix: []byte("p/"), Epoch: log.Epoch{1, 2, 3}}

func put(t testing.TB, store kv.Store, key, value string) {
	t.Helper()
	var b kv.Batch
	b.Put([]byte(key), []byte(value))
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB, store kv.Store, o log.Options) *log.Store {
	t.Helper()
	l, err := log.Open(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// faulty is a store whose syncs, commits or other batches can fail.
type faulty struct {
	kv.Store
	syncs, commits, applies error
	committed               int
}

func (f *faulty) Apply(b *kv.Batch) error {
	if f.applies != nil {
		return f.applies
	}
	return f.Store.Apply(b)
}

func (f *faulty) Commit(b *kv.Batch) (func() error, error) {
	if f.commits != nil {
		return nil, f.commits
	}
	f.committed++
	wait, err := f.Store.Commit(b)
	return func() error { return errors.Join(f.syncs, wait()) }, err
}

// TestFailedSync: after a failed sync the log hides entries that may be lost, and rejects new ones.
func TestFailedSync(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	l := openStore(t, store, settings)
	add(t, l, opsOf(1, 1, 2))
	store.syncs = kv.ErrFailed
	_, wait, err := l.Append(opsOf(1, 3, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("wait = %v, want ErrFailed", err)
	}
	if l.Head() != 2 || l.LastSeq() != 3 || len(dotsFrom(t, l, 1)) != 2 {
		t.Errorf("head %d of %d appended, want 2 of 3", l.Head(), l.LastSeq())
	}
	store.syncs = nil
	if _, _, err := l.Append(opsOf(1, 4, 1), nil); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("append after a failed sync = %v, want ErrFailed", err)
	}
	if l := openStore(t, store, settings); l.Head() != 3 {
		t.Errorf("opened again the log ends at %d, want 3: it is durable now", l.Head())
	}
}

// TestSettle: WaitDurable waits for all earlier appends, also for those of other callers, and returns an error if they were lost.
func TestSettle(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	l := openStore(t, store, settings)
	store.committed = 0
	if err := l.WaitDurable(); err != nil || store.committed != 0 {
		t.Errorf("with nothing to wait for: %v after %d commits", err, store.committed)
	}
	append1 := func(from int) (wait func() error) {
		t.Helper()
		_, wait, err := l.Append(opsOf(1, from, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	wait := append1(1)
	if err := l.WaitDurable(); err != nil || l.Head() != 1 {
		t.Errorf("%v with the head at %d, want 1", err, l.Head())
	}
	if err := wait(); err != nil || l.Head() != 1 {
		t.Errorf("its own wait: %v with the head at %d, want 1", err, l.Head())
	}
	append1(2)
	store.commits = kv.ErrFull
	if err := l.WaitDurable(); !errors.Is(err, kv.ErrFull) || l.Head() != 1 {
		t.Errorf("on a full store: %v with the head at %d, want ErrFull and 1", err, l.Head())
	}
	store.commits, store.syncs = nil, kv.ErrFailed
	for range 2 {
		if err := l.WaitDurable(); !errors.Is(err, kv.ErrFailed) || l.Head() != 1 {
			t.Errorf("where syncs fail: %v with the head at %d, want ErrFailed and 1", err, l.Head())
		}
	}
}

// TestPeek reads the log of another process, with other keys before and after it in the store.
func TestPeek(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	put(t, store, "p", "before")
	put(t, store, "p0", "after")
	want := opsOf(3, 1, 5)
	add(t, openStore(t, store, settings), want)
	for from := 1; from <= 6; from++ {
		var got []log.Op
		if err := log.Peek(store, settings.Prefix, uint64(from), func(e log.Entry) bool {
			if got = append(got, e.Op); e.Seq != e.Op.Dot.Seq {
				t.Errorf("operation %v is entry %d", e.Op.Dot, e.Seq)
			}
			return e.Seq < 4
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[from-1:max(4, min(from, 5))], got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("from entry %d (-want +got):\n%s", from, diff)
		}
	}
	put(t, store, "p/e\x00\x00\x00\x00\x00\x00\x00\x05", "x")
	if err := log.Peek(store, settings.Prefix, 5, func(log.Entry) bool { return true }); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged entry: %v, want ErrCorrupt", err)
	}
}

// TestFullStore: an append that fails because the store is full changes nothing.
func TestFullStore(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	l := openStore(t, store, settings)
	store.commits = kv.ErrFull
	if _, _, err := l.Append(opsOf(1, 1, 1), nil); !errors.Is(err, kv.ErrFull) {
		t.Errorf("append = %v, want ErrFull", err)
	}
	store.commits = nil
	if first := add(t, l, opsOf(1, 1, 1)); first != 1 {
		t.Errorf("with space again entry %d comes, want 1", first)
	}
}

// TestOpenSyncs: Open syncs the store if entries are not durable yet, and only then.
func TestOpenSyncs(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	l := openStore(t, store, settings)
	add(t, l, opsOf(1, 1, 3))
	for _, tt := range []struct {
		durable uint64
		want    int
	}{{0, 1}, {2, 1}, {3, 0}} {
		store.committed = 0
		o := settings
		o.Durable = tt.durable
		openStore(t, store, o)
		if store.committed != tt.want {
			t.Errorf("with %d of 3 durable: %d syncs, want %d", tt.durable, store.committed, tt.want)
		}
	}
	store.commits = kv.ErrFailed
	if _, err := log.Open(store, settings); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("opening on a failed store: %v", err)
	}
	if _, err := log.Open(store, log.Options{Prefix: []byte("q")}); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("beginning on a failed store: %v", err)
	}
}

// TestDamage: missing and changed entries are detected.
func TestDamage(t *testing.T) {
	key := func(seq byte) string { return "p/e\x00\x00\x00\x00\x00\x00\x00" + string(rune(seq)) }
	tests := []struct {
		name   string
		damage func(t *testing.T, store kv.Store)
	}{
		{"gap", func(t *testing.T, store kv.Store) { remove(t, store, key(3)) }},
		{"first missing", func(t *testing.T, store kv.Store) { remove(t, store, key(1)) }},
		{"flipped", func(t *testing.T, store kv.Store) {
			v, err := store.Get([]byte(key(3)))
			if err != nil {
				t.Fatal(err)
			}
			v[len(v)-1] ^= 1
			put(t, store, key(3), string(v))
		}},
		{"short", func(t *testing.T, store kv.Store) { put(t, store, key(3), "x") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := kvtest.OrLate(t, memkv.New())
			l := openStore(t, store, settings)
			add(t, l, opsOf(1, 1, 5))
			tt.damage(t, store)
			if err := l.Read(1, func(log.Entry) bool { return true }); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("Read = %v, want ErrCorrupt", err)
			}
		})
	}
	store := kvtest.OrLate(t, memkv.New())
	put(t, store, "p/m", "x")
	if _, err := log.Open(store, settings); err == nil {
		t.Error("opened a log whose own record is damaged")
	}
	put(t, store, "p/m", "\x01")
	put(t, store, key(1), "x")
	if _, err := log.Open(store, settings); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("opening a log whose last entry is damaged: %v", err)
	}
}

func remove(t testing.TB, store kv.Store, key string) {
	t.Helper()
	var b kv.Batch
	b.Delete([]byte(key))
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
}

// TestSuiteOnLateStore runs the tests of this package on a store that shows a commit as late as its wait returns, and lets each Apply
// overtake.
func TestSuiteOnLateStore(t *testing.T) {
	kvtest.RunLate(t, testkit.Seeds(t, 80, 500), "^Test", "^Test(Crashes|SuiteOnLateStore|RoleChanges)$")
}
