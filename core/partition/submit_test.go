package partition_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// faulty is a store with parts that tests can make fail, and with syncs that tests can delay.
type faulty struct {
	kv.Store
	mu                 sync.Mutex
	room, apply, syncs error
	applied, committed atomic.Int64
	gate               chan struct{} // if not nil, syncs wait until it is closed
}

func (f *faulty) set(e *error, to error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*e = to
}

func (f *faulty) get(e *error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *e
}

func (f *faulty) Room() error { return f.get(&f.room) }

func (f *faulty) Apply(b *kv.Batch) error {
	if err := f.get(&f.apply); err != nil {
		return err
	}
	f.applied.Add(1)
	return f.Store.Apply(b)
}

func (f *faulty) Commit(b *kv.Batch) (func() error, error) {
	f.committed.Add(1)
	wait, err := f.Store.Commit(b)
	return func() error {
		if f.gate != nil {
			<-f.gate
		}
		return errors.Join(f.get(&f.syncs), wait())
	}, err
}

// TestFullStoreRefusesWrites checks that a full store refuses writes before anything is written, and accepts deletions.
func TestFullStoreRefusesWrites(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	p := open(t, store)
	a := submit(t, p, create("a"))[0]
	head := p.Log().Head()
	store.set(&store.room, kv.ErrFull)
	for _, bodies := range [][]log.Body{{create("b")}, {&log.InputDelete{Input: a.Dot}, create("b")}} {
		if _, err := p.Submit(context.Background(), "", bodies, nil); !errors.Is(err, kv.ErrFull) {
			t.Errorf("submit to a full store: %v, want ErrFull", err)
		}
	}
	if p.Log().Head() != head {
		t.Error("something was written to a full store")
	}
	if v := submit(t, p, &log.InputDelete{Input: a.Dot}, &log.ModelDeleteAll{}); v[0].Code != fold.OK {
		t.Errorf("deleting in a full store: %+v", v)
	}
	store.set(&store.room, nil)
	if v := submit(t, p, create("b")); v[0].Dot != (log.Dot{Writer: a.Dot.Writer, Seq: 4}) {
		t.Errorf("with space again: %+v", v)
	}
}

// TestFailedSync checks that a partition with a failed sync acknowledges nothing, shows nothing and accepts nothing more.
func TestFailedSync(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	p := open(t, store)
	submit(t, p, create("a"))
	store.set(&store.syncs, kv.ErrFailed)
	for range 2 {
		if _, err := p.Submit(context.Background(), "", []log.Body{create("b")}, nil); !errors.Is(err, kv.ErrFailed) {
			t.Errorf("submit to a failed store: %v, want ErrFailed", err)
		}
	}
	if got := ids(t, catalog.Read(store, app)); len(got) != 1 {
		t.Errorf("after a failed sync %v can be read, want a", got)
	}
	if _, err := p.Step(context.Background(), clock()); err != nil {
		t.Error(err)
	}
}

// TestRefusedFoldIsRetried checks that a later step folds operations that the store refused at first.
func TestRefusedFoldIsRetried(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	p := open(t, store)
	store.set(&store.apply, kv.ErrFull)
	if _, err := p.Submit(context.Background(), "", []log.Body{create("a")}, nil); !errors.Is(err, kv.ErrFull) {
		t.Errorf("submit: %v, want ErrFull", err)
	}
	if _, err := p.Step(context.Background(), clock()); !errors.Is(err, kv.ErrFull) {
		t.Errorf("step: %v, want ErrFull", err)
	}
	store.set(&store.apply, nil)
	steps(t, p)
	v := p.View()
	if got := ids(t, v.Reader); len(got) != 1 || v.Seq() != 1 {
		t.Errorf("after a step %v can be read at %d, want a at 1", got, v.Seq())
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if v := submit(t, p, create("a")); v[0].Code != fold.Duplicate {
		t.Errorf("what was not acknowledged took its effect, and the next is %+v", v[0])
	}
}

func TestSubmitNothing(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	if v := submit(t, p); v != nil {
		t.Errorf("verdicts on nothing: %v", v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Submit(ctx, "", []log.Body{create("a")}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("submit of who has left: %v", err)
	}
	if p.Log().Head() != 0 {
		t.Error("who has left has written")
	}
	if _, err := p.Submit(context.Background(), "", []log.Body{create("a")}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Step(context.Background(), clock()); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("step of a closed partition: %v", err)
	}
}

// TestSubmitsShareASync lets many Submits wait for one sync. One of them folds the operations of several.
func TestSubmitsShareASync(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	p := open(t, store)
	store.gate = make(chan struct{})
	store.applied.Store(0)
	store.committed.Store(0)
	const submits = 20
	var group sync.WaitGroup
	for i := range submits {
		group.Go(func() {
			v, err := p.Submit(context.Background(), "", []log.Body{create(fmt.Sprint("a", i)), create(fmt.Sprint("b", i)), create("c")}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if v[0].ID != fmt.Sprint("a", i) || v[1].ID != fmt.Sprint("b", i) || v[1].Dot.Seq != v[0].Dot.Seq+1 {
				t.Errorf("submit %d has the verdicts %+v", i, v)
			}
		})
	}
	for store.committed.Load() < submits {
		v := p.View()
		if v.Seq() != 0 {
			t.Errorf("a view shows entry %d before any sync", v.Seq())
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		runtime.Gosched() // a guest has one thread
	}
	close(store.gate)
	group.Wait()
	if n := store.applied.Load(); n >= submits {
		t.Errorf("%d submits were folded in %d batches", submits, n)
	}
	counts, err := catalog.Read(store, app).Counts()
	if err != nil || counts.Processed != 2*submits+1 {
		t.Errorf("counts %+v, %v, want %d", counts, err, 2*submits+1)
	}
}

// TestConcurrent submits, reads, steps and deletes concurrently.
func TestConcurrent(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	const writers, each = 4, 40
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				body := &log.InputCreate{ID: fmt.Sprintf("%d-%d", w, i), Blob: blob.Sum([]byte{byte(i)}), ContentType: "image/png", Labels: []log.Label{{Concept: "x", Value: log.True}}}
				v, err := p.Submit(context.Background(), "key", []log.Body{body}, nil)
				if err != nil || v[0].Code != fold.OK {
					t.Errorf("submit: %+v, %v", v, err)
					return
				}
				view := p.View()
				if in, err := view.InputByID(body.ID); err != nil || in.Dot != v[0].Dot {
					t.Errorf("an acknowledged input reads as %+v, %v", in.Dot, err)
				}
				consistent(t, view)
				if err := view.Close(); err != nil {
					t.Error(err)
				}
				if i%4 == 0 {
					if _, err := p.Submit(context.Background(), "", []log.Body{&log.InputDelete{Input: v[0].Dot}}, nil); err != nil {
						t.Error(err)
					}
				}
				if _, err := p.Step(context.Background(), clock()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	steps(t, p)
	if n := len(ids(t, catalog.Read(store, app))); n != writers*each*3/4 {
		t.Errorf("%d inputs are left, want %d", n, writers*each*3/4)
	}
}

// consistent compares a view's counts with its inputs.
func consistent(t tb, v *partition.View) {
	t.Helper()
	counts, err := v.Counts()
	if n := len(ids(t, v.Reader)); err != nil || int(counts.Processed+counts.ToProcess+counts.Errors) != n {
		t.Errorf("counts %+v, %v, of %d inputs", counts, err, n)
	}
}

// TestOpenErrors checks that Open fails for a state beyond the end of its log and for a closed store.
func TestOpenErrors(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	submit(t, p, create("a"))
	var b kv.Batch
	lo := app.LogPrefix()
	b.DeleteRange(append(lo, 'e'), append(app.LogPrefix(), 'f'))
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	o := partition.Options{Store: store, App: app, Clock: clock}
	if _, err := partition.OpenOrigin(o); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a state beyond its log: %v, want ErrCorrupt", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.OpenOrigin(o); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("a closed store: %v, want ErrClosed", err)
	}
}
