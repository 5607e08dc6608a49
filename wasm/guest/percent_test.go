package main

import "testing"

// TestPercent checks that an instance allocates headroom bytes, or least percent of the live bytes if that is
// more, between two collections. This also holds for heaps near the minimum at which Go collects.
func TestPercent(t *testing.T) {
	for _, least := range []uint64{least, leastOwn} {
		for live := uint64(0); live < 8*headroom; live = live*5/4 + 1 {
			p := uint64(percent(live, least))
			goal := max(live+live*p/100, smallest*p/100) // heap size at which Go collects
			want := live + max(headroom, live*least/100)
			if goal > want+smallest/100 || goal < want-want/50 {
				t.Errorf("%d bytes alive, at least %d percent: %d percent, a collection at %d, want %d", live, least, p, goal, want)
			}
		}
	}
}
