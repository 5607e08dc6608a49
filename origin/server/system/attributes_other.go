//go:build unix && !linux

package system

import "syscall"

// ChildAttributes returns the attributes of a child process. The child is not in this process's group, so that the
// terminal's signals reach this process only. Unlike on Linux, the child can outlive this process.
func ChildAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
