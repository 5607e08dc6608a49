package httpd

import (
	"errors"
	"io"
	"strconv"
	"strings"
)

// span is a part of size bytes, from its first byte to before its end.
type span struct{ from, end int64 }

// rangeOf reads a Range of one part (RFC 9110, section 14.2). It returns all of the bytes for a header that has several parts, another
// unit or a mistake. ok is false for a part that has none of the bytes.
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

// number is the value of digits, or the largest number for those that are beyond it.
func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // the error is ErrRange, and n the largest
	return n
}

// section is a part of a source. It reads all of the source, which reports damage at its end only. A hosted picture or video has
// at most 20 MB.
type section struct {
	from io.ReadCloser
	skip int64 // bytes before the part that were not read
	left int64 // bytes of the part that were not read
}

func (s *section) Read(p []byte) (int, error) {
	if s.skip > 0 {
		n, err := io.CopyN(io.Discard, s.from, s.skip)
		s.skip -= n
		if err != nil {
			return 0, cutShort(err)
		}
	}
	if s.left == 0 {
		if _, err := io.Copy(io.Discard, s.from); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	n, err := s.from.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); err != nil && s.left > 0 {
		return n, cutShort(err)
	}
	return n, err
}

// cutShort is the error of a source that ends too early.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close closes the source.
func (s *section) Close() error { return s.from.Close() }
