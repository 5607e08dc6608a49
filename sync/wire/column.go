package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// A column of integers is one byte with the form, then the numbers. The reader knows their count. A column of zeros is empty.
//
//	runs      value, run  value, run  …        varints
//	packed    base (varint), width (byte), then value − base in width bits each, from the lowest up
//	varints   value value …
//
// If the form includes differences, the first value is a varint. Each other value is zigzag(value − previous value), modulo 2⁶⁴.
const (
	formRuns = iota
	formPacked
	formVarints
	differences = 1 << 2
)

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// measure returns the shortest form of a column and its size in bytes without the form byte.
func measure(values []uint64) (form byte, size int) {
	low, high := uint64(math.MaxUint64), uint64(0)
	varints, runs, run := 0, 0, 0
	for i, v := range values {
		low, high = min(low, v), max(high, v)
		varints += varintSize(v)
		if run++; i+1 == len(values) || values[i+1] != v {
			runs += varintSize(v) + varintSize(uint64(run))
			run = 0
		}
	}
	packed := 0
	if len(values) > 0 {
		packed = varintSize(low) + 1 + (len(values)*bits.Len64(high-low)+7)/8
	}
	form, size = formRuns, runs
	if packed < size {
		form, size = formPacked, packed
	}
	if varints < size {
		form, size = formVarints, varints
	}
	return form, size
}

// appendInts appends values in the shortest form. If two forms are equally short, it uses the first.
func appendInts(dst []byte, values []uint64) []byte {
	if !slices.ContainsFunc(values, func(v uint64) bool { return v != 0 }) {
		return dst
	}
	form, size := measure(values)
	steps := make([]uint64, len(values)-1)
	for i := range steps {
		steps[i] = zigzag(values[i+1] - values[i])
	}
	if other, short := measure(steps); varintSize(values[0])+short < size {
		dst = append(dst, other|differences)
		return appendForm(binary.AppendUvarint(dst, values[0]), other, steps)
	}
	return appendForm(append(dst, form), form, values)
}

func appendForm(dst []byte, form byte, values []uint64) []byte {
	switch form {
	case formRuns:
		for len(values) > 0 {
			run := 1
			for run < len(values) && values[run] == values[0] {
				run++
			}
			dst = binary.AppendUvarint(binary.AppendUvarint(dst, values[0]), uint64(run))
			values = values[run:]
		}
	case formPacked:
		dst = appendPacked(dst, values)
	default:
		for _, v := range values {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	return dst
}

func appendPacked(dst []byte, values []uint64) []byte {
	if len(values) == 0 {
		return dst
	}
	low := slices.Min(values)
	width := bits.Len64(slices.Max(values) - low)
	dst = append(binary.AppendUvarint(dst, low), byte(width))
	var word uint64
	bitCount := 0
	for _, v := range values {
		v -= low
		word |= v << bitCount
		if bitCount+width >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, word)
			word = 0
			if bitCount > 0 {
				word = v >> (64 - bitCount)
			}
			bitCount -= 64
		}
		bitCount += width
	}
	for ; bitCount > 0; bitCount -= 8 {
		dst = append(dst, byte(word))
		word >>= 8
	}
	return dst
}

// ints decodes a column of len(dst) numbers into dst.
func ints(dst []uint64, column []byte) error {
	if len(column) == 0 {
		clear(dst)
		return nil
	}
	if len(dst) == 0 {
		return fmt.Errorf("%w: column without rows", ErrFormat)
	}
	form, rest := column[0], column[1:]
	if form&^differences > formVarints {
		return fmt.Errorf("%w: form %d of a column", ErrFormat, form)
	}
	all := dst
	if form&differences != 0 {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return errCut
		}
		dst[0] = v
		dst, rest = dst[1:], rest[n:]
	}
	rest, err := readForm(dst, form&^differences, rest)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes after a column", ErrFormat, len(rest))
	}
	if form&differences != 0 {
		for i := range dst {
			all[i+1] = all[i] + unzigzag(dst[i])
		}
	}
	return nil
}

var errCut = fmt.Errorf("%w: column cut short", ErrFormat)

func readForm(dst []uint64, form byte, rest []byte) ([]byte, error) {
	switch form {
	case formRuns:
		return readRuns(dst, rest)
	case formPacked:
		return readPacked(dst, rest)
	}
	for i := range dst {
		if len(rest) > 0 && rest[0] < 0x80 {
			dst[i], rest = uint64(rest[0]), rest[1:]
			continue
		}
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errCut
		}
		dst[i], rest = v, rest[n:]
	}
	return rest, nil
}

func readRuns(dst []uint64, rest []byte) ([]byte, error) {
	for len(dst) > 0 {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errCut
		}
		run, m := binary.Uvarint(rest[n:])
		if m <= 0 {
			return nil, errCut
		}
		if run == 0 || run > uint64(len(dst)) {
			return nil, fmt.Errorf("%w: run of %d in a column", ErrFormat, run)
		}
		for i := range dst[:run] {
			dst[i] = v
		}
		dst, rest = dst[run:], rest[n+m:]
	}
	return rest, nil
}

func readPacked(dst []uint64, rest []byte) ([]byte, error) {
	if len(dst) == 0 {
		return rest, nil
	}
	low, n := binary.Uvarint(rest)
	if n <= 0 || len(rest) <= n {
		return nil, errCut
	}
	width, rest := int(rest[n]), rest[n+1:]
	if width > 64 {
		return nil, fmt.Errorf("%w: column of %d bits", ErrFormat, width)
	}
	size := (len(dst)*width + 7) / 8
	if len(rest) < size {
		return nil, errCut
	}
	packed, rest := rest[:size], rest[size:]
	mask := uint64(1)<<width - 1
	for i := range dst {
		dst[i] = low + bitsAt(packed, i*width)&mask
	}
	if used := len(dst) * width % 8; used > 0 && packed[size-1]>>used != 0 {
		return nil, fmt.Errorf("%w: bits after a column", ErrFormat)
	}
	return rest, nil
}

// bitsAt returns the 64 bits of p that start at bit at. Bits after the end of p are 0.
func bitsAt(p []byte, at int) uint64 {
	i, shift := at/8, at%8
	if i+9 <= len(p) {
		v := binary.LittleEndian.Uint64(p[i:]) >> shift
		if shift > 0 {
			v |= uint64(p[i+8]) << (64 - shift)
		}
		return v
	}
	var tail [9]byte
	copy(tail[:], p[min(i, len(p)):])
	v := binary.LittleEndian.Uint64(tail[:]) >> shift
	if shift > 0 {
		v |= uint64(tail[8]) << (64 - shift)
	}
	return v
}
