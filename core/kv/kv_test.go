package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// model is the naive model of a store.
type model map[string]string

func (m model) apply(b *kv.Batch) {
	for op := range b.Each {
		switch op.Kind {
		case kv.KindPut:
			m[string(op.Key)] = string(op.Value)
		case kv.KindDelete:
			delete(m, string(op.Key))
		case kv.KindDeleteRange:
			for k := range m {
				if k >= string(op.Key) && k < string(op.Value) {
					delete(m, k)
				}
			}
		}
	}
}

func (m model) scan(lo, hi []byte) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k >= string(lo) && (hi == nil || k < string(hi)) {
			out = append(out, k+"="+m[k])
		}
	}
	return out
}

// keys generates few, similar keys, so that operations meet.
var keys = rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 1, 3)

func bound(t *rapid.T, label string) []byte {
	return rapid.OneOf(keys, rapid.Just([]byte(nil))).Draw(t, label)
}

func write(t *rapid.T, w kv.Writer) {
	key := keys.Draw(t, "key")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		w.Delete(key)
	case 1:
		w.DeleteRange(bound(t, "lo"), bound(t, "hi"))
	default:
		w.Put(key, rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "value"))
	}
}

func scanPairs(t *rapid.T, scan func(lo, hi []byte, yield func(k, v []byte) bool) error, lo, hi []byte, limit int) []string {
	var out []string
	err := scan(lo, hi, func(k, v []byte) bool {
		out = append(out, string(k)+"="+string(v))
		return len(out) < limit
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOverlay checks that an overlay reads like the base after its batch is applied.
func TestOverlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, m := memkv.New(), model{}
		o := kv.NewOverlay(base)
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			for range rapid.IntRange(0, 12).Draw(t, "ops") {
				write(t, o)
				pending := maps.Clone(m)
				pending.apply(o.Batch())
				compare(t, o, pending)
			}
			if err := base.Apply(o.Batch()); err != nil {
				t.Fatal(err)
			}
			m.apply(o.Batch())
			o.Reset(base)
			compare(t, o, m)
			compare(t, base, m)
		}
	})
}

// TestLargeOverlay is TestOverlay with so many keys that the overlay grows. Later rounds use the same overlay with fewer keys. Scans are
// rare at first and frequent later.
func TestLargeOverlay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base, m := memkv.New(), model{}
	o := kv.NewOverlay(base)
	rounds := []int{6000, 10, 3, 2000}
	if testing.Short() {
		rounds = []int{1200, 10, 300}
	}
	for round, n := range rounds {
		for i := range n {
			key := fmt.Appendf(nil, "%0*d", 1+i%20, rng.IntN(4*n))
			switch rng.IntN(500) {
			case 0:
				o.DeleteRange(key, append(key, 'x'))
			case 1, 2, 3, 4:
				o.Delete(key)
			default:
				o.Put(key, fmt.Append(nil, i))
			}
		}
		m.apply(o.Batch())
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if got, err := o.Get([]byte(k)); err != nil || string(got) != m[k] {
				t.Fatalf("round %d: Get(%q) = %q, %v, want %q", round, k, got, err, m[k])
			}
		}
		for range 50 { // the first scans run before the overlay keeps its keys sorted, the last ones after
			lo := fmt.Append(nil, rng.IntN(4*n))
			var got []string
			err := o.Scan(lo, nil, func(k, v []byte) bool {
				got = append(got, string(k)+"="+string(v))
				return true
			})
			if want := m.scan(lo, nil); err != nil || !slices.Equal(got, want) {
				t.Fatalf("round %d: Scan(%q) has %d keys, %v, want %d", round, lo, len(got), err, len(want))
			}
			o.Put(lo, nil)
			m[string(lo)] = ""
		}
		if err := base.Apply(o.Batch()); err != nil {
			t.Fatal(err)
		}
		o.Reset(base)
	}
}

func compare(t *rapid.T, r kv.Reader, m model) {
	lo, hi := bound(t, "from"), bound(t, "to")
	limit := rapid.IntRange(1, 9).Draw(t, "limit")
	want := m.scan(lo, hi)
	back := slices.Clone(want)
	slices.Reverse(back)
	if got := scanPairs(t, r.Scan, lo, hi, limit); !slices.Equal(got, want[:min(limit, len(want))]) {
		t.Fatalf("Scan(%q, %q) = %q, want %q", lo, hi, got, want)
	}
	if got := scanPairs(t, r.ScanBack, lo, hi, limit); !slices.Equal(got, back[:min(limit, len(want))]) {
		t.Fatalf("ScanBack(%q, %q) = %q, want %q", lo, hi, got, back)
	}
	key := keys.Draw(t, "get")
	got, err := r.Get(key)
	if want, ok := m[string(key)]; ok != (err == nil) || string(got) != want || (!ok && !errors.Is(err, kv.ErrNotFound)) {
		t.Fatalf("Get(%q) = %q, %v, want %q, %v", key, got, err, want, ok)
	}
}

// TestOverlayWrittenDuringScan: a scan shows the overlay's state at its start, whatever is written during the scan.
func TestOverlayWrittenDuringScan(t *testing.T) {
	base := memkv.New()
	b := &kv.Batch{}
	for i := range 10 {
		b.Put([]byte{1, byte(i)}, []byte("base"))
	}
	if err := base.Apply(b); err != nil {
		t.Fatal(err)
	}
	o := kv.NewOverlay(base)
	o.Put([]byte{1, 3}, []byte("over"))
	var seen []byte
	if err := o.Scan([]byte{1}, []byte{2}, func(k, _ []byte) bool {
		seen = append(seen, k[1])
		o.Delete(k)
		o.Put([]byte{1, k[1], 0}, k)
		o.DeleteRange([]byte{1, 8}, nil)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if want := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !bytes.Equal(seen, want) {
		t.Errorf("keys = %v, want %v", seen, want)
	}
}

func TestBatch(t *testing.T) {
	b := &kv.Batch{}
	if parsed, err := kv.ParseBatch(b.Bytes()); err != nil || parsed.Len() != 0 {
		t.Fatalf("ParseBatch of an empty batch = %v, %v", parsed, err)
	}
	key := []byte("key")
	b.Put(key, []byte("value"))
	key[0] = 'K' // Put copies the key
	b.Delete([]byte("gone"))
	b.DeleteRange(nil, nil)
	b.DeleteRange([]byte("b"), []byte("b"))
	b.DeleteRange([]byte("b"), []byte("a"))
	b.Put([]byte("empty"), nil)
	both := &kv.Batch{}
	both.Append(b)
	both.Append(&kv.Batch{})
	both.Append(b)
	if both.Len() != 8 {
		t.Errorf("Len() = %d, want 8", both.Len())
	}
	var got []string
	for op := range both.Each {
		if len(got) == 4 {
			break
		}
		got = append(got, fmt.Sprintf("%d %s %d", op.Kind, op.Key, len(op.Value)))
	}
	want := []string{"1 key 5", "2 gone 0", "3  256", "1 empty 0"}
	if !slices.Equal(got, want) {
		t.Errorf("operations = %q, want %q", got, want)
	}
	b.Reset()
	if b.Len() != 0 || len(b.Bytes()) != 1 {
		t.Errorf("after Reset: %d operations, %d bytes, want 0, 1", b.Len(), len(b.Bytes()))
	}
	for range b.Each {
		t.Error("an empty batch yields an operation")
	}
}

func TestInvalidKeysPanic(t *testing.T) {
	for _, key := range [][]byte{nil, {}, kv.End(), append(kv.End(), 0)} {
		for name, f := range map[string]func(b *kv.Batch){
			"Put":    func(b *kv.Batch) { b.Put(key, nil) },
			"Delete": func(b *kv.Batch) { b.Delete(key) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s of a key of %d bytes does not panic", name, len(key))
					}
				}()
				f(&kv.Batch{})
			}()
		}
	}
	b := &kv.Batch{}
	b.Put(kv.End()[1:], nil) // all keys after the last one start with it
	if b.Len() != 1 {
		t.Error("255 times 0xff is no key")
	}
}

func FuzzParseBatch(f *testing.F) {
	b := &kv.Batch{}
	f.Add(b.Bytes())
	b.Put([]byte("key"), bytes.Repeat([]byte("value"), 50))
	f.Add(bytes.Clone(b.Bytes()))
	b.Delete([]byte{0})
	b.DeleteRange(nil, []byte{1})
	b.DeleteRange([]byte{1}, nil)
	f.Add(bytes.Clone(b.Bytes()))
	f.Add([]byte{2})
	f.Add([]byte{1, 1, 0x80, 0})        // a length that is not in its shortest form
	f.Add([]byte{1, 3, 1, 'b', 1, 'a'}) // an empty range
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := kv.ParseBatch(data)
		if err != nil {
			if !errors.Is(err, kv.ErrBatch) {
				t.Fatalf("error %v, want ErrBatch", err)
			}
			return
		}
		again := &kv.Batch{}
		n := 0
		for op := range parsed.Each {
			switch n++; op.Kind {
			case kv.KindPut:
				again.Put(op.Key, op.Value)
			case kv.KindDelete:
				again.Delete(op.Key)
			case kv.KindDeleteRange:
				again.DeleteRange(op.Key, op.Value)
			}
		}
		if n != parsed.Len() || !bytes.Equal(again.Bytes(), data) || !bytes.Equal(parsed.Bytes(), data) {
			t.Fatalf("%d operations of %d, encoded again %x, want %x", n, parsed.Len(), again.Bytes(), data)
		}
	})
}
