package log_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
)

// TestClockOnlyRises checks that the times from Next rise although the wall clock jumps and other sites' times are accepted.
func TestClockOnlyRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wall := time.UnixMilli(1_700_000_000_000)
		c := log.NewClock(func() time.Time { return wall })
		last := log.HLC(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			wall = wall.Add(time.Duration(rapid.Int64Range(-20_000, 20_000).Draw(t, "jump")) * time.Millisecond)
			now := log.HLC(wall.UnixMilli() << 16)
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				at := c.Next()
				if at <= last || at < now {
					t.Fatalf("Next = %x after %x at %x", at, last, now)
				}
				last = at
			case 1:
				seen := log.HLC(rapid.Uint64Range(0, 1<<60).Draw(t, "seen"))
				c.Observe(seen)
				last = max(last, seen)
			case 2:
				theirs := now + log.HLC(rapid.Int64Range(-5000, 5000).Draw(t, "theirs")<<16)
				at := c.Accept(theirs)
				if theirs.Time().Sub(wall) <= 2*time.Second {
					if at != theirs {
						t.Fatalf("Accept(%x) = %x at %x", theirs, at, now)
					}
				} else if at == theirs || at <= last {
					t.Fatalf("Accept(%x) = %x at %x: not ours", theirs, at, now)
				}
				last = max(last, at)
			}
		}
	})
}

// TestClockOverflow takes more times within one millisecond than the counter has values.
func TestClockOverflow(t *testing.T) {
	wall := time.UnixMilli(1000)
	c := log.NewClock(func() time.Time { return wall })
	first := c.Next()
	var last log.HLC
	for range 1 << 16 {
		last = c.Next()
	}
	if last != first+1<<16 || !last.Time().Equal(wall.Add(time.Millisecond)) {
		t.Errorf("65,536 times after %x comes %x", first, last)
	}
	c = log.NewClock(func() time.Time { return time.UnixMilli(-5) })
	if at := c.Next(); at != 1 {
		t.Errorf("before 1970 the clock begins at %x, want 1", at)
	}
}
