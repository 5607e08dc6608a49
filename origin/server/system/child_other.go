//go:build unix && !linux

package system

import (
	"os"
	"time"
)

// LowerPriority does nothing. Only on Linux does a thread have its own priority, which the processes that it starts inherit.
func LowerPriority() error { return nil }

// LimitProcess does nothing. Only on Linux can a process set the limits of another.
func LimitProcess(*os.Process, time.Duration, uint64) error { return nil }

// OpenDescriptor returns the path with which a process opens the file that it inherited as descriptor fd.
func OpenDescriptor(fd string) string { return "/dev/fd/" + fd }
