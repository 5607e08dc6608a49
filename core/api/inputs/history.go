package inputs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// History lists the operations that created and changed an input, by their stamps, newest first. They come from the log, and at a replica
// also from its local operations. If some are missing, the stamps in the input's record replace them. For a deleted input the answer has only
// the author and the time of its deletion, if known.
func History(x *call.Call) error {
	h, err := newHistory(x)
	if err != nil {
		return err
	}
	complete, err := h.find()
	if err != nil {
		return err
	}
	rows := call.PageRows(h.all, h.page)
	if err := h.fill(rows); err != nil {
		return err
	}
	return h.answer(rows, len(h.all), complete, x.IDs["input_id"])
}

// Limits of the newest operations.
const (
	maxNewest   = 50     // listed operations
	newestAmong = 20_000 // entries that are read to find them
)

// Newest lists the newest operations of an application without results and upkeep: at a replica the pending ones and then those of the log
// that are stored here.
func Newest(x *call.Call) error {
	h, err := newHistory(x)
	if err != nil {
		return err
	}
	var rows []past
	total, read, first := 0, 0, uint64(0)
	err = h.newest(func(e log.Entry) bool {
		read, first = read+1, e.Seq
		if isRequest(e.Op.Body) {
			if h.page.Has(int64(total)) {
				show.ReserveOp(x, &e.Op)
				rows = append(rows, past{Entry: e})
			}
			total++
		}
		return total < maxNewest && read < newestAmong
	})
	if err != nil {
		return err
	}
	h.writer = show.OpWriter{X: x, View: x.View()}
	if err := h.writer.View.Contradictions(h.noteLost); err != nil {
		return err
	}
	return h.answer(rows, total, total == maxNewest || first == 1, "")
}

// isRequest reports whether a body is a change that a person or a program wanted. The others are results, feedback and upkeep of the log.
func isRequest(body log.Body) bool {
	kind, _ := log.SubjectOf(body)
	switch body.(type) {
	case *log.InputFetched, *log.VersionResult:
		return false
	case *log.InputDeleteAll, *log.ModelDeleteAll:
		return true
	}
	return kind != log.NoSubject
}

// newest yields the operations that are stored here, newest first, until yield returns false: at a replica the pending ones, whose Seq is 0,
// and then the kept entries of the log.
func (h *history) newest(yield func(log.Entry) bool) error {
	if h.copy == nil {
		return h.x.App.Origin.Log().Newest(yield)
	}
	var pending []log.Entry
	err := h.copy.Pending(0, func(_ uint64, op log.Op) bool {
		pending = append(pending[max(len(pending)-maxNewest+1, 0):], log.Entry{Op: op})
		return true
	})
	if err != nil || !backward(pending, yield) {
		return err
	}
	failed := h.copy.NewestKept(func(_ uint64, f partition.Frame) bool {
		var entries []log.Entry
		entries, err = log.DecodeRows(f.Rows, f.From)
		return backward(entries, yield) && err == nil
	})
	return errors.Join(failed, err)
}

// backward yields entries, the last first, until yield returns false, and reports whether it returned true.
func backward(entries []log.Entry, yield func(log.Entry) bool) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		if !yield(entries[i]) {
			return false
		}
	}
	return true
}

// newHistory returns the history for a call, with the page that it asks for and without operations.
func newHistory(x *call.Call) (h history, err error) {
	h = history{x: x, partition: x.App.Origin, copy: x.App.Replica, lost: map[log.Stamp]int{}}
	if h.page, err = x.Page(); err != nil {
		return h, err
	}
	if h.copy != nil {
		h.partition = h.copy
		_, h.syncStatus, err = x.Replica()
	}
	return h, err
}

// answer answers with operations that are a page of total ones. id is the id of their subject, or empty if they have several.
func (h *history) answer(rows []past, total int, complete bool, id string) error {
	for i := range rows {
		if err := h.learn(&rows[i], id); err != nil {
			return err
		}
	}
	return h.x.OK(func(w *jsonio.Writer) {
		show.WriteInt(w, "total", total)
		w.Name("complete")
		w.Bool(complete)
		w.List("operations", len(rows), func(i int) { h.write(w, &rows[i]) })
	})
}

// noteLost counts the values of a contradiction that do not serve.
func (h *history) noteLost(c catalog.Contradiction) bool {
	serves := c.Serves()
	for i, v := range c.Values {
		if i != serves {
			h.lost[log.Stamp{At: v.At.MadeAt(), Writer: v.At.Writer}]++
		}
	}
	return true
}

// history is the history of one input, or the newest part of an application's.
type history struct {
	x          *call.Call
	page       call.Page
	partition  operations
	copy       *partition.Replica // nil at an origin
	syncStatus call.SyncStatus    // of a replica
	writer     show.OpWriter
	all        []past
	input      log.Dot           // dot of the input
	lost       map[log.Stamp]int // number of writes that contradict others and do not serve, by the clock that their makers gave them
}

// operations is the log of an origin or the outbox of a replica. *partition.Origin and *partition.Replica implement it.
type operations interface {
	History(input log.Dot, yield func(log.Entry) bool) (complete bool, err error)
	LastDeletion(id string) (by log.Entry, known bool, err error)
}

// past is an operation and its result.
type past struct {
	log.Entry         // Seq is its position in the log; 0: it has none, or it is unknown here
	state      string // queued, sent or confirmed
	verdict    string // result, if it differs from the intended one
	remembered bool   // known only from the input's record, with its part that is still in force
	missing    bool   // only the stamp is known; fill reads the rest
}

// find reads the operations on the input in the path, and reports whether they are complete.
func (h *history) find() (complete bool, err error) {
	v, in, pathErr := inputOfPath(h.x)
	h.writer = show.OpWriter{X: h.x, View: v}
	if pathErr == nil {
		return h.collect(&in)
	}
	if !errors.Is(pathErr, call.ErrPath) {
		return false, pathErr
	}
	by, known, err := h.partition.LastDeletion(h.x.IDs["input_id"])
	if err == nil && !known {
		err = pathErr
	}
	h.all = []past{{Entry: by}}
	return false, err
}

// collect reads the operations on in, newest first, and reports whether they are complete.
func (h *history) collect(in *catalog.Input) (complete bool, err error) {
	known := map[log.Stamp]bool{}
	h.input = in.Dot
	complete, err = h.partition.History(in.Dot, func(e log.Entry) bool {
		h.all = append(h.all, past{Entry: log.Entry{Seq: e.Seq, Op: log.Op{Dot: e.Op.Dot, At: e.Op.At}}, missing: true})
		known[e.Op.Stamp()] = true
		return true
	})
	if err != nil {
		return false, err
	}
	if !complete {
		for _, op := range in.PastOps() {
			if !known[op.Stamp()] {
				h.all = append(h.all, past{Entry: log.Entry{Op: op}, remembered: true})
			}
		}
	}
	slices.SortStableFunc(h.all, func(a, b past) int {
		return cmp.Or(cmp.Compare(b.Op.At, a.Op.At), cmp.Compare(b.Op.Dot.Writer, a.Op.Dot.Writer))
	})
	return complete, h.writer.View.ContradictionsOf(in.Dot, h.noteLost)
}

// countWrites returns the number of registers that an operation on an input writes.
func countWrites(body log.Body) int {
	switch b := body.(type) {
	case *log.InputLabels:
		return len(b.Labels)
	case *log.InputMeta:
		return len(b.Writes)
	}
	return 1
}

// fill reads the missing parts of the operations on a page.
func (h *history) fill(rows []past) error {
	places := map[log.Stamp]*past{}
	for i := range rows {
		if rows[i].missing {
			places[rows[i].Op.Stamp()] = &rows[i]
		} else {
			show.ReserveOp(h.x, &rows[i].Op)
		}
	}
	if len(places) == 0 {
		return nil
	}
	_, err := h.partition.History(h.input, func(e log.Entry) bool {
		if p := places[e.Op.Stamp()]; p != nil {
			show.ReserveOp(h.x, &e.Op)
			p.Entry = e
			delete(places, e.Op.Stamp())
		}
		return len(places) > 0
	})
	if err == nil && len(places) > 0 {
		err = fmt.Errorf("%w: the log was trimmed while it was read", call.ErrBusy)
	}
	return err
}

// learn looks up the names in an operation, and its state and result.
func (h *history) learn(p *past, id string) error {
	p.state = "confirmed"
	if n := h.lost[log.Stamp{At: p.Op.MadeAt(), Writer: p.Op.Dot.Writer}]; n > 0 && n == countWrites(p.Op.Body) {
		p.verdict = fold.Superseded.String()
	}
	if err := h.writer.Learn(&p.Op, id); err != nil || h.copy == nil || p.remembered {
		return err
	}
	switch at := h.copy.Position(p.Op.Dot); {
	case at > h.syncStatus.Accepted:
		p.state = "queued"
	case at > h.syncStatus.Folded:
		p.state = "sent"
	}
	c, err := h.copy.Conflict(p.Op.Dot)
	if err == nil {
		p.Seq, p.verdict = c.Seq, c.Verdict.Code.String()
	}
	return call.ReplaceNotFound(err, nil)
}

func (h *history) write(w *jsonio.Writer, p *past) {
	w.Object()
	h.writer.Write(w, &p.Op)
	show.WriteText(w, "state", p.state)
	if p.Seq > 0 {
		show.WriteInt(w, "position", p.Seq)
	}
	show.WriteText(w, "verdict", p.verdict)
	show.WriteTrue(w, "remembered", p.remembered)
	w.End('}')
}
