package fold

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
)

// The rules of names ([RulesOfNames]). Whether a thing lives depends on the set of names in the log:
//
//	its name is folded already        no effect
//	below the horizon, no deletion    no effect; the name is folded
//	a deletion before its thing       recorded; the thing is dead when it comes
//	a deletion of all                 deletes the inputs that its maker saw, also those that come later
//	a horizon                         drops what only operations below it need
//
// Under earlier rules the operations of a writer are folded only in sequence.

// namesOf returns the record of a writer. A caller that changes it puts it into f.names, which the run writes at its end.
func (f *Fold) namesOf(w log.Writer) (*catalog.Names, error) {
	if n, ok := f.names[w]; ok {
		return n, nil
	}
	n, err := f.w.Names(w)
	return &n, err
}

// putNames writes the changed records of writers.
func (f *Fold) putNames() {
	for _, w := range slices.Sorted(maps.Keys(f.names)) {
		f.w.PutNames(w, f.names[w])
	}
}

// recordName records the name of the operation. It returns the verdict on one that has no effect whatever its body is.
func (f *Fold) recordName() (Verdict, error) {
	dot := f.e.Op.Dot
	n, err := f.namesOf(dot.Writer)
	if err != nil {
		return Verdict{}, err
	}
	byNames := f.inForce(RulesOfNames)
	switch {
	case n.Has(dot.Seq):
		return Verdict{Code: Duplicate, Detail: "operation"}, nil
	case dot.Seq != n.Last()+1 && !byNames:
		return refusal("sequence"), nil
	}
	isNewest := dot.Seq > n.Last()
	clocked := byNames && !dot.Writer.IsSite() && (n.Newest > 0 || len(n.Ranges) == 0)
	n.Add(dot.Seq)
	f.names[dot.Writer] = n
	if made := f.e.Op.MadeAt(); clocked && isNewest {
		n.Newest, made = made, n.Newest
		n.KeepUntil(made)
	} else if clocked {
		n.KeepUntil(made)
	}
	if byNames && f.tooOld() {
		return Verdict{Code: Stale}, nil
	}
	return Verdict{}, nil
}

// tooOld reports whether the operation is below the horizon, by its clock or by the one that its maker gave it. A deletion, a refusal and
// the rules of the fold always count.
func (f *Fold) tooOld() bool {
	switch f.e.Op.Body.(type) {
	case *log.Refused, *log.Rules:
		return false
	}
	return min(f.e.Op.At, f.e.Op.MadeAt()) < f.h.Horizon && !log.OnlyDeletes(f.e.Op.Body)
}

// wasDeleted reports whether a deletion of the thing that the operation makes came first. It drops the record. Most states have no such
// record, so most runs ask for none.
func (f *Fold) wasDeleted() (bool, error) {
	if !f.deletions {
		return false, nil
	}
	at, err := f.w.Deletion(f.e.Op.Dot)
	if at != 0 {
		f.w.PutDeletion(f.e.Op.Dot, 0)
	}
	return at != 0, err
}

// deleteMissing returns the verdict on the deletion of a thing that does not live, or the error. If the name of the thing was not folded
// yet, it records the deletion.
func (f *Fold) deleteMissing(thing log.Dot, err error) (Verdict, error) {
	v, err := missingVerdict(err)
	if err != nil || !f.inForce(RulesOfNames) {
		return v, err
	}
	n, err := f.namesOf(thing.Writer)
	if err != nil || n.Has(thing.Seq) {
		return v, err
	}
	before, err := f.w.Deletion(thing)
	f.w.PutDeletion(thing, max(before, f.e.Op.MadeAt()))
	f.deletions = true
	return Verdict{Code: OK}, err
}

// horizon moves the horizon. By the rules of names it drops the records that only operations below it need.
func (f *Fold) horizon(b *log.Horizon) (Verdict, error) {
	f.h.Horizon = max(f.h.Horizon, b.At)
	if !f.inForce(RulesOfNames) {
		return Verdict{Code: OK}, nil
	}
	f.putNames()
	clear(f.names)
	return Verdict{Code: OK}, f.w.Forget(f.h.Horizon)
}

// deleteAll deletes the inputs that the operation covers, those that live and those that come later.
func (f *Fold) deleteAll(b *log.InputDeleteAll) (Verdict, error) {
	upto := map[log.Writer]uint64{}
	for _, d := range b.Upto {
		if d.Seq == 0 {
			continue
		}
		n, err := f.namesOf(d.Writer)
		if err != nil {
			return Verdict{}, err
		}
		n.DeletedUpTo = max(n.DeletedUpTo, d.Seq)
		n.KeepUntil(f.e.Op.MadeAt())
		f.names[d.Writer], upto[d.Writer] = n, max(upto[d.Writer], d.Seq)
	}
	fewer, covered, err := f.split(upto)
	inputs := make([]catalog.Input, len(fewer))
	for i := range fewer {
		if err == nil {
			inputs[i], err = f.w.Input(fewer[i])
		}
	}
	if err == nil && !covered {
		return Verdict{Code: OK}, f.deleteOthers(inputs)
	}
	for i := range inputs {
		if err == nil {
			err = f.deleteInput(&inputs[i])
		}
	}
	return Verdict{Code: OK}, err
}

// split returns the ordinals of the live inputs that a deletion covers, or of the others if those are at most half of all. If all are covered,
// it needs one seek for each writer.
func (f *Fold) split(upto map[log.Writer]uint64) (ords []uint32, covered bool, err error) {
	note := func(ord uint32) bool {
		ords = append(ords, ord)
		return true
	}
	half := (f.h.Counts.Processed + f.h.Counts.ToProcess + f.h.Counts.Errors) / 2
	newest, err := catalog.Collect(f.w.NewestInputs)
	for _, d := range newest {
		if err == nil && uint64(len(ords)) <= half {
			err = f.w.InputsOf(d.Writer, upto[d.Writer]+1, d.Seq, note)
		}
	}
	if uint64(len(ords)) <= half {
		return ords, false, err
	}
	ords = nil
	for _, d := range newest {
		if err == nil && upto[d.Writer] > 0 {
			err = f.w.InputsOf(d.Writer, 1, upto[d.Writer], note)
		}
	}
	return ords, true, err
}

// deleteOthers deletes all inputs but survivors, at a cost that does not depend on their number.
func (f *Fold) deleteOthers(survivors []catalog.Input) error {
	f.w.DeleteInputs()
	f.h.Counts = catalog.Counts{}
	f.out = Outcome{DeletedAll: true}
	clear(f.uses)
	slices.SortFunc(survivors, func(a, b catalog.Input) int { return cmp.Compare(a.Ord, b.Ord) })
	for i := range survivors {
		f.count(survivors[i].Code, 1)
		f.changed(Change{After: &survivors[i]})
		if err := f.w.InsertInput(&survivors[i]); err != nil {
			return err
		}
	}
	return f.forgetDead()
}

// lacksNames reports whether a body is a deletion of all inputs that names none.
func lacksNames(b log.Body) bool {
	all, ok := b.(*log.InputDeleteAll)
	return ok && all.Upto == nil
}

// addNames returns bodies in which deletions of all inputs name the newest live input of each writer in a state. With too many writers they
// continue in further bodies at the end. In a log by earlier rules addNames returns bodies as they are.
func addNames(r catalog.Reader, h catalog.Header, bodies []log.Body) ([]log.Body, error) {
	if h.Fold < RulesOfNames {
		return bodies, nil
	}
	upto, err := catalog.Collect(r.NewestInputs)
	if len(upto) == 0 {
		upto = []log.Dot{{Writer: log.Origin}}
	}
	parts := slices.Collect(slices.Chunk(upto, form.MaxUpto))
	for i := range bodies {
		if lacksNames(bodies[i]) {
			bodies[i] = &log.InputDeleteAll{Upto: parts[0]}
		}
	}
	for _, part := range parts[1:] {
		bodies = append(bodies, &log.InputDeleteAll{Upto: part})
	}
	return bodies, err
}
