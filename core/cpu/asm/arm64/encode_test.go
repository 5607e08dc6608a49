package arm64

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/words.txt again with aarch64-linux-gnu-as")

const golden = "testdata/words.txt"

// assemble replaces the word before the instruction in each line by the GNU assembler's word.
func assemble(t *testing.T, lines []string) []string {
	t.Helper()
	dir := t.TempDir()
	object, text := filepath.Join(dir, "o"), filepath.Join(dir, "bin")
	var in bytes.Buffer
	for _, l := range lines {
		_, instruction, _ := strings.Cut(l, " ")
		fmt.Fprintln(&in, instruction)
	}
	as := exec.Command("aarch64-linux-gnu-as", "-march=armv8.6-a", "-o", object, "-")
	as.Stdin = &in
	for _, c := range []*exec.Cmd{as, exec.Command("aarch64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", object, text)} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, l := range lines {
		_, instruction, _ := strings.Cut(l, " ")
		out = append(out, fmt.Sprintf("%02x%02x%02x%02x %s", b[4*i+3], b[4*i+2], b[4*i+1], b[4*i], instruction))
	}
	return out
}

// TestEncode compares words with the GNU assembler's, for each known instruction.
func TestEncode(t *testing.T) {
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if *update {
		lines = assemble(t, lines)
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	digits := regexp.MustCompile(`(^|[^.\w-])([vwxqds]?)-?\d+`)
	missing := make(map[string]bool)
	for f := range forms {
		missing[f] = true
	}
	for _, l := range lines {
		want, text, _ := strings.Cut(l, " ")
		word, err := Encode(text)
		if got := fmt.Sprintf("%08x", word); err != nil || got != want {
			t.Errorf("%s = %s, %v, want %s", text, got, err, want)
		}
		name, operands, _ := strings.Cut(text, " ")
		delete(missing, name+" "+digits.ReplaceAllString(operands, "$1$2#"))
	}
	for f := range missing {
		t.Errorf("%s has no line for %s", golden, f)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "nop", "fadd v1.4s, v2.4s", "fadd v1.2d, v2.2d, v3.2d", // unknown instructions
		"fadd v32.4s, v2.4s, v3.4s", "sdot v1.4s, v2.16b, v3.4b[4]", "movi v1.16b, #256", // operands beyond their fields
		"ldr q1, [x2], #256", "ldr q1, [x2], #-257", "ldp q1, q2, [x3], #8", "shl v1.4s, v2.4s, #32",
		"smlal v1.4s, v2.4h, v16.h[0]", "smlal v1.4s, v2.4h, v3.h[8]", "st1 {v1.s}[4], [x2], x3", "shl v1.8h, v2.8h, #16",
		"ldr q1, [x2, #24]", "ldr q1, [x2, #65536]",
	} {
		if word, err := Encode(text); err == nil {
			t.Errorf("%q = %08x, want an error", text, word)
		}
	}
}
