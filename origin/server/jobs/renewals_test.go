package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core"
)

// crossing is an engine whose applications move to a new network.
type crossing struct {
	apps []core.ReembedProgress
	err  error
}

func (p *crossing) ReembedProgress() ([]core.ReembedProgress, error) { return p.apps, p.err }

// TestReembeddingIsLogged checks the log while two applications move to the newest network.
func TestReembeddingIsLogged(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	now := time.Unix(1_700_000_000, 0)
	engine := &crossing{}
	r := &ReembedLogger{Engine: engine, Now: func() time.Time { return now }, Log: log}
	const serves = `msg="re-analysing inputs with the new network; the old one still serves" app=`
	steps := []struct {
		after time.Duration
		apps  []core.ReembedProgress
		err   error
		want  string
	}{
		{0, nil, nil, ""},
		{time.Second, []core.ReembedProgress{{App: "a", Done: 100, All: 1000}}, nil, serves + "a done=100 total=1000 errors=0 per_second=0 left=0s\n"},
		{9 * time.Second, []core.ReembedProgress{{App: "a", Done: 300, All: 1000}}, nil, ""},
		{time.Second, []core.ReembedProgress{{App: "a", Done: 400, All: 1000, Failed: 3}}, nil, serves + "a done=400 total=1000 errors=3 per_second=30 left=20s\n"},
		{time.Second, nil, errors.New("closed"), `msg="cannot read the progress of re-analysis" error=closed` + "\n"},
		{
			time.Second,
			[]core.ReembedProgress{{App: "a", Done: 997, All: 1000, Failed: 3}, {App: "b", All: 7}},
			nil, serves + "b done=0 total=7 errors=0 per_second=0 left=0s\n",
		},
		{
			8 * time.Second,
			[]core.ReembedProgress{{App: "a", Done: 997, All: 1000, Failed: 3}},
			nil,
			serves + "a done=997 total=1000 errors=3 per_second=44.9 left=0s\n" + `msg="re-analysis complete; the new network serves" app=b total=7 errors=0 took=8s` + "\n",
		},
		{2 * time.Second, nil, nil, `msg="re-analysis complete; the new network serves" app=a total=1000 errors=3 took=22s` + "\n"},
		{time.Minute, nil, nil, ""},
	}
	for i, s := range steps {
		now, engine.apps, engine.err = now.Add(s.after), s.apps, s.err
		out.Reset()
		if r.look(); out.String() != s.want {
			t.Errorf("step %d tells\n%swant\n%s", i, &out, s.want)
		}
	}
}

// TestReembeddingLogEndsWithContext checks that Run logs every ten seconds and returns when its context ends.
func TestReembeddingLogEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 25*time.Second)
		defer stop()
		lines := 0
		engine := &crossing{apps: []core.ReembedProgress{{App: "a", All: 1}}}
		r := &ReembedLogger{Engine: engine, Now: time.Now, Pause: pause, Log: slog.New(counting{&lines})}
		r.Run(ctx)
		if lines != 3 {
			t.Errorf("%d lines in 25 s, want 3", lines)
		}
	})
}

// counting counts the lines of a log.
type counting struct{ lines *int }

func (counting) Enabled(context.Context, slog.Level) bool    { return true }
func (c counting) Handle(context.Context, slog.Record) error { *c.lines++; return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counting) WithGroup(string) slog.Handler             { return c }
