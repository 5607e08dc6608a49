//go:build unix && !linux

package system

import (
	"os"
	"time"
)

// LowerPriority does nothing: no other system has threads with their own priority that processes inherit.
func LowerPriority() error { return nil }

// LimitProcess does nothing: no other system lets a process set the limits of another.
func LimitProcess(*os.Process, time.Duration, uint64) error { return nil }

// OpenDescriptor is the path under which a process opens what it inherited as this descriptor.
func OpenDescriptor(fd string) string { return "/dev/fd/" + fd }
