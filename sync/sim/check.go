package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// observe checks the cursor of a replica after each step. If the cursor has moved, it calls inspect instead for one of eight steps.
func (w *world) observe(r *party) error {
	c := r.part.Cursor()
	if c.Seq != r.seen.Seq && w.rng.IntN(8) == 0 {
		r.seen = c
		return w.inspect(r)
	}
	if c.Seq < r.seen.Seq && w.origin.has(r.seen) {
		return fmt.Errorf("I6: the cursor went back from %d to %d", r.seen.Seq, c.Seq)
	}
	r.seen = c
	return w.place(r)
}

// place checks I7: a log of the run has the replica's cursor.
func (w *world) place(r *party) error {
	c := r.part.Cursor()
	if w.log(r) == nil {
		return fmt.Errorf("I7: no log has the cursor %d with chain %x in epoch %x", c.Seq, c.Chain, c.Epoch)
	}
	return nil
}

// log returns the oracle of the newest log that has a replica's cursor, or nil if no log has it. A replica that has pulled nothing gets the
// current one.
func (w *world) log(r *party) *oracle {
	c := r.part.Cursor()
	if c.Seq == 0 {
		return w.oracle
	}
	for _, o := range slices.Backward(w.logs) {
		if o.leadsOn(c.Seq, c.Chain) {
			return o
		}
	}
	return nil
}

// leadsOn reports whether chain is the chain of the log after entry seq.
func (o *oracle) leadsOn(seq uint64, chain log.Chain) bool {
	return seq <= o.head() && o.chains[seq] == chain
}

// inspect checks all of a replica against its oracle.
func (w *world) inspect(r *party) error {
	w.stats.Checks++
	if err := w.place(r); err != nil {
		return err
	}
	c := r.part.Cursor()
	want, err := w.log(r).digest(c.Seq)
	if err != nil {
		return err
	}
	err = r.part.ReadConfirmed(func(s kv.Reader) error {
		got, err := fold.Digest(s, w.app)
		if err == nil && got != want && !isSpoiled(s, w.app) {
			err = w.log(r).explain(s, c.Seq)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := cmp.Or(w.outbox(r), w.checkStored(r)); err != nil {
		return err
	}
	return w.visible(r, c.Seq)
}

// explain returns an error with the differences between s and the state after entry seq.
func (o *oracle) explain(s kv.Reader, seq uint64) error {
	want := map[string]string{}
	err := catalog.Read(o.states[seq], o.app).StateTables(func(key, value []byte) bool {
		want[string(key)] = string(value)
		return true
	})
	if err != nil {
		return err
	}
	diff := ""
	err = catalog.Read(s, o.app).StateTables(func(key, value []byte) bool {
		if v, ok := want[string(key)]; !ok || v != string(value) {
			diff += fmt.Sprintf("\n\t%q is %q, want %q", key, value, v)
		}
		delete(want, string(key))
		return true
	})
	for key, v := range want {
		diff += fmt.Sprintf("\n\t%q is missing, want %q", key, v)
	}
	return cmp.Or(err, fmt.Errorf("I1: another state at entry %d:%s", seq, diff))
}

// outbox checks a replica's promises. Each operation that it acknowledged is in its outbox, its stored entries, its log or the
// origin's conflicts. No operation is pending that the log has up to the cursor.
func (w *world) outbox(r *party) error {
	pending := map[log.Dot]bool{}
	var wrong error
	err := r.part.Pending(0, func(_ uint64, op log.Op) bool {
		pending[op.Dot] = true
		wrong = r.checkToken(op.Dot)
		return wrong == nil
	})
	if err = cmp.Or(wrong, err); err != nil {
		return err
	}
	c := r.part.Cursor()
	o := w.log(r)
	conflicts, err := conflictsOf(r.part.Partition)
	if err != nil {
		return err
	}
	stored := map[log.Dot]bool{}
	if w.stats.Restores > 0 {
		if err := r.scanKept(func(e log.Entry) { stored[e.Op.Dot] = true }); err != nil {
			return err
		}
	}
	for _, dot := range r.promised {
		at, ok := o.at[dot]
		if w.o.Memory && !(ok && o.hasIssue(dot)) {
			if !pending[dot] && conflicts[dot] == 0 && !stored[dot] && !w.origin.listed[dot] {
				return fmt.Errorf("I2: operation %v, whose name was used twice, is nowhere", dot)
			}
			continue
		}
		if x := r.refused[dot]; x.log == o && x.code != 0 && ok && x.at <= c.Seq && conflicts[dot] == 0 {
			return fmt.Errorf("I2: operation %v ended %v and is among no conflicts", dot, x.code)
		}
		switch {
		case !ok && !pending[dot] && !stored[dot] && !w.origin.listed[dot]:
			return fmt.Errorf("I2: operation %v was acknowledged and is nowhere", dot)
		case ok && at <= c.Seq && pending[dot]:
			if knows, err := o.knows(dot, c.Seq); err != nil || knows { // otherwise a snapshot does not show that the log has it
				return cmp.Or(err, fmt.Errorf("I3: operation %v is entry %d, pulled to %d, and pending", dot, at, c.Seq))
			}
		case ok && at > c.Seq && !pending[dot] && !w.origin.isLocal() && !(w.o.Memory && conflicts[dot] != 0):
			return fmt.Errorf("I6: operation %v is entry %d, pulled to %d, and not pending", dot, at, c.Seq)
		}
	}
	return nil
}

// visible compares the view of a replica's user with a model that folds the log up to the cursor and then the pending operations. So every
// write can be read, deleted things are absent (I4), and listed inputs and versions have their data (I9, I10).
func (w *world) visible(r *party, seq uint64) error {
	m := w.log(r).modelAt(seq)
	m.Activate(r.part.Rules())
	err := r.part.Pending(0, func(_ uint64, op log.Op) bool {
		m.Fold(&op)
		return true
	})
	if err != nil {
		return err
	}
	view := r.part.View()
	err = m.Compare(view.Reader)
	if err == nil {
		err = cmp.Or(w.complete(r, view.Reader, seq), w.weights(r, view.Reader))
	}
	return errors.Join(err, view.Close())
}

// complete checks I4 and I9 for the inputs that a replica lists.
func (w *world) complete(p *party, r catalog.Reader, seq uint64) error {
	if of := w.log(p); of != p.log {
		p.log, p.ords = of, map[uint32]log.Dot{}
	}
	var wrong error
	err := r.Inputs(0, func(in catalog.Input) bool {
		if at, ok := w.log(p).killed[in.Dot]; ok && at <= seq {
			wrong = fmt.Errorf("I4: input %q of %v died at entry %d and lives at %d", in.ID, in.Dot, at, seq)
		}
		if was, ok := p.ords[in.Ord]; ok && was != in.Dot {
			wrong = fmt.Errorf("I4: input %d was %v and is %v", in.Ord, was, in.Dot)
		}
		p.ords[in.Ord] = in.Dot
		if in.Code == catalog.InputReady {
			// If the log deletes the input later, the origin may have deleted its derived record already. If a replica made an input,
			// pulled its deletion and sends it again since the log with the deletion was restored, the replica may have deleted the
			// record; the log brings it with the entry. An origin that lost the picture at a restore lists the input.
			log := w.log(p)
			resent := w.stats.Restores > 0 && p.part.MadeBy(in.Dot.Writer) && (log.at[in.Dot] == 0 || log.at[in.Dot] > seq)
			if _, err := r.DerivedOfInput(base, &in); err != nil && log.killed[in.Dot] == 0 && !resent && !w.isPictureLost(log, in.Dot) {
				wrong = fmt.Errorf("I9: input %q of %v is at 30000: %w", in.ID, in.Dot, err)
			}
		}
		return wrong == nil
	})
	return cmp.Or(wrong, err)
}

// isPictureLost reports whether the origin lists an input, or the InputFetched operation of its picture in o, as a conflict. The origin
// lists them if a restore lost the picture.
func (w *world) isPictureLost(o *oracle, input log.Dot) bool {
	return w.origin.listed[input] || w.lists(o, func(body log.Body) bool {
		b, ok := body.(*log.InputFetched)
		return ok && b.Input == input
	})
}

// areWeightsLost reports whether the origin lists the result of a version as a conflict. It lists it if a restore lost the weights.
func (w *world) areWeightsLost(o *oracle, model log.Dot, version string) bool {
	return w.lists(o, func(body log.Body) bool {
		b, ok := body.(*log.VersionResult)
		return ok && b.Model == model && b.Version == version
	})
}

// lists reports whether the origin has listed an operation of o as a conflict for which the function is returns true.
func (w *world) lists(o *oracle, is func(log.Body) bool) bool {
	for dot := range w.origin.listed {
		if at := o.at[dot]; at != 0 && is(o.entries[at-1].Op.Body) {
			return true
		}
	}
	return false
}

// weights checks I10: each trained version has its weights.
func (w *world) weights(p *party, r catalog.Reader) error {
	var wrong error
	err := r.Models(func(m catalog.Model) bool {
		err := r.Versions(m.Dot, func(v catalog.Version) bool {
			if v.Code != catalog.VersionTrained || w.areWeightsLost(w.log(p), m.Dot, v.ID) {
				return true
			}
			if x, err := r.Manifest(&v); err != nil || x.Version != v.ID {
				// As with derived records: a replica that created a model, pulled its deletion and sends it again may have deleted these.
				at := w.log(p).at[m.Dot]
				resent := w.stats.Restores > 0 && (at == 0 || at > p.part.Cursor().Seq)
				if w.log(p).model.HasModel(m.Dot) || p.part.MadeBy(m.Dot.Writer) && !resent {
					wrong = fmt.Errorf("I10: version %q of %v is trained and its manifest is of %q: %w", v.ID, m.Dot, x.Version, err)
				}
			}
			return wrong == nil
		})
		wrong = cmp.Or(wrong, err)
		return wrong == nil
	})
	return cmp.Or(wrong, err)
}

// checkVerdict compares a verdict that a replica has received with the verdict of the log (I2).
func (w *world) checkVerdict(r *party, dot log.Dot, code fold.Code) error {
	o := w.log(r)
	want, ok := o.verdict(dot)
	switch {
	case !o.hasIssue(dot) && w.o.Memory:
		return nil
	case !ok:
		return fmt.Errorf("I2: operation %v was confirmed with %v and is not in the log", dot, code)
	case code != want && !o.again[dot]:
		return fmt.Errorf("I2: operation %v was confirmed with %v, want %v", dot, code, want)
	case r.part.Position(dot) == 0:
		return fmt.Errorf("I2: verdict on operation %v of another replica", dot)
	}
	if code != fold.OK && code != fold.Superseded {
		r.refused[dot] = refusal{o, code, r.part.Cursor().Seq}
	}
	return nil
}
