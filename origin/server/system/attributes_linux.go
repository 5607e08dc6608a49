package system

import "syscall"

// Attributes are those of a process that we look after: a signal of the terminal is ours alone, and it dies with us.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
