package command

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress looks at a bar on a terminal as it goes: how much is done, how fast, how long the rest takes, and what failed.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen strings.Builder
		p := newProgress(&screen, "importing", "inputs", 40, false, false)
		p.bar = newBar(&screen, "importing", "inputs", 40)
		for i := range 20 {
			time.Sleep(500 * time.Millisecond)
			if i == 3 {
				p.failure("a.jpg", errors.New("no picture"))
			}
			p.step(i == 3)
		}
		lines := strings.Split(screen.String(), "\r")
		last := lines[len(lines)-1]
		for _, want := range []string{"importing, 1 failed", "50%", "(20/40, 2 inputs/s)", "[9s:9s]"} { // since the first one, and yet to go
			if !strings.Contains(last, want) {
				t.Errorf("the bar says %q, want %q", last, want)
			}
		}
		if !strings.Contains(screen.String(), "a.jpg: no picture\n") {
			t.Error("what failed is not told")
		}
		screen.Reset()
		p.bar = nil // as where there is no terminal
		p.finish()
		if got, want := screen.String(), "20 inputs, 1 failed, 10.0 s, 2.0 per second\n"; got != want {
			t.Errorf("finish tells %q, want %q", got, want)
		}
	})
}
