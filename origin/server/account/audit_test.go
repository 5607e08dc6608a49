package account

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
)

func TestAuditDescribesActions(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	token, a := w.person("ada@x.example")
	if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.SignIn(t.Context(), a.Email, "wrong wrong wrong", away); !errors.Is(err, auth.ErrLogin) {
		t.Fatal(err)
	}
	if err := w.SignOut(token, home); err != nil {
		t.Fatal(err)
	}
	if err := w.Record(Event{Actor: a.ID, Action: "key.create", Target: anApp + "/" + aKey, Remote: home}); err != nil {
		t.Fatal(err)
	}
	if err := w.Record(Event{Actor: ByOperator, Action: "app.delete", Target: anApp}); err != nil {
		t.Fatal(err)
	}
	events, err := w.Events(a.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []Action
	for _, e := range events {
		got = append(got, e.Action)
	}
	want := []Action{"key.create", SignOut, SignInFailed, AccountVerify, AccountCreate}
	if !slices.Equal(got, want) {
		t.Errorf("Events = %v, want %v", got, want)
	}
	if e := events[2]; e.Actor != "" || e.Target != a.ID || e.Remote != away || len(e.Hash) != 64 {
		t.Errorf("the failed sign-in is %+v", e)
	}
	page, err := w.Events(a.ID, events[1].Seq, 2)
	if err != nil || len(page) != 2 || page[0] != events[2] {
		t.Errorf("the second page = %+v, %v", page, err)
	}
	if operatorEvents, err := w.Events(op.ID, 0, 100); len(operatorEvents) != 1 || err != nil {
		t.Errorf("the operator's events = %+v, %v", operatorEvents, err)
	}
	if e, err := w.Events(ByOperator, 0, 100); len(e) != 1 || e[0].Action != "app.delete" || err != nil {
		t.Errorf("the command line's events = %+v, %v", e, err)
	}
	if none, err := w.Events("nobody", 0, 100); len(none) != 0 || err != nil {
		t.Errorf("nobody's events = %+v, %v", none, err)
	}
	if v, err := w.VerifyAudit(); v.Count != 7 || err != nil {
		t.Errorf("VerifyAudit = %+v, %v", v, err)
	}
}

// TestAuditShowsTampering changes a log in many ways, and checks that VerifyAudit detects each of them.
func TestAuditShowsTampering(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	for i := range 20 {
		if err := w.Record(Event{Actor: op.ID, Action: "key.create", Target: fmt.Sprint(anApp, "/", i), Remote: home}); err != nil {
			t.Fatal(err)
		}
	}
	sound, err := w.VerifyAudit()
	if err != nil || sound.Count != 21 {
		t.Fatalf("VerifyAudit = %+v, %v", sound, err)
	}
	at := func(seq uint64) []byte {
		v, err := w.store.Get(auditKey(seq))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	// rehash recomputes the hashes of a log after a change of its record seq. It does not change the head.
	rehash := func(b *kv.Batch, seq uint64, text []byte) {
		before := hash(at(seq - 1)[:32])
		for ; seq <= sound.Count; seq++ {
			before = chain(before, text)
			b.Put(auditKey(seq), append(before[:], text...))
			if seq < sound.Count {
				text = at(seq + 1)[32:]
			}
		}
	}
	rng := rand.New(rand.NewPCG(7, 7))
	tests := map[string]func(b *kv.Batch){
		"drop the first": func(b *kv.Batch) { b.Delete(auditKey(1)) },
		"drop one":       func(b *kv.Batch) { b.Delete(auditKey(7)) },
		"drop the last":  func(b *kv.Batch) { b.Delete(auditKey(21)) },
		"drop the end":   func(b *kv.Batch) { b.DeleteRange(auditKey(11), auditKey(100)) },
		"drop all":       func(b *kv.Batch) { b.DeleteRange(auditKey(0), auditKey(100)) },
		"drop the head":  func(b *kv.Batch) { b.Delete(headKey()) },
		"cut the head":   func(b *kv.Batch) { b.Put(headKey(), []byte{1}) },
		"swap":           func(b *kv.Batch) { b.Put(auditKey(4), at(5)); b.Put(auditKey(5), at(4)) },
		"repeat":         func(b *kv.Batch) { b.Put(auditKey(5), at(4)) },
		"add":            func(b *kv.Batch) { b.Put(auditKey(22), at(21)) },
		"cut one short":  func(b *kv.Batch) { b.Put(auditKey(6), at(6)[:20]) },
		"another key":    func(b *kv.Batch) { b.Put(append(auditKey(3), 1), at(3)) },
		"rewrite with right hashes": func(b *kv.Batch) {
			rehash(b, 9, bytes.Replace(at(9)[32:], []byte("key.create"), []byte("key.delete"), 1))
		},
	}
	for range 300 {
		seq, bit := 1+rng.Uint64N(21), rng.IntN(1<<20)
		tests[fmt.Sprint("flip bit ", bit, " of record ", seq)] = func(b *kv.Batch) {
			v := at(seq)
			bit %= 8 * len(v)
			v[bit/8] ^= 1 << (bit % 8)
			b.Put(auditKey(seq), v)
		}
	}
	for name, tamper := range tests {
		changed := kv.NewOverlay(w.store)
		var b kv.Batch
		tamper(&b)
		for op := range b.Each {
			switch op.Kind {
			case kv.KindPut:
				changed.Put(op.Key, op.Value)
			case kv.KindDelete:
				changed.Delete(op.Key)
			case kv.KindDeleteRange:
				changed.DeleteRange(op.Key, op.Value)
			}
		}
		if v, err := VerifyAudit(changed); !errors.Is(err, ErrAudit) {
			t.Errorf("%s: VerifyAudit = %+v, %v", name, v, err)
		}
	}
	if v, err := w.VerifyAudit(); v != sound || err != nil {
		t.Errorf("VerifyAudit = %+v, %v", v, err)
	}
}

// TestAuditContinuesAfterRestart opens a log again, and loses nothing when the store refuses a batch.
func TestAuditContinuesAfterRestart(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	full := &fullStore{Store: w.store}
	w.o.Store = full
	reopened, err := Open(w.o)
	if err != nil {
		t.Fatal(err)
	}
	full.full = true
	if err := reopened.Record(Event{Actor: op.ID, Action: "app.create"}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Record on a full disk = %v", err)
	}
	full.full = false
	if err := reopened.Record(Event{Actor: op.ID, Action: "app.create"}); err != nil {
		t.Fatal(err)
	}
	if v, err := reopened.VerifyAudit(); v.Count != 2 || err != nil {
		t.Errorf("VerifyAudit = %+v, %v", v, err)
	}
}

// fullStore is a store that fails with ErrFull while full is set.
type fullStore struct {
	kv.Store
	full bool
}

func (f *fullStore) Commit(b *kv.Batch) (func() error, error) {
	if f.full {
		return nil, kv.ErrFull
	}
	return f.Store.Commit(b)
}

func (f *fullStore) Apply(b *kv.Batch) error {
	if f.full {
		return kv.ErrFull
	}
	return f.Store.Apply(b)
}
