package system

import (
	"os"
	"strings"
)

// BootID returns an identifier that changes with every start of the machine. It returns "" where the
// system has none: it exists only on Linux.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
