package lang

import "unicode/utf8"

// Speller finds the name with the nearest spelling to another name: at most one edit from it, or two if it has eight letters or more. An
// edit inserts, deletes or replaces a letter, or swaps two neighbours. Case and accents do not count. A Speller is not safe for concurrent
// use.
type Speller struct {
	letters []rune // of the folded name
	limit   int    // maximum number of edits of the names to find
	nearest string
	rows    [3][]int // of the distances
}

// longName is the number of letters from which a name may have two edits.
const longName = 8

// NewSpeller returns a Speller for a name. It knows no other names yet.
func NewSpeller(name string) *Speller {
	s := &Speller{letters: []rune(Fold(name)), limit: 1}
	if len(s.letters) >= longName {
		s.limit = 2
	}
	s.limit = min(s.limit, len(s.letters)-1) // a name of one letter is similar to none
	return s
}

// Consider compares another name. Of equally near names the first in byte order counts, so the order of the calls does not matter.
func (s *Speller) Consider(name string) { s.consider(name, Fold(name)) }

func (s *Speller) consider(name, folded string) {
	if far := utf8.RuneCountInString(folded) - len(s.letters); far > s.limit || -far > s.limit {
		return
	}
	if d := s.distance([]rune(folded)); d < s.limit || d == s.limit && (s.nearest == "" || name < s.nearest) {
		s.limit, s.nearest = d, name
	}
}

// Nearest returns the nearest of the considered names, or "" if none is near.
func (s *Speller) Nearest() string { return s.nearest }

// distance returns the number of edits from the name to other, in which no letter is edited twice ("optimal string alignment").
func (s *Speller) distance(other []rune) int {
	for i := range s.rows {
		if cap(s.rows[i]) <= len(other) {
			s.rows[i] = make([]int, len(other)+1)
		}
		s.rows[i] = s.rows[i][:len(other)+1]
	}
	before, last, row := s.rows[0], s.rows[1], s.rows[2]
	for j := range last {
		last[j] = j
	}
	for i, c := range s.letters {
		row[0] = i + 1
		for j, d := range other {
			cost := 1
			if c == d {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && c == other[j-1] && s.letters[i-1] == d {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(other)]
}

// Spell makes s consider all names in a language.
func (t *Table) Spell(s *Speller, code string) {
	c := index(code)
	if c < 0 {
		return
	}
	w := &t.words[c]
	w.index(t)
	for i, place := range w.order {
		s.consider(w.name(place), w.foldedName(i))
	}
}
