package server

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"
)

// hazardous reports whether a terminal or a log may obey a character instead of showing it: control characters, including escapes, line
// ends, and characters that change the direction of text.
func hazardous(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029':
		return true
	}
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Printable replaces each hazardous character in a text by �, for example in a name that a caller chose.
func Printable(s string) string { return strings.Map(printable, s) }

// PrintableLines works like Printable, but keeps line ends and tabs.
func PrintableLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r)
	}, s)
}

func printable(r rune) rune {
	if hazardous(r) {
		return utf8.RuneError
	}
	return r
}

// cleanAttr makes an attribute of a log line printable. The log handlers quote or escape line ends.
func cleanAttr(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.LevelKey {
		return a
	}
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(PrintableLines(v))
	case error:
		a.Value = slog.StringValue(PrintableLines(v.Error()))
	case fmt.Stringer:
		if a.Value.Kind() == slog.KindAny {
			a.Value = slog.StringValue(PrintableLines(v.String()))
		}
	}
	return a
}

// EscapeWriter writes JSON and escapes every hazardous character. A JSON reader gets the same text.
type EscapeWriter struct{ W io.Writer }

// Write implements [io.Writer].
func (e EscapeWriter) Write(p []byte) (int, error) {
	if !strings.ContainsFunc(string(p), hazardousInJSON) {
		return e.W.Write(p)
	}
	var b strings.Builder
	for _, r := range string(p) {
		if hazardousInJSON(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	if _, err := io.WriteString(e.W, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hazardousInJSON reports hazardous characters, except the white space between values. Line ends in strings are already escaped.
func hazardousInJSON(r rune) bool { return hazardous(r) && r != '\n' && r != '\t' && r != '\r' }

// NewJSONEncoder returns an encoder of JSON that is safe to show on a terminal.
func NewJSONEncoder(w io.Writer) *json.Encoder { return json.NewEncoder(EscapeWriter{w}) }
