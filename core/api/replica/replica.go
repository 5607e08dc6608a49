// Package replica has the calls about a replica of an application: its distance from its origin, its operations that wait for
// the origin, and its operations that the log accepted with another result or not at all. Only the replica has this data, so an origin
// answers these calls like unknown paths.
//
//	submitted ──▶ queued ──push──▶ sent ──origin's log──▶ confirmed
//	              └──── outbox ───────┘                       └──▶ conflicts, until they are dismissed
package replica

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// conflictPartition returns the partition of the request's application. The application must be a replica, or have conflicts of an
// earlier life as a replica. Otherwise it returns the error of [call.Call.Replica].
func conflictPartition(x *call.Call) (*partition.Partition, error) {
	p := x.App.Partition
	if n, err := p.CountConflicts(); err != nil || n > 0 {
		return p, err
	}
	_, _, err := x.Replica()
	return p, err
}

// Status answers with the sync status of a replica.
func Status(x *call.Call) error {
	p, s, err := x.Replica()
	if err != nil {
		return err
	}
	conflicts, err := p.CountConflicts()
	if err != nil {
		return err
	}
	issued, _ := p.Outbox()
	cursor := p.Cursor().Seq
	return x.OK(func(w *jsonio.Writer) {
		w.ObjectMember("copy")
		show.WriteText(w, "app_id", x.App.ID)
		show.WriteText(w, "origin", s.Origin)
		show.WriteText(w, "phase", s.Phase)
		show.WriteInt(w, "cursor", cursor)
		show.WriteInt(w, "head", max(s.Head, cursor))
		show.WriteTime(w, "contact", s.Contact)
		show.WriteTime(w, "as_of", s.AsOf)
		show.WriteInt(w, "queued", issued-min(s.Accepted, issued))
		show.WriteInt(w, "sent", s.Accepted-min(s.Folded, s.Accepted))
		show.WriteInt(w, "conflicts", conflicts)
		show.WriteText(w, "denied", s.Denied)
		show.WriteText(w, "problem", s.Problem)
		show.WriteText(w, "limit", s.Limit)
		show.WriteTime(w, "retry", s.Retry)
		w.End('}')
	})
}

// Outbox lists the replica's local operations that are not confirmed, oldest first.
func Outbox(x *call.Call) error {
	page, err := x.Page()
	if err != nil {
		return err
	}
	p, s, err := x.Replica()
	if err != nil {
		return err
	}
	ops := make([]log.Op, 0, min(page.Size, call.DefaultPerPage))
	skipped := (page.Number - 1) * page.Size
	sent := map[log.Dot]bool{}
	err = p.Pending(0, func(at uint64, op log.Op) bool {
		if skipped > 0 {
			skipped--
			return true
		}
		show.ReserveOp(x, &op)
		ops, sent[op.Dot] = append(ops, op), at <= s.Accepted
		return int64(len(ops)) < page.Size
	})
	if err != nil {
		return err
	}
	v := x.View()
	opWriter := show.OpWriter{X: x, View: v}
	for i := range ops {
		if err := opWriter.Learn(&ops[i], ""); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Objects("operations", len(ops), func(i int) {
			opWriter.Write(w, &ops[i])
			state := "queued"
			if sent[ops[i].Dot] {
				state = "sent"
			}
			show.WriteText(w, "state", state)
		})
	})
}

// Conflicts lists the replica's local operations that the log refused or changed, oldest
// first, with their content.
func Conflicts(x *call.Call) error {
	page, err := x.Page()
	if err != nil {
		return err
	}
	p, err := conflictPartition(x)
	if err != nil {
		return err
	}
	var rows []partition.Conflict
	at, from := int64(0), (page.Number-1)*page.Size
	err = p.Conflicts(func(c partition.Conflict) bool {
		if at >= from {
			show.ReserveOp(x, &c.Op)
			rows = append(rows, c)
		}
		at++
		return at < from+page.Size
	})
	if err != nil {
		return err
	}
	v := x.View()
	opWriter := show.OpWriter{X: x, View: v}
	orphans := make([]bool, len(rows))
	for i := range rows {
		if err := opWriter.Learn(&rows[i].Op, rows[i].ID); err != nil {
			return err
		}
		_, err := p.Conflict(log.SubjectDot(rows[i].Op.Body))
		orphans[i] = err == nil
		if err := call.ReplaceNotFound(err, nil); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Objects("conflicts", len(rows), func(i int) {
			c := &rows[i]
			show.WriteText(w, "id", conflictID(c.Op.Dot))
			opWriter.Write(w, &c.Op)
			show.WriteText(w, "verdict", c.Verdict.Code.String())
			show.WriteText(w, "reason", reason(c, orphans[i]))
			show.WriteInt(w, "position", c.Seq)
		})
	})
}

// Dismiss deletes one conflict from the list, permanently.
func Dismiss(x *call.Call) error {
	p, err := conflictPartition(x)
	if err != nil {
		return err
	}
	id := x.IDs["conflict_id"]
	dot, ok := parseConflictID(id)
	if !ok {
		return call.UnknownIDError("conflict_id", id)
	}
	if _, err := p.Conflict(dot); err != nil {
		return call.ReplaceNotFound(err, call.UnknownIDError("conflict_id", id))
	}
	if err := p.Dismiss(dot); err != nil {
		return err
	}
	return x.Done()
}

// conflictID returns the id of a conflict: its operation's writer and sequence number.
func conflictID(dot log.Dot) string { return fmt.Sprintf("%v-%d", dot.Writer, dot.Seq) }

func parseConflictID(id string) (log.Dot, bool) {
	writer, seq, _ := strings.Cut(id, "-")
	w, ok := log.ParseWriter(writer)
	n, err := strconv.ParseUint(seq, 10, 32)
	dot := log.Dot{Writer: w, Seq: n}
	return dot, ok && err == nil && conflictID(dot) == id
}

// reason returns a sentence that explains why an operation was refused or changed. orphan reports whether the operation that
// created its subject was refused.
func reason(c *partition.Conflict, orphan bool) string {
	v := &c.Verdict
	_, creates := c.Op.Body.(*log.InputCreate)
	switch v.Code {
	case fold.Duplicate:
		switch v.Detail {
		case "url":
			return fmt.Sprintf("Input %q already has this URL.", v.ID)
		case "version":
			return "The model already has a version with this ID."
		}
		return fmt.Sprintf("Another %s with this ID already existed.", thing(c.Op.Body))
	case fold.Gone:
		switch {
		case v.Detail == "lease":
			return "The training had already ended, or was restarted elsewhere."
		case v.Detail == "unknown":
			return "It is not in the snapshot downloaded from the origin; its outcome is unknown."
		case creates:
			return "A later call deleted all inputs, including this one."
		case orphan:
			return fmt.Sprintf("The %s it refers to was rejected.", thing(c.Op.Body))
		}
		return fmt.Sprintf("The %s was already deleted.", thing(c.Op.Body))
	case fold.Stale:
		return "It was made too long ago to be merged safely."
	case fold.Refused:
		return fmt.Sprintf("The origin rejected it: %s.", v.Detail)
	}
	return v.Detail
}

// thing returns a noun for the subject of an operation.
func thing(body log.Body) string {
	switch body.(type) {
	case *log.VersionResult, *log.VersionDelete:
		return "model version"
	}
	kind, _ := log.SubjectOf(body)
	return cmp.Or(string(kind), "thing")
}
