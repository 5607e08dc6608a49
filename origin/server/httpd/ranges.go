package httpd

import (
	"strconv"
	"strings"
)

// span is the part of a file from byte from to before byte end.
type span struct{ from, end int64 }

// rangeOf reads a Range header with one part (RFC 9110, section 14.2). For a header with several parts, another unit or a mistake, it
// returns the whole file. ok is false if the part contains none of the bytes.
func rangeOf(header string, size int64) (part span, partial, ok bool) {
	all := span{0, size}
	unit, value, _ := strings.Cut(header, "=")
	first, last, found := strings.Cut(strings.TrimSpace(value), "-")
	if !found || !strings.EqualFold(strings.TrimSpace(unit), "bytes") || !isDigits(first) || !isDigits(last) || first+last == "" {
		return all, false, true
	}
	if first == "" {
		n := min(number(last), size)
		return span{size - n, size}, true, n > 0
	}
	part = span{number(first), size}
	if last != "" {
		end := number(last)
		if end < part.from {
			return all, false, true
		}
		part.end = min(end, size-1) + 1
	}
	return part, true, part.from < size
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// number returns the value of digits, limited to the largest int64.
func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // on ErrRange n is the largest int64
	return n
}
