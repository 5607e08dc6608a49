package server

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"
)

// hazardous reports whether a terminal or a log would obey a character and not show it: control characters, escapes among them,
// ends of lines, and those that turn the direction of the text around them.
func hazardous(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029':
		return true
	}
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Printable makes text printable that a caller chose, such as a name: a hazardous character becomes �.
func Printable(s string) string { return strings.Map(printable, s) }

// PrintableLines is clean for a text of several lines.
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

// cleanAttr makes an attribute of a log line printable. Handlers quote or escape the ends of lines themselves.
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

// EscapeWriter writes JSON with every hazardous character as an escape, which readers of JSON read as the same text.
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

// hazardousInJSON excepts the space between values. Strings have their ends of lines escaped.
func hazardousInJSON(r rune) bool { return hazardous(r) && r != '\n' && r != '\t' && r != '\r' }

// NewJSON returns an encoder of JSON that a terminal can show.
func NewJSON(w io.Writer) *json.Encoder { return json.NewEncoder(EscapeWriter{w}) }
