// Package kvtest checks the contract of every [kv.Store]: [Store] while it runs, [Crashes], [CommitNothing] and [CommitOrder] after a
// loss of power.
//
//	Session ──batches──▶ Store ──▶ Crasher.Crash ──▶ Open ──▶ Check: state n of the session,
//	   └─ states 0…N, in memory ────────────────────────────▶  n at least the last one waited for
//
// A [Session] is also the script of the tests that damage files and disks under a store.
package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// Store runs the suite. open returns a new, empty store for each test, which the suite closes.
func Store(t *testing.T, open func(t testing.TB) kv.Store) {
	tests := []struct {
		name string
		run  func(t *testing.T, s kv.Store)
	}{
		{"empty", empty},
		{"order", order},
		{"bounds", bounds},
		{"bytes are borrowed", reuseBuffers},
		{"batch is whole and in order", batches},
		{"range deletes", rangeDeletes},
		{"snapshot holds its moment", snapshots},
		{"scan holds its moment", scanWhileWriting},
		{"scan stops", scanStops},
		{"commit of nothing", commitNothing},
		{"concurrent use", concurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			tt.run(t, s)
			if err := s.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
		})
	}
	t.Run("closed", func(t *testing.T) { checkClosed(t, open(t)) })
	t.Run("model", func(t *testing.T) { model(t, open) })
}

func put(t testing.TB, s kv.Store, pairs ...string) {
	t.Helper()
	b := &kv.Batch{}
	for i := 0; i < len(pairs); i += 2 {
		b.Put([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	apply(t, s, b)
}

func apply(t testing.TB, s kv.Store, b *kv.Batch) {
	t.Helper()
	if err := s.Apply(b); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

// list returns the keys and values of a scan as "k=v k=v". An empty bound means nil.
func list(t testing.TB, scan func(lo, hi []byte, yield func(k, v []byte) bool) error, lo, hi string) string {
	t.Helper()
	var out []byte
	if err := scan(bound(lo), bound(hi), func(k, v []byte) bool {
		out = fmt.Appendf(out, "%s=%s ", k, v)
		return true
	}); err != nil {
		t.Fatalf("scan from %q to %q: %v", lo, hi, err)
	}
	return string(bytes.TrimSuffix(out, []byte(" ")))
}

func bound(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func expect(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func empty(t *testing.T, s kv.Store) {
	if _, err := s.Get([]byte("k")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Get = %v, want ErrNotFound", err)
	}
	expect(t, list(t, s.Scan, "", ""), "")
	expect(t, list(t, s.ScanBack, "", ""), "")
	if err := s.Room(); err != nil {
		t.Errorf("Room = %v", err)
	}
	put(t, s, "k", "")
	if v, err := s.Get([]byte("k")); v == nil || len(v) > 0 || err != nil {
		t.Errorf("Get of an empty value = %v, %v, want an empty slice that is not nil", v, err)
	}
}

func order(t *testing.T, s kv.Store) {
	keys := []string{"\x00", "\x00\x00", "a", "a\x00", "a\x00b", "ab", "b", "\x7f", "\x80", "\xff", "\xff\x00", "\xff\xff"}
	shuffled := slices.Clone(keys)
	slices.Reverse(shuffled)
	for _, k := range shuffled {
		put(t, s, k, "")
	}
	var up, down []string
	collect := func(out *[]string) func(k, _ []byte) bool {
		return func(k, _ []byte) bool {
			*out = append(*out, string(k))
			return true
		}
	}
	if err := errors.Join(s.Scan(nil, nil, collect(&up)), s.ScanBack(nil, nil, collect(&down))); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(down)
	if !slices.Equal(up, keys) || !slices.Equal(down, keys) {
		t.Errorf("keys up %q, down reversed %q, want %q", up, down, keys)
	}
}

func bounds(t *testing.T, s kv.Store) {
	put(t, s, "b", "1", "d", "2", "f", "3")
	tests := []struct{ lo, hi, want, back string }{
		{"", "", "b=1 d=2 f=3", "f=3 d=2 b=1"},
		{"b", "", "b=1 d=2 f=3", "f=3 d=2 b=1"},
		{"c", "", "d=2 f=3", "f=3 d=2"},
		{"", "f", "b=1 d=2", "d=2 b=1"},
		{"", "g", "b=1 d=2 f=3", "f=3 d=2 b=1"},
		{"b", "d", "b=1", "b=1"},
		{"b\x00", "d\x00", "d=2", "d=2"},
		{"d", "d", "", ""},
		{"e", "c", "", ""},
		{"g", "", "", ""},
		{"", "a", "", ""},
	}
	snap := s.Snapshot()
	for _, tt := range tests {
		for _, r := range []kv.Reader{s, snap, kv.NewOverlay(s)} {
			expect(t, list(t, r.Scan, tt.lo, tt.hi), tt.want)
			expect(t, list(t, r.ScanBack, tt.lo, tt.hi), tt.back)
		}
	}
	for _, scan := range []func(lo, hi []byte, yield func(k, v []byte) bool) error{s.Scan, s.ScanBack, snap.Scan, snap.ScanBack} {
		if err := scan(nil, []byte{}, func(k, _ []byte) bool { t.Errorf("%q is below the empty bound", k); return true }); err != nil {
			t.Error(err)
		}
	}
	if err := snap.Close(); err != nil {
		t.Error(err)
	}
}

func reuseBuffers(t *testing.T, s kv.Store) {
	key, value := []byte("key"), []byte("value")
	b := &kv.Batch{}
	b.Put(key, value)
	apply(t, s, b)
	b.Reset()
	b.Put([]byte("yek"), []byte("eulav")) // overwrites the memory of the first operations
	clear(key)
	clear(value)
	expect(t, list(t, s.Scan, "", ""), "key=value")
	got, err := s.Get([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	clear(got) // the value belongs to the caller
	expect(t, list(t, s.Scan, "", ""), "key=value")
	apply(t, s, b)
	expect(t, list(t, s.Scan, "", ""), "key=value yek=eulav")
}

func batches(t *testing.T, s kv.Store) {
	b := &kv.Batch{}
	b.Put([]byte("a"), []byte("1"))
	b.Delete([]byte("a"))
	b.Put([]byte("b"), []byte("1"))
	b.Put([]byte("b"), []byte("2"))
	b.Put([]byte("c"), []byte("1"))
	b.DeleteRange([]byte("c"), nil)
	b.Put([]byte("d"), []byte("after"))
	b.Delete([]byte("nothing"))
	apply(t, s, b)
	expect(t, list(t, s.Scan, "", ""), "b=2 d=after")
	apply(t, s, b) // the same again
	expect(t, list(t, s.Scan, "", ""), "b=2 d=after")
}

func rangeDeletes(t *testing.T, s kv.Store) {
	fill := func() {
		b := &kv.Batch{}
		b.DeleteRange(nil, nil)
		for k := 'a'; k <= 'f'; k++ {
			b.Put([]byte(string(k)), nil)
		}
		apply(t, s, b)
	}
	tests := []struct{ lo, hi, want string }{
		{"b", "d", "a= d= e= f="},
		{"b", "d\x00", "a= e= f="},
		{"", "c", "c= d= e= f="},
		{"c", "", "a= b="},
		{"", "", ""},
		{"c", "c", "a= b= c= d= e= f="},
		{"d", "b", "a= b= c= d= e= f="},
		{"x", "y", "a= b= c= d= e= f="},
	}
	for _, tt := range tests {
		fill()
		b := &kv.Batch{}
		b.DeleteRange(bound(tt.lo), bound(tt.hi))
		apply(t, s, b)
		expect(t, list(t, s.Scan, "", ""), tt.want)
		if _, err := s.Get([]byte("c")); (err == nil) != bytes.Contains([]byte(tt.want), []byte("c")) {
			t.Errorf("after the delete of %q to %q: Get = %v", tt.lo, tt.hi, err)
		}
		put(t, s, "c", "again")
		if v, err := s.Get([]byte("c")); string(v) != "again" {
			t.Errorf("Get of a key put after the delete = %q, %v", v, err)
		}
	}
	fill()
	last := bytes.Repeat([]byte{0xff}, 255) // sorts after all other keys of the suite
	put(t, s, string(last), "")
	b := &kv.Batch{}
	b.DeleteRange([]byte("b"), nil)
	apply(t, s, b)
	expect(t, list(t, s.Scan, "", ""), "a=")
}

func snapshots(t *testing.T, s kv.Store) {
	put(t, s, "a", "1", "b", "1")
	first := s.Snapshot()
	b := &kv.Batch{}
	b.DeleteRange(nil, nil)
	b.Put([]byte("c"), []byte("2"))
	apply(t, s, b)
	second := s.Snapshot()
	put(t, s, "d", "3")
	expect(t, list(t, first.Scan, "", ""), "a=1 b=1")
	expect(t, list(t, first.ScanBack, "", ""), "b=1 a=1")
	expect(t, list(t, second.Scan, "", ""), "c=2")
	expect(t, list(t, s.Scan, "", ""), "c=2 d=3")
	if v, err := first.Get([]byte("a")); string(v) != "1" || err != nil {
		t.Errorf("Get from the first snapshot = %q, %v, want 1", v, err)
	}
	if _, err := first.Get([]byte("c")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Get of a later key = %v, want ErrNotFound", err)
	}
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	if _, err := first.Get([]byte("a")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Get from a closed snapshot = %v, want ErrClosed", err)
	}
	never := func(_, _ []byte) bool { t.Error("a closed snapshot yields"); return false }
	for _, err := range []error{first.Scan(nil, nil, never), first.ScanBack(nil, nil, never), first.Close()} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("a closed snapshot gives %v, want ErrClosed", err)
		}
	}
}

func scanWhileWriting(t *testing.T, s kv.Store) {
	put(t, s, "a", "1", "b", "1", "c", "1")
	for _, scan := range []func(lo, hi []byte, yield func(k, v []byte) bool) error{s.Scan, s.ScanBack} {
		var seen []byte
		if err := scan(nil, nil, func(k, v []byte) bool {
			seen = append(seen, k...)
			b := &kv.Batch{}
			b.DeleteRange(nil, nil)
			b.Put([]byte("b"), []byte("2"))
			b.Put([]byte("bb"), nil)
			apply(t, s, b)
			if v, err := s.Get([]byte("b")); string(v) != "2" || err != nil {
				t.Errorf("Get within a scan = %q, %v, want what was just written", v, err)
			}
			expect(t, string(v), "1")
			return true
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(seen)
		expect(t, string(seen), "abc")
		b := &kv.Batch{}
		b.Delete([]byte("bb"))
		apply(t, s, b)
		put(t, s, "a", "1", "b", "1", "c", "1")
	}
}

func scanStops(t *testing.T, s kv.Store) {
	put(t, s, "a", "", "b", "", "c", "")
	for _, scan := range []func(lo, hi []byte, yield func(k, v []byte) bool) error{s.Scan, s.ScanBack} {
		n := 0
		if err := scan(nil, nil, func(_, _ []byte) bool { n++; return n < 2 }); err != nil || n != 2 {
			t.Errorf("%d keys, %v, want 2", n, err)
		}
	}
}

func commitNothing(t *testing.T, s kv.Store) {
	put(t, s, "a", "1")
	wait, err := s.Commit(&kv.Batch{})
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil {
		t.Errorf("wait = %v", err)
	}
	apply(t, s, &kv.Batch{})
	expect(t, list(t, s.Scan, "", ""), "a=1")
}

// concurrent starts writers that each move one coin between two keys. Each reader must see one coin of each writer.
func concurrent(t *testing.T, s kv.Store) {
	const writers, rounds = 4, 50
	var group sync.WaitGroup
	for w := range writers {
		put(t, s, fmt.Sprintf("%d-a", w), "coin")
		group.Go(func() {
			for i := range rounds {
				b := &kv.Batch{}
				from, to := "a", "b"
				if i%2 == 1 {
					from, to = to, from
				}
				b.Delete(fmt.Appendf(nil, "%d-%s", w, from))
				b.Put(fmt.Appendf(nil, "%d-%s", w, to), []byte("coin"))
				wait, err := s.Commit(b)
				if err == nil {
					err = wait()
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	for range 2 {
		group.Go(func() {
			for range rounds {
				snap := s.Snapshot()
				n := 0
				err := snap.Scan(nil, nil, func(_, _ []byte) bool { n++; return true })
				if err = errors.Join(err, snap.Close()); err != nil || n != writers {
					t.Errorf("%d coins, %v, want %d", n, err, writers)
					return
				}
			}
		})
	}
	group.Wait()
	n := 0
	if err := s.Scan(nil, nil, func(_, _ []byte) bool { n++; return true }); err != nil || n != writers {
		t.Errorf("%d coins in the end, %v, want %d", n, err, writers)
	}
}

func checkClosed(t *testing.T, s kv.Store) {
	put(t, s, "a", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	never := func(_, _ []byte) bool { t.Error("a closed store yields"); return false }
	_, getErr := s.Get([]byte("a"))
	_, commitErr := s.Commit(&kv.Batch{})
	snap := s.Snapshot()
	_, snapErr := snap.Get([]byte("a"))
	for i, err := range []error{
		getErr, commitErr, snapErr, s.Scan(nil, nil, never), s.ScanBack(nil, nil, never),
		s.Apply(&kv.Batch{}), s.Room(), snap.Close(), s.Close(),
	} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("call %d of a closed store gives %v, want ErrClosed", i, err)
		}
	}
}

// model applies random batches to a store and to memkv, and compares their contents.
func model(t *testing.T, open func(t testing.TB) kv.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		s, m := open(t), memkv.New()
		key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 1, 3)
		for range rapid.IntRange(1, 5).Draw(rt, "batches") {
			b := &kv.Batch{}
			for range rapid.IntRange(0, 8).Draw(rt, "operations") {
				switch rapid.IntRange(0, 3).Draw(rt, "kind") {
				case 0:
					b.Delete(key.Draw(rt, "key"))
				case 1:
					b.DeleteRange(key.Draw(rt, "lo"), key.Draw(rt, "hi"))
				default:
					b.Put(key.Draw(rt, "key"), rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "value"))
				}
			}
			if err := errors.Join(s.Apply(b), m.Apply(b)); err != nil {
				rt.Fatal(err)
			}
			lo, hi := key.Draw(rt, "from"), key.Draw(rt, "to")
			if err := errors.Join(same(s, m, nil, nil), same(s, m, lo, hi)); err != nil {
				rt.Fatalf("from %q to %q: %v", lo, hi, err)
			}
		}
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}
