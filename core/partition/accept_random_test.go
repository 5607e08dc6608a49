package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestAcceptRandomOperations sends random operations of every kind. The log has no body that a replica may not write, the state is the fold
// of the log, and no key outside the application has changed.
func TestAcceptRandomOperations(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := kvtest.OrLate(t, memkv.New())
		p := open(t, store)
		submit(t, p, create("ours"), &log.ModelCreate{ID: "m", Concepts: []string{"cat"}})
		for from := uint64(1); from < 20; {
			n := rapid.IntRange(1, 5).Draw(rt, "operations")
			ops := make([]log.Op, n)
			for i := range ops {
				ops[i] = logtest.Op(rt)
				ops[i].Dot = log.Dot{Writer: edge, Seq: from + uint64(i)}
			}
			accept(t, p, ops)
			from += uint64(n)
		}
		for _, e := range entries(t, p) {
			if e.Op.Dot.Writer == edge && !writable[fmt.Sprintf("%T", e.Op.Body)] {
				rt.Fatalf("%T is in the log", e.Op.Body)
			}
		}
		checkFold(t, p, store)
	})
}

// checkFold checks that the state is the fold of the log and that all keys belong to the application.
func checkFold(t testing.TB, p *partition.Origin, store kv.Store) {
	t.Helper()
	lo, hi := app.Range()
	err := store.Scan(nil, nil, func(key, _ []byte) bool {
		if key[0] != 'h' && (bytes.Compare(key, lo) < 0 || bytes.Compare(key, hi) >= 0) {
			t.Errorf("key %x is outside of the application", key)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	scratch := kvtest.OrLate(t, memkv.New())
	f, tx := fold.New(app), kv.NewOverlay(scratch)
	if err := f.Begin(tx); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries(t, p) {
		if _, err := f.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	f.End()
	if err := scratch.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	if digest(t, scratch) != digest(t, store) {
		t.Error("the state is not the fold of the log")
	}
}

// FuzzAccept sends operations that are decoded from random bytes.
func FuzzAccept(f *testing.F) {
	for _, body := range logtest.Bodies() {
		f.Add(log.Encode(nil, &log.Op{Dot: log.Dot{Writer: edge, Seq: 1}, At: 1 << 16, By: "key", Body: body}))
	}
	f.Add(log.Encode(nil, &log.Op{Dot: log.Dot{Writer: edge, Seq: 1}, Body: create("a")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		op, err := log.Decode(data)
		if err != nil {
			return
		}
		store := kvtest.OrLate(t, memkv.New())
		p := open(t, store)
		v, _, err := p.Accept(t.Context(), []log.Op{op}, nil)
		switch {
		case errors.Is(err, partition.ErrForged), errors.Is(err, partition.ErrSequence):
			if p.Log().Head() != 0 {
				t.Fatal("what was refused is in the log")
			}
			return
		case err != nil || len(v) != 1 || v[0].Code == 0:
			t.Fatalf("%+v, %v", v, err)
		}
		if e := entries(t, p)[0]; e.Op.Dot != op.Dot || !writable[fmt.Sprintf("%T", e.Op.Body)] {
			t.Fatalf("%T of %v is in the log", e.Op.Body, e.Op.Dot)
		}
		checkFold(t, p, store)
		open(t, store)
	})
}

// TestAcceptInParts sends operations of two writers in one order, once singly and once in parts that repeat some, with restarts. Both logs
// and states are equal, byte for byte.
func TestAcceptInParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []log.Op // in the order of their first arrival
		count := map[log.Writer]uint64{}
		for range rapid.IntRange(1, 30).Draw(rt, "operations") {
			w := edge + log.Writer(rapid.IntRange(0, 1).Draw(rt, "writer"))
			count[w]++
			op := logtest.Op(rt)
			op.Dot = log.Dot{Writer: w, Seq: count[w]}
			op.At = now() - 1<<30 + log.HLC(len(all))<<20 + log.HLC(rapid.IntRange(0, 1<<20-1).Draw(rt, "clock"))
			all = append(all, op)
		}
		plainly := kvtest.OrLate(t, memkv.New())
		p := openAs(t, plainly, log.Epoch{1}, fold.Version) // with the same entry for the rules as q has
		for i := range all {
			accept(t, p, all[i:i+1])
		}
		chain, err := p.Log().Chain(p.Log().Head())
		if err != nil {
			rt.Fatal(err)
		}

		store := kvtest.OrLate(t, memkv.New())
		q := openAs(t, store, log.Epoch{1}, fold.Version)
		byWriter := map[log.Writer][]log.Op{}
		for i := 0; i < len(all); {
			w := all[i].Dot.Writer
			n := 0
			for more := rapid.IntRange(1, 6).Draw(rt, "part"); n < more && i+n < len(all) && all[i+n].Dot.Writer == w; n++ {
				byWriter[w] = append(byWriter[w], all[i+n])
			}
			resent := rapid.IntRange(0, len(byWriter[w])-n).Draw(rt, "again")
			first := len(byWriter[w]) - n - resent
			o := partition.Offer{Ops: byWriter[w][first:]}
			if first > 0 && rapid.Bool().Draw(rt, "before") {
				o.Before = byWriter[w][first-1].MadeAt()
			}
			offer(t, q, o)
			i += n
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				if err := q.Close(); err != nil {
					rt.Fatal(err)
				}
				q = openAs(t, store, log.Epoch{1}, fold.Version)
			}
		}
		got, err := q.Log().Chain(q.Log().Head())
		if err != nil || got != chain || q.Log().Head() != p.Log().Head() {
			rt.Fatalf("the log of %d entries is another one than that of %d, %v", q.Log().Head(), p.Log().Head(), err)
		}
		if digest(t, store) != digest(t, plainly) {
			rt.Fatal("the state is another one")
		}
	})
}
