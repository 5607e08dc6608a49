package jobs

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core"
)

// Reembedder is the part of an engine that [ReembedLogger] needs.
type Reembedder interface {
	// ReembedProgress lists the applications that an older network still serves.
	ReembedProgress() ([]core.ReembedProgress, error)
}

// ReembedLogger logs the progress of applications that change to the newest network: when it first sees an application, from time to time,
// and when the application has changed.
type ReembedLogger struct {
	Engine Reembedder
	Now    func() time.Time
	Pause  func(context.Context, time.Duration) // waits, until its context ends
	Log    *slog.Logger

	seen map[string]*renewalProgress
}

// renewalProgress holds the last log line about an application, and its progress when it was first seen.
type renewalProgress struct {
	begunAt, reportedAt time.Time
	from                uint64 // value of Done when the application was first seen
	last                core.ReembedProgress
}

const (
	look        = time.Second      // time between two reads of the engine's progress
	reportEvery = 10 * time.Second // minimum time between two lines about an application
)

// Run logs progress until ctx ends.
func (r *ReembedLogger) Run(ctx context.Context) {
	for ctx.Err() == nil {
		r.look()
		r.Pause(ctx, look)
	}
}

// look logs new progress.
func (r *ReembedLogger) look() {
	now := r.Now()
	under, err := r.Engine.ReembedProgress()
	if err != nil {
		r.Log.Error("cannot read the progress of re-analysis", "error", err)
		return
	}
	if r.seen == nil {
		r.seen = map[string]*renewalProgress{}
	}
	for _, p := range under {
		s := r.seen[p.App]
		if s == nil {
			s = &renewalProgress{begunAt: now, from: p.Done}
			r.seen[p.App] = s
		} else if now.Sub(s.reportedAt) < reportEvery {
			s.last = p
			continue
		}
		s.reportedAt, s.last = now, p
		rate, left := s.speed(now)
		r.Log.Info("re-analysing inputs with the new network; the old one still serves",
			"app", p.App, "done", p.Done, "total", p.All, "errors", p.Failed, "per_second", rate, "left", left.String())
	}
	for app, s := range r.seen {
		if slices.ContainsFunc(under, func(p core.ReembedProgress) bool { return p.App == app }) {
			continue
		}
		delete(r.seen, app)
		r.Log.Info("re-analysis complete; the new network serves", "app", app, "total", s.last.All, "errors", s.last.Failed, "took", now.Sub(s.begunAt).Round(time.Second).String())
	}
}

// speed returns the number of inputs analysed per second since the application was first seen, rounded to a tenth, and the remaining time.
// Both are 0 while they are unknown.
func (s *renewalProgress) speed(now time.Time) (perSecond float64, left time.Duration) {
	took := now.Sub(s.begunAt).Seconds()
	if took <= 0 || s.last.Done <= s.from {
		return 0, 0
	}
	perSecond = float64(s.last.Done-s.from) / took
	if rest := s.last.All - min(s.last.All, s.last.Done+s.last.Failed); rest > 0 {
		left = time.Duration(float64(rest) / perSecond * float64(time.Second)).Round(time.Second)
	}
	return float64(int(perSecond*10+0.5)) / 10, left
}
