// Package copy has the calls about a copy of an application: its distance from its origin, its operations that wait for
// the origin, and those that the log did not take as they were meant. Only the copy knows that, so an origin answers these calls as
// unknown paths.
//
//	made here ──▶ queued ──push──▶ sent ──the log's echo──▶ confirmed
//	              └──── outbox ───────┘                       └──▶ conflicts, until they are dismissed
package copy

import (
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

// conflictPartition returns the request's application, which is a copy, or keeps what it refused an older life of one. The error
// is that of [call.Call.Replica].
func conflictPartition(x *call.Call) (*partition.Partition, error) {
	p := x.App.Partition
	if n, err := p.CountConflicts(); err != nil || n > 0 {
		return p, err
	}
	p, _, err := x.Replica()
	return p, err
}

// Status answers with the progress of a copy.
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
		w.Begin("copy")
		show.Member(w, "app_id", x.App.ID)
		show.Member(w, "origin", s.Origin)
		show.Member(w, "phase", s.Phase)
		show.Count(w, "site", p.Site())
		show.Count(w, "cursor", cursor)
		show.Count(w, "head", max(s.Head, cursor))
		show.Moment(w, "contact", s.Contact)
		show.Moment(w, "as_of", s.AsOf)
		show.Count(w, "queued", issued-min(s.Accepted, issued))
		show.Count(w, "sent", s.Accepted-min(s.Folded, s.Accepted))
		show.Count(w, "conflicts", conflicts)
		show.Member(w, "denied", s.Denied)
		show.Member(w, "problem", s.Problem)
		show.Moment(w, "retry", s.Retry)
		w.End('}')
	})
}

// Outbox lists the copy's own operations that are not confirmed, oldest first.
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
	// They follow one another, so a page begins so many behind the last that is confirmed.
	err = p.LocalOps(s.Folded+uint64((page.Number-1)*page.Size), func(op log.Op) bool {
		show.WeighOp(x, &op)
		ops = append(ops, op)
		return int64(len(ops)) < page.Size
	})
	if err != nil {
		return err
	}
	v := x.View()
	told := show.OpWriter{X: x, View: v}
	for i := range ops {
		if err := told.Learn(&ops[i], ""); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Objects("operations", len(ops), func(i int) {
			told.Write(w, &ops[i])
			state := "queued"
			if ops[i].Dot.Seq <= s.Accepted {
				state = "sent"
			}
			show.Member(w, "state", state)
		})
	})
}

// Conflicts lists the copy's own operations that the log did not take as they were meant, oldest
// first, with all that they say.
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
			show.WeighOp(x, &c.Op)
			rows = append(rows, c)
		}
		at++
		return at < from+page.Size
	})
	if err != nil {
		return err
	}
	v := x.View()
	told := show.OpWriter{X: x, View: v}
	orphans := make([]bool, len(rows))
	for i := range rows {
		if err := told.Learn(&rows[i].Op, rows[i].ID); err != nil {
			return err
		}
		_, err := p.Conflict(partition.Subject(rows[i].Op.Body))
		orphans[i] = err == nil
		if err := call.Unless(err, nil); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Objects("conflicts", len(rows), func(i int) {
			c := &rows[i]
			show.Member(w, "id", conflictID(c.Op.Dot))
			told.Write(w, &c.Op)
			show.Member(w, "verdict", c.Verdict.Code.String())
			show.Member(w, "reason", reason(c, orphans[i]))
			show.Count(w, "position", c.Seq)
		})
	})
}

// Dismiss takes one off the list, for good.
func Dismiss(x *call.Call) error {
	p, err := conflictPartition(x)
	if err != nil {
		return err
	}
	id := x.IDs["conflict_id"]
	dot, ok := parseConflictID(id)
	if !ok {
		return call.Unknown("conflict_id", id)
	}
	if _, err := p.Conflict(dot); err != nil {
		return call.Unless(err, call.Unknown("conflict_id", id))
	}
	if err := p.Dismiss(dot); err != nil {
		return err
	}
	return x.Done()
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

// reason is why an operation was not taken as it was meant, in a sentence. orphan says that what it is about
// was made by another one that was not taken.
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

// thing returns the subject of an operation, in a word.
func thing(body log.Body) string {
	switch body.(type) {
	case *log.InputCreate, *log.InputFetched, *log.InputLabels, *log.InputMeta, *log.InputGeo, *log.InputDelete, *log.OutputsPatch:
		return "input"
	case *log.ConceptCreate, *log.ConceptName:
		return "concept"
	case *log.ModelCreate, *log.ModelPatch, *log.ModelDelete, *log.VersionTrain:
		return "model"
	case *log.VersionResult, *log.VersionDelete:
		return "model version"
	case *log.WorkflowCreate, *log.WorkflowDelete:
		return "workflow"
	}
	return "thing"
}
