package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// returned is an entry that the log had before it was restored from the backup with which all runs begin. A replica gives it back, and the
// log lists its operation as a conflict.
type returned struct {
	dot   log.Dot
	frame partition.Frame
}

// Numbers of the returned entries.
const (
	returns      = 8
	returnBefore = keepOffline * 2 / 3 // later a horizon may drop the names of the entries
)

// entriesToReturn appends entries to the application's log, which the backup lacks.
func entriesToReturn(e *core.Engine, app catalog.AppID) (list []returned, err error) {
	origin, err := e.Origin(app.String())
	if err != nil {
		return nil, err
	}
	writer := partition.WriterOf(app, make([]byte, partition.SecretSize))
	for i := range uint64(returns) {
		op := log.Op{
			Dot: log.Dot{Writer: writer, Seq: i + 1}, At: log.HLC(epoch.UnixMilli())<<16 + log.HLC(i), By: "key",
			Body: &log.InputMeta{Input: log.Dot{Writer: writer, Seq: 1000}, Writes: []log.MetaWrite{{JSON: []byte("{}")}}}, // of no input
		}
		verdicts, to, err := origin.Accept(context.Background(), []log.Op{op}, nil)
		if err == nil && verdicts[0].Code == fold.OK {
			err = fmt.Errorf("operation %d is no conflict", op.Dot.Seq)
		}
		if err != nil {
			return nil, err
		}
		before, err := origin.Log().Chain(to - 1)
		if err != nil {
			return nil, err
		}
		chain, err := origin.Log().Chain(to)
		if err != nil {
			return nil, err
		}
		list = append(list, returned{op.Dot, partition.Frame{
			Epoch: origin.Opening(), From: to - 1, To: to, Before: before, Chain: chain, Rows: log.EncodeRows([]log.Op{op}), Seal: origin.Seal(to, chain),
		}})
	}
	return list, nil
}

// giveBack lets a replica give an entry back, perhaps again. A client sometimes dismisses the conflict at once.
func (w *world) giveBack(p *process) error {
	if w.at > returnBefore {
		return nil
	}
	origin, err := p.engine.Origin(w.app.String())
	if err != nil {
		return err
	}
	w.stats.Returned++
	back := w.returned[w.rng.IntN(len(w.returned))]
	err = origin.TakeBack(context.Background(), &partition.Returned{Opening: origin.Opening(), Frames: []partition.Frame{back.frame}}, nil)
	if err != nil {
		return err
	}
	w.listed[back.dot] = true
	if w.rng.IntN(2) == 0 {
		return w.dismissConflict(origin, back.dot)
	}
	return nil
}

// dismiss dismisses a listed conflict.
func (w *world) dismiss(p *process) error {
	origin, err := p.engine.Origin(w.app.String())
	if err != nil {
		return err
	}
	for i := range w.returned {
		if dot := w.returned[i].dot; w.listed[dot] && w.dismissals[dot] == 0 {
			return w.dismissConflict(origin, dot)
		}
	}
	return nil
}

func (w *world) dismissConflict(origin *partition.Origin, dot log.Dot) error {
	w.dismissals[dot]++
	err := origin.Dismiss(dot)
	switch {
	case err == nil:
		w.stats.Dismissed++
		w.dismissed[dot] = true
	case errors.Is(err, kv.ErrFollows):
		w.dismissals[dot]--
	}
	return err
}

// checkConflicts checks that the list of conflicts has the acknowledged ones, and none that was dismissed.
func (o *oracle) checkConflicts(p *partition.Origin) error {
	conflicts, err := listConflicts(p)
	if err != nil {
		return err
	}
	has := map[log.Dot]bool{}
	for _, dot := range conflicts {
		if has[dot] = true; o.dismissed[dot] {
			return fmt.Errorf("the dismissed conflict of operation %d is listed again", dot.Seq)
		}
	}
	for dot := range o.listed {
		if !has[dot] && o.dismissals[dot] == 0 {
			return fmt.Errorf("the conflict of operation %d is lost", dot.Seq)
		}
	}
	return nil
}

// listConflicts returns the operations that a node lists as conflicts.
func listConflicts(p *partition.Origin) (dots []log.Dot, err error) {
	err = p.Conflicts(func(c partition.Conflict) bool {
		dots = append(dots, c.Op.Dot)
		return true
	})
	return dots, err
}
