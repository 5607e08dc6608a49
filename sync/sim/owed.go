package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// removedOp is an operation that a restore or rollback of the origin removed from the log, and that some replicas have stored.
type removedOp struct {
	data    []byte             // operation as the log had it
	holders map[int]bool       // numbers of the replicas that have stored it
	entry   bool               // whether one of them pulled it as an entry
	logs    map[log.Epoch]bool // epochs of the logs from which one of them pulled it
	idle    bool               // its verdict was a conflict, so that its blobs may have been deleted
}

// scanStored yields the operations of the log that a replica has stored: entries that it pulled, and its own operations, with a nil k.
func (r *party) scanStored(yield func(op log.Op, k *partition.StoredEntry)) error {
	err := r.part.EntriesAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
		yield(k.Op, &k)
		return true
	})
	if err != nil {
		return err
	}
	sites, err := r.part.ConfirmedSites()
	for _, site := range sites {
		if err == nil {
			err = r.part.ConfirmedAfter(site, 0, func(op log.Op) bool {
				yield(op, nil)
				return true
			})
		}
	}
	return err
}

// owe adds to w.owed the operations that the log before has, that the log after lacks, and that a running replica has stored. It skips
// replicas with unsynced data, which they may lose, and edges that were ever revoked.
func (w *world) owe(before, after *oracle) error {
	for _, r := range w.parties {
		disk, ok := r.disk.(*Memory)
		if !ok || !r.up || r.edge != nil && r.edge.was || disk.durable < len(disk.batches) {
			continue
		}
		err := r.scanStored(func(op log.Op, k *partition.StoredEntry) {
			seq := before.at[op.Dot]
			if seq == 0 || after.at[op.Dot] != 0 || k != nil && r.small { // a small replica may drop entries before it offers them
				return
			}
			x := w.owedOps[op.Dot]
			if x == nil {
				x = &removedOp{
					data: log.Encode(nil, &before.entries[seq-1].Op), holders: map[int]bool{}, logs: map[log.Epoch]bool{}, idle: conflicts(before.codes[seq-1]),
				}
				w.owedOps[op.Dot] = x
			}
			x.holders[r.number] = true
			if k != nil {
				x.entry = true
				x.logs[before.epoch] = x.logs[before.epoch] || k.At.Seq == seq && k.Before == before.chains[seq-1]
			}
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

// checkRemoved checks that the log has each owed and each promised operation, or that the origin lists it as a conflict. The origin must not
// list an operation as lost that the log has. No input lives whose deletion the log has.
func (w *world) checkRemoved() error {
	listed := map[log.Dot]log.Op{}
	o := w.oracle
	var wrong error
	err := w.origin.part.Conflicts(func(c partition.Conflict) bool {
		listed[c.Op.Dot] = c.Op
		lost := strings.HasSuffix(c.Verdict.Detail, "operations before it are lost")
		if seq := o.at[c.Op.Dot]; lost && seq != 0 && o.same(&c.Op, &o.entries[seq-1].Op) {
			wrong = fmt.Errorf("I2: operation %v, %T, is entry %d and is listed as lost: %s", c.Op.Dot, c.Op.Body, seq, c.Verdict.Detail)
		}
		return wrong == nil
	})
	if err = cmp.Or(wrong, err); err != nil {
		return err
	}
	w.stats.Owed += len(w.owedOps)
	for dot, x := range w.owedOps {
		seq := o.at[dot]
		if seq != 0 && bytes.Equal(log.Encode(nil, &o.entries[seq-1].Op), x.data) {
			continue
		}
		w.stats.Listed++
		was, err := log.Decode(x.data)
		if err != nil {
			return err
		}
		if op, ok := listed[dot]; ok && w.oracle.same(&was, &op) {
			continue
		}
		if _, refused := was.Body.(*log.Refused); refused {
			continue
		}
		if seq != 0 && o.same(&was, &o.entries[seq-1].Op) { // its site sent it again, with another clock
			continue
		}
		if w.sentAgain(was) {
			continue
		}
		if b, ok := o.refusal(seq); ok && x.idle && strings.HasPrefix(b.Reason, "blob:") {
			continue
		}
		return fmt.Errorf("I2: operation %v, %T, was in the log, replicas %v hold it, and it is neither in the log nor listed", dot, was.Body, slices.Sorted(maps.Keys(x.holders)))
	}
	for _, r := range w.parties {
		for _, dot := range r.promised {
			if _, ok := listed[dot]; !ok && !r.purged && o.at[dot] == 0 {
				return fmt.Errorf("I2: operation %v was promised by replica %d and is neither in the log nor listed", dot, r.number)
			}
		}
	}
	for _, old := range w.logs {
		if err := w.checkResurrections(old); err != nil {
			return err
		}
	}
	return nil
}

// conflicts reports whether a verdict is a conflict.
func conflicts(code fold.Code) bool { return code != fold.OK && code != fold.Superseded }

// refusal returns the body of an entry that is a refusal, and false for other entries and for 0.
func (o *oracle) refusal(seq uint64) (b *log.Refused, ok bool) {
	if seq > 0 {
		b, ok = o.entries[seq-1].Op.Body.(*log.Refused)
	}
	return b, ok
}

// sentAgain reports whether the log has an operation under a new dot, because its replica moved to another site and sent it again.
func (w *world) sentAgain(op log.Op) bool { return w.sentBy(op, w.moves) }

// sentBy is sentAgain for some of the moves. It tries all of them, because two replicas that had one site have moved to different ones.
func (w *world) sentBy(op log.Op, moves []move) bool {
	for i, m := range moves {
		if m.name(op.Dot) == op.Dot {
			continue
		}
		as, err := log.Decode(log.Encode(nil, &op))
		if err != nil {
			return false
		}
		as.Dot = m.name(op.Dot)
		log.Rename(as.Body, m.name)
		if seq := w.oracle.at[as.Dot]; seq != 0 && sameBody(&as, &w.oracle.entries[seq-1].Op) || w.sentBy(as, moves[i+1:]) {
			return true
		}
	}
	return false
}

// movedName returns the dot of an operation after all moves of its replica to other sites. Without a move it returns d.
func (w *world) movedName(d log.Dot) log.Dot {
	for _, m := range w.moves {
		d = m.name(d)
	}
	return d
}

// same reports whether two operations are equal except for their clocks and By. A replica may have sent things again from another site; an operation
// may name these by their old or new dots.
func (o *oracle) same(a, b *log.Op) bool {
	if sameBody(a, b) || o.moved == nil {
		return sameBody(a, b)
	}
	newest := func(op *log.Op) (clone log.Op, err error) {
		if clone, err = log.Decode(log.Encode(nil, op)); err == nil {
			log.Rename(clone.Body, o.moved)
		}
		return clone, err
	}
	x, errX := newest(a)
	y, errY := newest(b)
	for _, op := range []*log.Op{&x, &y} {
		if all, ok := op.Body.(*log.InputDeleteAll); ok { // each move adds the new name of an input to the old one
			all.Upto = nil
		}
	}
	return errX == nil && errY == nil && sameBody(&x, &y)
}

// sameBody reports whether two operations are equal except for their clocks and By.
func sameBody(a, b *log.Op) bool {
	x := *a
	x.At, x.By, x.Made = b.At, b.By, b.Made
	return bytes.Equal(log.Encode(nil, &x), log.Encode(nil, b))
}

// checkResurrections returns an error if an input lives that the earlier log old deleted, although the current log has the deletion and a
// replica had pulled it.
func (w *world) checkResurrections(old *oracle) error {
	o := w.oracle
	live := map[log.Dot]bool{}
	for _, dot := range o.model.Inputs() {
		live[dot] = true
	}
	for dot, at := range old.killed {
		by := &old.entries[at-1].Op
		switch by.Body.(type) {
		case *log.InputDelete, *log.InputDeleteAll:
		default:
			continue
		}
		x, creation := w.owedOps[by.Dot], w.owedOps[dot]
		if x == nil || !x.entry {
			continue // no replica has pulled the deletion
		}
		if all, ok := by.Body.(*log.InputDeleteAll); ok && all.Upto == nil && (!x.logs[old.epoch] || creation == nil || !creation.entry || w.follows(dot, by.Dot) ||
			by.At < old.entries[old.at[dot]-1].Op.At && !x.together(creation)) {
			continue // no replica can know that the input was created before the deletion of all
		}
		if w.hasSurvived(dot, by.Dot) {
			continue
		}
		seq := o.at[by.Dot]
		if live[dot] && seq != 0 && o.same(by, &o.entries[seq-1].Op) {
			return fmt.Errorf("I4: input %v was deleted by %v %T before the log was restored, and lives", dot, by.Dot, by.Body)
		}
		// A log may have the operation under its old dot, too: a restore lost the log that had the replica's first move, and the replica
		// moved again. This is no error.
		if now := w.movedName(dot); now != dot && live[now] && o.at[dot] == 0 && seq != 0 && o.same(by, &o.entries[seq-1].Op) && !w.origin.listed[by.Dot] && w.same(old, dot, now) {
			return fmt.Errorf("I4: input %v was deleted by %v %T before the log was restored, lives as %v, and the deletion is not listed", dot, by.Dot, by.Body, now)
		}
	}
	return nil
}

// same reports whether the operation called name in the current log is the operation dot of the log old, sent again after moves.
func (w *world) same(old *oracle, dot, name log.Dot) bool {
	was, err := log.Decode(log.Encode(nil, &old.entries[old.at[dot]-1].Op))
	if err != nil {
		return false
	}
	was.Dot = name
	log.Rename(was.Body, w.movedName)
	return sameBody(&was, &w.oracle.entries[w.oracle.at[name]-1].Op)
}

// follows reports whether an earlier log has the operation dot after the operation other.
func (w *world) follows(dot, other log.Dot) bool {
	return slices.ContainsFunc(w.logs, func(o *oracle) bool { return o != w.oracle && o.at[other] != 0 && o.at[other] < o.at[dot] })
}

// together reports whether one replica has stored both operations, and so knows their order.
func (x *removedOp) together(y *removedOp) bool {
	for r := range x.holders {
		if y.holders[r] {
			return true
		}
	}
	return false
}

// hasSurvived reports whether an earlier log created an input after a deletion, and did not delete it.
func (w *world) hasSurvived(input, deletion log.Dot) bool {
	return slices.ContainsFunc(w.logs, func(o *oracle) bool {
		at := o.at[deletion]
		return o != w.oracle && at != 0 && at < o.at[input] && o.killed[input] == 0
	})
}

// checkStored checks that a replica has stored the entries that it pulled or received with a snapshot, and that a restore of the origin may
// remove. It does not check small replicas.
func (w *world) checkStored(r *party) error {
	c, o := r.part.Cursor(), w.log(r)
	if c.Epoch != r.part.StoredEpoch() || r.small {
		return nil
	}
	stored := map[uint64]bool{} // in any run of stored entries: a restored log may have the same entries again
	err := r.part.EntriesAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
		if seq := k.At.Seq; seq > 0 && seq <= o.head() && k.Before == o.chains[seq-1] &&
			bytes.Equal(log.Encode(nil, &k.Op), log.Encode(nil, &o.entries[seq-1].Op)) {
			stored[seq] = true
		}
		return true
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
