package kv

import (
	"errors"
	"iter"
)

// PrefixEnd returns the smallest key above all keys that begin with prefix; nil: none exists.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return append(append([]byte{}, prefix[:i]...), prefix[i]+1)
		}
	}
	return nil
}

// WithPrefix returns a loop over [Reader.Scan] of the keys that begin with prefix. If the scan fails, the loop ends and sets err:
//
//	for key, value := range kv.WithPrefix(r, prefix, &err) { … }
//	if err != nil { … }
func WithPrefix(r Reader, prefix []byte, err *error) iter.Seq2[[]byte, []byte] {
	return Range(r, prefix, PrefixEnd(prefix), err)
}

// Range is [WithPrefix] for the keys lo ≤ key < hi.
func Range(r Reader, lo, hi []byte, err *error) iter.Seq2[[]byte, []byte] {
	return loop(r.Scan, lo, hi, err)
}

// Backward is [Range] in descending order.
func Backward(r Reader, lo, hi []byte, err *error) iter.Seq2[[]byte, []byte] {
	return loop(r.ScanBack, lo, hi, err)
}

func loop(scan func(lo, hi []byte, yield func(key, value []byte) bool) error, lo, hi []byte, err *error) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		if failed := scan(lo, hi, yield); failed != nil {
			*err = failed
		}
	}
}

// AnyWithPrefix reports whether any key begins with prefix.
func AnyWithPrefix(r Reader, prefix []byte) (some bool, err error) {
	for range WithPrefix(r, prefix, &err) {
		return true, nil
	}
	return false, err
}

// DeletePrefix deletes the keys that begin with prefix.
func DeletePrefix(w Writer, prefix []byte) { w.DeleteRange(prefix, PrefixEnd(prefix)) }

// Find is [Reader.Get] for a key that may not exist. Its value is nil then.
func Find(r Reader, key []byte) ([]byte, error) {
	value, err := r.Get(key)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return value, err
}
