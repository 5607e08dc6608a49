package index

import (
	"crypto/sha256"
	"slices"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// document contains the terms of a document of metadata. It is reused for many documents.
type document struct {
	terms     set[term]
	wide      bool // it is too large for terms
	ambiguous bool // its terms may come from different places

	doc       jsonio.Doc
	names     set[string]
	path      []byte // path to the walk's current place
	cuts      []int  // offsets where the path may be cut: before names, and the root
	canonical []byte // scratch
	text      []byte // likewise
}

// read collects the terms of a document.
func (d *document) read(json []byte) {
	d.terms.reset()
	d.names.reset()
	d.wide, d.ambiguous, d.path, d.cuts = false, false, d.path[:0], d.cuts[:0]
	if len(json) == 0 || d.doc.Parse(json, jsonio.Limits{}) != nil {
		return
	}
	if root := d.doc.Root(); kindOf(root) == 'o' {
		d.value(root, 0)
	} else {
		d.path, d.cuts = append(d.path, '^'), append(d.cuts, 0)
		d.value(root, 1)
	}
	d.doc.Reset()
	if d.wide = d.wide || len(d.terms.list) > maxTerms; d.wide {
		d.terms.reset()
	}
}

// term adds the terms of the value at the walk's current place.
func (d *document) term(value []byte) {
	for _, at := range d.cuts {
		if len(d.terms.list) > maxTerms {
			return
		}
		d.text = append(append(append(d.text[:0], d.path[at:]...), '='), value...)
		t, sum := term{kindMeta}, sha256.Sum256(d.text)
		copy(t[1:], sum[:])
		d.terms.add(t)
	}
}

// value walks a value at a path of the given number of tokens.
func (d *document) value(v jsonio.Value, tokens int) {
	if tokens > maxTokens || len(d.terms.list) > maxTerms {
		d.wide = true
		return
	}
	at := len(d.path)
	switch kindOf(v) {
	case 'v':
		d.canonical = appendCanonical(d.canonical[:0], v)
		d.term(d.canonical)
	case 'o':
		if tokens > 0 {
			d.term([]byte{'o'})
		}
		d.cuts = append(d.cuts, at)
		for name, value := range v.Members() {
			d.ambiguous = !d.names.add(name) || d.ambiguous
			d.path = appendName(d.path[:at], name)
			d.value(value, tokens+1)
		}
		d.cuts = d.cuts[:len(d.cuts)-1]
	default:
		d.path = append(d.path, '[')
		d.term([]byte{'l'})
		containers := 0
		for e := range v.Elems() {
			if kindOf(e) != 'v' {
				containers++
			}
			d.value(e, tokens+1)
		}
		d.ambiguous = d.ambiguous || containers > 1
	}
	d.path = d.path[:at]
}

// set is a list without duplicates. It searches a short list directly, and a long one by a map.
type set[T comparable] struct {
	list []T
	many map[T]struct{} // elements of the list, once it is long
}

const fewInSet = 24

func (s *set[T]) reset() { *s = set[T]{list: s.list[:0]} }

func (s *set[T]) has(x T) bool {
	if s.many != nil {
		_, ok := s.many[x]
		return ok
	}
	return slices.Contains(s.list, x)
}

// add adds x, and reports whether it is new.
func (s *set[T]) add(x T) bool {
	if s.has(x) {
		return false
	}
	s.list = append(s.list, x)
	if s.many == nil && len(s.list) > fewInSet {
		s.many = map[T]struct{}{}
		for _, y := range s.list {
			s.many[y] = struct{}{}
		}
	} else if s.many != nil {
		s.many[x] = struct{}{}
	}
	return true
}
