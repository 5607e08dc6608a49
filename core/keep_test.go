package core_test

import (
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
)

// TestStepTrimsLogs: an engine's steps trim the logs of applications as the options require. They do not trim the register's log.
func TestStepTrimsLogs(t *testing.T) {
	const maxEntries = 20
	l := newFixture(t)
	l.o.Retention = partition.Retention{Entries: maxEntries, MaxOffline: 100 * 365 * 24 * time.Hour} // no horizon
	e := l.open(t)
	apps, err := e.Register.Apps()
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Partition(apps[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []log.Body
	for range 10 * maxEntries {
		bodies = append(bodies, &log.InputDelete{Input: log.Dot{Writer: 9, Seq: 9}})
	}
	if _, err := p.Submit(t.Context(), "key", bodies, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Step(t.Context(), l.clock()); err != nil {
		t.Fatal(err)
	}
	if n := p.Log().Head() + 1 - p.Log().Floor(); n != maxEntries {
		t.Errorf("%d entries are kept, want %d", n, maxEntries)
	}
	for range 2 * maxEntries {
		if _, _, err := e.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: apps[0].ID, Scopes: []string{"All"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Step(t.Context(), l.clock()); err != nil {
		t.Fatal(err)
	}
	if keys, err := e.Register.Keys(apps[0].ID); err != nil || len(keys) != 2*maxEntries+1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}
