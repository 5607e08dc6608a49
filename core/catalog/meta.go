package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// maxPath is the maximum number of names in a path. It is below the depth limit so that values below a path can nest too.
const maxPath = jsonio.DefaultDepth - 1

// Write applies w in log order and reports whether it changed anything: a write
// older than one to the same path or to a path above is superseded. Setting and removing give
// the same metadata in any order of the log. MetaAppend appends elements to the existing list in log
// order, regardless of the clocks, and the value then has the later of both stamps.
// If Write returns an error of jsonio, it changed nothing. It may reuse the memory of m's parts.
func (m *Meta) Write(w log.MetaWrite, at log.Stamp) (changed bool, err error) {
	if err := checkWrite(w); err != nil {
		return false, err
	}
	for n := range len(w.Path) {
		if i, ok := m.find(w.Path[:n]); ok && at.Less((*m)[i].At) {
			return false, nil
		}
	}
	part := MetaPart{Path: w.Path, JSON: w.JSON, Removed: w.Action == log.MetaRemove, At: at}
	i, exists := m.find(w.Path)
	if w.Action == log.MetaAppend {
		if exists && (*m)[i].Removed && at.Less((*m)[i].At) {
			return false, nil
		}
		part.JSON = m.extendList(w)
		if exists && at.Less((*m)[i].At) {
			part.At = (*m)[i].At
		}
	} else if exists && at.Less((*m)[i].At) {
		return false, nil
	}
	if exists {
		(*m)[i] = part
	} else {
		*m = slices.Insert(*m, i, part)
	}
	m.end(i)
	return true, nil
}

// end deletes the parts below part i that are not newer than part i. They directly follow it in m.
func (m *Meta) end(i int) {
	part := (*m)[i]
	next := i + 1
	for j := next; j < len(*m); j++ {
		old := (*m)[j]
		if !below(old.Path, part.Path) {
			*m = slices.Delete(*m, next, j)
			return
		}
		if part.At.Less(old.At) {
			(*m)[next] = old
			next++
		}
	}
	*m = slices.Delete(*m, next, len(*m))
}

// checkWrite returns an error for an invalid write.
func checkWrite(w log.MetaWrite) error {
	if len(w.Path) > maxPath {
		return fmt.Errorf("metadata: %w", jsonio.ErrTooDeep)
	}
	if w.Action == log.MetaRemove {
		return nil
	}
	if w.Action > log.MetaAppend {
		return fmt.Errorf("metadata: %w", jsonio.ErrType)
	}
	var d jsonio.Doc
	if err := d.Parse(w.JSON, jsonio.Limits{Depth: jsonio.DefaultDepth - len(w.Path)}); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if w.Action == log.MetaAppend && d.Root().Kind() != jsonio.Array {
		return fmt.Errorf("metadata to append: %w", jsonio.ErrType)
	}
	return nil
}

// find returns the index of a path among the parts, and whether it exists.
func (m Meta) find(path []string) (int, bool) {
	return slices.BinarySearchFunc(m, path, func(p MetaPart, path []string) int { return slices.Compare(p.Path, path) })
}

// Serving returns the part that determines the value at a path: the newest one at the path or above it; nil: there is none.
func (m Meta) Serving(path []string) (serving *MetaPart) {
	for n := range len(path) + 1 {
		if i, ok := m.find(path[:n]); ok && (serving == nil || !m[i].At.Less(serving.At)) {
			serving = &m[i]
		}
	}
	return serving
}

// below reports whether path lies strictly below root.
func below(path, root []string) bool {
	return len(path) > len(root) && slices.Equal(path[:len(root)], root)
}

// extendList returns the list at w's path with w's elements added. It replaces a value that is not a list.
func (m Meta) extendList(w log.MetaWrite) []byte {
	doc := m.document()
	if doc == nil {
		return w.JSON
	}
	var d jsonio.Doc
	if d.Parse(doc, composed) != nil {
		return w.JSON
	}
	v := d.Root()
	for _, name := range w.Path {
		v = v.Get(name)
	}
	if v.Kind() != jsonio.Array {
		return w.JSON
	}
	return joinLists(v.Raw(), w.JSON)
}

// joinLists returns one JSON array with the elements of a and then of b.
func joinLists(a, b []byte) []byte {
	head, tail := bytes.TrimSpace(a[1:len(a)-1]), bytes.TrimSpace(trimBrackets(b))
	if len(tail) == 0 {
		return a
	}
	out := append([]byte{'['}, head...)
	if len(head) > 0 {
		out = append(out, ',')
	}
	out = append(out, tail...)
	return append(out, ']')
}

// trimBrackets returns the bytes between the brackets of a JSON array.
func trimBrackets(list []byte) []byte {
	list = bytes.TrimSpace(list)
	return list[1 : len(list)-1]
}

// composed are the limits of a document composed of parts that each are within the usual limits.
var composed = jsonio.Limits{Depth: 2 * jsonio.DefaultDepth, Members: 1 << 30}

// JSON returns the metadata as one document, or nil if there is none. If nothing was written below
// the root, the bytes are the client's. Otherwise JSON copies every value without writes below it
// unchanged. Names that were added to an object follow its original names, in sorted order.
func (m Meta) JSON() []byte {
	if len(m) == 1 && m[0].Removed {
		return nil // an older log may have bytes in the removal of the whole document
	}
	return m.document()
}

// document is JSON as the fold reads it: with the bytes of a removal of the whole document.
func (m Meta) document() []byte {
	if len(m) == 1 && len(m[0].Path) == 0 {
		return m[0].JSON
	}
	if len(m) == 0 {
		return nil
	}
	var c composer
	if !c.value(m, 0, jsonio.Value{}) {
		return nil
	}
	return c.w.Bytes()
}

// composer composes a document from parts.
type composer struct{ w jsonio.Writer }

// value writes the result of parts over the existing value base, and reports whether there is a result. The paths of parts share the
// first depth names.
func (c *composer) value(parts Meta, depth int, base jsonio.Value) bool {
	if len(parts[0].Path) == depth {
		own := parts[0]
		parts = parts[1:]
		base = jsonio.Value{}
		var d jsonio.Doc
		if !own.Removed && d.Parse(own.JSON, composed) == nil {
			base = d.Root()
		}
	}
	if len(parts) == 0 || !shows(parts) && base.Kind() != jsonio.Object {
		if base.Kind() == jsonio.Absent {
			return false
		}
		c.w.Raw(base.Raw())
		return true
	}
	members := group(parts, depth)
	c.w.Object()
	for name, v := range base.Members() {
		i, ok := slices.BinarySearchFunc(members, name, func(g metaGroup, name string) int { return strings.Compare(g.name, name) })
		if !ok {
			c.w.Name(name)
			c.w.Raw(v.Raw())
			continue
		}
		c.member(name, members[i].parts, depth+1, v)
		members[i].parts = nil
	}
	for _, g := range members {
		if g.parts != nil {
			c.member(g.name, g.parts, depth+1, jsonio.Value{})
		}
	}
	c.w.End('}')
	return true
}

// member writes one member of an object, unless its value is empty.
func (c *composer) member(name string, parts Meta, depth int, base jsonio.Value) {
	var inner composer
	if inner.value(parts, depth, base) {
		c.w.Name(name)
		c.w.Raw(inner.w.Bytes())
	}
}

// shows reports whether the parts give a value if nothing exists below them.
func shows(parts Meta) bool {
	return slices.ContainsFunc(parts, func(p MetaPart) bool { return !p.Removed })
}

// metaGroup is a group of parts with the same name at some depth.
type metaGroup struct {
	name  string
	parts Meta
}

// group groups parts by their name at a depth. Since parts are sorted, the groups are in the order of names.
func group(parts Meta, depth int) []metaGroup {
	var out []metaGroup
	for from, to := 0, 0; from < len(parts); from = to {
		name := parts[from].Path[depth]
		for to = from; to < len(parts) && parts[to].Path[depth] == name; to++ {
			continue
		}
		out = append(out, metaGroup{name, parts[from:to]})
	}
	return out
}

// collect applies removals older than the horizon to the values above them and deletes the removals.
// The document does not change.
func (m *Meta) collect(horizon log.HLC) {
	for i := 0; i < len(*m); {
		p := (*m)[i]
		if !p.Removed || p.At.At >= horizon {
			i++
			continue
		}
		m.removeFromAbove(i)
		*m = slices.Delete(slices.Clone(*m), i, i+1)
	}
}

// removeFromAbove removes the value at part i's path from the nearest part above it.
func (m *Meta) removeFromAbove(i int) {
	path := (*m)[i].Path
	for n := len(path) - 1; n >= 0; n-- {
		j, ok := m.find(path[:n])
		if !ok {
			continue
		}
		if above := (*m)[j]; !above.Removed {
			*m = slices.Clone(*m)
			(*m)[j].JSON = Meta{{JSON: above.JSON}, {Path: path[n:], Removed: true}}.JSON()
		}
		return
	}
}
