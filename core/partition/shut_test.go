package partition_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

var errShut = errors.New("shut")

// countingStore counts the batches of a store.
type countingStore struct {
	kv.Store
	mu sync.Mutex
	n  int
}

func (c *countingStore) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *countingStore) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *countingStore) Apply(b *kv.Batch) error {
	c.add()
	return c.Store.Apply(b)
}

func (c *countingStore) Commit(b *kv.Batch) (func() error, error) {
	c.add()
	return c.Store.Commit(b)
}

// TestShutdownAnswersWriters ends a partition while writers use it. Each writer gets the reason, and nothing is written afterwards.
func TestShutdownAnswersWriters(t *testing.T) {
	for seed := range testkit.Seeds(t, 100, 10_000) {
		r := rand.New(rand.NewPCG(seed, 5))
		store := &countingStore{Store: kvtest.OrLate(t, memkv.New())}
		p := open(t, store)
		ctx := context.Background()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					if _, err := p.Submit(ctx, "key", []log.Body{create("")}, nil); err != nil {
						if !errors.Is(err, errShut) {
							t.Errorf("Submit = %v, want errShut", err)
						}
						return
					}
				}
			})
		}
		for range r.IntN(20) {
			submit(t, p, create(""))
		}
		p.Shut(errShut)
		written := store.count()
		wg.Wait()
		_, stepped := p.Step(ctx, clock())
		for name, err := range map[string]error{
			"Step":     stepped,
			"Analysed": p.AddDerived(nil, func(kv.Writer, []catalog.Input) {}),
			"Forget":   p.ForgetBase([32]byte{1}),
			"Tidy":     p.Tidy(func(*kv.Overlay) error { return nil }),
			"Redact":   p.Redact(1, func(log.Body) bool { return true }),
		} {
			if !errors.Is(err, errShut) {
				t.Errorf("%s = %v, want errShut", name, err)
			}
		}
		if n := store.count(); n != written {
			t.Errorf("%d batches after the end", n-written)
		}
		v := p.View()
		if _, err := v.Header(); err != nil {
			t.Errorf("the state cannot be read: %v", err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWritesOutsideLogAreAtomic: writes that bypass the log become visible completely, or not at all.
func TestWritesOutsideLogAreAtomic(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	key := app.LocalKey("note")
	if err := p.Tidy(func(tx *kv.Overlay) error {
		tx.Put(key, []byte("x"))
		return errShut
	}); !errors.Is(err, errShut) {
		t.Errorf("Tidy = %v, want its own error", err)
	}
	if _, err := store.Get(key); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("after an error the note is there: %v", err)
	}
	if err := p.Tidy(func(tx *kv.Overlay) error {
		tx.Put(key, []byte("x"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if v, err := store.Get(key); err != nil || string(v) != "x" {
		t.Errorf("the note is %q, %v", v, err)
	}
}
