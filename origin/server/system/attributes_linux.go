package system

import "syscall"

// ChildAttributes returns the attributes of a child process. The child is not in this process's group, so that the terminal's signals reach
// this process only. The kernel kills the child when the thread that started it ends.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
