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

// owedOp is an operation that a restore of the origin takes back and that some replicas hold.
type owedOp struct {
	data    []byte             // as the log has encoded it
	holders map[int]bool       // replicas on whose disks it is
	entry   bool               // one of them has pulled it
	logs    map[log.Epoch]bool // from these
	idle    bool               // it ended in a conflict, so that what it names may have been let go
}

// scanStored yields what a replica holds of the log: entries that it pulled, and own operations, for which k is nil.
func (r *party) scanStored(yield func(op log.Op, k *partition.StoredEntry)) error {
	err := r.part.KeptAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
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

// owe notes what the origin loses at a restore and replicas hold, on disks that lose nothing of it at a loss of power.
func (w *world) owe(before, after *oracle) error {
	for _, r := range w.parties {
		disk, ok := r.disk.(*Memory)
		if !ok || !r.up || r.edge != nil && r.edge.was || disk.durable < len(disk.batches) {
			continue
		}
		err := r.scanStored(func(op log.Op, k *partition.StoredEntry) {
			seq := before.at[op.Dot]
			if seq == 0 || after.at[op.Dot] != 0 || k != nil && r.small { // which it drops for newer ones, perhaps before it gives back
				return
			}
			x := w.owed[op.Dot]
			if x == nil {
				x = &owedOp{
					data: log.Encode(nil, &before.entries[seq-1].Op), holders: map[int]bool{}, logs: map[log.Epoch]bool{}, idle: conflicts(before.codes[seq-1]),
				}
				w.owed[op.Dot] = x
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

// drop forgets that a replica holds what is owed: its disk was replaced.
func (w *world) drop(r *party) {
	maps.DeleteFunc(w.owed, func(_ log.Dot, x *owedOp) bool {
		delete(x.holders, r.number)
		return len(x.holders) == 0
	})
}

// checkOwed checks that the origin has each owed operation, or lists it with its content, and that it lists none as lost that it has. No
// input that was deleted lives.
func (w *world) checkOwed() error {
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
	w.stats.Owed += len(w.owed)
	for dot, x := range w.owed {
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
		if seq != 0 && o.same(&was, &o.entries[seq-1].Op) { // from its site, with the clock of now
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
			if _, ok := listed[dot]; !ok && !r.gone && o.at[dot] == 0 {
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

// conflicts reports whether a verdict is one of a conflict.
func conflicts(code fold.Code) bool { return code != fold.OK && code != fold.Superseded }

// refusal returns the refusal of an entry; false: the entry is not one.
func (o *oracle) refusal(seq uint64) (b *log.Refused, ok bool) {
	if seq > 0 {
		b, ok = o.entries[seq-1].Op.Body.(*log.Refused)
	}
	return b, ok
}

// sentAgain reports whether the log has an operation as that of another site, which its replica took since.
func (w *world) sentAgain(op log.Op) bool { return w.sentBy(op, w.moves) }

// sentBy is sentAgain by some of the moves. Two replicas may have had one site, and each has moved to another.
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

// movedName is the name that an operation has after its replica took other sites. A name that is not of such a site stays.
func (w *world) movedName(d log.Dot) log.Dot {
	for _, m := range w.moves {
		d = m.name(d)
	}
	return d
}

// same reports whether two operations of one dot say the same. Either may name things that were sent again as another site by their old or
// new names.
func (o *oracle) same(a, b *log.Op) bool {
	if sameBody(a, b) || o.moved == nil {
		return sameBody(a, b)
	}
	newest := func(op *log.Op) (again log.Op, err error) {
		if again, err = log.Decode(log.Encode(nil, op)); err == nil {
			log.Rename(again.Body, o.moved)
		}
		return again, err
	}
	x, errX := newest(a)
	y, errY := newest(b)
	return errX == nil && errY == nil && sameBody(&x, &y)
}

// sameBody reports whether two operations of one dot say the same.
func sameBody(a, b *log.Op) bool {
	x := *a
	x.At, x.By = b.At, b.By
	return bytes.Equal(log.Encode(nil, &x), log.Encode(nil, b))
}

// checkResurrections finds an input that lives and that an earlier log has deleted, by an operation that the log has and a replica had
// pulled.
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
		x, made := w.owed[by.Dot], w.owed[dot]
		if x == nil || !x.entry {
			continue // nobody has seen it
		}
		if _, all := by.Body.(*log.InputDeleteAll); all && (!x.logs[old.epoch] || made == nil || !made.entry || w.follows(dot, by.Dot) ||
			by.At < old.entries[old.at[dot]-1].Op.At && !x.together(made)) {
			continue // nobody can know that the input was made before all were deleted
		}
		if w.hasSurvived(dot, by.Dot) {
			continue
		}
		seq := o.at[by.Dot]
		if live[dot] && seq != 0 && o.same(by, &o.entries[seq-1].Op) {
			return fmt.Errorf("I4: input %v was deleted by %v %T before the log was restored, and lives", dot, by.Dot, by.Body)
		}
		// A log that has the operation by its old name, too, has it twice: its replica moved again after a log was lost that had noted its
		// first move.
		if now := w.movedName(dot); now != dot && live[now] && o.at[dot] == 0 && seq != 0 && o.same(by, &o.entries[seq-1].Op) && !w.origin.listed[by.Dot] && w.same(old, dot, now) {
			return fmt.Errorf("I4: input %v was deleted by %v %T before the log was restored, lives as %v, and the deletion is not listed", dot, by.Dot, by.Body, now)
		}
	}
	return nil
}

// same reports whether the log has an operation of an older one by the name that its replica gave it.
func (w *world) same(old *oracle, dot, name log.Dot) bool {
	was, err := log.Decode(log.Encode(nil, &old.entries[old.at[dot]-1].Op))
	if err != nil {
		return false
	}
	was.Dot = name
	log.Rename(was.Body, w.movedName)
	return sameBody(&was, &w.oracle.entries[w.oracle.at[name]-1].Op)
}

// follows reports whether some log of the run has an operation behind another one.
func (w *world) follows(dot, other log.Dot) bool {
	return slices.ContainsFunc(w.logs, func(o *oracle) bool { return o != w.oracle && o.at[other] != 0 && o.at[other] < o.at[dot] })
}

// together reports whether one replica holds both operations, and so their order.
func (x *owedOp) together(y *owedOp) bool {
	for r := range x.holders {
		if y.holders[r] {
			return true
		}
	}
	return false
}

// hasSurvived reports whether an earlier log has an input after a deletion.
func (w *world) hasSurvived(input, deletion log.Dot) bool {
	return slices.ContainsFunc(w.logs, func(o *oracle) bool {
		at := o.at[deletion]
		return o != w.oracle && at != 0 && at < o.at[input] && o.killed[input] == 0
	})
}

// keeps checks that a replica has kept what it has pulled, or with a snapshot received, and a restore may take from the origin.
func (w *world) keeps(r *party) error {
	c, o := r.part.Cursor(), w.log(r)
	if c.Epoch != r.part.KeptOf() || r.small {
		return nil
	}
	kept := map[uint64]bool{} // in any run: a restored log may be the same again
	err := r.part.KeptAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
		if seq := k.At.Seq; seq > 0 && seq <= o.head() && k.Before == o.chains[seq-1] &&
			bytes.Equal(log.Encode(nil, &k.Op), log.Encode(nil, &o.entries[seq-1].Op)) {
			kept[seq] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	for seq := max(c.Stable, r.base) + 1; seq <= c.Seq; seq++ {
		rolled := seq > w.oracle.head() || o.chains[seq] != w.oracle.chains[seq] // the origin lost it when the snapshot had come and its entries had not
		if !kept[seq] && !rolled {
			return fmt.Errorf("I2: replica %d has pulled entry %d and does not keep it", r.number, seq)
		}
	}
	return nil
}
