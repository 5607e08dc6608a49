package foldtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
)

// register is a register of an input: of is the concept of a label, or the path of a part of metadata in JSON.
type register struct {
	kind catalog.RegisterKind
	of   string
}

func registerOf(g *catalog.Register) register {
	if g.Kind == catalog.MetaRegister {
		return register{g.Kind, pathText(g.Path)}
	}
	return register{g.Kind, g.ID}
}

func pathText(path []string) string {
	text, err := json.Marshal(append([]string{}, path...))
	if err != nil {
		panic(err) // encoding of texts does not fail
	}
	return string(text)
}

func placeText(p *log.Point) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(*p)
}

// meet records a write to a register of an input, whose maker saw some values. serving is the value before it.
func (m *Model) meet(op *log.Op, x *being, g register, serving write[string], v string, seen log.Seen) {
	if m.rules < 4 {
		return
	}
	had := x.unseen[g]
	if had == nil {
		if serving.at == (log.Stamp{}) || op.Rules < 4 {
			return
		}
		had = []write[string]{serving}
	}
	var all []write[string]
	different := false
	for _, old := range had {
		if old.at.Writer != op.Dot.Writer && !seen.Has(old.at) {
			all = append(all, old)
			different = different || old.v != v
		}
	}
	delete(x.unseen, g)
	if !different {
		return
	}
	all = append(all, write[string]{m.stamp(op), v})
	for newest := all[0].at; len(all) > 8; {
		for _, w := range all {
			if newest.Less(w.at) {
				newest = w.at
			}
		}
		leaves := slices.IndexFunc(all, func(w write[string]) bool { return w.at != newest })
		all = slices.Delete(all, leaves, leaves+1)
	}
	x.unseen[g] = all
}

// dropRemovals drops what the fold no longer needs below the horizon.
func (m *Model) dropRemovals(x *being) {
	for concept, w := range x.labels {
		if w.v == log.Removed && w.at.At < m.horizon {
			delete(x.labels, concept)
		}
	}
	in := catalog.Input{Meta: x.meta}
	in.DropRemovals(m.horizon)
	x.meta = in.Meta
	if x.place.v == nil && x.place.at.At < m.horizon {
		x.place = write[*log.Point]{}
	}
}

func (b *being) servingPlace() write[string] { return write[string]{b.place.at, placeText(b.place.v)} }

func (b *being) servingLabel(concept string) write[string] {
	w := b.labels[concept]
	return write[string]{w.at, fmt.Sprint(w.v)}
}

// servingMeta returns the value of the newest part at a path or above it.
func (b *being) servingMeta(path []string) (w write[string]) {
	for _, part := range b.meta {
		above := len(part.Path) <= len(path) && slices.Equal(part.Path, path[:len(part.Path)])
		if above && (w.at == (log.Stamp{}) || !part.At.Less(w.at)) {
			w = write[string]{part.At, jsonAt(part.JSON, path[len(part.Path):])}
		}
	}
	return w
}

// metaPaths returns a path and those of the parts below it.
func (b *being) metaPaths(path []string) [][]string {
	paths := [][]string{path}
	for _, part := range b.meta {
		if strings.HasPrefix(pathText(part.Path), strings.TrimSuffix(pathText(path), "]")+",") || len(path) == 0 && len(part.Path) > 0 {
			paths = append(paths, part.Path)
		}
	}
	return paths
}

// jsonAt returns a member of a document; "" if there is none.
func jsonAt(doc []byte, path []string) string {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(doc, &members) != nil {
			return ""
		}
		doc = members[name]
	}
	return string(doc)
}

// writeMeta writes parts of an input's metadata. The parts themselves are those of package catalog, whose tests have another model.
func (m *Model) writeMeta(op *log.Op, b *log.InputMeta) fold.Code {
	if code := m.field(op, b.Input); code != 0 {
		return code
	}
	x := m.byDot(b.Input)
	m.dropRemovals(x)
	code := fold.Superseded
	before := being{meta: slices.Clone(x.meta)}
	for i, w := range b.Writes {
		for _, path := range before.metaPaths(w.Path) {
			if w.Action != log.MetaAppend {
				g := register{catalog.MetaRegister, pathText(path)}
				m.meet(op, x, g, before.servingMeta(path), jsonAt(w.JSON, path[len(w.Path):]), b.Seen.Of(i))
			}
		}
		changed, err := x.meta.Write(w, m.stamp(op))
		if err != nil {
			panic(err) // programs have no such metadata
		}
		if changed {
			code = fold.OK
		}
		before.meta = slices.Clone(x.meta)
	}
	return code
}

// delete deletes an input. If its maker had not seen the newest write of another writer, that is a contradiction, which another deletion ends.
func (m *Model) delete(op *log.Op, b *log.InputDelete) fold.Code {
	x := m.byDot(b.Input)
	deletion := register{kind: catalog.DeletionRegister}
	if x == nil {
		for _, dead := range m.inputs {
			if dead.dot == b.Input && dead.unseen[deletion] != nil {
				delete(dead.unseen, deletion)
				return fold.OK
			}
		}
		return m.missing(op, b.Input)
	}
	m.dropRemovals(x)
	x.dead = true
	var all []write[string]
	for _, concept := range slices.Sorted(maps.Keys(x.labels)) {
		all = append(all, x.servingLabel(concept))
	}
	for _, part := range x.meta {
		all = append(all, write[string]{part.At, string(part.JSON)})
	}
	all = append(all, x.servingPlace())
	all = slices.DeleteFunc(all, func(w write[string]) bool { return w.at.Writer == op.Dot.Writer || w.at.MadeAt() <= b.Seen })
	x.unseen = map[register][]write[string]{}
	if len(all) > 0 && m.rules >= 4 && op.Rules >= 4 {
		// Of writes with one stamp the first serves as the example.
		newest := slices.MaxFunc(all, func(a, b write[string]) int {
			return cmp.Or(cmp.Compare(a.at.At, b.at.At), cmp.Compare(a.at.Writer, b.at.Writer))
		})
		x.unseen[deletion] = []write[string]{newest, {m.stamp(op), "deleted"}}
	}
	return fold.OK
}

// compareUnseen compares the contradictory values of inputs. Those of names are not in the model.
func (m *Model) compareUnseen(r catalog.Reader) error {
	left := 0
	for _, x := range m.inputs {
		for g := range x.unseen {
			if !x.dead || g.kind == catalog.DeletionRegister {
				left++
			}
		}
	}
	var wrong error
	err := r.Contradictions(func(c catalog.Contradiction) bool {
		if c.Kind == catalog.ConceptNameRegister || c.Kind == catalog.ModelNameRegister {
			return true
		}
		left--
		wrong = m.compareContradiction(&c)
		return wrong == nil
	})
	if wrong != nil || err != nil || left == 0 {
		return cmp.Or(wrong, err)
	}
	return fmt.Errorf("%d contradictions are missing", left)
}

func (m *Model) compareContradiction(c *catalog.Contradiction) error {
	g, kind := registerOf(&c.Register), c.Kind
	if kind == catalog.DeletionRegister {
		g, kind = register{kind: kind}, c.Written
	}
	var got, want []write[string]
	for _, v := range c.Values {
		text := string(v.JSON)
		switch {
		case v.Deleted:
			text = "deleted"
		case kind == catalog.LabelRegister:
			text = fmt.Sprint(v.Label)
		case kind == catalog.PlaceRegister:
			text = placeText(v.Geo)
		}
		got = append(got, write[string]{v.At, text})
	}
	for _, x := range m.inputs {
		if x.dot == c.Dot && x.dead == (g.kind == catalog.DeletionRegister) {
			want = x.unseen[g]
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("contradiction %+v of %v, want %v", c.Register, got, want)
	}
	return nil
}
