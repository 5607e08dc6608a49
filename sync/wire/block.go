package wire

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// MaxOps is how many operations a block holds.
const MaxOps = 512

// EncodeOps returns a block of at most MaxOps operations.
func EncodeOps(ops []log.Op) []byte {
	var e field.Encoder
	for i := range ops {
		e.Raw(1, log.Encode(nil, &ops[i]))
	}
	return e.Bytes(nil)
}

// DecodeOps reads a block, which the operations keep. Errors: ErrFormat.
func DecodeOps(block []byte) ([]log.Op, error) {
	var ops []log.Op
	d := field.Decode(block)
	for d.Next() {
		if d.Number != 1 {
			continue
		}
		op, err := log.Decode(d.Raw())
		if err != nil {
			return nil, err
		}
		if ops = append(ops, op); len(ops) > MaxOps {
			return nil, fmt.Errorf("%w: block of more than %d operations", ErrTooLarge, MaxOps)
		}
	}
	return ops, d.Err()
}

// EncodeEntries returns a block of the entries' operations. They follow each other without a gap.
func EncodeEntries(entries []log.Entry) []byte {
	ops := make([]log.Op, len(entries))
	for i := range entries {
		ops[i] = entries[i].Op
	}
	return EncodeOps(ops)
}

// DecodeEntries reads a block of the entries after from. They keep block. Errors: ErrFormat.
func DecodeEntries(block []byte, from uint64) ([]log.Entry, error) {
	ops, err := DecodeOps(block)
	if err != nil {
		return nil, err
	}
	entries := make([]log.Entry, len(ops))
	for i := range ops {
		entries[i] = log.Entry{Seq: from + 1 + uint64(i), Op: ops[i]}
	}
	return entries, nil
}
