package wire

import "github.com/sightline-dev/sightline/core/log"

// MaxOps is the maximum number of operations in a message.
const MaxOps = log.MaxRows

// DecodeOps returns the operations of rows. They share the memory of data. Errors: ErrFormat.
func DecodeOps(data []byte) ([]log.Op, error) {
	entries, err := log.DecodeRows(data, 0)
	ops := make([]log.Op, len(entries))
	for i := range entries {
		ops[i] = entries[i].Op
	}
	return ops, err
}
