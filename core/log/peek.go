package log

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// Peek yields the operations of the log whose keys begin with prefix, starting at entry from, until yield returns false. Another process
// may have the log open. The last operations may not be durable yet. Errors: those of the store, kv.ErrCorrupt and those of Decode.
func Peek(r kv.Reader, prefix []byte, from uint64, yield func(Op) bool) error {
	l := Store{prefix: prefix}
	var failed error
	for _, value := range kv.Range(r, l.entryKey(from), l.end(), &failed) {
		if _, err := chainOf(value); err != nil {
			return err
		}
		op, err := Decode(bytes.Clone(value[len(Chain{}):]))
		if err != nil || !yield(op) {
			return err
		}
	}
	return failed
}
