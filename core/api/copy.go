package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// What a copy tells of itself: where it stands with its origin, which operations of its own wait for
// it, and which ones its log did not take as they were meant. Nobody but the copy knows that, so
// an origin answers these calls as what is not there.
//
//	made here ──▶ queued ──push──▶ sent ──the log's echo──▶ confirmed
//	              └──── outbox ───────┘                       └──▶ conflicts, until they are dismissed

// Standing is where a copy stands with its origin, as far as whoever keeps it in step knows. What is
// sent and confirmed is never said to be more than it is.
type Standing struct {
	Origin   string // address of the origin; empty: nobody says
	Phase    string // what is being done, such as "current"
	Head     uint64 // last entry of the origin's log, as it said last
	Contact  time.Time
	AsOf     time.Time // when it last said that there was no more than what is here; zero: not yet
	Accepted uint64    // last own operation that the origin says its log has
	Folded   uint64    // last one that its log has brought back
	Denied   string    // why the origin lets the copy in no more; empty: it does, or was not asked
	Problem  string    // what goes wrong; empty: nothing
	Retry    time.Time // when the next try is made; zero: nothing waits for one
}

// Phases of a copy.
const (
	unkept = "stopped" // nobody keeps it in step now
	inSync = "current"
)

// errNoCopy is the answer of an application that is no copy.
var errNoCopy = &fault{ErrPath, "This application is not a replica. Writes are in its log at once. " +
	"These calls are for replicas, at an edge or in a browser, which store writes until the origin confirms them."}

// copied returns the request's application, and where it stands. The error is errNoCopy.
func (x *Call) copied() (*partition.Partition, Standing, error) {
	p := x.app.Partition
	if !p.Copied() {
		return nil, Standing{}, errNoCopy
	}
	if x.s.o.Copies != nil {
		if s, ok := x.s.o.Copies(x.app.ID); ok {
			return p, s, nil
		}
	}
	_, confirmed := p.Outbox()
	return p, Standing{Phase: unkept, Head: p.Cursor().Seq, Accepted: confirmed, Folded: confirmed}, nil
}

// absent refuses a deletion that names things unknown to a copy that is not in sync: its origin may have them, and would
// keep them. Things that the copy knows to be deleted are no error, so a caller may repeat a call.
func (x *Call) absent(kind error, ids []string) error {
	p, s, err := x.copied()
	if errors.Is(err, errNoCopy) || err == nil && (len(ids) == 0 || s.Phase == inSync) {
		return nil
	}
	var all bool // all of them are deleted by an operation of the copy's own
	var made []log.Body
	if err == nil {
		err = p.Made(s.Folded, func(op log.Op) bool {
			switch op.Body.(type) {
			case *log.InputDelete, *log.ModelDelete:
				made = append(made, op.Body)
			case *log.InputDeleteAll:
				all = all || kind == ErrNoInput
			case *log.ModelDeleteAll:
				all = all || kind == ErrPath
			}
			return true
		})
	}
	deleted := map[string]bool{}
	for _, body := range made {
		id, failed := p.NameOf(body)
		err = errors.Join(err, failed)
		deleted[id] = true
	}
	var unknown []string
	for _, id := range ids {
		known := all || deleted[id]
		if !known && kind == ErrNoInput && err == nil {
			_, known, err = p.Deleted(id)
		}
		if !known {
			unknown = append(unknown, id)
		}
	}
	if err != nil || len(unknown) == 0 {
		return err
	}
	return refusef(kind, "Unknown here: %s. This replica is not in sync with its origin, which may have more. Nothing was deleted. "+
		"Try again when the replica is in sync, or at the origin.", strings.Join(unknown, ", "))
}

// conflicted returns the request's application, which is a copy, or keeps what it refused an older life of one. The error
// is errNoCopy.
func conflicted(x *Call) (*partition.Partition, error) {
	p := x.app.Partition
	if n, err := p.CountConflicts(); err != nil || n > 0 {
		return p, err
	}
	p, _, err := x.copied()
	return p, err
}

// copyStatus tells where a copy stands.
func copyStatus(x *Call) error {
	p, s, err := x.copied()
	if err != nil {
		return err
	}
	conflicts, err := p.CountConflicts()
	if err != nil {
		return err
	}
	issued, _ := p.Outbox()
	cursor := p.Cursor().Seq
	x.ok(func(w *jsonio.Writer) {
		w.Name("copy")
		w.Object()
		member(w, "app_id", x.app.ID)
		member(w, "origin", s.Origin)
		member(w, "phase", s.Phase)
		count(w, "site", uint64(p.Site()))
		count(w, "cursor", cursor)
		count(w, "head", max(s.Head, cursor))
		moment(w, "contact", s.Contact)
		moment(w, "as_of", s.AsOf)
		count(w, "queued", issued-min(s.Accepted, issued))
		count(w, "sent", s.Accepted-min(s.Folded, s.Accepted))
		count(w, "conflicts", uint64(conflicts))
		member(w, "denied", s.Denied)
		member(w, "problem", s.Problem)
		moment(w, "retry", s.Retry)
		w.End('}')
	})
	return nil
}

// member writes a text, unless it is empty.
func member(w *jsonio.Writer, name, text string) {
	if text != "" {
		w.Name(name)
		w.String(text)
	}
}

func count(w *jsonio.Writer, name string, n uint64) {
	w.Name(name)
	w.Int(int64(n))
}

// moment writes a time, unless it is zero.
func moment(w *jsonio.Writer, name string, t time.Time) {
	if !t.IsZero() {
		member(w, name, timestamp(t))
	}
}

// listOutbox lists the copy's own operations that are not confirmed, oldest first.
func listOutbox(x *Call) error {
	page, err := x.paged()
	if err != nil {
		return err
	}
	p, s, err := x.copied()
	if err != nil {
		return err
	}
	ops := make([]log.Op, 0, min(page.size, defaultPerPage))
	// They follow one another, so a page begins so many behind the last that is confirmed.
	err = p.Made(s.Folded+uint64((page.number-1)*page.size), func(op log.Op) bool {
		weighOp(x, &op)
		ops = append(ops, op)
		return int64(len(ops)) < page.size
	})
	if err != nil {
		return err
	}
	v := p.View()
	defer v.Close()
	told := tell{x: x, view: v}
	for i := range ops {
		if err := told.learn(&ops[i], ""); err != nil {
			return err
		}
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("operations")
		w.Array()
		for i := range ops {
			w.Object()
			told.operation(w, &ops[i])
			state := "queued"
			if ops[i].Dot.Seq <= s.Accepted {
				state = "sent"
			}
			member(w, "state", state)
			w.End('}')
		}
		w.End(']')
	})
	return nil
}

// listConflicts lists the copy's own operations that the log did not take as they were meant, oldest
// first, with all that they say.
func listConflicts(x *Call) error {
	page, err := x.paged()
	if err != nil {
		return err
	}
	p, err := conflicted(x)
	if err != nil {
		return err
	}
	var rows []partition.Conflict
	at, from := int64(0), (page.number-1)*page.size
	err = p.Conflicts(func(c partition.Conflict) bool {
		if at >= from {
			weighOp(x, &c.Op)
			rows = append(rows, c)
		}
		at++
		return at < from+page.size
	})
	if err != nil {
		return err
	}
	v := p.View()
	defer v.Close()
	told := tell{x: x, view: v}
	orphans := make([]bool, len(rows))
	for i := range rows {
		if err := told.learn(&rows[i].Op, rows[i].ID); err != nil {
			return err
		}
		_, err := p.Conflict(partition.Subject(rows[i].Op.Body))
		if orphans[i] = err == nil; err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("conflicts")
		w.Array()
		for i := range rows {
			c := &rows[i]
			w.Object()
			member(w, "id", conflictID(c.Op.Dot))
			told.operation(w, &c.Op)
			member(w, "verdict", c.Verdict.Code.String())
			member(w, "reason", reason(c, orphans[i]))
			count(w, "position", c.Seq)
			w.End('}')
		}
		w.End(']')
	})
	return nil
}

// dismissConflict takes one off the list, for good.
func dismissConflict(x *Call) error {
	p, err := conflicted(x)
	if err != nil {
		return err
	}
	id := x.ids["conflict_id"]
	dot, ok := parseConflictID(id)
	if !ok {
		return unknown("conflict_id", id)
	}
	if _, err := p.Conflict(dot); err != nil {
		if errors.Is(err, catalog.ErrNotFound) {
			return unknown("conflict_id", id)
		}
		return err
	}
	if err := p.Dismiss(dot); err != nil {
		return err
	}
	x.ok(func(*jsonio.Writer) {})
	return nil
}

// conflictID names a conflict: its operation's site and sequence.
func conflictID(dot log.Dot) string { return fmt.Sprintf("%d-%d", dot.Site, dot.Seq) }

func parseConflictID(id string) (log.Dot, bool) {
	site, seq, _ := strings.Cut(id, "-")
	s, err := strconv.ParseUint(site, 10, 32)
	n, fault := strconv.ParseUint(seq, 10, 64)
	dot := log.Dot{Site: log.Site(s), Seq: n}
	return dot, err == nil && fault == nil && conflictID(dot) == id
}
