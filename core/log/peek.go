package log

import (
	"bytes"
	"encoding/binary"

	"github.com/sightline-dev/sightline/core/kv"
)

// Peek yields the entries of the log whose keys begin with prefix, starting at entry from, until yield returns false. Another process
// may have the log open. The last ones may not be durable yet. Errors: those of the store, kv.ErrCorrupt and those of Decode.
func Peek(r kv.Reader, prefix []byte, from uint64, yield func(Entry) bool) error {
	l := Store{prefix: prefix}
	var failed error
	for key, value := range kv.Range(r, l.entryKey(from), l.end(), &failed) {
		if _, err := chainOf(value); err != nil {
			return err
		}
		op, err := Decode(bytes.Clone(value[len(Chain{}):]))
		if err != nil || !yield(Entry{Seq: binary.BigEndian.Uint64(key[len(key)-8:]), Op: op}) {
			return err
		}
	}
	return failed
}
