package jsonio

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// string parses the string whose opening quote is at pos.
func (p *parser) string(pos int) (int, error) {
	start, escaped := pos, false
	pos++
	for {
		pos += plain(p.data[pos:])
		if pos >= len(p.data) {
			return pos, p.syntax(pos, "'\"'")
		}
		switch c := p.data[pos]; {
		case c == '"':
			p.leaf(start, pos+1, String, escaped)
			return pos + 1, nil
		case c == '\\':
			escaped = true
			end, err := p.escape(pos)
			if err != nil {
				return pos, err
			}
			pos = end
		case c < 0x20:
			return pos, p.syntax(pos, "an escape for a control character")
		default:
			for pos < len(p.data) && p.data[pos] >= utf8.RuneSelf {
				r, n := utf8.DecodeRune(p.data[pos:])
				if r == utf8.RuneError && n == 1 {
					return pos, &Error{Offset: pos, Err: ErrUTF8}
				}
				pos += n
			}
		}
	}
}

// escape checks the escape whose backslash is at pos and returns the position after it.
func (p *parser) escape(pos int) (int, error) {
	if pos+1 >= len(p.data) {
		return pos, p.syntax(pos+1, "an escape")
	}
	switch p.data[pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 2, nil
	case 'u':
		r, ok := hex4(p.data[pos+2:])
		if !ok {
			return pos, &Error{Offset: pos, Err: ErrSyntax, Detail: "\\u takes four hex digits"}
		}
		if !utf16.IsSurrogate(r) {
			return pos + 6, nil
		}
		if rest := p.data[pos+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			low, ok := hex4(rest[2:])
			if ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				return pos + 12, nil
			}
		}
		return pos, &Error{Offset: pos, Err: ErrUTF8, Detail: "half a surrogate pair"}
	}
	return pos, p.syntax(pos+1, "an escape")
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// plainGeneric returns the number of bytes before the first special one: a quote, a backslash, a control character, or a byte outside
// ASCII. It checks eight bytes at a time.
func plainGeneric(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// special marks the special bytes among eight with their top bits: a byte c is special if c or c - 0x20 has its top bit set, or if c XOR
// the quote or the backslash is zero. Borrows run upwards, so the lowest mark is always a true one.
func special(v uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	q, s := v^('"'*ones), v^('\\'*ones)
	return (v | (v - 0x20*ones) | (q-ones)&^q | (s-ones)&^s) & tops
}

// appendUnescaped appends the text of a checked string without its quotes.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			j := i + 1
			for j < len(s) && s[j] != '\\' {
				j++
			}
			dst = append(dst, s[i:j]...)
			i = j
			continue
		}
		switch c := s[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(s[i+2:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(s[i+4:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
		default: // a quote, a backslash, a slash
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}
