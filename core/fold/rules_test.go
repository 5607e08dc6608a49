package fold_test

import (
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// TestRules folds an entry that introduces newer rules. A program that knows them continues and never returns to older rules. Another
// program stops at the entry without changing the store, and cannot begin on a state of newer rules.
func TestRules(t *testing.T) {
	const known = fold.FirstVersion + 2
	entry := func(seq uint64, body log.Body) log.Entry {
		return log.Entry{Seq: seq, Op: log.Op{Dot: log.Dot{Writer: log.Origin, Seq: seq}, At: log.HLC(seq) << 16, Body: body}}
	}
	entries := []log.Entry{
		entry(1, create("a")), entry(2, &log.Rules{Version: known}), entry(3, &log.Rules{Version: known - 1}), entry(4, create("b")),
	}
	store := memkv.New()
	run := func(version uint32, entries ...log.Entry) error {
		t.Helper()
		f, tx := fold.NewUpTo(app, version), kv.NewOverlay(store)
		if err := f.Begin(tx); err != nil {
			return err
		}
		for i := range entries {
			v, err := f.Apply(&entries[i])
			if err != nil {
				return err
			}
			if v.Code != fold.OK {
				t.Errorf("entry %d: %v", entries[i].Seq, v)
			}
		}
		f.End()
		return store.Apply(tx.Batch())
	}
	expect := func(when string, seq uint64, rules uint32) {
		t.Helper()
		if h, err := catalog.Read(store, app).Header(); err != nil || h.Seq != seq || h.Fold != rules {
			t.Errorf("%s: entry %d by rules %d, %v, want %d by %d", when, h.Seq, h.Fold, err, seq, rules)
		}
	}
	if err := run(known, entries[0]); err != nil {
		t.Fatal(err)
	}
	expect("a newer program, a log that says nothing", 1, fold.FirstVersion)
	for version := uint32(fold.FirstVersion); version < known; version++ {
		before, err := fold.Digest(store, app)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(version, entries[1:]...); !errors.Is(err, fold.ErrNewer) || !errors.Is(err, kv.ErrNewer) {
			t.Errorf("rules %d, of which %d are known: %v", known, version, err)
		}
		if after, err := fold.Digest(store, app); err != nil || after != before {
			t.Errorf("what it was stopped at changed the state: %v", err)
		}
	}
	expect("before a program that knows them", 1, fold.FirstVersion)
	if err := run(known, entries[1:]...); err != nil {
		t.Fatal(err)
	}
	expect("with it", 4, known)
	if err := run(known-1, entry(5, create("c"))); !errors.Is(err, fold.ErrNewer) {
		t.Errorf("a state of newer rules: %v", err)
	}
	expect("after an older one", 4, known)
}
