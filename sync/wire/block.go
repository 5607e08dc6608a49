package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
)

// MaxOps is the maximum number of operations in a block.
const MaxOps = 512

// EncodeOps returns a block with ops. It panics if there are more than MaxOps.
func EncodeOps(ops []log.Op) []byte {
	return encodeBlock(len(ops), func(i int) *log.Op { return &ops[i] })
}

// EncodeEntries returns a block with the operations of consecutive entries. It panics if there are more than MaxOps.
func EncodeEntries(entries []log.Entry) []byte {
	return encodeBlock(len(entries), func(i int) *log.Op { return &entries[i].Op })
}

func encodeBlock(n int, op func(int) *log.Op) (block []byte) {
	if n > MaxOps {
		panic("wire: too many operations for a block")
	}
	var row []byte
	for i := range n {
		row = log.Encode(row[:0], op(i))
		block = append(binary.AppendUvarint(block, uint64(len(row))), row...)
	}
	return block
}

// Rows returns the encoded operations of a block, as the log has them. They share the memory of data. Errors: ErrFormat, ErrTooLarge.
func Rows(data []byte) (rows [][]byte, err error) {
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, fmt.Errorf("%w: block is cut short", ErrFormat)
		}
		if len(rows) == MaxOps {
			return nil, fmt.Errorf("%w: block of more than %d operations", ErrTooLarge, MaxOps)
		}
		end := n + int(size)
		rows, data = append(rows, data[n:end:end]), data[end:]
	}
	return rows, nil
}

// DecodeOps returns the operations of a block. They share the memory of data. Errors: ErrFormat, ErrTooLarge.
func DecodeOps(data []byte) ([]log.Op, error) {
	rows, err := Rows(data)
	if err != nil {
		return nil, err
	}
	ops := make([]log.Op, len(rows))
	for i, row := range rows {
		if ops[i], err = log.Decode(row); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

// DecodeEntries returns the log entries of a block. The first one has the sequence from + 1. They share the memory of data. Errors:
// ErrFormat, ErrTooLarge.
func DecodeEntries(data []byte, from uint64) ([]log.Entry, error) {
	ops, err := DecodeOps(data)
	entries := make([]log.Entry, len(ops))
	for i := range ops {
		entries[i] = log.Entry{Seq: from + 1 + uint64(i), Op: ops[i]}
	}
	return entries, err
}
