package program

import (
	"path/filepath"
	"testing"
	"unicode"
)

// TestCommandsPrintSafeNames passes names with control characters to commands. The commands reject them or print them without these
// characters.
func TestCommandsPrintSafeNames(t *testing.T) {
	const hostile = "a\x1b[31mb\r\nlevel=ERROR fake=1\u009b2J\u202ec\u2067d\u2028e\x7f"
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{"app", "create", hostile, "--data", dir},
		{"app", "show", hostile, "--data", dir},
		{"predict", "a\x1b[31m\u202eb.jpg"},
		{"search", "--app", "a\x1b]0;title\a", "--data", dir},
		{"import", "a\x1b[31m.zip", "--data", dir},
		{"restore", "a\x1b[31m", dir},
	} {
		code, stdout, stderr := runCode(t, args...)
		if code == 0 {
			t.Errorf("%q succeeded", args)
		}
		for _, r := range stdout + stderr {
			if !unicode.IsPrint(r) && r != '\n' {
				t.Errorf("%q prints %q: %q%q", args, r, stdout, stderr)
				break
			}
		}
	}
}
