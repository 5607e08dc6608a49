package log_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// shared returns a store with keys of others before and after those of a log.
func shared(t testing.TB) kv.Store {
	t.Helper()
	store := kvtest.OrLate(t, memkv.New())
	put(t, store, "p", "before")
	put(t, store, "p0", "after")
	return store
}

// opsOf returns n operations of a site. The first one has the sequence number from.
func opsOf(site log.Writer, from, n int) []log.Op {
	ops := make([]log.Op, n)
	for i := range ops {
		ops[i] = log.Op{
			Dot: log.Dot{Writer: site, Seq: uint64(from + i)}, At: log.HLC(from+i) << 16,
			Body: &log.InputDelete{Input: log.Dot{Writer: site, Seq: uint64(i)}},
		}
	}
	return ops
}

// add appends operations and waits until they are durable.
func add(t testing.TB, l *log.Store, ops []log.Op) (first uint64) {
	t.Helper()
	first, wait, err := l.Append(ops, nil)
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return first
}

// dotsFrom returns the dots of the entries starting at from, and fails the test if their numbers have a gap.
func dotsFrom(t testing.TB, l *log.Store, from uint64) (dots []log.Dot) {
	t.Helper()
	err := l.Read(from, func(e log.Entry) bool {
		if want := from + uint64(len(dots)); e.Seq != want {
			t.Errorf("entry %d where %d should be", e.Seq, want)
		}
		dots = append(dots, e.Op.Dot)
		return true
	})
	if err != nil {
		t.Fatalf("Read(%d): %v", from, err)
	}
	return dots
}

func dotsOf(ops []log.Op) (out []log.Dot) {
	for _, o := range ops {
		out = append(out, o.Dot)
	}
	return out
}

func TestEmpty(t *testing.T) {
	l := openStore(t, shared(t), settings)
	if l.Head() != 0 || l.Floor() != 1 {
		t.Errorf("an empty log goes from %d to %d", l.Floor(), l.Head())
	}
	if got := dotsFrom(t, l, 1); len(got) != 0 {
		t.Errorf("an empty log has %v", got)
	}
	if err := l.Read(0, nil); !errors.Is(err, log.ErrTrimmed) {
		t.Errorf("Read(0) = %v, want ErrTrimmed", err)
	}
	if _, err := l.Chain(0); err != nil {
		t.Errorf("Chain(0): %v", err)
	}
}

func TestAppendAndRead(t *testing.T) {
	l := openStore(t, shared(t), settings)
	ops := opsOf(1, 1, 10)
	if first := add(t, l, ops[:3]); first != 1 {
		t.Errorf("first entry %d, want 1", first)
	}
	if first := add(t, l, ops[3:]); first != 4 {
		t.Errorf("first entry %d, want 4", first)
	}
	for from := range ops {
		if got, want := dotsFrom(t, l, uint64(from+1)), dotsOf(ops[from:]); !slices.Equal(got, want) {
			t.Errorf("Read(%d) = %v, want %v", from+1, got, want)
		}
	}
	n := 0
	err := l.Read(1, func(log.Entry) bool {
		n++
		return n < 4
	})
	if err != nil || n != 4 {
		t.Errorf("reading stopped after %d, %v, want 4", n, err)
	}
	if got := dotsFrom(t, l, 11); len(got) != 0 || l.Head() != 10 {
		t.Errorf("after the head %d: %v", l.Head(), got)
	}
}

// TestReadersSeeOnlyDurableEntries reads during a sync.
func TestReadersSeeOnlyDurableEntries(t *testing.T) {
	l := openStore(t, shared(t), settings)
	add(t, l, opsOf(1, 1, 2))
	_, wait, err := l.Append(opsOf(1, 3, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := dotsFrom(t, l, 1); len(got) != 2 || l.Head() != 2 {
		t.Errorf("before the sync %d entries can be read, head %d, want 2", len(got), l.Head())
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if got := dotsFrom(t, l, 1); len(got) != 4 || l.Head() != 4 {
		t.Errorf("after the sync %d entries can be read, head %d, want 4", len(got), l.Head())
	}
}

// TestAppendWithOtherWrites tests writes in the same batch as an append.
func TestAppendWithOtherWrites(t *testing.T) {
	store := shared(t)
	l := openStore(t, store, settings)
	var b kv.Batch
	b.Put([]byte("beside"), []byte("it"))
	_, wait, err := l.Append(opsOf(1, 1, 1), &b)
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	if v, err := store.Get([]byte("beside")); err != nil || string(v) != "it" {
		t.Errorf("beside the log stands %q, %v", v, err)
	}
}

// TestChain checks that two logs with one different operation have different chains from that operation onwards.
func TestChain(t *testing.T) {
	store := shared(t)
	l := openStore(t, store, settings)
	seen := map[log.Chain]bool{}
	for i := range 5 {
		add(t, l, opsOf(1, i+1, 1))
		c, err := l.Chain(uint64(i + 1))
		if err != nil || seen[c] {
			t.Errorf("Chain(%d) = %x, %v", i+1, c, err)
		}
		seen[c] = true
	}
	reopened := openStore(t, store, settings)
	a, errA := l.Chain(5)
	b, errB := reopened.Chain(5)
	if a != b || errA != nil || errB != nil {
		t.Errorf("opened again the chain is %x, was %x", b, a)
	}
}

func TestTail(t *testing.T) {
	l := openStore(t, shared(t), settings)
	var heads []uint64
	stop := l.WatchHead(func() { heads = append(heads, l.Head()) })
	add(t, l, opsOf(1, 1, 2))
	add(t, l, opsOf(1, 3, 1))
	stop()
	add(t, l, opsOf(1, 4, 1))
	if want := []uint64{2, 3}; !slices.Equal(heads, want) {
		t.Errorf("told of heads %v, want %v", heads, want)
	}
}

func TestTrim(t *testing.T) {
	store := shared(t)
	l := openStore(t, store, settings)
	add(t, l, opsOf(1, 1, 10))
	third, err := l.Chain(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Trim(4); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*log.Store{l, openStore(t, store, settings)} {
		if l.Floor() != 4 || l.Head() != 10 {
			t.Errorf("trimmed to %d…%d, want 4…10", l.Floor(), l.Head())
		}
		if got := dotsFrom(t, l, 4); len(got) != 7 {
			t.Errorf("%d entries are left, want 7", len(got))
		}
		if err := l.Read(3, func(log.Entry) bool { return true }); !errors.Is(err, log.ErrTrimmed) {
			t.Errorf("Read(3) = %v, want ErrTrimmed", err)
		}
		if c, err := l.Chain(3); err != nil || c != third {
			t.Errorf("Chain(3) = %x, %v, want %x", c, err, third)
		}
		if _, err := l.Chain(2); !errors.Is(err, log.ErrTrimmed) {
			t.Errorf("Chain(2): %v, want ErrTrimmed", err)
		}
	}
	if err := l.Trim(12); err == nil {
		t.Error("trimmed beyond the head")
	}
	if err := l.Trim(11); err != nil {
		t.Fatal(err)
	}
	l = openStore(t, store, settings)
	if first := add(t, l, opsOf(1, 11, 1)); first != 11 {
		t.Errorf("after trimming everything comes entry %d, want 11", first)
	}
	if err := l.Trim(2); err != nil || l.Floor() != 11 {
		t.Errorf("trimming back: %v, floor %d", err, l.Floor())
	}
}

func TestReopen(t *testing.T) {
	store := shared(t)
	l := openStore(t, store, settings)
	before, err := l.Chain(0)
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, opsOf(1, 1, 3))
	epoch := l.EpochOf(3)
	l = openStore(t, store, settings)
	if chain, err := l.Chain(0); err != nil || chain != before || l.EpochOf(1) != epoch || l.Head() != 3 {
		t.Errorf("opened again: epoch %x at %d after %x, %v; want %x at 3 after %x", l.EpochOf(1), l.Head(), chain, err, epoch, before)
	}
	if first := add(t, l, opsOf(1, 4, 1)); first != 4 {
		t.Errorf("opened again entry %d comes next, want 4", first)
	}
}

// TestConcurrent appends from several goroutines and reads from others.
func TestConcurrent(t *testing.T) {
	l := openStore(t, shared(t), settings)
	const writers, each = 4, 25
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				first := add(t, l, opsOf(log.Writer(w+1), i+1, 1))
				if l.Head() < first {
					t.Errorf("entry %d is acknowledged and head is %d", first, l.Head())
				}
			}
		})
	}
	group.Go(func() {
		for seen := 0; seen < writers*each; seen = len(dotsFrom(t, l, 1)) {
			continue
		}
	})
	group.Wait()
	last := map[log.Writer]uint64{}
	for _, d := range dotsFrom(t, l, 1) {
		if d.Seq != last[d.Writer]+1 {
			t.Errorf("writer %v: %d after %d", d.Writer, d.Seq, last[d.Writer])
		}
		last[d.Writer] = d.Seq
	}
}
