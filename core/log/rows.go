package log

import (
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/log/field"
)

// Rows are the operations of a message: the encoding of each, as in the log, after its length as a varint. The receiver hashes and stores what it
// received.

// MaxRows is the maximum number of operations in rows.
const MaxRows = 512

// EncodeRows returns rows with ops. It panics if there are more than MaxRows.
func EncodeRows(ops []Op) (rows []byte) {
	if len(ops) > MaxRows {
		panic("log: too many operations for rows")
	}
	var row []byte
	for i := range ops {
		row = Encode(row[:0], &ops[i])
		rows = AppendRow(rows, row)
	}
	return rows
}

// AppendRow appends an encoded operation to rows.
func AppendRow(rows, row []byte) []byte {
	return append(binary.AppendUvarint(rows, uint64(len(row))), row...)
}

// Rows returns the encoded operations in rows. They share the memory of data. Errors: field.ErrFormat.
func Rows(data []byte) (rows [][]byte, err error) {
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, fmt.Errorf("%w: rows are cut short", field.ErrFormat)
		}
		if len(rows) == MaxRows {
			return nil, fmt.Errorf("%w: more than %d rows", field.ErrFormat, MaxRows)
		}
		end := n + int(size)
		rows, data = append(rows, data[n:end:end]), data[end:]
	}
	return rows, nil
}

// DecodeRows returns the entries after entry from, with the operations in rows. They share the memory of data. Errors: field.ErrFormat.
func DecodeRows(data []byte, from uint64) ([]Entry, error) {
	rows, err := Rows(data)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(rows))
	for i, row := range rows {
		entries[i].Seq = from + 1 + uint64(i)
		if entries[i].Op, err = Decode(row); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
