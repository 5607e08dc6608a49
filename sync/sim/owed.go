package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// removedOp is an operation that a restore or rollback of the origin removed from the log, and that some replicas have stored.
type removedOp struct {
	data    []byte       // operation as the log had it
	holders map[int]bool // numbers of the replicas that have stored it
	idle    bool         // its verdict was a conflict, so that its blobs may have been deleted
}

// scanKept yields the operations of the log that a replica keeps: entries of frames, and its own operations, with entry 0.
func (r *party) scanKept(yield func(e log.Entry)) error {
	var failed error
	err := r.part.KeptAfter(0, func(_ uint64, f partition.Frame) bool {
		var entries []log.Entry
		entries, failed = log.DecodeRows(f.Rows, f.From)
		for i := range entries {
			yield(entries[i])
		}
		return failed == nil
	})
	if err = cmp.Or(failed, err); err != nil {
		return err
	}
	return r.part.LocalOps(0, func(_ uint64, op log.Op) bool {
		yield(log.Entry{Op: op})
		return true
	})
}

// recordLost adds to w.owed the operations that the log before has, that the log after lacks, and that a running replica has stored. It
// skips replicas with unsynced data, which they may lose, and edges that were ever revoked.
func (w *world) recordLost(before, after *oracle) error {
	for _, r := range w.parties {
		disk, ok := r.disk.(*Memory)
		if !ok || !r.up || r.edge != nil && r.edge.was || disk.durable < len(disk.batches) {
			continue
		}
		err := r.scanKept(func(e log.Entry) {
			op := e.Op
			seq := before.at[op.Dot]
			if seq == 0 || after.at[op.Dot] != 0 || e.Seq > 0 && r.small { // a small replica may drop entries before it offers them
				return
			}
			if before.entries[seq-1].Op.MadeAt() != op.MadeAt() { // the replica gave the name twice, and has the other operation
				return
			}
			x := w.owedOps[op.Dot]
			if x == nil {
				x = &removedOp{data: log.Encode(nil, &before.entries[seq-1].Op), holders: map[int]bool{}, idle: conflicts(before.codes[seq-1])}
				w.owedOps[op.Dot] = x
			}
			x.holders[r.number] = true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drop removes a replica from the holders of owed operations, because its data was replaced or deleted. Operations without a holder are no
// longer owed.
func (w *world) drop(r *party) {
	maps.DeleteFunc(w.owedOps, func(_ log.Dot, x *removedOp) bool {
		delete(x.holders, r.number)
		return len(x.holders) == 0
	})
}

// checkRemoved checks that the log has each owed and each promised operation, or that the origin lists it as a conflict. No input lives whose
// deletion the log has.
func (w *world) checkRemoved() error {
	o := w.oracle
	listed, err := conflictsOf(w.origin.part.Partition)
	if err != nil {
		return err
	}
	w.stats.Owed += len(w.owedOps)
	for dot, x := range w.owedOps {
		was, err := log.Decode(x.data)
		if err != nil {
			return err
		}
		if o.has(dot, was.MadeAt()) {
			continue
		}
		w.stats.Listed++
		if _, refused := was.Body.(*log.Refused); !refused && listed[dot] == 0 {
			return fmt.Errorf("I2: operation %v, %T, was in the log, replicas %v hold it, and it is neither in the log nor listed", dot, was.Body, slices.Sorted(maps.Keys(x.holders)))
		}
	}
	for _, r := range w.parties {
		if r.purged {
			continue
		}
		own, err := conflictsOf(r.part.Partition)
		if err != nil {
			return err
		}
		for _, dot := range r.promised {
			if listed[dot] == 0 && !o.hasIssue(dot) && (own[dot] == 0 || !w.o.Memory) {
				return fmt.Errorf("I2: operation %v was promised by replica %d and is neither in the log nor listed", dot, r.number)
			}
		}
	}
	return o.checkResurrections()
}

// conflictsOf returns the verdicts of the conflicts that a party lists.
func conflictsOf(p *partition.Partition) (map[log.Dot]fold.Code, error) {
	codes := map[log.Dot]fold.Code{}
	err := p.Conflicts(func(c partition.Conflict) bool {
		codes[c.Op.Dot] = c.Verdict.Code
		return true
	})
	return codes, err
}

// checkResurrections returns an error if an input lives whose deletion the log has, before or after it.
func (o *oracle) checkResurrections() error {
	live := map[log.Dot]bool{}
	for _, dot := range o.model.Inputs() {
		live[dot] = true
	}
	for i := range o.entries {
		switch b := o.entries[i].Op.Body.(type) {
		case *log.InputDelete:
			if live[b.Input] && !o.isForgotten(i, b.Input) {
				return fmt.Errorf("I4: input %v lives, and entry %d deletes it", b.Input, i+1)
			}
		case *log.InputDeleteAll:
			for dot := range live {
				if b.Covers(dot) && !o.isReused(i, dot) {
					return fmt.Errorf("I4: input %v lives, and entry %d deletes all up to it", dot, i+1)
				}
			}
		}
	}
	return nil
}

// isForgotten reports whether a horizon forgot the deletion at index i of the log before the input came: its maker had a clock that was further
// ahead than a horizon is behind.
func (o *oracle) isForgotten(i int, input log.Dot) bool {
	if o.isReused(i, input) {
		return true
	}
	deleted, made := o.entries[i].Op.MadeAt(), o.entries[o.at[input]-1].Op.MadeAt()
	h, err := catalog.Read(o.states[o.at[input]-1], o.app).Header()
	return err == nil && deleted < h.Horizon && deleted < made
}

// isReused reports whether the name of an input was given twice, and came after the entry at index i of the log. A horizon forgot the first use
// before, so the second one is another input.
func (o *oracle) isReused(i int, input log.Dot) bool {
	return o.isUsed(input) && slices.ContainsFunc(o.entries[i:], func(e log.Entry) bool { return e.Op.Dot == input })
}

// conflicts reports whether a verdict is a conflict.
func conflicts(code fold.Code) bool { return code != fold.OK && code != fold.Superseded }

// checkStored checks that a replica has stored the entries that it pulled or received with a snapshot, and that a restore of the origin may
// remove. It does not check small replicas.
func (w *world) checkStored(r *party) error {
	c, o := r.part.Cursor(), w.log(r)
	if r.small {
		return nil
	}
	stored := map[uint64]bool{}
	err := r.scanKept(func(e log.Entry) {
		if seq := e.Seq; seq > 0 && seq <= o.head() && bytes.Equal(log.Encode(nil, &e.Op), log.Encode(nil, &o.entries[seq-1].Op)) {
			stored[seq] = true
		}
	})
	if err != nil {
		return err
	}
	for seq := max(c.Stable, r.base) + 1; seq <= c.Seq; seq++ {
		rolled := seq > w.oracle.head() || o.chains[seq] != w.oracle.chains[seq] // lost between the snapshot and its entries
		if !stored[seq] && !rolled {
			return fmt.Errorf("I2: replica %d has pulled entry %d and does not keep it", r.number, seq)
		}
	}
	return nil
}
