package host

import (
	"testing"
	"time"
)

// TestRunning: oldest returns the maximum time since a running call began or last wrote.
func TestRunning(t *testing.T) {
	var r running
	begun := time.Unix(1_700_000_000, 0)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	oldest := func(now, want int) {
		t.Helper()
		if got := r.oldest(at(now)); got != time.Duration(want)*time.Second {
			t.Errorf("oldest after %d s = %v, want %d s", now, got, want)
		}
	}
	joins, hangs := &Instance{}, &Instance{}
	r.wrote(joins, at(0)) // outside a call
	oldest(5, 0)
	r.enter(joins, at(0))
	oldest(20, 20)
	r.wrote(joins, at(20))
	oldest(25, 5)
	r.enter(hangs, at(22))
	r.wrote(joins, at(40))
	oldest(45, 23)
	r.leave(hangs)
	oldest(45, 5)
	r.leave(joins)
	oldest(99, 0)
}
