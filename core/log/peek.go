package log

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// Peek yields the operations of the log with a prefix, from an entry on, until yield returns false: for whoever
// looks into a store in which another has the log open. The last may not be durable yet. Errors: the
// store's, kv.ErrCorrupt and those of Decode.
func Peek(r kv.Reader, prefix []byte, from uint64, yield func(Op) bool) error {
	l := Store{prefix: prefix}
	var failed error
	err := r.Scan(l.entryKey(from), l.end(), func(_, value []byte) bool {
		var op Op
		if _, failed = chainOf(value); failed == nil {
			op, failed = Decode(bytes.Clone(value[len(Chain{}):]))
		}
		return failed == nil && yield(op)
	})
	if err != nil {
		return err
	}
	return failed
}
