package host

import (
	"bufio"
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestCodeIn finds code that belongs to no file in lines of /proc/self/smaps.
func TestCodeIn(t *testing.T) {
	for _, tt := range []struct {
		line   string
		lo, hi uintptr
		ok     bool
	}{
		{"7f80b0770000-7f80b4000000 r-xp 00000000 00:00 0 ", 0x7f80b0770000, 0x7f80b4000000, true},
		{"7f80b0770000-7f80b4000000 rw-p 00000000 00:00 0 ", 0x7f80b0770000, 0x7f80b4000000, false},
		{"00402000-01215000 r-xp 00002000 fe:00 10439907                           /tmp/edge", 0x402000, 0x1215000, false},
		{"7ffd1c5f2000-7ffd1c5f4000 r-xp 00000000 00:00 0                          [vdso]", 0x7ffd1c5f2000, 0x7ffd1c5f4000, false},
		{"", 0, 0, false},
		{"nonsense", 0, 0, false},
	} {
		if lo, hi, ok := codeIn(tt.line); lo != tt.lo || hi != tt.hi || ok != tt.ok {
			t.Errorf("codeIn(%q) = %x, %x, %v, want %x, %x, %v", tt.line, lo, hi, ok, tt.lo, tt.hi, tt.ok)
		}
	}
}

// TestHugeCode checks that the module's code is advised to use huge pages, on a system that has them.
func TestHugeCode(t *testing.T) {
	setting, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || bytes.Contains(setting, []byte("[never]")) {
		t.Skip("the system has no huge pages to give")
	}
	module(t)
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	code, largest := false, uintptr(0)
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		line := lines.Text()
		if lo, hi, ok := codeIn(line); hi != 0 {
			code = ok && hi-lo >= 2*hugePage
			if code {
				largest = max(largest, hi-lo)
			}
		}
		if code && strings.HasPrefix(line, "VmFlags:") && !strings.Contains(line+" ", " hg ") {
			t.Errorf("%d bytes of code are not advised to lie in huge pages: %s", largest, line)
		}
	}
	if largest < hugePage {
		t.Errorf("the largest piece of code has %d bytes: the module's is not found", largest)
	}
}
