package system

import (
	"os"
	"strings"
)

// Boot names the time since the machine was started: it changes with every start, and is
// empty where it cannot be known.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
