package api

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// readHistory lists the operations that made an input and have changed it since, newest first: those of the log, and
// at a copy its own as long as they are here.
func readHistory(x *exchange) error {
	page, err := x.paged()
	if err != nil {
		return err
	}
	v := x.view()
	defer v.Close()
	in, err := x.inputOfPath(v)
	if err != nil {
		return err
	}
	h := history{x: x, partition: x.app.Partition, copy: x.app.Partition.Copied(), told: tell{x: x, view: v}}
	if h.copy {
		if h.partition, h.standing, err = x.copied(); err != nil {
			return err
		}
	}
	var all []log.Entry
	whole, err := h.partition.History(in.Dot, func(e log.Entry) bool {
		all = append(all, e)
		return true
	})
	if err != nil {
		return err
	}
	rows := cut(all, page)
	for i := range rows {
		if err := h.told.learn(&rows[i].Op, in.ID); err != nil {
			return err
		}
	}
	states := make([]past, len(rows))
	for i := range rows {
		if states[i], err = h.became(&rows[i]); err != nil {
			return err
		}
	}
	x.ok(func(w *jsonio.Writer) {
		count(w, "total", uint64(len(all)))
		w.Name("complete")
		w.Bool(whole)
		w.Name("operations")
		w.Array()
		for i := range rows {
			h.write(w, &rows[i], states[i])
		}
		w.End(']')
	})
	return nil
}

// history is that of one input.
type history struct {
	x         *exchange
	partition *partition.Partition
	copy      bool
	standing  Standing // of a copy
	told      tell
}

// past is what became of an operation.
type past struct {
	state    string // of the three that an operation goes through
	position uint64 // in the log; 0: it has none, or it is not known here
	verdict  string // where it is not the one that was meant
}

func (h *history) became(e *log.Entry) (past, error) {
	is := past{state: "confirmed", position: e.Seq}
	if !h.copy {
		return is, nil
	}
	switch seq := e.Op.Dot.Seq; {
	case seq > h.standing.Accepted:
		is.state = "queued"
	case seq > h.standing.Folded:
		is.state = "sent"
	}
	c, err := h.partition.Conflict(e.Op.Dot)
	if errors.Is(err, catalog.ErrNotFound) {
		return is, nil
	}
	is.position, is.verdict = c.Seq, c.Verdict.Code.String()
	return is, err
}

func (h *history) write(w *jsonio.Writer, e *log.Entry, is past) {
	w.Object()
	h.told.operation(w, &e.Op)
	member(w, "state", is.state)
	if is.position > 0 {
		count(w, "position", is.position)
	}
	member(w, "verdict", is.verdict)
	w.End('}')
}
