package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// lineInterval is the time between two lines about a step on something else than a terminal.
const lineInterval = 2 * time.Second

// PrintProgress is [NewStepProgress] with lines on w.
func PrintProgress(w io.Writer, step string) func(percent int) {
	return NewStepProgress(w, step, func(percent int) { fmt.Fprintf(w, "%s: about %d %%\n", step, percent) })
}

// NewStepProgress returns a function that shows the progress of one step of several seconds, in percent. A terminal w shows a bar, which
// 100 removes. For another w it calls line at the first report, and about every two seconds before 100. The function is not safe for
// concurrent use.
func NewStepProgress(w io.Writer, step string, line func(percent int)) func(percent int) {
	if server.IsTerminal(w) {
		var bar *progressbar.ProgressBar
		return func(percent int) {
			if bar == nil && percent < 100 {
				bar = progressbar.NewOptions(100, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(step),
					progressbar.OptionSetPredictTime(false), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
			}
			if bar != nil {
				_ = bar.Set(percent) // it is only shown
			}
		}
	}
	var next time.Time
	return func(percent int) {
		if now := system.Now(); percent < 100 && !now.Before(next) {
			next = now.Add(lineInterval)
			line(percent)
		}
	}
}
