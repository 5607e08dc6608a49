package api

import (
	"strconv"
	"strings"
)

// Span is the part of a file from byte From to before byte End.
type Span struct{ From, End int64 }

// RangeOf reads a Range header with one part (RFC 9110, section 14.2). For a header with several parts, another unit or a mistake, it
// returns the whole file. ok is false if the part contains none of the bytes.
func RangeOf(header string, size int64) (part Span, partial, ok bool) {
	all := Span{0, size}
	unit, value, _ := strings.Cut(header, "=")
	first, last, found := strings.Cut(strings.TrimSpace(value), "-")
	if !found || !strings.EqualFold(strings.TrimSpace(unit), "bytes") || !isDigits(first) || !isDigits(last) || first+last == "" {
		return all, false, true
	}
	if first == "" {
		n := min(number(last), size)
		return Span{size - n, size}, true, n > 0
	}
	part = Span{number(first), size}
	if last != "" {
		end := number(last)
		if end < part.From {
			return all, false, true
		}
		part.End = min(end, size-1) + 1
	}
	return part, true, part.From < size
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// number returns the value of digits, limited to the largest int64.
func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // on ErrRange n is the largest int64
	return n
}
