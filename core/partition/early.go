package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Dots of the records with the clock of the last operation that deleted all inputs or all models. The clock is the maximum if the operation
// was not taken back in the order of the log, since its effect is unknown then.
var (
	allInputs = log.Dot{Seq: 1}
	allModels = log.Dot{Seq: 2}
)

// earlier is a deletion that the log has before the operation that makes the deleted thing.
type earlier struct {
	kill   *log.Op // operation that deletes the thing now; nil: none
	met    log.Dot // dot of the earlier deletion; zero: not recorded
	unsure bool    // it is unknown whether the thing was made before all of its kind were deleted
}

// early returns a deletion of the thing that op makes, if the log has one already. If existed is set, the log had the thing before, and a
// later operation that deletes all counts as deleting it.
func (p *Partition) early(op *log.Op, existed bool) (e earlier, err error) {
	var body log.Body
	all := log.Dot{}
	switch op.Body.(type) {
	case *log.InputCreate:
		body, all = &log.InputDelete{Input: op.Dot}, allInputs
	case *log.ModelCreate:
		body, all = &log.ModelDelete{Model: op.Dot}, allModels
	case *log.WorkflowCreate:
		body = &log.WorkflowDelete{Workflow: op.Dot}
	default:
		return e, nil
	}
	value, err := p.o.Store.Get(earlyKey(p.o.App, op.Dot))
	switch {
	case err == nil:
		met, err := log.Decode(bytes.Clone(value))
		if err != nil {
			return e, err
		}
		e.met = met.Dot
	case isMissing(err) && existed && all != (log.Dot{}):
		at, err := p.o.Store.Get(earlyKey(p.o.App, all))
		if err != nil || len(at) != 8 || log.HLC(binary.BigEndian.Uint64(at)) < op.At {
			return e, ignoreMissing(err)
		}
		e.unsure = true
	default:
		return e, ignoreMissing(err)
	}
	e.kill = &log.Op{At: p.clock.Next(), Body: body}
	return e, nil
}

// deletedEarly returns deletions of things that operations make, if a restored log has such deletions already. It adds records of early
// deletions and of refusals to the batch, and deletes the conflicts of operations that were lost until now. had are the operations as the
// log had them before; empty if it did not have them.
func (p *Partition) deletedEarly(ops, had []log.Op, batch **kv.Batch) (kills []log.Op, err error) {
	if p.replica != nil {
		return nil, nil
	}
	if _, restored := p.log.BackupHead(); !restored {
		return nil, p.noteUnknown(ops, batch)
	}
	if *batch == nil {
		*batch = &kv.Batch{}
	}
	for i := range ops {
		if err := p.unlist(*batch, &ops[i]); err != nil {
			return nil, err
		}
		e, err := p.early(&ops[i], len(had) > 0)
		if err != nil {
			return nil, err
		}
		if e.unsure {
			p.PutConflict(*batch, &Conflict{Op: ops[i], Verdict: fold.Verdict{Code: fold.Gone, Detail: lostFor + deletedAll}})
		}
		if e.kill == nil {
			if e, err = p.meets(&ops[i], *batch); err != nil {
				return nil, err
			}
		}
		if e.kill != nil {
			(*batch).Delete(conflictKey(p.o.App, e.met))
			e.kill.Dot = log.Dot{Writer: p.o.Site, Seq: p.last + 1 + uint64(len(kills))}
			kills = append(kills, *e.kill)
		}
	}
	if err := p.noteRefused(*batch, ops, had); err != nil {
		return nil, err
	}
	return kills, p.noteEarly(*batch, ops, false, false)
}

// noteUnknown records deletions of things that the log lacks: its disk may have been rolled back without notice.
func (p *Partition) noteUnknown(ops []log.Op, batch **kv.Batch) error {
	for i := range ops {
		switch ops[i].Body.(type) {
		case *log.InputDelete, *log.ModelDelete, *log.WorkflowDelete:
			if *batch == nil {
				*batch = &kv.Batch{}
			}
			if err := p.noteEarly(*batch, ops[i:i+1], false, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlist deletes the conflict of an operation that a replica returned before its predecessors. The log takes the operation now.
func (p *Partition) unlist(b *kv.Batch, op *log.Op) error {
	key := conflictKey(p.o.App, op.Dot)
	value, err := p.o.Store.Get(key)
	if err != nil {
		return ignoreMissing(err)
	}
	c, err := readConflict(bytes.Clone(value))
	if _, refused := op.Body.(*log.Refused); err != nil || refused || !strings.HasPrefix(c.Verdict.Detail, lostFor) {
		return err
	}
	now := []log.Op{c.Op}
	if err = p.ResolveNames(now); err == nil && sameOp(op, &now[0]) {
		b.Delete(key)
	}
	return err
}

// deletedAll is the reason for deleting a thing that came back after an operation that deletes all.
const deletedAll = "all were deleted, perhaps before this was made"

// noteEarly records those deletions in ops, which are appended next, whose things the log may lack. With exact, operations that delete all
// keep their places in the log, so they deleted nothing else.
func (p *Partition) noteEarly(b *kv.Batch, ops []log.Op, ordered, exact bool) error {
	clock := func(op *log.Op) log.HLC {
		if ordered {
			return op.At
		}
		return math.MaxUint64
	}
	dots := map[log.Dot]bool{}
	for i := range ops {
		dots[ops[i].Dot] = true
		dot := log.Dot{}
		switch x := ops[i].Body.(type) {
		case *log.InputDelete:
			dot = x.Input
		case *log.ModelDelete:
			dot = x.Model
		case *log.WorkflowDelete:
			dot = x.Workflow
		case *log.InputDeleteAll:
			if exact || x.Upto != nil { // the fold deletes by names
				break
			}
			if err := p.noteAll(b, allInputs, clock(&ops[i])); err != nil {
				return err
			}
		case *log.ModelDeleteAll:
			if exact {
				break
			}
			if err := p.noteAll(b, allModels, clock(&ops[i])); err != nil {
				return err
			}
		}
		if dot == (log.Dot{}) || dots[dot] || dot.Writer == p.o.Site {
			continue
		}
		if err := p.noteOne(b, dot, &ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// noteOne records the deletion of a thing that the log may lack, unless one is recorded already.
func (p *Partition) noteOne(b *kv.Batch, dot log.Dot, op *log.Op) error {
	h, err := p.siteProgress(dot.Writer)
	if err != nil || dot.Seq <= h.seq {
		return err
	}
	if _, err = p.o.Store.Get(earlyKey(p.o.App, dot)); err == nil {
		return nil
	}
	b.Put(earlyKey(p.o.App, dot), log.Encode(nil, op))
	last, moved, failed := p.lastBeforeMove(dot.Writer)
	if moved && dot.Seq > last {
		failed = p.listDeletion(b, op)
	}
	return errors.Join(ignoreMissing(err), failed)
}

// deletesAll records this log's operations that delete, while the log may still take back things that they should delete.
func (p *Partition) deletesAll(ops []log.Op, batch **kv.Batch) error {
	if _, restored := p.log.BackupHead(); !restored || p.replica != nil {
		return nil
	}
	if *batch == nil {
		*batch = &kv.Batch{}
	}
	return p.noteEarly(*batch, ops, false, false)
}

// noteAll records the clock of an operation that deletes all.
func (p *Partition) noteAll(b *kv.Batch, all log.Dot, at log.HLC) error {
	key := earlyKey(p.o.App, all)
	have, err := p.o.Store.Get(key)
	if err == nil && len(have) == 8 && log.HLC(binary.BigEndian.Uint64(have)) >= at {
		return nil
	}
	b.Put(key, binary.BigEndian.AppendUint64(nil, uint64(at)))
	return ignoreMissing(err)
}
