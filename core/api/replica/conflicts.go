package replica

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Conflicts lists the local operations that the log refused or changed, oldest first, with their content, and then the contradictions,
// oldest first.
func Conflicts(x *call.Call) error {
	page, err := x.Page()
	if err != nil {
		return err
	}
	p := x.App.Partition
	own, err := p.CountConflicts()
	if err != nil {
		return err
	}
	from := (page.Number - 1) * page.Size
	rows, err := refused(x, from, page.Size)
	if err != nil {
		return err
	}
	v := x.View()
	h, err := v.Header()
	if err != nil {
		return err
	}
	both, err := contradictions(v.Reader, max(from-int64(own), 0), page.Size-int64(len(rows)))
	if err != nil {
		return err
	}
	makers, err := p.Log().Makers(unknownMakers(both))
	if err != nil {
		return err
	}
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
		show.WriteInt(w, "dropped", h.Dropped)
		w.Objects("conflicts", len(rows)+len(both), func(i int) {
			if i >= len(rows) {
				show.WriteContradiction(w, &both[i-len(rows)], makers)
				return
			}
			c := &rows[i]
			show.WriteText(w, "id", conflictID(c.Op.Dot))
			opWriter.Write(w, &c.Op)
			show.WriteText(w, "verdict", c.Verdict.Code.String())
			show.WriteText(w, "reason", reason(c, orphans[i]))
			show.WriteInt(w, "position", c.Seq)
		})
	})
}

// refused returns at most n of the local operations that the log refused or changed, starting at one of them.
func refused(x *call.Call, from, n int64) (rows []partition.Conflict, err error) {
	at := int64(0)
	err = x.App.Partition.Conflicts(func(c partition.Conflict) bool {
		if at >= from {
			show.ReserveOp(x, &c.Op)
			rows = append(rows, c)
		}
		at++
		return at < from+n
	})
	return rows, err
}

// contradictions returns at most n contradictions, starting at one of them.
func contradictions(r catalog.Reader, from, n int64) (all []catalog.Contradiction, err error) {
	if n <= 0 {
		return nil, nil
	}
	err = r.Contradictions(func(c catalog.Contradiction) bool {
		if from--; from < 0 {
			all = append(all, c)
		}
		return int64(len(all)) < n
	})
	return all, err
}

// unknownMakers returns the stamps of the values whose record does not have their makers.
func unknownMakers(all []catalog.Contradiction) (at []log.Stamp) {
	for i := range all {
		for _, v := range all[i].Values {
			if v.By == "" {
				at = append(at, v.At)
			}
		}
	}
	return at
}

// Keep ends a contradiction: it writes one of its values again, the one whose index the body has. Its writer has seen all of them.
func Keep(x *call.Call) error {
	c, err := findContradiction(x)
	if err != nil {
		return err
	}
	keep, err := x.Body.Integer("keep")
	switch {
	case err != nil:
		return err
	case !x.Body.Has("keep") || keep < 0 || keep >= int64(len(c.Values)) || c.Kind == catalog.DeletionRegister:
		return call.Refusef(call.ErrSync, "\"keep\" must be the index of a value that can be kept.")
	}
	return x.Done(keeping(&c, int(keep)))
}

// Dismiss deletes one conflict from the list, permanently. In a contradiction, the value that serves stays.
func Dismiss(x *call.Call) error {
	id := x.IDs["conflict_id"]
	if catalog.IsContradictionID(id) {
		c, err := findContradiction(x)
		if err != nil {
			return err
		}
		return x.Done(keeping(&c, c.Serves()))
	}
	dot, ok := parseConflictID(id)
	if !ok {
		return call.UnknownIDError("conflict_id", id)
	}
	p := x.App.Partition
	if _, err := p.Conflict(dot); err != nil {
		return call.ReplaceNotFound(err, call.UnknownIDError("conflict_id", id))
	}
	if err := p.Dismiss(dot); err != nil {
		return err
	}
	return x.Done()
}

// findContradiction returns the contradiction in the path.
func findContradiction(x *call.Call) (found catalog.Contradiction, err error) {
	id := x.IDs["conflict_id"]
	err = call.UnknownIDError("conflict_id", id)
	failed := x.View().Contradictions(func(c catalog.Contradiction) bool {
		if c.Register.String() == id {
			found, err = c, nil
		}
		return err != nil
	})
	return found, errors.Join(failed, err)
}

// keeping returns the write that sets a value of a contradiction again. A deletion is repeated.
func keeping(c *catalog.Contradiction, i int) log.Body {
	v := &c.Values[i]
	switch c.Kind {
	case catalog.LabelRegister:
		return &log.InputLabels{Input: c.Dot, Labels: []log.Label{{Concept: c.Register.ID, Value: v.Label}}}
	case catalog.MetaRegister:
		write := log.MetaWrite{Path: c.Path, JSON: v.JSON}
		if v.JSON == nil {
			write.Action = log.MetaRemove
		}
		return &log.InputMeta{Input: c.Dot, Writes: []log.MetaWrite{write}}
	case catalog.PlaceRegister:
		return &log.InputGeo{Input: c.Dot, Geo: v.Geo}
	case catalog.ConceptNameRegister:
		return &log.ConceptName{ID: c.Register.ID, Name: v.Name}
	case catalog.ModelNameRegister:
		return &log.ModelPatch{Model: c.Dot, Name: &v.Name}
	}
	return &log.InputDelete{Input: c.Dot}
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
