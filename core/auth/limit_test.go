package auth

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestLimiter compares the limiter with token buckets.
func TestLimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: float64(rapid.IntRange(1, 20).Draw(t, "rate")), Burst: rapid.IntRange(1, 5).Draw(t, "burst")}
		l := NewLimiter(rate, 100)
		step := time.Duration(float64(time.Second) / rate.PerSecond)
		type bucket struct {
			missing time.Duration // until the bucket is full
			at      time.Time
		}
		model := map[Hash]*bucket{}
		now := noon
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			name := Hash{byte(rapid.IntRange(0, 2).Draw(t, "name"))}
			b := model[name]
			if b == nil {
				b = &bucket{at: now}
				model[name] = b
			}
			b.missing, b.at = max(0, b.missing-now.Sub(b.at)), now
			full := time.Duration(rate.Burst) * step
			err := l.Take(name, now)
			if want := b.missing+step > full; (err != nil) != want {
				t.Fatalf("Take at %v with %v of %v missing: %v", now.Sub(noon), b.missing, full, err)
			}
			if err == nil {
				b.missing += step
				continue
			}
			var limit *RateError
			if !errors.As(err, &limit) || !errors.Is(err, ErrRate) || limit.Wait != b.missing+step-full {
				t.Fatalf("refused with %v, want a wait of %v", err, b.missing+step-full)
			}
		}
	})
}

// TestLimiterAfterTheWait: a caller that waits for the returned time is admitted.
func TestLimiterAfterTheWait(t *testing.T) {
	l := NewLimiter(Rate{PerSecond: 3, Burst: 2}, 1)
	now := noon
	for range 100 {
		err := l.Take(Hash{}, now)
		if limit := (*RateError)(nil); errors.As(err, &limit) {
			if err := l.Take(Hash{}, now.Add(limit.Wait-1)); err == nil {
				t.Fatal("let through before the wait was over")
			}
			now = now.Add(limit.Wait)
			if err := l.Take(Hash{}, now); err != nil {
				t.Fatalf("after the wait: %v", err)
			}
		}
	}
}

// TestLimiterBounded: the limiter's memory is bounded for any number of callers. It remembers the most recent ones.
func TestLimiterBounded(t *testing.T) {
	const maxCallers = 50
	l := NewLimiter(Rate{PerSecond: 1, Burst: 1}, maxCallers)
	r := rand.New(rand.NewPCG(1, 1))
	busy := Hash{1}
	if err := l.Take(busy, noon); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		var name Hash
		for i := range name {
			name[i] = byte(r.Uint32())
		}
		_ = l.Take(name, noon)
		if len(l.byName) > maxCallers || l.order.Len() != len(l.byName) {
			t.Fatalf("%d remembered, %d in order", len(l.byName), l.order.Len())
		}
	}
	last := Hash{2}
	if l.Take(last, noon) != nil || l.Take(last, noon) == nil {
		t.Error("who asked last is forgotten")
	}
}

// TestLimiterClock: after the clock is set back, a caller waits no longer than a bucket takes to fill.
func TestLimiterClock(t *testing.T) {
	l := NewLimiter(Rate{PerSecond: 10, Burst: 5}, 10)
	_ = l.Take(Hash{}, noon)
	back := noon.Add(-24 * time.Hour)
	_ = l.Take(Hash{}, back)
	if err := l.Take(Hash{}, back.Add(time.Second)); err != nil {
		t.Errorf("a second after the clock was set back: %v", err)
	}
}

// TestLimiterOverdraft: a caller that exceeds the burst waits until the rate has made up for it, however often it calls meanwhile.
func TestLimiterOverdraft(t *testing.T) {
	l := NewLimiter(Rate{PerSecond: 10, Burst: 5}, 10)
	if err := l.TakeN(Hash{}, 100, noon); err != nil {
		t.Fatal(err)
	}
	for at := time.Duration(0); at < 9600*time.Millisecond; at += 100 * time.Millisecond {
		if err := l.Take(Hash{}, noon.Add(at)); err == nil {
			t.Fatalf("let through after %v", at)
		}
	}
	if err := l.Take(Hash{}, noon.Add(9600*time.Millisecond)); err != nil {
		t.Error(err)
	}
}

// TestLimiterOvertaken: calls that began earlier do not fill a bucket faster.
func TestLimiterOvertaken(t *testing.T) {
	l := NewLimiter(Rate{PerSecond: 10, Burst: 5}, 10)
	if err := l.TakeN(Hash{}, 5, noon); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		for _, at := range []time.Time{noon.Add(-time.Second), noon} {
			if err := l.Take(Hash{}, at); err == nil {
				t.Fatal("let through although no time has passed")
			}
		}
	}
}

func TestNoLimit(t *testing.T) {
	for _, l := range []*Limiter{nil, NewLimiter(Rate{}, 10), NewLimiter(Rate{PerSecond: -1, Burst: 5}, 10)} {
		for range 1000 {
			if err := l.Take(Hash{}, noon); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l := NewLimiter(Rate{PerSecond: 1e-12, Burst: 1}, 1); l.Take(Hash{}, noon) != nil || l.Take(Hash{}, noon) == nil {
		t.Error("one in ages is not kept to")
	}
}

// TestRateErrorNamesTheRate checks that the error text contains the rate, because clients print it.
func TestRateErrorNamesTheRate(t *testing.T) {
	l := NewLimiter(Rate{PerSecond: 10, Burst: 1}, 1)
	_ = l.Take(Hash{}, noon)
	err := l.Take(Hash{}, noon)
	if err == nil || !strings.Contains(err.Error(), "10 requests per second") || !strings.Contains(err.Error(), "in 1 s") {
		t.Errorf("refused with %v", err)
	}
	if got := (&RateError{Wait: 1500 * time.Millisecond}).Error(); got != "too many requests; try again in 2 s" {
		t.Errorf("a host's: %q", got)
	}
}
