package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// hostileName is a name that colours a terminal, starts another line, and reverses the direction of the following text.
const hostileName = "a\x1b[31mb\r\nlevel=ERROR fake=1\u009b2J\u202ec\u2067d\u2028e\x7f"

// showable checks that a text has exactly so many lines, and otherwise no control character for terminals.
func showable(t *testing.T, name, text string, lines int) {
	t.Helper()
	if got := strings.Count(text, "\n"); got != lines {
		t.Errorf("%s: %d lines, want %d: %q", name, got, lines, text)
	}
	for _, r := range strings.ReplaceAll(text, "\n", "") {
		if hazardous(r) {
			t.Errorf("%s: %q in %q", name, r, text)
		}
	}
}

// TestHostileNamesAreEscaped logs and prints a hostile name in every format.
func TestHostileNamesAreEscaped(t *testing.T) {
	for _, format := range []string{"text", "json", "tint"} {
		var b bytes.Buffer
		log := newLog(&b, Settings{LogFormat: format})
		log.Info("request", "name", hostileName, "error", errors.New(hostileName), "any", stringer{})
		text := b.String()
		if format == "tint" { // this format colours lines itself
			for _, code := range []string{"\x1b[0m", "\x1b[2m", "\x1b[22m", "\x1b[92m", "\x1b[91m", "\x1b[1;91m", "\x1b[91;2m", "\x1b[22;91m", "\x1b[2;91m", "\x1b[22;2m"} {
				text = strings.ReplaceAll(text, code, "")
			}
		}
		showable(t, format, text, 1)
	}
	var b bytes.Buffer
	if err := NewJSONEncoder(&b).Encode(map[string]string{"name": hostileName}); err != nil {
		t.Fatal(err)
	}
	showable(t, "json", b.String(), 1)
	var back map[string]string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["name"] != hostileName {
		t.Errorf("the JSON reads as %q, %v", back, err)
	}
}

type stringer struct{}

func (stringer) String() string { return hostileName }
