package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Kind is the kind of an operation in a batch.
type Kind byte

// The kinds of operation, as they are encoded.
const (
	KindPut         Kind = 1 // Key gets Value
	KindDelete      Kind = 2 // Key is deleted
	KindDeleteRange Kind = 3 // the keys Key ≤ key < Value are deleted
)

// Op is one operation of a batch. Its bytes are borrowed from the batch.
type Op struct {
	Kind  Kind
	Key   []byte // of a DeleteRange: lower bound, which may be empty
	Value []byte // of a DeleteRange: upper bound; of a Delete: nil
}

// endBytes is the number of bytes of end, all of them 0xff.
const endBytes = 256

var end = bytes.Repeat([]byte{0xff}, endBytes)

// End returns the bytes above all keys: 256 times 0xff. As an upper bound in a batch they mean nil.
func End() []byte { return bytes.Clone(end) }

// version is the first byte of the encoding.
const version = 1

// Batch is an ordered list of operations that a store applies completely. The zero value is an empty batch. It is not safe for concurrent
// use.
//
// Its encoding, which a journal stores and a guest sends, is the version byte 1 and then, for each operation,
//
//	1        kind: 1 put, 2 delete, 3 delete range
//	1..10    bytes of the key, or of the lower bound, as the shortest uvarint
//	…        the key
//	1..10    bytes of the value, or of the upper bound; not for a delete
//	…        the value
type Batch struct {
	data []byte // the encoding, or empty
	n    int    // operations
}

var _ Writer = (*Batch)(nil)

// Put implements [Writer].
func (b *Batch) Put(key, value []byte) { b.put(key, value) }

// Delete implements [Writer].
func (b *Batch) Delete(key []byte) { b.del(key) }

// DeleteRange implements [Writer]. A range without keys adds nothing.
func (b *Batch) DeleteRange(lo, hi []byte) { b.deleteRange(lo, hi) }

// Len returns the number of operations.
func (b *Batch) Len() int { return b.n }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.data, b.n = b.data[:0], 0 }

// Bytes returns the encoding. It is borrowed until the batch changes.
func (b *Batch) Bytes() []byte {
	if len(b.data) == 0 {
		return []byte{version}
	}
	return b.data
}

// Each calls yield with the operations in their order until yield returns false:
//
//	for op := range b.Each { … }
func (b *Batch) Each(yield func(Op) bool) {
	if b.n == 0 {
		return
	}
	for rest := b.data[1:]; len(rest) > 0; {
		var op Op
		op, rest = next(rest)
		if !yield(op) {
			return
		}
	}
}

// Append adds the operations of other.
func (b *Batch) Append(other *Batch) {
	if other.n > 0 {
		b.begin()
		b.data = append(b.data, other.data[1:]...)
		b.n += other.n
	}
}

// ParseBatch returns the batch with an encoding, which it copies. It returns ErrBatch for an invalid encoding.
func ParseBatch(data []byte) (*Batch, error) {
	b, err := BorrowBatch(data)
	if err == nil {
		b.data = bytes.Clone(b.data)
	}
	return b, err
}

// BorrowBatch is ParseBatch without the copy: the caller may read the batch while data is unchanged.
func BorrowBatch(data []byte) (*Batch, error) {
	if len(data) == 0 || data[0] != version {
		return nil, fmt.Errorf("%w: unsupported version %d", ErrBatch, version)
	}
	b := &Batch{}
	for at := 1; at < len(data); {
		n, err := check(data[at:])
		if err != nil {
			return nil, fmt.Errorf("operation %d at byte %d: %w", b.n, at, err)
		}
		at += n
		b.n++
	}
	if b.n > 0 {
		b.data = data[:len(data):len(data)]
	}
	return b, nil
}

// begin writes the version byte if the batch has none yet.
func (b *Batch) begin() {
	if len(b.data) == 0 {
		b.data = append(b.data, version)
	}
}

// put appends a put and returns where it begins in the encoding.
func (b *Batch) put(key, value []byte) (at int) {
	mustKey(key)
	b.begin()
	at = len(b.data)
	b.data = append(b.data, byte(KindPut))
	b.field(key)
	b.field(value)
	b.n++
	return at
}

// del appends a delete and returns where it begins in the encoding.
func (b *Batch) del(key []byte) (at int) {
	mustKey(key)
	b.begin()
	at = len(b.data)
	b.data = append(b.data, byte(KindDelete))
	b.field(key)
	b.n++
	return at
}

// deleteRange appends the deletion of a range. It returns the bounds, borrowed from the encoding, and false for a range that holds no key.
func (b *Batch) deleteRange(lo, hi []byte) (l, h []byte, ok bool) {
	if hi == nil {
		hi = end
	}
	if bytes.Compare(lo, hi) >= 0 {
		return nil, nil, false
	}
	b.begin()
	b.data = append(b.data, byte(KindDeleteRange))
	b.field(lo)
	h = b.field(hi)
	b.n++
	return b.data[len(b.data)-len(h)-uvarintLen(len(h))-len(lo):][:len(lo):len(lo)], h, true
}

// field appends the length and the bytes of p and returns the copy.
func (b *Batch) field(p []byte) []byte {
	b.data = binary.AppendUvarint(b.data, uint64(len(p)))
	b.data = append(b.data, p...)
	return b.data[len(b.data)-len(p):][:len(p):len(p)]
}

func uvarintLen(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// isKey reports whether key may be put: it is not empty and below [End].
func isKey(key []byte) bool {
	return len(key) > 0 && (key[0] != 0xff || bytes.Compare(key, end) < 0)
}

func mustKey(key []byte) {
	if !isKey(key) {
		panic("kv: a key is empty or begins with kv.End")
	}
}

// next returns the first operation of data, which must be valid, and the rest of data.
func next(data []byte) (op Op, rest []byte) {
	op.Kind = Kind(data[0])
	op.Key, rest = take(data[1:])
	if op.Kind != KindDelete {
		op.Value, rest = take(rest)
	}
	return op, rest
}

func take(data []byte) (field, rest []byte) {
	n, size := binary.Uvarint(data)
	data = data[size:]
	return data[:n:n], data[n:]
}

// check returns the number of bytes of the first operation in data.
func check(data []byte) (int, error) {
	kind := Kind(data[0])
	if kind < KindPut || kind > KindDeleteRange {
		return 0, fmt.Errorf("%w: kind %d", ErrBatch, kind)
	}
	key, size, err := checkField(data[1:])
	if err != nil {
		return 0, err
	}
	n := 1 + size
	if kind != KindDeleteRange && !isKey(key) {
		return 0, fmt.Errorf("%w: key %.32x", ErrBatch, key)
	}
	if kind == KindDelete {
		return n, nil
	}
	value, size, err := checkField(data[n:])
	if err != nil {
		return 0, err
	}
	if kind == KindDeleteRange && (bytes.Compare(key, value) >= 0 || bytes.Compare(value, end) > 0) {
		return 0, fmt.Errorf("%w: range %.32x to %.32x", ErrBatch, key, value)
	}
	return n + size, nil
}

func checkField(data []byte) (field []byte, size int, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) || size != uvarintLen(int(n)) {
		return nil, 0, fmt.Errorf("%w: length", ErrBatch)
	}
	return data[size : size+int(n)], size + int(n), nil
}
