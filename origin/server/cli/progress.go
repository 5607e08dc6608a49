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

// Progress shows on standard error the number of finished items, the rate, the remaining time and the failures. Only terminals show the
// bar. Finish writes a summary line if there is more than one item.
type Progress struct {
	ProgressOptions
	w      io.Writer
	bar    *progressbar.ProgressBar // nil: no bar
	screen bool                     // w is a terminal
	Done   int
	errors int
	start  time.Time
}

// ProgressOptions describe the counted items.
type ProgressOptions struct {
	Verb    string // such as "predicting"
	Noun    string // in the plural, such as "pictures"
	Total   int
	Quiet   bool   // report only failures
	LeftOut string // end of the summary line, see LeftOutText
	Shared  bool   // the answers go to the same terminal, so Clear removes the bar before each
}

// NewProgress returns the progress of the items of o, on w.
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

// Clear removes the bar, so that the caller can write an answer.
func (p *Progress) Clear() {
	if p.bar != nil && p.Shared {
		_ = p.bar.Clear() // a remaining bar is only ugly
	}
}

// Failure reports that an item failed, and why.
func (p *Progress) Failure(name string, err error) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.w, "%s: %s\n", server.Printable(name), server.Printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// Step counts one finished item. err is nil, or the reason why the item failed.
func (p *Progress) Step(err error) {
	p.Done++
	if err != nil {
		p.errors++
	}
	if p.bar != nil && p.Total > 1 { // otherwise the bar shows the frames of a video
		if err != nil { // only after a failure: a description suppresses the next drawing
			p.bar.Describe(fmt.Sprintf("%s, %d failed", p.Verb, p.errors))
		}
		_ = p.bar.Add(1)
	}
}

// Finish writes the summary line.
func (p *Progress) Finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	if p.Quiet || p.Total < 2 {
		return
	}
	took := system.Now().Sub(p.start)
	fmt.Fprintf(p.w, "%d %s, %d failed, %.1f s, %.1f per second%s\n", p.Done, p.Noun, p.errors, took.Seconds(), float64(p.Done)/max(took.Seconds(), 1e-3), p.LeftOut)
}

// Frame reports progress in the frames of a video. If the video is the only file, the bar shows its frames. The worker of a video may call
// Frame at any time before its answer.
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
