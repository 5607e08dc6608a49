package cli

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress checks the progress bar on a terminal: completed part, speed, remaining time and failures.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen strings.Builder
		p := NewProgress(&screen, ProgressOptions{Verb: "importing", Noun: "inputs", Total: 40})
		p.bar = newBar(&screen, "importing", "inputs", 40)
		for i := range 20 {
			time.Sleep(500 * time.Millisecond)
			var err error
			if i == 3 {
				err = errors.New("no picture")
				p.Failure("a.jpg", err)
			}
			p.Step(err)
		}
		lines := strings.Split(screen.String(), "\r")
		last := lines[len(lines)-1]
		for _, want := range []string{"importing, 1 failed", "50%", "(20/40, 2 inputs/s)", "[9s:9s]"} { // elapsed, and remaining
			if !strings.Contains(last, want) {
				t.Errorf("the bar says %q, want %q", last, want)
			}
		}
		if !strings.Contains(screen.String(), "a.jpg: no picture\n") {
			t.Error("what failed is not told")
		}
		screen.Reset()
		p.bar = nil // as without a terminal
		p.Finish()
		if got, want := screen.String(), "20 inputs, 1 failed, 10.0 s, 2.0 per second\n"; got != want {
			t.Errorf("finish tells %q, want %q", got, want)
		}
	})
}

// TestProgressOfFilms checks the progress bar on a terminal: it counts frames for one film, and files for several.
func TestProgressOfFilms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen strings.Builder
		one := NewProgress(&screen, ProgressOptions{Verb: "predicting", Noun: "pictures", Total: 1})
		one.screen = true
		for i := range 3 {
			time.Sleep(500 * time.Millisecond)
			one.Frame("a.mp4", i+1, 3)
		}
		one.Step(nil)
		one.Finish()
		if !strings.Contains(screen.String(), "(2/3, 4 frames/s)") {
			t.Errorf("the bar of one film: %q", screen.String())
		}
		screen.Reset()
		several := NewProgress(&screen, ProgressOptions{Verb: "predicting", Noun: "pictures", Total: 2})
		several.bar = newBar(&screen, "predicting", "pictures", 2)
		several.Frame("a\x1b.mp4", 1, 3)
		if !strings.Contains(screen.String(), "frame 1 of 3 of a�.mp4") {
			t.Errorf("the bar of several files: %q", screen.String())
		}
		screen.Reset()
		quiet := NewProgress(&screen, ProgressOptions{Verb: "predicting", Noun: "pictures", Total: 1, Quiet: true})
		quiet.screen = true
		quiet.Frame("a.mp4", 1, 3)
		if screen.Len() > 0 {
			t.Errorf("quietly: %q", screen.String())
		}
	})
}
