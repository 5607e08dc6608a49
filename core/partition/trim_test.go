package partition_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// ticking is a clock that a test moves.
type ticking struct{ at time.Time }

func (c *ticking) now() time.Time { return c.at }

func openRetaining(t testing.TB, store kv.Store, opening log.Epoch, c *ticking, retention partition.Retention) *partition.Origin {
	t.Helper()
	p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: c.now, Epoch: opening, Retention: retention, Rules: fold.FirstVersion})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// step runs Step until no work is left.
func step(t testing.TB, p *partition.Origin, at time.Time) {
	t.Helper()
	for {
		more, err := p.Step(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// flip returns n changes of an input's labels, one label each.
func flip(input log.Dot, n int) []log.Body {
	bodies := make([]log.Body, n)
	for i := range bodies {
		bodies[i] = &log.InputLabels{Input: input, Labels: []log.Label{{Concept: fmt.Sprint("c", i%7), Value: log.True}}}
	}
	return bodies
}

// keys returns the number of keys in a store.
func keys(t testing.TB, store kv.Store) (n int) {
	t.Helper()
	err := store.Scan(nil, nil, func(_, _ []byte) bool {
		n++
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTrimmedLog changes labels until the log has been filled many times. The size of the store stays bounded, the state is that of a log
// that was never trimmed, operations that are sent again are recognized, and opening the store again needs no trimmed entry.
func TestTrimmedLog(t *testing.T) {
	const maxEntries, rounds, changes = 1000, 40, 500
	c := &ticking{at: clock()}
	store, untrimmed := kvtest.OrLate(t, memkv.New()), memkv.New()
	p := openRetaining(t, store, log.Epoch{1}, c, partition.Retention{Entries: maxEntries})
	q := openRetaining(t, untrimmed, log.Epoch{1}, c, partition.Retention{}) // it draws the same writer
	ours := submit(t, p, create("a"))[0].Dot
	submit(t, q, create("a"))
	sentOnce := writerOps(edge, 1, flip(ours, 3)...)
	for _, x := range []*partition.Origin{p, q} {
		accept(t, x, sentOnce)
	}
	maxKeys := 0
	for range rounds {
		c.at = c.at.Add(time.Minute)
		for _, x := range []*partition.Origin{p, q} {
			submit(t, x, flip(ours, changes)...)
			step(t, x, c.at)
		}
		maxKeys = max(maxKeys, keys(t, store))
	}
	l := p.Log()
	if n := l.Head() + 1 - l.Floor(); n < maxEntries || n > maxEntries+maxEntries/8+changes || maxKeys > maxEntries+maxEntries/8+changes+100 {
		t.Errorf("%d entries are kept and the store had %d keys, want about %d", n, maxKeys, maxEntries)
	}
	if q.Log().Floor() != 1 || q.Log().Head() != l.Head() {
		t.Errorf("the log that keeps 200,000 goes from %d to %d", q.Log().Floor(), q.Log().Head())
	}
	if digest(t, store) != digest(t, untrimmed) {
		t.Error("the state of the trimmed log is another")
	}
	if err := l.Read(l.Floor()-1, func(log.Entry) bool { return true }); !errors.Is(err, log.ErrTrimmed) {
		t.Errorf("reading what was trimmed: %v", err)
	}
	head, floor := l.Head(), l.Floor()
	accept(t, p, sentOnce) // its entries were trimmed, but its sequence number was not
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openRetaining(t, store, opening(), c, partition.Retention{Entries: maxEntries})
	accept(t, p, sentOnce)
	if l = p.Log(); l.Head() != head || l.Floor() != floor {
		t.Errorf("opened anew the log goes from %d to %d, before from %d to %d", l.Floor(), l.Head(), floor, head)
	}
	submit(t, p, flip(ours, 1)...)
	if got := digest(t, store); got == digest(t, untrimmed) {
		t.Error("the state does not move on")
	}
}

// TestTrimmedByAge trims entries older than the maximum age since they were appended, also after a restart. The last 4,096 entries always
// stay.
func TestTrimmedByAge(t *testing.T) {
	const day, least = 24 * time.Hour, 4096
	retention := partition.Retention{Age: 16 * day, MaxOffline: 36_500 * day} // no horizon
	c := &ticking{at: clock()}
	store := kvtest.OrLate(t, memkv.New())
	p := openRetaining(t, store, opening(), c, retention)
	input := submit(t, p, create("a"))[0].Dot
	write := func(n int) {
		for ; n > 0; n -= 500 {
			submit(t, p, flip(input, min(n, 500))...)
		}
		step(t, p, c.at)
	}
	write(least + 999)
	old := p.Log().Head()
	c.at = c.at.Add(-time.Hour) // a clock that is set back is no reason to forget how old things are
	step(t, p, c.at)
	for range 15 {
		c.at = c.at.Add(day)
		write(100)
	}
	if f := p.Log().Floor(); f != 1 {
		t.Fatalf("trimmed to %d after 15 days, want nothing", f)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openRetaining(t, store, opening(), c, retention)
	c.at = c.at.Add(day + time.Hour)
	step(t, p, c.at)
	head := p.Log().Head()
	if f := p.Log().Floor(); f != head+1-least || f > old+1 {
		t.Errorf("trimmed to %d of %d; %d are older than 16 days", f, head, old)
	}
	write(least)
	if f := p.Log().Floor(); f != old+1 {
		t.Errorf("trimmed to %d, want to %d: what is older than 16 days", f, old+1)
	}
	c.at = c.at.Add(400 * day)
	step(t, p, c.at)
	if head, f := p.Log().Head(), p.Log().Floor(); f != head+1-least {
		t.Errorf("after a year trimmed to %d of %d, want all but %d gone", f, head, least)
	}
}

// horizons returns the times of the horizon entries in a log.
func horizons(t testing.TB, p *partition.Origin) (at []time.Time) {
	t.Helper()
	for _, e := range entries(t, p) {
		if b, ok := e.Op.Body.(*log.Horizon); ok {
			at = append(at, b.At.Time())
		}
	}
	return at
}

// TestHorizonFollowsClock checks that the horizon follows the clock, and that older writes are refused.
func TestHorizonFollowsClock(t *testing.T) {
	const day = 24 * time.Hour
	retention := partition.Retention{MaxOffline: 64 * day}
	c := &ticking{at: clock()}
	p, err := partition.OpenOrigin(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: c.now, Epoch: opening(), Retention: retention})
	if err != nil {
		t.Fatal(err)
	}
	input := submit(t, p, create("a"))[0].Dot
	pass := func(days int) {
		for range days {
			c.at = c.at.Add(day)
			submit(t, p, flip(input, 1)...)
			step(t, p, c.at)
		}
	}
	pass(64)
	if got := horizons(t, p); len(got) > 0 {
		t.Errorf("horizons %v in a log of 64 days", got)
	}
	writes := flip(input, 3)
	old := writerOps(edge, 1, writes[0], writes[1], create("old"), writes[2], create("older"), &log.InputDelete{Input: log.Dot{Writer: edge, Seq: 3}})
	for i := range old {
		old[i].At = log.HLC(c.at.Add(-time.Hour).UnixMilli())<<16 + log.HLC(i)
	}
	accept(t, p, old[:1])
	pass(63)
	if got := horizons(t, p); len(got) < 50 || len(got) > 64 || !got[len(got)-1].Before(old[0].At.Time()) {
		t.Errorf("%d horizons in 63 days, the last at %v", len(got), got[len(got)-1])
	}
	for i, v := range accept(t, p, old[1:3]) {
		if v.Code != fold.OK {
			t.Errorf("write %d of 63 days ago: %v, want ok until 64 days", i, v)
		}
	}
	pass(3)
	for i, v := range offer(t, p, partition.Offer{Ops: old[3:], Gap: true}) { // the horizon has dropped the names of the others
		if want := []fold.Code{fold.Stale, fold.Stale, fold.OK}[i]; v.Code != want {
			t.Errorf("write %d of 66 days ago: %v, want %v", i, v, want)
		}
	}
	idle := func(want int) {
		t.Helper()
		n := len(horizons(t, p))
		for range 30 {
			c.at = c.at.Add(day)
			step(t, p, c.at)
		}
		if got := len(horizons(t, p)) - n; got != want {
			t.Errorf("%d horizons in a month without a write, want %d", got, want)
		}
	}
	idle(0) // the last entry is a horizon, so no other follows
	submit(t, p, flip(input, 1)...)
	idle(1)
	v := p.View()
	defer v.Close()
	h, err := v.Header()
	if want := c.at.Add(-retention.MaxOffline); err != nil || h.Horizon.Time().After(want) {
		t.Errorf("horizon %v, %v, want not after %v", h.Horizon.Time(), err, want)
	}
}

// TestHorizonIgnoresWrongDate checks that the horizon follows the log's own clock: a wrong date of the host does not move it.
func TestHorizonIgnoresWrongDate(t *testing.T) {
	c := &ticking{at: clock()}
	p := openRetaining(t, kvtest.OrLate(t, memkv.New()), opening(), c, partition.Retention{})
	accept(t, p, writerOps(edge, 1, flip(submit(t, p, create("a"))[0].Dot, 1)...))
	c.at = c.at.AddDate(20, 0, 0)
	step(t, p, c.at)
	if got := horizons(t, p); len(got) > 0 {
		t.Errorf("horizons %v after a jump of the clock alone", got)
	}
}
