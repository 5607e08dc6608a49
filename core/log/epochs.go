package log

import (
	"errors"
	"slices"
)

// An opening of a log is an epoch: a random name for the entries that the opening appends.
//
//	entries   1 … 40 │ 41 … 57 │ 58 59
//	epoch       E1   │   E2    │  E3      the present opening, which has appended two
//
// A place in a log is an epoch, an entry of it and the chain up to the entry. After a restore, or if a disk goes back in time, the log lacks the
// places of the lost entries, since the next opening has another epoch. The list of epochs is never trimmed.

// segment is the run of entries that one opening appended. It ends before the next one, or with the log.
//
//field:message
type segment struct {
	epoch Epoch  `wire:"1"`
	first uint64 `wire:"2"`
}

// Mark is a place in a log without its chain.
type Mark struct {
	Epoch Epoch  `wire:"1"`
	To    uint64 `wire:"2"` // last entry
}

// segments returns the epochs of the log. A log of version 0.1.0 has one. The caller holds mu.
func (l *Store) segments() []segment {
	if len(l.epochs) == 0 {
		return []segment{{l.epoch, 1}}
	}
	return l.epochs
}

// Opening returns the epoch with which the log appends entries.
func (l *Store) Opening() Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opening
}

// SetOpening replaces the epoch with which the log appends entries.
func (l *Store) SetOpening(e Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = e
}

// noteOpening adds the opening to the epochs before its first entry is appended. It reports whether the record of the log changed. The caller
// holds mu.
func (l *Store) noteOpening() (changed bool) {
	all := l.segments()
	if all[len(all)-1].epoch == l.opening {
		return false
	}
	if l.appended == 0 { // nothing was appended under the name of before
		all = nil
	}
	l.epochs = append(slices.Clip(all), segment{l.opening, l.appended + 1})
	return true
}

// EpochOf returns the epoch of an entry and the last entry of that epoch, for 1 ≤ seq ≤ Head.
func (l *Store) EpochOf(seq uint64) Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, to := l.segments(), l.appended
	for i := len(all) - 1; ; i-- {
		if seq >= all[i].first || i == 0 {
			return Mark{all[i].epoch, to}
		}
		to = all[i].first - 1
	}
}

// Has reports whether the log has a place: the entry m.To of the epoch, with the chain up to it. It does not know the chain of a trimmed entry.
// The zero place is in every log.
func (l *Store) Has(m Mark, chain Chain) (bool, error) {
	if m == (Mark{}) {
		return true, nil
	}
	if l.Common(m) != m.To || m.To > l.Head() {
		return false, nil
	}
	have, err := l.Chain(m.To)
	if errors.Is(err, ErrTrimmed) {
		return true, nil
	}
	return err == nil && have == chain, err
}

// Common returns the greatest entry that the log has of the same epoch as one of the marks, at or before it; 0: none.
func (l *Store) Common(marks ...Mark) (seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.segments()
	for i, s := range all {
		last := l.appended
		if i+1 < len(all) {
			last = all[i+1].first - 1
		}
		for _, m := range marks {
			if to := min(last, m.To); m.Epoch == s.epoch && s.first <= to {
				seq = max(seq, to)
			}
		}
	}
	return seq
}
