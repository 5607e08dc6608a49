package show

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimestamp compares our formatting of times with the standard library's.
func TestTimestamp(t *testing.T) {
	const layout = "2006-01-02T15:04:05.000000Z"
	rng := rand.New(rand.NewPCG(6, 1))
	times := []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 1), time.Unix(253402300799, 999999999), time.Unix(253402300800, 0), time.Unix(-62167219201, 0)}
	for range 10_000 {
		times = append(times, time.Unix(rng.Int64N(1<<38)-1<<37, rng.Int64N(1e9)).In(time.FixedZone("", rng.IntN(9e4)-45e3)))
	}
	for _, at := range times {
		if got, want := Timestamp(at), at.UTC().Format(layout); got != want {
			t.Fatalf("timestamp(%v) = %q, want %q", at, got, want)
		}
	}
}
