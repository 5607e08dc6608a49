package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// conflicted returns the request's application, which is a copy, or keeps what it refused an older life of one. The error
// is that of [call.Call.Copied].
func conflicted(x *call.Call) (*partition.Partition, error) {
	p := x.App.Partition
	if n, err := p.CountConflicts(); err != nil || n > 0 {
		return p, err
	}
	p, _, err := x.Copied()
	return p, err
}

// copyStatus tells where a copy stands.
func copyStatus(x *call.Call) error {
	p, s, err := x.Copied()
	if err != nil {
		return err
	}
	conflicts, err := p.CountConflicts()
	if err != nil {
		return err
	}
	issued, _ := p.Outbox()
	cursor := p.Cursor().Seq
	x.OK(func(w *jsonio.Writer) {
		w.Name("copy")
		w.Object()
		member(w, "app_id", x.App.ID)
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

// listOutbox lists the copy's own operations that are not confirmed, oldest first.
func listOutbox(x *call.Call) error {
	page, err := x.Page()
	if err != nil {
		return err
	}
	p, s, err := x.Copied()
	if err != nil {
		return err
	}
	ops := make([]log.Op, 0, min(page.Size, call.DefaultPerPage))
	// They follow one another, so a page begins so many behind the last that is confirmed.
	err = p.Made(s.Folded+uint64((page.Number-1)*page.Size), func(op log.Op) bool {
		weighOp(x, &op)
		ops = append(ops, op)
		return int64(len(ops)) < page.Size
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
	x.OK(func(w *jsonio.Writer) {
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
func listConflicts(x *call.Call) error {
	page, err := x.Page()
	if err != nil {
		return err
	}
	p, err := conflicted(x)
	if err != nil {
		return err
	}
	var rows []partition.Conflict
	at, from := int64(0), (page.Number-1)*page.Size
	err = p.Conflicts(func(c partition.Conflict) bool {
		if at >= from {
			weighOp(x, &c.Op)
			rows = append(rows, c)
		}
		at++
		return at < from+page.Size
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
	x.OK(func(w *jsonio.Writer) {
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
func dismissConflict(x *call.Call) error {
	p, err := conflicted(x)
	if err != nil {
		return err
	}
	id := x.IDs["conflict_id"]
	dot, ok := parseConflictID(id)
	if !ok {
		return call.Unknown("conflict_id", id)
	}
	if _, err := p.Conflict(dot); err != nil {
		if errors.Is(err, catalog.ErrNotFound) {
			return call.Unknown("conflict_id", id)
		}
		return err
	}
	if err := p.Dismiss(dot); err != nil {
		return err
	}
	x.OK(func(*jsonio.Writer) {})
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
