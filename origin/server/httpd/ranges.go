package httpd

import (
	"errors"
	"io"
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

// section reads a part of a source. It always reads the whole source, because the source reports damage only at its end. A hosted picture
// or video has at most 20 MB.
type section struct {
	from io.ReadCloser
	skip int64 // unread bytes before the part
	left int64 // unread bytes of the part
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

// cutShort returns the error for a source that ends too early.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close closes the source.
func (s *section) Close() error { return s.from.Close() }
