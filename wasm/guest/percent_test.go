package main

import "testing"

// TestPercent holds that a collection is headroom away or as far as the least percentage has it, whichever is
// more, and that a small heap does not wait for longer than a large one.
func TestPercent(t *testing.T) {
	for _, least := range []uint64{least, leastOwn} {
		for live := uint64(0); live < 8*headroom; live = live*5/4 + 1 {
			p := uint64(percent(live, least))
			goal := max(live+live*p/100, smallest*p/100) // as the collector computes it
			want := live + max(headroom, live*least/100)
			if goal > want+smallest/100 || goal < want-want/50 {
				t.Errorf("%d bytes alive, at least %d percent: %d percent, a collection at %d, want %d", live, least, p, goal, want)
			}
		}
	}
}
