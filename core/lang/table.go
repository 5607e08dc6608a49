package lang

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ErrFormat is returned for a names file with a wrong format.
var ErrFormat = errors.New("malformed names")

const (
	maxConcepts  = math.MaxUint16 // a place is a uint16
	maxNameBytes = 256
	maxFileBytes = 4 << 20
)

// Table is the names of a fixed list of concepts in every language. It is immutable and safe for concurrent use.
//
// Memory: the text of the names, four bytes for the start of each name, and, after the first search in a language, the folded text and six
// bytes a name for the order. 660 concepts in 23 languages take 0.4 MB, and 0.8 MB once every language has been searched.
type Table struct {
	ids   []string
	place map[string]uint16 // concept id → place in ids
	words [23]words         // by language, in the order of codes
}

// words is the names in one language.
type words struct {
	text  string   // concatenated names, in NFC
	start []uint32 // (concepts + 1): the name at place i is text[start[i]:start[i+1]]

	once  sync.Once
	order []uint16 // places sorted by folded name, then name, then id
	keys  string   // concatenated folded names in that order
	key   []uint32 // (concepts + 1): the folded name i in that order is keys[key[i]:key[i+1]]
}

// Parse makes the table from one file for each of the 23 codes. A line is a concept id, a tab and the name; the first line may be the
// header "concept_id", tab, "name". Each file must name every concept of ids exactly once and nothing else, in any order. Parse returns
// ErrFormat, wrapped with the language and line, for anything else. It keeps neither files nor ids.
func Parse(files map[string][]byte, ids []string) (*Table, error) {
	if len(ids) > maxConcepts {
		return nil, fmt.Errorf("%d concepts, at most %d: %w", len(ids), maxConcepts, ErrFormat)
	}
	t := &Table{ids: slices.Clone(ids), place: make(map[string]uint16, len(ids))}
	for i, id := range t.ids {
		if _, ok := t.place[id]; ok {
			return nil, fmt.Errorf("concept %q twice: %w", id, ErrFormat)
		}
		t.place[id] = uint16(i)
	}
	for i, code := range codes {
		data, ok := files[code]
		if !ok || len(data) > maxFileBytes {
			return nil, fmt.Errorf("names in %s: %d bytes: %w", code, len(data), ErrFormat)
		}
		if err := t.words[i].read(strings.TrimPrefix(string(data), "concept_id\tname\n"), t); err != nil {
			return nil, fmt.Errorf("names in %s: %w", code, err)
		}
	}
	return t, nil
}

func (w *words) read(data string, t *Table) error {
	names := make([]string, len(t.ids))
	line := 0
	for row := range strings.Lines(data) {
		line++
		row = strings.TrimSuffix(strings.TrimSuffix(row, "\n"), "\r")
		id, name, ok := strings.Cut(row, "\t")
		place, known := t.place[id]
		switch {
		case !ok || strings.Contains(name, "\t"):
			return fmt.Errorf("line %d: expected two columns: %w", line, ErrFormat)
		case !known:
			return fmt.Errorf("line %d: no concept %q: %w", line, id, ErrFormat)
		case names[place] != "":
			return fmt.Errorf("line %d: concept %q twice: %w", line, id, ErrFormat)
		case name == "" || len(name) > maxNameBytes || !utf8.ValidString(name):
			return fmt.Errorf("line %d: name %q: %w", line, name, ErrFormat)
		}
		names[place] = norm.NFC.String(name)
	}
	for i, name := range names {
		if name == "" {
			return fmt.Errorf("concept %q has no name: %w", t.ids[i], ErrFormat)
		}
	}
	w.text, w.start = join(names)
	return nil
}

// join concatenates parts. It returns the text, and the start of each part followed by the end.
func join(parts []string) (string, []uint32) {
	var b strings.Builder
	start := make([]uint32, 0, len(parts)+1)
	for _, p := range parts {
		start = append(start, uint32(b.Len()))
		b.WriteString(p)
	}
	return b.String(), append(start, uint32(b.Len()))
}

func (w *words) name(place uint16) string { return w.text[w.start[place]:w.start[place+1]] }
func (w *words) foldedName(i int) string  { return w.keys[w.key[i]:w.key[i+1]] }

// index sorts the folded names. It runs once, on the first search in the language.
func (w *words) index(t *Table) {
	w.once.Do(func() {
		type entry struct {
			key   string
			place uint16
		}
		entries := make([]entry, len(t.ids))
		for i := range entries {
			entries[i] = entry{Fold(w.name(uint16(i))), uint16(i)}
		}
		slices.SortFunc(entries, func(a, b entry) int {
			return cmp.Or(
				strings.Compare(a.key, b.key),
				strings.Compare(w.name(a.place), w.name(b.place)),
				strings.Compare(t.ids[a.place], t.ids[b.place]))
		})
		keys := make([]string, len(entries))
		w.order = make([]uint16, len(entries))
		for i, e := range entries {
			keys[i], w.order[i] = e.key, e.place
		}
		w.keys, w.key = join(keys)
	})
}

// Name returns the concept's name in the language, in NFC. It returns false if the table has no such concept or code is not one of the
// 23. The string shares the table's memory.
func (t *Table) Name(id, code string) (string, bool) {
	c := index(code)
	place, ok := t.place[id]
	if c < 0 || !ok {
		return "", false
	}
	return t.words[c].name(place), true
}

// Search returns the IDs of the concepts whose name in the language matches pattern. With a trailing `*` it matches all names whose folded
// form begins with the folded pattern, otherwise those whose folded form equals it. Only the last `*` is special, and "*" alone matches
// everything.
//
// The order is the folded name's bytes, then the name, then the ID, so it is the same on every host, and a caller can cut it into pages.
// The caller owns the result, which is empty if nothing matches. The error is ErrUnknown for a code that is not one of the 23.
func (t *Table) Search(pattern, code string) ([]string, error) {
	c := index(code)
	if c < 0 {
		return nil, fmt.Errorf("language %q: %w", code, ErrUnknown)
	}
	w := &t.words[c]
	w.index(t)
	lo, hi := w.span(pattern)
	ids := make([]string, 0, hi-lo)
	for _, place := range w.order[lo:hi] {
		ids = append(ids, t.ids[place])
	}
	return ids, nil
}

// span returns the range of order that matches pattern.
func (w *words) span(pattern string) (lo, hi int) {
	stem, wild := strings.CutSuffix(pattern, "*")
	if !wild {
		return w.equal(pattern)
	}
	key := foldPrefix(stem)
	lo = sort.Search(len(w.order), func(i int) bool { return w.foldedName(i) >= key })
	n := sort.Search(len(w.order)-lo, func(i int) bool { return !strings.HasPrefix(w.foldedName(lo+i), key) })
	return lo, lo + n
}

// equal returns the range of order whose folded names equal the folded name.
func (w *words) equal(name string) (lo, hi int) {
	key := Fold(name)
	lo = sort.Search(len(w.order), func(i int) bool { return w.foldedName(i) >= key })
	for hi = lo; hi < len(w.order) && w.foldedName(hi) == key; hi++ {
	}
	return lo, hi
}

// Resolve returns the ID of the concept that a search clause means by name: the concept with exactly that name in the language (in any
// Unicode normal form), or else the only one whose folded name equals the folded name. It returns false if no concept or several match that
// way, and for an unknown code. Names of other languages never match.
func (t *Table) Resolve(name, code string) (string, bool) {
	c := index(code)
	if c < 0 {
		return "", false
	}
	w := &t.words[c]
	w.index(t)
	lo, hi := w.equal(name)
	exact := norm.NFC.String(name)
	for _, place := range w.order[lo:hi] {
		if w.name(place) == exact {
			return t.ids[place], true
		}
	}
	if hi-lo != 1 {
		return "", false
	}
	return t.ids[w.order[lo]], true
}
