package log_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// secret is the text that the tests remove from bodies and from unknown fields.
const secret = "a secret name"

// redactSecrets removes the names of applications that equal secret.
func redactSecrets(b log.Body) bool {
	app, ok := b.(*log.AppCreate)
	if !ok || app.Name != secret {
		return false
	}
	app.Name = ""
	return true
}

// TestRedact removes secrets from a log in which some entries are not synced yet. The log works as before, also after it is opened again.
// From the first change its chain differs for earlier readers.
func TestRedact(t *testing.T) {
	for seed := range testkit.Seeds(t, 200, 20_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		store := kvtest.OrLate(t, memkv.New())
		l := openStore(t, store, settings)
		n := 1 + r.IntN(20)
		first := 0 // number of the first entry with a secret
		var ops []log.Op
		for i := range n {
			op := opsOf(1, i+1, 1)[0]
			if r.IntN(4) == 0 {
				op.Body = &log.AppCreate{ID: "x", Name: secret}
				op.Extra.Body = protowire.AppendString(protowire.AppendTag(nil, 12, protowire.BytesType), secret)
				if first == 0 {
					first = i + 1
				}
			}
			ops = append(ops, op)
		}
		half := r.IntN(n + 1)
		if half > 0 {
			add(t, l, ops[:half])
		}
		wait := func() error { return nil }
		if half < n {
			var err error
			if _, wait, err = l.Append(ops[half:], nil); err != nil {
				t.Fatal(err)
			}
		}
		if trim := r.IntN(half + 1); trim > 0 && (first == 0 || trim < first) {
			if err := l.Trim(uint64(trim)); err != nil {
				t.Fatal(err)
			}
		}
		chains, chain := map[uint64]log.Chain{}, log.Chain(settings.Epoch)
		for i := range ops {
			if chain = chain.Next(log.Encode(nil, &ops[i])); uint64(i+1) >= l.Floor() {
				chains[uint64(i+1)] = chain
			}
		}
		from := uint64(1)
		if first > 0 {
			from += uint64(r.IntN(first))
		}
		if err := l.Redact(from, redactSecrets); err != nil {
			t.Fatal(err)
		}
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		add(t, l, opsOf(1, n+1, 2))
		for _, l := range []*log.Store{l, openStore(t, store, settings)} {
			if got := dotsFrom(t, l, l.Floor()); len(got) != n+3-int(l.Floor()) || l.Head() != uint64(n+2) {
				t.Fatalf("%d entries to %d, want %d", len(got), l.Head(), n+2)
			}
			for seq, was := range chains {
				now, err := l.Chain(seq)
				if changed := first > 0 && seq >= uint64(first); err != nil || (now != was) != changed {
					t.Fatalf("chain %d is another: %v, want %v; %v", seq, now != was, changed, err)
				}
			}
		}
		err := store.Scan(nil, nil, func(key, value []byte) bool {
			if bytes.Contains(value, []byte(secret)) {
				t.Fatalf("entry %x still has it", key)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedactFails: if the store rejects the change or an entry is damaged, the log stays as it is.
func TestRedactFails(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	l := openStore(t, store, settings)
	add(t, l, []log.Op{{Dot: log.Dot{Writer: 1, Seq: 1}, Body: &log.AppCreate{Name: secret}}})
	add(t, l, opsOf(1, 2, 2))
	before, err := l.Chain(3)
	if err != nil {
		t.Fatal(err)
	}
	store.commits = kv.ErrFull
	if err := l.Redact(1, redactSecrets); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Redact = %v, want ErrFull", err)
	}
	store.commits = nil
	add(t, l, opsOf(1, 4, 1))
	if after, err := l.Chain(3); after != before || err != nil || len(dotsFrom(t, l, 1)) != 4 {
		t.Errorf("after a change that failed the chain is %x, %v, was %x", after, err, before)
	}
	remove(t, store, "p/e\x00\x00\x00\x00\x00\x00\x00\x02")
	if err := l.Redact(1, redactSecrets); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("Redact of a log with a gap = %v, want ErrCorrupt", err)
	}
	store.syncs = kv.ErrFailed
	_, wait, err := l.Append(opsOf(1, 5, 1), nil)
	if err == nil {
		err = wait()
	}
	if !errors.Is(err, kv.ErrFailed) {
		t.Fatal(err)
	}
	if err := l.Redact(1, redactSecrets); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("Redact after a failed sync = %v, want ErrFailed", err)
	}
}
