package log

import "github.com/sightline-dev/sightline/core/kv"

// Peek yields the entries of the log whose keys begin with prefix, starting at entry from, until yield returns false. Another process
// may have the log open. The last ones may not be durable yet. Errors: those of the store, kv.ErrCorrupt and those of Decode.
func Peek(r kv.Reader, prefix []byte, from uint64, yield func(Entry) bool) error {
	l := Store{prefix: prefix}
	var failed error
	for key, value := range kv.Range(r, l.entryKey(from), l.end(), &failed) {
		e, err := entryOf(key, value)
		if err != nil || !yield(e) {
			return err
		}
	}
	return failed
}
