package wire

import "github.com/sightline-dev/sightline/core/log"

// MaxOps is the maximum number of operations in a message.
const MaxOps = log.MaxRows

// EncodeOps returns rows with ops. It panics if there are more than MaxOps.
func EncodeOps(ops []log.Op) []byte {
	return log.EncodeRows(len(ops), func(i int) *log.Op { return &ops[i] })
}

// EncodeEntries returns rows with the operations of consecutive entries. It panics if there are more than MaxOps.
func EncodeEntries(entries []log.Entry) []byte {
	return log.EncodeRows(len(entries), func(i int) *log.Op { return &entries[i].Op })
}

// DecodeOps returns the operations of rows. They share the memory of data. Errors: ErrFormat.
func DecodeOps(data []byte) ([]log.Op, error) {
	entries, err := log.DecodeRows(data, 0)
	ops := make([]log.Op, len(entries))
	for i := range entries {
		ops[i] = entries[i].Op
	}
	return ops, err
}
