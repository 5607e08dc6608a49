package fold

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// The rules of contradictions ([RulesOfContradictions]). The last write of a register serves. A write whose maker did not see the value that
// it meets contradicts it: the state keeps both in a record, until a write comes whose maker saw all of them.
//
//	values of the record, or the one that serves
//	  − those that the maker saw, and those of the same writer
//	  + the written one                                        ──▶ different values: the record; else none
//
// An operation whose maker did not know these rules has no Seen. It begins no record, and joins one that exists.

// meeting is a write to a register.
type meeting struct {
	register catalog.Register
	serving  catalog.SetValue // value before the write; without a stamp: there was none
	set      catalog.SetValue
	seen     log.Seen
}

// meet compares a write with the values that it meets. name is the ID of the input, the concept or the model.
func (f *Fold) meet(name string, x meeting) error {
	if !f.inForce(RulesOfContradictions) {
		return nil
	}
	var c catalog.Contradiction
	if f.h.Contradictions > 0 {
		var err error
		if c, err = f.w.Contradiction(x.register); err != nil {
			return err
		}
	}
	had := len(c.Values) > 0
	switch {
	case had:
	case x.serving.At == (log.Stamp{}) || f.e.Op.Rules < RulesOfContradictions:
		return nil
	default:
		c.Register, c.Name, c.Seq, c.Values = x.register, name, f.e.Seq, []catalog.SetValue{x.serving}
	}
	x.set.At, x.set.By = f.stamp, f.e.Op.By
	c.Values = slices.DeleteFunc(c.Values, func(v catalog.SetValue) bool {
		return v.At.Writer == f.stamp.Writer || x.seen.Has(v.At)
	})
	c.Values = append(c.Values, x.set)
	if !slices.ContainsFunc(c.Values, func(v catalog.SetValue) bool { return !v.Equal(&x.set) }) {
		if had {
			f.w.DeleteContradiction(&f.h, &c)
		}
		return nil
	}
	if len(c.Values) > catalog.MaxContradictoryValues {
		oldest := 0
		if c.Serves() == 0 {
			oldest = 1
		}
		c.Values = slices.Delete(c.Values, oldest, oldest+1)
	}
	return f.w.PutContradiction(&f.h, &c)
}

// meetAll compares the writes of an operation that was folded with a verdict. Writes without an effect count, too.
func (f *Fold) meetAll(v Verdict, all []meeting) error {
	if v.Code != OK && v.Code != Superseded {
		return nil
	}
	for _, x := range all {
		if err := f.meet(v.ID, x); err != nil {
			return err
		}
	}
	return nil
}

// ofLabel returns the meeting of a label with that of an input before the write.
func ofLabel(before *catalog.Input, l log.Label, seen log.Seen) meeting {
	x := meeting{register: labelRegister(before, l.Concept), set: catalog.SetValue{Label: l.Value}, seen: seen}
	if have := findLabel(before, l.Concept); have != nil {
		x.serving = catalog.SetValue{At: have.At, Label: have.Value}
	}
	return x
}

func labelRegister(in *catalog.Input, concept string) catalog.Register {
	return catalog.Register{Kind: catalog.LabelRegister, Dot: in.Dot, ID: concept}
}

func findLabel(in *catalog.Input, concept string) *catalog.Label {
	i, ok := slices.BinarySearchFunc(in.Labels, concept, func(l catalog.Label, id string) int { return cmp.Compare(l.Concept, id) })
	if !ok {
		return nil
	}
	return &in.Labels[i]
}

// ofMeta returns the meetings of a write with the part of the metadata that serves at its path, and with each part below. An append
// extends the existing list, so it contradicts nothing. in has the metadata before the write.
func ofMeta(in *catalog.Input, w log.MetaWrite, seen log.Seen) (all []meeting) {
	if w.Action == log.MetaAppend {
		return nil
	}
	for _, path := range metaRegisters(in.Meta, w.Path) {
		x := meeting{register: metaRegister(in, path), set: catalog.SetValue{JSON: memberAt(w.JSON, path[len(w.Path):])}, seen: seen}
		if part := in.Meta.Serving(path); part != nil {
			x.serving = catalog.SetValue{At: part.At, JSON: memberAt(part.JSON, path[len(part.Path):])}
		}
		all = append(all, x)
	}
	return all
}

func metaRegister(in *catalog.Input, path []string) catalog.Register {
	return catalog.Register{Kind: catalog.MetaRegister, Dot: in.Dot, Path: path}
}

// metaRegisters returns the paths of the registers to which a write at a path belongs: the path itself, and those of the parts below it.
func metaRegisters(meta catalog.Meta, path []string) [][]string {
	paths := [][]string{path}
	for _, part := range meta {
		if len(part.Path) > len(path) && slices.Equal(part.Path[:len(path)], path) {
			paths = append(paths, part.Path)
		}
	}
	return paths
}

// memberAt returns the JSON of a member of a document; nil if there is none.
func memberAt(doc []byte, path []string) []byte {
	if len(path) == 0 || doc == nil {
		return doc
	}
	var d jsonio.Doc
	if d.Parse(doc, jsonio.Limits{}) != nil {
		return nil
	}
	v := d.Root()
	for _, name := range path {
		v = v.Get(name)
	}
	if v.Kind() == jsonio.Absent {
		return nil
	}
	return v.Raw()
}

// meetDeletion records that an input was deleted by somebody who did not see its newest write by another writer.
func (f *Fold) meetDeletion(in *catalog.Input, seen log.HLC) error {
	if !f.inForce(RulesOfContradictions) || f.e.Op.Rules < RulesOfContradictions {
		return nil
	}
	newest := catalog.Contradiction{}
	eachWrite(in, func(g catalog.Register, v catalog.SetValue) {
		unseen := v.At.Writer != f.stamp.Writer && v.At.MadeAt() > seen
		if unseen && (newest.Values == nil || newest.Values[0].At.Less(v.At)) {
			newest.Written, newest.ID, newest.Path, newest.Values = g.Kind, g.ID, g.Path, []catalog.SetValue{v}
		}
	})
	if newest.Values == nil {
		return nil
	}
	newest.Kind, newest.Dot, newest.Name, newest.Seq = catalog.DeletionRegister, in.Dot, in.ID, f.e.Seq
	newest.Values = append(newest.Values, catalog.SetValue{At: f.stamp, By: f.e.Op.By, Deleted: true})
	return f.w.PutContradiction(&f.h, &newest)
}

// eachWrite yields the registers of an input with their values.
func eachWrite(in *catalog.Input, yield func(catalog.Register, catalog.SetValue)) {
	for _, l := range in.Labels {
		yield(labelRegister(in, l.Concept), catalog.SetValue{At: l.At, Label: l.Value})
	}
	for _, part := range in.Meta {
		yield(metaRegister(in, part.Path), catalog.SetValue{At: part.At, JSON: part.JSON})
	}
	if in.GeoAt != (log.Stamp{}) {
		yield(placeRegister(in), catalog.SetValue{At: in.GeoAt, Geo: in.Geo})
	}
}

func placeRegister(in *catalog.Input) catalog.Register {
	return catalog.Register{Kind: catalog.PlaceRegister, Dot: in.Dot}
}

// forget drops the record of a register, and reports whether there was one.
func (f *Fold) forget(g catalog.Register) (bool, error) {
	if f.h.Contradictions == 0 {
		return false, nil
	}
	c, err := f.w.Contradiction(g)
	if err != nil || len(c.Values) == 0 {
		return false, err
	}
	f.w.DeleteContradiction(&f.h, &c)
	return true, nil
}

func conceptName(id string) catalog.Register {
	return catalog.Register{Kind: catalog.ConceptNameRegister, ID: id}
}

func modelName(dot log.Dot) catalog.Register {
	return catalog.Register{Kind: catalog.ModelNameRegister, Dot: dot}
}

// ofPlace returns the meeting of a place with that of an input before the write.
func ofPlace(in *catalog.Input, geo *log.Point, seen log.Seen) []meeting {
	return []meeting{{placeRegister(in), catalog.SetValue{At: in.GeoAt, Geo: in.Geo}, catalog.SetValue{Geo: geo}, seen}}
}

// ofName returns the meeting of a name with the one before it. A thing that nobody has named has its ID as its name, which does not count as a value.
func ofName(g catalog.Register, id, serving string, at log.Stamp, name string, seen log.Seen) []meeting {
	x := meeting{register: g, set: catalog.SetValue{Name: name}, seen: seen}
	if serving != id {
		x.serving = catalog.SetValue{At: at, Name: serving}
	}
	return []meeting{x}
}

// forgetDead drops the records of inputs and models that no longer live, after all were deleted at once. Those of deletions stay.
func (f *Fold) forgetDead() error {
	if f.h.Contradictions == 0 {
		return nil
	}
	var dead []catalog.Contradiction
	var failed error
	err := f.w.Contradictions(func(c catalog.Contradiction) bool {
		var err error
		switch c.Kind {
		case catalog.LabelRegister, catalog.MetaRegister, catalog.PlaceRegister:
			_, err = f.w.InputByDot(c.Dot)
		case catalog.ModelNameRegister:
			_, err = f.w.ModelByDot(c.Dot)
		}
		if errors.Is(err, catalog.ErrNotFound) {
			dead, err = append(dead, c), nil
		}
		failed = err
		return err == nil
	})
	for i := range dead {
		f.w.DeleteContradiction(&f.h, &dead[i])
	}
	return cmp.Or(err, failed)
}
