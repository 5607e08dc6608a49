package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/origin/server/account"
)

const (
	maxExports = 4                // number of exports at a time, each of another account
	exportWait = 10 * time.Second // time after which a refused client may try again
)

// exports holds the accounts with a running export. The zero value holds none. It is safe for concurrent use.
type exports struct {
	mu      sync.Mutex
	running map[string]bool // by account
}

// check returns an error that wraps *auth.RateError if the account cannot start an export now. The caller holds mu.
func (e *exports) check(account string) error {
	switch {
	case e.running[account]:
		return fmt.Errorf("%w: %w", errExport, &auth.RateError{Wait: exportWait})
	case len(e.running) >= maxExports:
		return fmt.Errorf("the server already runs %d exports: %w", maxExports, &auth.RateError{Wait: exportWait})
	}
	return nil
}

// begin takes the account's place. The caller must call end once. The error is that of check.
func (e *exports) begin(account string) (end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.check(account); err != nil {
		return nil, err
	}
	if e.running == nil {
		e.running = map[string]bool{}
	}
	e.running[account] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.running, account)
	}, nil
}

// export streams an application as a zip file. It refuses an account whose previous export is still running. An export ends as soon as its
// client disconnects, and within checkedBytes after the end of the session.
func (c *call) export(a *catalog.App) (any, error) {
	if c.o.Export == nil {
		return nil, errMissing
	}
	end, err := c.exports.begin(c.account.ID)
	if err != nil {
		return nil, err
	}
	streams := false
	defer func() {
		if !streams {
			end()
		}
	}()
	if m := c.r.Memory; m != nil && !m.Reserve(c.o.ExportMemory) {
		return nil, api.ErrBusy
	}
	if err := c.countChange(); err != nil {
		return nil, err
	}
	if err := c.o.Accounts.Record(account.Event{Actor: c.account.ID, Action: account.AppExport, Target: a.ID, Remote: c.r.Remote}); err != nil {
		return nil, err
	}
	// The server may drop the answer without a call of write, as for HEAD or an old version of HTTP. Then it only ends the context.
	streams = true
	keep := context.AfterFunc(c.ctx, end)
	return &stream{"application/zip", fileName(a.Name), func(w io.Writer) error {
		if !keep() {
			return c.ctx.Err()
		}
		defer end()
		ctx := c.ctx
		if c.r.Watch != nil {
			watched, stop := c.r.Watch(ctx)
			defer stop()
			ctx = watched
		}
		return c.o.Export(ctx, a.ID, &sessionWriter{c: c, w: w, session: account.SessionID(c.token)})
	}}, nil
}

// sessionWriter writes an answer until the session of its request ends. It looks once in checkedBytes.
type sessionWriter struct {
	c       *call
	w       io.Writer
	session string // id
	left    int    // bytes until the next check
}

const checkedBytes = 1 << 20

// Write implements [io.Writer].
func (s *sessionWriter) Write(b []byte) (int, error) {
	if s.left <= 0 {
		if err := s.c.o.Accounts.CheckSession(s.c.ctx, s.session); err != nil {
			return 0, err
		}
		s.left = checkedBytes
	}
	n, err := s.w.Write(b)
	s.left -= n
	return n, err
}

// exportStatus refuses a call if the account cannot start an export now. A page asks before it begins a download, since it cannot read the
// answer to a download.
func (c *call) exportStatus(*catalog.App) (any, error) {
	if c.o.Export == nil {
		return nil, errMissing
	}
	c.exports.mu.Lock()
	defer c.exports.mu.Unlock()
	return nil, c.exports.check(c.account.ID)
}

// fileName returns a file name that every operating system accepts.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, name)
	safe = strings.Trim(safe[:min(len(safe), 60)], "-")
	return cmp.Or(safe, "application") + ".zip"
}
