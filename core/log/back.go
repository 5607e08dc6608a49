package log

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/sightline-dev/sightline/core/log/field"
)

// About yields the entries that one operation is part of, newest first, until yield returns false: the operation
// itself, and those whose bodies may name it. It begins at Head and reads what it passes over as bytes alone, which
// an operation that names another one always holds in the same form; a body that holds them by chance is
// yielded too. The last it may yield is the operation itself, which no entry before it can name. found says whether
// it got as far: it does not where the log was trimmed beyond it, or yield ended it.
func (l *Store) About(dot Dot, yield func(Entry) bool) (found bool, err error) {
	l.mu.Lock()
	floor, durable := l.floor, l.durable
	l.mu.Unlock()
	var e field.Encoder
	e.Uint(1, uint64(dot.Site))
	e.Uint(2, dot.Seq)
	named := e.Bytes(nil)[1:] // without the version that begins a whole message
	var failed error
	err = l.store.ScanBack(l.entryKey(floor), l.entryKey(durable+1), func(key, value []byte) bool {
		if len(value) < len(Chain{}) || !bytes.Contains(value[len(Chain{}):], named) {
			return true
		}
		entry := Entry{Seq: binary.BigEndian.Uint64(key[len(key)-8:])}
		if entry.Op, failed = Decode(bytes.Clone(value[len(Chain{}):])); failed != nil {
			return false
		}
		found = entry.Op.Dot == dot
		return yield(entry) && !found
	})
	return found, errors.Join(err, failed)
}
