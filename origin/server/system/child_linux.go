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

// LowerPriority lowers the priority of the calling thread, and so that of the processes that it starts. The caller must
// be locked to the thread and end with it: an ordinary user cannot raise the priority again.
func LowerPriority() error {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the nice value
	if err != nil || 20-raw >= lowered {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, lowered)
}

// LimitProcess kills a child once it has used so much processor time, and refuses it private memory beyond so many bytes;
// 0: no limit. A child that has ended already is no error.
func LimitProcess(child *os.Process, processor time.Duration, memory uint64) error {
	set := func(which int, most uint64) error {
		if most == 0 {
			return nil
		}
		err := unix.Prlimit(child.Pid, which, &unix.Rlimit{Cur: most, Max: most}, nil)
		if errors.Is(err, syscall.ESRCH) {
			err = nil
		}
		return err
	}
	seconds := uint64((processor + time.Second - 1) / time.Second)
	return errors.Join(set(unix.RLIMIT_CPU, seconds), set(unix.RLIMIT_DATA, memory))
}

// OpenDescriptor is the path under which a process opens what it inherited as this descriptor.
func OpenDescriptor(fd string) string { return "/proc/self/fd/" + fd }
