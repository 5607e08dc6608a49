// Package replica has the calls about a replica of an application: its distance from its origin, its operations that wait for the origin, and
// its operations that the log accepted with another result or not at all. Only the replica has this data, so an origin answers these calls
// like unknown paths. Every host lists the devices that it knows.
//
//	submitted ──▶ queued ──push──▶ sent ──origin's log──▶ confirmed
//	              └──── outbox ───────┘                       └──▶ conflicts, until they are dismissed
//
// The list of conflicts also has the contradictions of the state: values whose makers did not know of each other's. Every host has these, the
// origin included, until a person keeps one of the values.
package replica

import (
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

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
	h, err := x.View().Header()
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
		show.WriteInt(w, "conflicts", conflicts+int(h.Contradictions))
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
