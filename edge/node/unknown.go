package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/token"
)

const (
	askInterval = time.Second     // minimum time between the starts of two questions
	askTime     = 2 * time.Second // time limit of a question, and of a call that waits for one
	maxAsking   = 64              // maximum number of calls that wait
	maxAsked    = 32              // maximum number of applications of one question
)

// asker asks the origin for newer app records when a call has a credential that no record of this edge has: the origin may have created or
// replaced it a moment ago. All such calls share the questions, so strangers with invalid credentials cause at most one question a second.
//
//	call, unknown credential ──▶ waits for the next question ──▶ looks its credential up again
//	                                  │ at most one a second
//	                                  └──▶ GET keys of each application ──▶ newer app records
type asker struct {
	wake   chan struct{}  // holds one token while calls wait for a question that has not begun
	places *shares.Shares // places of waiting calls, by client address
	turn   int            // number of the application that the next question begins with; only questions use it

	mu   sync.Mutex
	next chan struct{} // closed when the next question ends; nil: no call waits for it
}

func newAsker() *asker {
	return &asker{wake: make(chan struct{}, 1), places: shares.New(maxAsking, 1)}
}

// wait waits for the end of a question that begins after the call of wait. It returns at once if too many calls wait already.
func (a *asker) wait(ctx context.Context, caller string) {
	if !a.places.TryAcquire(caller, 1) {
		return
	}
	defer a.places.Release(caller, 1)
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	a.mu.Lock()
	if a.next == nil {
		a.next = make(chan struct{})
		a.wake <- struct{}{} // it has room, since run took the last token before it took the last question
	}
	asked := a.next
	a.mu.Unlock()
	select {
	case <-asked:
	case <-ctx.Done():
	}
}

// run asks a question whenever a call waits for one, until ctx ends.
func (a *asker) run(ctx context.Context, ask func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return // calls that wait reach their time limit
		case <-a.wake:
		}
		a.mu.Lock()
		asked := a.next
		a.next = nil
		a.mu.Unlock()
		begun := system.Now()
		limited, stop := context.WithTimeout(ctx, askTime)
		ask(limited)
		stop()
		close(asked)
		system.Pause(ctx, askInterval-system.Now().Sub(begun))
	}
}

// learn gives the origin a chance to send a record with the credential of a request that no record here has. An edge without contact to its
// origin returns at once.
func (c *replicaSet) learn(ctx context.Context, r *api.Request) {
	if text, ok := auth.Bearer(r.Authorization); ok && token.KeyID(text) == "" || !c.inContact() {
		return
	}
	c.asker.wait(ctx, r.Remote)
}

// inContact reports whether an application has a link whose origin is not known to be unreachable.
func (c *replicaSet) inContact() bool {
	for _, one := range c.all() {
		if one.inContact() {
			return true
		}
	}
	return false
}

func (one *appReplica) inContact() bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.link != nil && !originUnreachable(&one.status)
}

// ask requests the app records that the origin has changed, and applies them. An edge with more than maxAsked applications asks for as many
// at once, in turn. Deleted applications are left to their links.
func (c *replicaSet) ask(ctx context.Context) {
	l, err := synclink.New(c.options())
	if err != nil {
		return // no application has a link either
	}
	defer l.Close()
	all := c.all()
	for range min(len(all), maxAsked) {
		one := all[c.asker.turn%len(all)]
		c.asker.turn++
		if !one.inContact() {
			continue
		}
		if err := c.askFor(ctx, l, one); err != nil && ctx.Err() == nil {
			c.log.Debug("cannot ask the origin for an unknown credential", "app", one.app, "error", err)
		}
	}
}

// askFor requests the app record of one application.
func (c *replicaSet) askFor(ctx context.Context, l *synclink.Link, one *appReplica) error {
	_, since, err := catalog.Read(c.store, catalog.Control).AppRecordSeq(one.app)
	if err != nil {
		return err
	}
	seq, data, err := l.AppRecord(ctx, one.app, since)
	if err != nil || data == nil {
		return err
	}
	if err := c.ApplyAppRecord(one.app, seq, data); err != nil {
		return fmt.Errorf("app record: %w", err)
	}
	return nil
}
