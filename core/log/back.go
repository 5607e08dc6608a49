package log

import (
	"bytes"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
)

// About yields the entries that concern one operation, newest first, until yield returns false: the operation itself, and those whose
// bodies may name it. It begins at Head and compares bytes, since an operation that names another one always contains the name in the
// same form. So it also yields bodies that contain these bytes by chance. The last one is the operation itself, since no earlier entry
// can name it. found is false if the log was trimmed beyond the operation, or yield ended the search.
func (l *Store) About(dot Dot, yield func(Entry) bool) (found bool, err error) {
	var e field.Encoder
	e.Uint(1, uint64(dot.Writer))
	e.Uint(2, dot.Seq)
	name := e.Bytes(nil)[1:] // without the version that begins a whole message
	err = l.back(func(data []byte) bool { return bytes.Contains(data, name) }, func(e Entry) bool {
		found = e.Op.Dot == dot
		return yield(e) && !found
	})
	return found, err
}

// makersAmong is the number of entries that Makers searches: one stamp takes 1 ms in memory.
const makersAmong = 20_000

// Makers returns the keys and accounts that requested the writes with some stamps, as far as the newest entries of the log have them.
func (l *Store) Makers(stamps []Stamp) (map[Stamp]string, error) {
	makers := map[Stamp]string{}
	if len(stamps) == 0 {
		return makers, nil
	}
	left := map[Stamp]Stamp{} // without the clocks that the makers gave, which the log has elsewhere
	var clocks [][]byte
	for _, at := range stamps {
		var e field.Encoder
		e.Fixed64(3, uint64(at.At))
		clocks = append(clocks, e.Bytes(nil)[1:])
		left[Stamp{At: at.At, Writer: at.Writer}] = at
	}
	searched := 0
	err := l.back(func(data []byte) bool {
		searched++
		has := func(clock []byte) bool { return bytes.Contains(data, clock) }
		return searched > makersAmong || slices.ContainsFunc(clocks, has)
	}, func(e Entry) bool {
		short := Stamp{At: e.Op.At, Writer: e.Op.Dot.Writer}
		if at, ok := left[short]; ok {
			makers[at] = e.Op.By
			delete(left, short)
		}
		return len(left) > 0 && searched <= makersAmong
	})
	return makers, err
}

// FindInputCreate returns the newest entry that makes an input with an ID, which may have been deleted since. It returns false if the log
// has none.
func (l *Store) FindInputCreate(id string) (entry Entry, found bool, err error) {
	var e field.Encoder
	e.Text(1, id)
	name := e.Bytes(nil)[1:]
	err = l.back(func(data []byte) bool { return bytes.Contains(data, name) }, func(e Entry) bool {
		create, _ := e.Op.Body.(*InputCreate)
		if found = create != nil && create.ID == id; found {
			entry = e
		}
		return !found
	})
	return entry, found, err
}

// maxBare is an upper limit of the bytes of an operation that deletes one input.
const maxBare = 96

// Deletions yields the entries after entry after that delete the input dot, or all inputs, newest first, until yield returns false. dot is
// the operation that made the input.
func (l *Store) Deletions(dot Dot, after uint64, yield func(Entry) bool) error {
	var e field.Encoder
	e.Open(int(kindInputDeleteAll))
	all := e.Bytes(nil)
	all = all[1 : len(all)-1] // without version and length
	return l.back(func(data []byte) bool { return len(data) <= maxBare || bytes.Contains(data, all) }, func(e Entry) bool {
		if e.Seq <= after {
			return false
		}
		deletes := false
		switch b := e.Op.Body.(type) {
		case *InputDelete:
			deletes = b.Input == dot
		case *InputDeleteAll:
			deletes = b.Upto == nil || b.Covers(dot)
		}
		return !deletes || yield(e)
	})
}

// Newest yields the entries, newest first, until yield returns false.
func (l *Store) Newest(yield func(Entry) bool) error {
	return l.back(func([]byte) bool { return true }, yield)
}

// back yields the entries whose bytes satisfy may, newest first, starting at Head.
func (l *Store) back(may func(data []byte) bool, yield func(Entry) bool) error {
	l.mu.Lock()
	floor, durable := l.floor, l.durable
	l.mu.Unlock()
	var failed error
	for key, value := range kv.Backward(l.store, l.entryKey(floor), l.entryKey(durable+1), &failed) {
		if len(value) < len(Chain{}) || !may(value[len(Chain{}):]) {
			continue
		}
		e, err := entryOf(key, value)
		if err != nil || !yield(e) {
			return err
		}
	}
	return failed
}
