package catalog

import (
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// The actions of PATCH on metadata. Each function takes the stored document, nil if there is none, and a request's document. It returns
// the writes that apply the request. All actions descend into objects. A member of a request replaces a value that is neither an object
// nor a list. A null, or an empty object as the whole request, changes nothing. The actions differ in these cases:
//
//	            list                    list of objects with ids    true         {}
//	merge       is appended             is appended                 replaces     replaces
//	overwrite   replaces                replaces                    replaces     replaces
//	remove      is appended             deletes these ids           removes      nothing
//
// The error for a document that is not JSON is an error of jsonio.

// MergeWrites returns the writes of the action merge.
func MergeWrites(stored, patch []byte) ([]log.MetaWrite, error) {
	return writes(stored, patch, mergeAction)
}

// OverwriteWrites returns the writes of the action overwrite.
func OverwriteWrites(stored, patch []byte) ([]log.MetaWrite, error) {
	return writes(stored, patch, overwriteAction)
}

// RemoveWrites returns the writes of the action remove.
func RemoveWrites(stored, patch []byte) ([]log.MetaWrite, error) {
	return writes(stored, patch, removeAction)
}

type action uint8

const (
	mergeAction action = iota
	overwriteAction
	removeAction
)

func writes(stored, patch []byte, a action) ([]log.MetaWrite, error) {
	var from, to jsonio.Doc
	if err := to.Parse(patch, jsonio.Limits{Depth: maxPath}); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	p := patcher{action: a}
	if stored == nil {
		p.value(nil, jsonio.Value{}, to.Root())
		return p.out, nil
	}
	if err := from.Parse(stored, composed); err != nil {
		return nil, fmt.Errorf("stored metadata: %w", err)
	}
	p.value(nil, from.Root(), to.Root())
	return p.out, nil
}

type patcher struct {
	action action
	out    []log.MetaWrite
}

func (p *patcher) write(path []string, a log.MetaAction, json []byte) {
	p.out = append(p.out, log.MetaWrite{Path: slices.Clone(path), Action: a, JSON: slices.Clone(json)})
}

// value adds the writes that change the stored value at a path as sent requires.
func (p *patcher) value(path []string, stored, sent jsonio.Value) {
	switch sent.Kind() {
	case jsonio.Null:
	case jsonio.Object:
		if sent.Len() == 0 && len(path) > 0 && p.action != removeAction {
			p.write(path, log.MetaSet, sent.Raw())
		}
		if k := stored.Kind(); k != jsonio.Absent && k != jsonio.Object {
			p.replace(path, sent)
			return
		}
		for name, v := range sent.Members() {
			p.value(append(path[:len(path):len(path)], name), stored.Get(name), v)
		}
	case jsonio.Array:
		p.list(path, stored, sent)
	default:
		if p.action == removeAction && sent.Kind() == jsonio.True {
			p.write(path, log.MetaRemove, nil)
			return
		}
		p.write(path, log.MetaSet, sent.Raw())
	}
}

// replace writes an object over another value in one write. So a later removal of the object's members does not restore the previous
// value.
func (p *patcher) replace(path []string, sent jsonio.Value) {
	inner := patcher{action: p.action}
	for name, v := range sent.Members() {
		inner.value([]string{name}, jsonio.Value{}, v)
	}
	var m Meta
	for _, w := range inner.out {
		if _, err := m.Write(w, log.Stamp{}); err != nil {
			panic(err) // the document was parsed, and is not deeper than before
		}
	}
	if doc := m.JSON(); doc != nil {
		p.write(path, log.MetaSet, doc)
	}
}

func (p *patcher) list(path []string, stored, sent jsonio.Value) {
	ids := idsOf(sent)
	switch {
	case p.action == removeAction && stored.Kind() != jsonio.Array && (ids != nil || sent.Len() == 0):
	case p.action == removeAction && ids != nil:
		if rest, changed := without(stored, ids); changed {
			p.write(path, log.MetaSet, rest)
		}
	case p.action == removeAction && sent.Len() == 0:
	case p.action != overwriteAction && sent.Len() > 0 && stored.Kind() == jsonio.Array:
		p.write(path, log.MetaAppend, sent.Raw())
	default:
		p.write(path, log.MetaSet, sent.Raw())
	}
}

// idsOf returns the ids of a list of objects, or nil if an element has no id.
func idsOf(list jsonio.Value) []string {
	var ids []string
	for v := range list.Elems() {
		id, err := v.Get("id").Str()
		if err != nil {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// without returns a list without the objects with certain ids, and reports whether it removed any.
func without(list jsonio.Value, ids []string) (rest []byte, changed bool) {
	var w jsonio.Writer
	w.Array()
	for v := range list.Elems() {
		if id, err := v.Get("id").Str(); err == nil && slices.Contains(ids, id) {
			changed = true
			continue
		}
		w.Raw(v.Raw())
	}
	w.End(']')
	return w.Bytes(), changed
}
