package kvtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
)

// Channel is the order of the batches that several machines commit, as a cluster decides it. One machine at a time writes. Its methods may be
// called concurrently.
type Channel struct {
	mu     sync.Mutex
	order  []*kv.Batch // decided
	writer *Late       // nil: no machine writes
	rng    *rand.Rand
}

// NewChannel returns an empty channel. Its schedules are drawn from the seed.
func NewChannel(seed uint64) *Channel { return &Channel{rng: rand.New(rand.NewPCG(seed, 7))} }

// Late is the store of one machine of a [Channel]. While the machine writes, a Commit becomes visible at a random moment, at the latest when
// its wait returns, and each Apply overtakes the Commits that wait. While it follows, Commit returns kv.ErrFollows, and [Late.Next] makes the
// next batch of the channel visible.
//
// Late reports the use of a store that a cluster cannot serve: an Apply of a key of which a Commit waits.
type Late struct {
	kv.Store
	channel *Channel
	report  func(format string, args ...any)

	// Fields that the channel's mu guards.
	at      int        // batches of the channel that are visible
	queue   []*waiting // undecided Commits of this machine, oldest first
	waiting []*waiting // all Commits that are not visible yet, oldest first
}

// waiting is a Commit that is not visible yet.
type waiting struct {
	batch *kv.Batch
	place int // number of batches in the channel up to this one; 0: undecided
	void  bool
}

// Machine returns a machine that follows the channel. store is the machine's own, and has none of the channel's batches. report gets each
// misuse, usually t.Errorf.
func (c *Channel) Machine(store kv.Store, report func(format string, args ...any)) *Late {
	return &Late{Store: store, channel: c, report: report}
}

// NewLate returns the only machine of a channel, which writes.
func NewLate(store kv.Store, seed uint64, report func(format string, args ...any)) *Late {
	l := NewChannel(seed).Machine(store, report)
	l.Lead()
	return l
}

// Lead makes the machine the one that writes. No machine writes, and all decided batches are visible at this one.
func (l *Late) Lead() {
	c := l.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writer != nil || l.at < len(c.order) {
		l.report("a machine leads while another one writes, or with %d of %d batches", l.at, len(c.order))
	}
	c.writer = l
}

// Depose makes all machines follow. A random part of the Commits that waited for a decision at the writer is decided, and the rest never will be.
// The writer shows what is decided, so that every wait has its result.
func (c *Channel) Depose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.writer
	if old == nil {
		return
	}
	old.decide(c.rng.IntN(len(old.queue) + 1))
	for old.next() {
	}
	for _, w := range old.queue {
		w.void = true
	}
	old.queue, c.writer = nil, nil
}

// Next makes the next batch of the channel visible and returns it; nil: there is none.
func (l *Late) Next() *kv.Batch {
	l.channel.mu.Lock()
	defer l.channel.mu.Unlock()
	if !l.next() {
		return nil
	}
	return l.channel.order[l.at-1]
}

func (l *Late) next() bool {
	c := l.channel
	if l.at == len(c.order) {
		return false
	}
	if err := l.Store.Apply(c.order[l.at]); err != nil {
		l.report("apply a decided batch: %v", err)
		return false
	}
	l.at++
	for len(l.waiting) > 0 && (l.waiting[0].void || l.waiting[0].place > 0 && l.waiting[0].place <= l.at) {
		l.waiting = l.waiting[1:]
	}
	return true
}

// decide adds the first n undecided Commits to the channel. The caller holds the channel's mu.
func (l *Late) decide(n int) {
	for _, w := range l.queue[:n] {
		l.channel.order = append(l.channel.order, w.batch)
		w.place = len(l.channel.order)
	}
	l.queue = l.queue[n:]
}

// some lets time pass at the writer: some Commits are decided, and some of those become visible. The caller holds the channel's mu.
func (l *Late) some() {
	if rng := l.channel.rng; l.channel.writer == l && rng.IntN(4) == 0 {
		l.decide(rng.IntN(len(l.queue) + 1))
		for range rng.IntN(len(l.channel.order) - l.at + 1) {
			l.next()
		}
	}
}

// Apply implements [kv.Store].
func (l *Late) Apply(b *kv.Batch) error {
	l.channel.mu.Lock()
	defer l.channel.mu.Unlock()
	l.some()
	for _, w := range l.waiting {
		if key := shared(w.batch, b); key != nil && !w.void {
			l.report("key %q gets an Apply while a Commit of it waits", key)
		}
	}
	return l.Store.Apply(b)
}

// Commit implements [kv.Store].
func (l *Late) Commit(b *kv.Batch) (wait func() error, err error) {
	c := l.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writer != l {
		return nil, kv.ErrFollows
	}
	if err := l.Room(); err != nil {
		return nil, err
	}
	l.some()
	w := &waiting{batch: &kv.Batch{}}
	w.batch.Append(b)
	l.queue, l.waiting = append(l.queue, w), append(l.waiting, w)
	return func() error { return l.show(w) }, nil
}

// show returns once a Commit is visible, or void.
func (l *Late) show(w *waiting) error {
	l.channel.mu.Lock()
	defer l.channel.mu.Unlock()
	for i := range l.queue {
		if l.queue[i] == w {
			l.decide(i + 1)
			break
		}
	}
	if w.void {
		return kv.ErrFollows
	}
	for l.at < w.place && l.next() {
	}
	if l.at < w.place {
		return kv.ErrFailed
	}
	l.some()
	return nil
}

// Close implements [kv.Store].
func (l *Late) Close() error {
	l.channel.mu.Lock()
	l.decide(len(l.queue))
	for l.next() {
	}
	l.channel.mu.Unlock()
	return l.Store.Close()
}

// writes reports whether an operation changes a key.
func writes(op kv.Op, key []byte) bool {
	if op.Kind == kv.KindDeleteRange {
		return bytes.Compare(op.Key, key) <= 0 && bytes.Compare(key, op.Value) < 0
	}
	return bytes.Equal(op.Key, key)
}

// shared returns a key that both batches write, or nil.
func shared(a, b *kv.Batch) (key []byte) {
	a.Each(func(x kv.Op) bool {
		b.Each(func(y kv.Op) bool {
			switch {
			case writes(x, y.Key):
				key = bytes.Clone(y.Key)
			case writes(y, x.Key):
				key = bytes.Clone(x.Key)
			}
			return key == nil
		})
		return key == nil
	})
	return key
}

// lateSeed is the variable that makes [OrLate] return late stores. RunLate sets it.
const lateSeed = "SIGHTLINE_LATE"

// OrLate returns the store, or a [Late] over it if the test runs in RunLate.
func OrLate(t interface {
	Errorf(format string, args ...any)
}, store kv.Store,
) kv.Store {
	seed, err := strconv.ParseUint(os.Getenv(lateSeed), 10, 64)
	if err != nil {
		return store
	}
	return NewLate(store, seed, t.Errorf)
}

// RunLate runs the tests of the package whose names match run, and not skip, in a separate process for each seed. Their stores are late: they
// call OrLate.
func RunLate(t *testing.T, seeds func(yield func(uint64) bool), run, skip string) {
	t.Helper()
	if os.Getenv(lateSeed) != "" {
		t.Skip("this is the other process")
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SOAK") || strings.HasPrefix(s, "NIGHTLY") })
	for seed := range seeds {
		cmd := exec.Command(os.Args[0], "-test.short", "-test.run="+run, "-test.skip="+skip)
		cmd.Env = append(env, lateSeed+"="+strconv.FormatUint(seed, 10))
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("an emulator runs the tests, and this machine cannot start their program")
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, out)
		}
	}
}
