package system

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lowered is the nice value of background processes.
const lowered = 10

// LowerPriority lowers the priority of the calling thread. Processes that the thread starts inherit it. The calling
// goroutine must be locked to its thread and never unlock it, because an ordinary user cannot raise the priority again.
func LowerPriority() error {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 minus the nice value
	if err != nil || 20-raw >= lowered {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, lowered)
}

// LimitProcess limits a child's processor time, in whole seconds rounded up, and its private memory in bytes; 0: no limit.
// The kernel kills a child that has used its time. If the child has ended already, LimitProcess returns nil.
func LimitProcess(child *os.Process, processor time.Duration, memory uint64) error {
	set := func(which int, limit uint64) error {
		if limit == 0 {
			return nil
		}
		err := unix.Prlimit(child.Pid, which, &unix.Rlimit{Cur: limit, Max: limit}, nil)
		if errors.Is(err, syscall.ESRCH) {
			err = nil
		}
		return err
	}
	seconds := uint64((processor + time.Second - 1) / time.Second)
	return errors.Join(set(unix.RLIMIT_CPU, seconds), set(unix.RLIMIT_DATA, memory))
}

// OpenDescriptor returns the path with which a process opens the file that it inherited as descriptor fd.
func OpenDescriptor(fd string) string { return "/proc/self/fd/" + fd }
