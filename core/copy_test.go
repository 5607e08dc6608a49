package core_test

import (
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
)

// TestEmptyReplicaIssuesNoOperations: a replica that has no entries of its origin's log issues no operation by itself, however often the
// engine steps.
func TestEmptyReplicaIssuesNoOperations(t *testing.T) {
	l := newFixture(t)
	c := copyOf(t, l.open(t))
	c.take(t)
	edge := newFixture(t)
	edge.o.Store, edge.o.App = c.store, c.app
	e, err := core.Open(edge.o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Replica(c.app)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for range 50 {
		if _, err := e.Step(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if tasks, err := e.Take(now, 10); err != nil || len(tasks) > 0 {
			t.Fatalf("%d tasks, %v", len(tasks), err)
		}
		now = now.Add(time.Minute)
	}
	if issued, _ := p.Outbox(); issued != 0 {
		t.Errorf("%d operations were issued", issued)
	}
}
