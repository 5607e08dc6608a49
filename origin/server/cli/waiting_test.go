package cli

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestWaitingReportsSteps reports a step of ten seconds four times a second. Without a terminal there is a line at once, and then one every
// two seconds.
func TestWaitingReportsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []int
		report := NewStepProgress(io.Discard, "compiling", func(percent int) { lines = append(lines, percent) })
		for i := range 40 {
			report(i * 100 / 40)
			system.Pause(t.Context(), time.Second/4)
		}
		report(100)
		if want := []int{0, 20, 40, 60, 80}; !slices.Equal(lines, want) {
			t.Errorf("lines at %v percent, want %v", lines, want)
		}
	})
}
