package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// progress shows on standard error how many things are done, how fast, how long the rest will take, and what failed. The bar is for
// terminals. The last line is for everyone who sent more than one.
type progress struct {
	progressOptions
	w      io.Writer
	bar    *progressbar.ProgressBar // nil: none
	screen bool                     // w is a terminal
	done   int
	errors int
	start  time.Time
}

// progressOptions say what is counted.
type progressOptions struct {
	verb   string // such as "predicting"
	noun   string // in the plural, such as "pictures"
	total  int
	quiet  bool // only failures are written
	shared bool // the answers go to a terminal too: the bar must get out of their way
}

func newProgress(w io.Writer, o progressOptions) *progress {
	p := &progress{progressOptions: o, w: w, screen: isTerminal(w), start: system.Now()}
	if p.total > 1 && !p.quiet && p.screen {
		p.bar = newBar(w, p.verb, p.noun, p.total)
	}
	return p
}

func newBar(w io.Writer, verb, noun string, total int) *progressbar.ProgressBar {
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(verb),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(noun),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

// around lets f write an answer where the bar stands.
func (p *progress) around(f func() error) error {
	if p.bar != nil && p.shared {
		_ = p.bar.Clear() // a bar that cannot be cleared is only ugly
	}
	return f()
}

// failure tells that a picture failed, and why.
func (p *progress) failure(name string, err error) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.w, "%s: %s\n", clean(name), clean(strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// step counts one thing that is done, or has failed with an error.
func (p *progress) step(err error) {
	p.done++
	if err != nil {
		p.errors++
	}
	if p.bar != nil && p.total > 1 { // else it shows the frames of a video
		if err != nil { // only then: what it draws keeps the next from being drawn
			p.bar.Describe(fmt.Sprintf("%s, %d failed", p.verb, p.errors))
		}
		_ = p.bar.Add(1)
	}
}

// finish tells the sum.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	if p.quiet || p.total < 2 {
		return
	}
	took := system.Now().Sub(p.start)
	fmt.Fprintf(p.w, "%d %s, %d failed, %.1f s, %.1f per second\n", p.done, p.noun, p.errors, took.Seconds(), float64(p.done)/max(took.Seconds(), 1e-3))
}

// frame reports the frames of a video that are done. A video that is the only file has a bar of its frames. frame may be called by
// the worker of that video at any time before the worker's answer.
func (p *progress) frame(name string, done, of int) {
	switch {
	case p.total > 1:
		p.describe(fmt.Sprintf("%s: frame %d of %d of %s", p.verb, done, of, clean(name)))
	case p.screen && !p.quiet:
		if p.bar == nil {
			p.bar = newBar(p.w, p.verb, "frames", of)
		}
		_ = p.bar.Set(done) // it is only shown
	}
}

// describe says what is going on.
func (p *progress) describe(text string) {
	if p.bar != nil {
		p.bar.Describe(text)
	}
}
