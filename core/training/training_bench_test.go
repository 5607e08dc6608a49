package training

import (
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
)

// BenchmarkTraining measures a training from its request to its result in the store: two concepts with a number of pictures each, as many
// others, and a bundle's background.
func BenchmarkTraining(b *testing.B) {
	for _, pictures := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("concepts=2/pictures=%d", pictures), func(b *testing.B) {
			w := newWorld(b)
			w.net.background = newNetwork(b, 1, 2048).background
			for range pictures {
				w.add(0, "cat")
				w.add(1, "dog")
				w.add(2)
			}
			w.make([]string{"cat", "dog"})
			n, longest := 0, 0
			for b.Loop() {
				n++
				w.ask(fmt.Sprint(n))
				r := w.take()[0]
				steps := 1
				for !r.Step() {
					steps++
				}
				longest = max(longest, steps)
				w.finish(r)
			}
			b.ReportMetric(float64(longest), "steps")
			w.do(&log.ModelDeleteAll{})
		})
	}
}
