package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/compress"
	"github.com/sightline-dev/sightline/sync/wire"
)

// live is the way in which an answer ends.
type live int

const (
	once   live = iota // ends at the end of the log
	poll               // likewise, but waits for the first entry
	stream             // continues with new entries
)

// changes answers with the log after the reader's cursor.
func (c *call) changes() (api.Response, error) {
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	x := &reader{c: c, p: p}
	if err := x.parse(); err != nil {
		return api.Response{}, err
	}
	if err := c.namesOpening(p); err != nil {
		return api.Response{}, err
	}
	if err := c.f.meters.frames.take(c, 0, c.now, "bytes"); err != nil {
		return api.Response{}, err
	}
	if m := c.r.Memory; m != nil {
		room := m.Room() // the host asks Caller here at the latest: the signature in the head is valid for minutes, and a stream lasts longer
		if x.cursor < p.Log().Head() && room < catchUpBytes {
			return api.Response{}, &wire.Refusal{Code: wire.RefusedBusy, Detail: errSending, WaitMillis: 1000}
		}
	}
	if x.live != once {
		leave, err := c.f.streams.enter(c)
		if err != nil {
			return api.Response{}, err
		}
		leave() // run enters again when the stream begins
	}
	res := api.Response{
		Status: 200, ContentType: wire.ContentType,
		Header: []api.Field{{Name: "Cache-Control", Value: "no-store"}, {Name: "X-Accel-Buffering", Value: "no"}},
		Stream: x.run,
	}
	if x.packed = c.header("Upgrade") == "" && api.AcceptsEncoding(c.header("Accept-Encoding"), compress.Encoding); x.packed {
		res.Header = append(res.Header, packing...)
	}
	c.detach()
	return res, nil
}

// detach copies the part of the request that is needed while the answer is written, and drops the rest.
func (c *call) detach() {
	r := *c.r
	r.Body, r.Header = nil, nil
	c.r = &r
}

// reader is a changes answer in progress.
type reader struct {
	c          *call
	p          *partition.Origin
	live       live
	epoch      log.Epoch // epoch of the entry cursor
	chain      log.Chain // chain of the log up to it
	cursor     uint64
	register   uint64    // entry of the control log up to which the reader's app record goes
	recordHash blob.Hash // hash of the last sent app record; zero: none
	vectors    wire.Vectors
	bare       bool // only entries are requested, by a replica that downloads a snapshot

	changed  atomic.Bool // the app record may have changed
	checked  time.Time   // time of the last check of the credential
	pollEnds bool        // something that ends a poll was sent
	placed   bool        // a checkpoint was sent

	w      io.Writer
	flush  func() error
	packed bool      // the answer is compressed
	sentAt time.Time // time of the last frame
}

func (x *reader) parse() error {
	q := x.c.query
	err := errors.Join(q.name("epoch", x.epoch[:]), q.name("chain", x.chain[:]))
	if err != nil {
		return err
	}
	if x.cursor, err = q.number("since"); err != nil {
		return err
	}
	if x.register, err = q.number("register"); err != nil {
		return err
	}
	switch q.Get("live") {
	case "", "0":
	case "poll":
		x.live = poll
	case "stream":
		x.live = stream
	default:
		return malformedError("live must be 0, poll or stream")
	}
	switch q.Get("only") {
	case "":
	case "entries":
		x.bare = true
	default:
		return malformedError("only must be entries")
	}
	x.vectors, err = vectorsOf(q)
	return err
}

// catchUpBytes is the memory of a reader that receives existing entries: the entries of a run, its frames and the compressor.
const catchUpBytes = 1 << 20

// errSending is the detail for a reader without memory.
const errSending = "the server is sending too much data: read the earlier answers first, or try again"

// errEnded ends a stream whose last frame has been sent, and errClosed one whose reader has closed it.
var (
	errEnded  = errors.New("ended")
	errClosed = errors.New("the reader has closed the stream")
)

// run writes the answer to w.
func (x *reader) run(w io.Writer) error {
	if x.live != once {
		leave, err := x.c.f.streams.enter(x.c)
		if err != nil {
			x.live = once // another reader took the last place meanwhile
		} else {
			defer leave()
		}
	}
	x.w, x.flush = w, func() error { return nil }
	if f, ok := w.(interface{ Flush() error }); ok {
		x.flush = f.Flush
	}
	if x.packed {
		x.w = compress.NewWriter(w)
	}
	err := x.frames()
	switch {
	case err == nil, errors.Is(err, errEnded):
		return nil
	case errors.Is(err, errClosed):
		return err
	}
	if x.c.logFailure(err); x.c.f.isDeleted(x.c.app) {
		return x.end(wire.WhyGone, "the application was deleted", 0)
	}
	return errors.Join(x.end(wire.WhyError, "the log could not be read", time.Second), err)
}

// frames writes until the answer ends. Between two frames it keeps no buffers.
func (x *reader) frames() error {
	o := &x.c.f.o
	moved := make(chan struct{}, 1)
	notify := func() {
		select {
		case moved <- struct{}{}:
		default: // a notification is pending
		}
	}
	l := x.p.Log()
	defer l.WatchHead(notify)()
	defer o.Register.Watch(func() {
		x.changed.Store(true)
		notify()
	})()
	x.changed.Store(true)
	began := o.Clock()
	x.sentAt = began
	if err := x.recheckAccess(); err != nil {
		return err
	}
	if x.bare { // a replica that takes a snapshot keeps the entries up to it
		x.cursor = max(x.cursor, l.Floor()-1)
	} else if has, err := x.p.HasPlace(log.Mark{Epoch: x.epoch, To: x.cursor}, x.chain); err != nil {
		return err
	} else if !has || x.cursor+1 < l.Floor() {
		return x.end(wire.WhyRebase, "the log does not continue from this cursor; start a new session", 0)
	}
	for {
		if err := x.recheckAccess(); err != nil {
			return err
		}
		if err := x.caughtUp(l); err != nil {
			return err
		}
		now := o.Clock()
		age := now.Sub(began)
		switch {
		case x.c.ctx.Err() != nil:
			return x.shut()
		case x.live == once, o.Wait == nil, x.live == poll && (x.pollEnds || age >= o.Limits.PollTimeout), age >= o.Limits.StreamTimeout:
			return x.finish(l)
		}
		if x.pollEnds || !x.placed {
			if err := x.checkpoint(l); err != nil {
				return err
			}
			x.pollEnds, x.placed = false, true
		}
		if err := x.wait(moved, began); err != nil {
			return err
		}
	}
}

// finish ends an answer regularly.
func (x *reader) finish(l *log.Store) error {
	if err := x.checkpoint(l); err != nil {
		return err
	}
	return x.end(wire.WhyDone, "", 0)
}

// shut ends an answer whose call was cancelled: the server stops, or the call timed out.
func (x *reader) shut() error {
	if errors.Is(x.c.ctx.Err(), context.DeadlineExceeded) {
		return x.end(wire.WhyDone, "", 0)
	}
	return x.end(wire.WhyShutdown, "the server is stopping", time.Second)
}

// wait waits until there may be something to send or the credential must be checked, and sends a keepalive when it is due.
func (x *reader) wait(moved <-chan struct{}, began time.Time) error {
	o := &x.c.f.o
	now := o.Clock()
	due := []time.Time{began.Add(o.Limits.StreamTimeout), x.sentAt.Add(o.Limits.KeepaliveInterval)}
	if x.live == poll {
		due[1] = began.Add(o.Limits.PollTimeout)
	}
	if !x.c.until.IsZero() {
		due = append(due, x.c.until)
	}
	if x.c.endsUnnoticed() {
		due = append(due, x.checked.Add(o.Limits.KeepaliveInterval))
	}
	next := slices.MinFunc(due, time.Time.Compare)
	o.Wait(x.c.ctx, moved, max(next.Sub(now), 0))
	now = o.Clock()
	if x.live != stream || x.c.ctx.Err() != nil || now.Sub(x.sentAt) < o.Limits.KeepaliveInterval {
		return nil
	}
	m := wire.Keepalive{Now: wire.MillisOf(now)}
	if !x.c.until.IsZero() {
		m.ExpiresIn = uint64(max(x.c.until.Sub(now), 0).Seconds())
	}
	err := x.send(wire.TypeKeepalive, m.Encode())
	if err == nil {
		x.noteContact()
	}
	return err
}

// recheckAccess checks again whether the reader has access, and ends the answer if it has not: its key or token has ended, its edge was
// revoked, or the application was deleted. The register reports these, except the end of a token and of a session. So recheckAccess also
// checks a token or a session after each time between keepalives.
func (x *reader) recheckAccess() error {
	now := x.c.f.o.Clock()
	if !x.c.until.IsZero() && !now.Before(x.c.until) {
		return x.end(wire.WhyExpired, auth.ErrExpired.Error(), 0)
	}
	changed := x.changed.Swap(false)
	if !changed && (!x.c.endsUnnoticed() || now.Sub(x.checked) < x.c.f.o.Limits.KeepaliveInterval) {
		return nil
	}
	x.checked = now
	c := &call{f: x.c.f, ctx: context.WithoutCancel(x.c.ctx), r: x.c.r, now: now}
	var err error
	if x.c.edge != nil { // the signature was checked at the start
		e, failed := c.f.o.Register.Edge(x.c.edge.ID)
		c.edge, err = &e, failed
	} else {
		err = c.identify(x.c.app)
	}
	if err == nil {
		_, err = c.reach(x.c.app)
	}
	var refused *wire.Refusal
	switch {
	case err == nil && !changed:
		return nil
	case err == nil:
		return x.sendAppRecord()
	case errors.As(err, &refused) && refused.Code == wire.RefusedGone:
		_ = x.sendAppRecord() // reports the deletion too, as does the end
		return x.end(wire.WhyGone, refused.Detail, 0)
	case errors.Is(err, errLocalOnly):
		return x.end(wire.WhyScope, errLocalOnly.Detail, 0) // without an app record, which has the application's data
	case errors.As(err, &refused):
		_ = x.sendAppRecord()
		return x.end(wire.WhyScope, refused.Detail, 0)
	case errors.Is(err, auth.ErrExpired), errors.Is(err, auth.ErrToken), errors.Is(err, auth.ErrSession), errors.Is(err, auth.ErrKeyUnknown), errors.Is(err, auth.ErrInsufficient):
		return x.end(wire.WhyExpired, err.Error(), 0)
	}
	return err
}

// sendAppRecord sends the app record if the reader has another.
func (x *reader) sendAppRecord() error {
	data, seq, err := x.c.f.o.Register.AppRecord(x.c.app, x.c.edgeID())
	if err != nil {
		return err
	}
	sum := blob.Sum(data)
	if x.bare || x.recordHash.IsZero() && seq == x.register || sum == x.recordHash { // x.register counts in the present opening, or is 0
		x.recordHash = sum
		return nil
	}
	m := wire.AppRecord{App: x.c.app, Seq: seq, Data: data}
	if err := x.send(wire.TypeAppRecord, m.Encode()); err != nil {
		return err
	}
	x.recordHash, x.register, x.pollEnds = sum, seq, true
	return nil
}

// caughtUp sends the existing entries after the cursor. Its memory counts for the caller while it sends.
func (x *reader) caughtUp(l *log.Store) error {
	if x.cursor >= l.Head() {
		return nil
	}
	if m := x.c.r.Memory; m != nil {
		if !m.Reserve(catchUpBytes) {
			return x.end(wire.WhyError, errSending, time.Second)
		}
		defer m.Settle(0)
	}
	var r run
	for x.c.ctx.Err() == nil && x.cursor < l.Head() {
		err := r.take(l, x.cursor)
		if errors.Is(err, log.ErrTrimmed) {
			return x.end(wire.WhyRebase, "the log starts after this cursor; start a new session", 0)
		}
		if err != nil {
			return err
		}
		if len(r.ops) == 0 {
			break
		}
		if err := x.recheckAccess(); err != nil { // a change that revokes the reader's access may be older than the entries
			return err
		}
		if !x.bare {
			if err := x.needs(&r); err != nil {
				return err
			}
		}
		to := x.cursor + uint64(len(r.ops))
		m := wire.Entries{Epoch: r.epoch, From: x.cursor, To: to, Rows: r.rows}
		if m.Before, err = l.Chain(x.cursor); err == nil {
			m.Chain, err = l.Chain(to)
		}
		if err != nil {
			return err
		}
		m.Seal = x.p.Seal(to, m.Chain)
		if err := x.send(wire.TypeEntries, m.Encode()); err != nil {
			return err
		}
		x.cursor, x.pollEnds = to, true
	}
	return nil
}

// checkpoint sends the positions of the reader and of the log.
func (x *reader) checkpoint(l *log.Store) error {
	head := l.Head()
	m := wire.Checkpoint{Opening: x.p.Opening(), To: x.cursor, Head: head, Stable: x.c.f.o.Stable(x.c.app, head), Now: wire.MillisOf(x.c.f.o.Clock())}
	err := x.send(wire.TypeCheckpoint, m.Encode())
	if err == nil {
		x.noteContact()
	}
	return err
}

// end sends the last frame. It returns errEnded, or the error of sending.
func (x *reader) end(why wire.EndReason, detail string, wait time.Duration) error {
	m := wire.End{Why: why, Detail: detail, WaitMillis: uint64(wait.Milliseconds())}
	if err := x.send(wire.TypeEnd, m.Encode()); err != nil {
		return err
	}
	return errEnded
}

// send sends one message, frame by frame. It writes the next frame when the connection has accepted the previous one.
func (x *reader) send(t wire.Type, body []byte) error {
	framed := wire.AppendFrame(nil, t, body)
	_ = x.c.f.meters.frames.take(x.c, uint64(len(framed)), x.c.f.o.Clock(), "bytes") // over the quota, the next request is refused
	for len(framed) > 0 {
		n := min(len(framed), wire.HeaderSize+wire.MaxBody)
		_, err := x.w.Write(framed[:n])
		if err == nil {
			err = x.flush()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errClosed, err)
		}
		framed = framed[n:]
	}
	x.sentAt = x.c.f.o.Clock()
	return nil
}
