package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Progress shows on standard error how many things are done, how fast, how long the rest will take, and what failed. The bar is for
// terminals. The last line is for everyone who sent more than one.
type Progress struct {
	ProgressOptions
	w      io.Writer
	bar    *progressbar.ProgressBar // nil: none
	screen bool                     // w is a terminal
	Done   int
	errors int
	start  time.Time
}

// ProgressOptions describe the counted things.
type ProgressOptions struct {
	Verb   string // such as "predicting"
	Noun   string // in the plural, such as "pictures"
	Total  int
	Quiet  bool // only failures are written
	Shared bool // the answers go to a terminal too: the bar must get out of their way
}

func NewProgress(w io.Writer, o ProgressOptions) *Progress {
	p := &Progress{ProgressOptions: o, w: w, screen: server.IsTerminal(w), start: system.Now()}
	if p.Total > 1 && !p.Quiet && p.screen {
		p.bar = newBar(w, p.Verb, p.Noun, p.Total)
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

// Clear makes room for an answer where the bar stands.
func (p *Progress) Clear() {
	if p.bar != nil && p.Shared {
		_ = p.bar.Clear() // a bar that cannot be cleared is only ugly
	}
}

// Failure reports that a picture failed, and why.
func (p *Progress) Failure(name string, err error) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.w, "%s: %s\n", server.Printable(name), server.Printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// Step counts one thing that is done, or has failed with an error.
func (p *Progress) Step(err error) {
	p.Done++
	if err != nil {
		p.errors++
	}
	if p.bar != nil && p.Total > 1 { // else it shows the frames of a video
		if err != nil { // only then: what it draws keeps the next from being drawn
			p.bar.Describe(fmt.Sprintf("%s, %d failed", p.Verb, p.errors))
		}
		_ = p.bar.Add(1)
	}
}

// Finish tells the sum.
func (p *Progress) Finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	if p.Quiet || p.Total < 2 {
		return
	}
	took := system.Now().Sub(p.start)
	fmt.Fprintf(p.w, "%d %s, %d failed, %.1f s, %.1f per second\n", p.Done, p.Noun, p.errors, took.Seconds(), float64(p.Done)/max(took.Seconds(), 1e-3))
}

// Frame reports the frames of a video that are done. A video that is the only file has a bar of its frames. frame may be called by
// the worker of that video at any time before the worker's answer.
func (p *Progress) Frame(name string, done, of int) {
	switch {
	case p.Total > 1:
		p.describe(fmt.Sprintf("%s: frame %d of %d of %s", p.Verb, done, of, server.Printable(name)))
	case p.screen && !p.Quiet:
		if p.bar == nil {
			p.bar = newBar(p.w, p.Verb, "frames", of)
		}
		_ = p.bar.Set(done) // it is only shown
	}
}

// describe shows the current activity.
func (p *Progress) describe(text string) {
	if p.bar != nil {
		p.bar.Describe(text)
	}
}
