//go:build unix && !linux

package system

import "syscall"

// Attributes are those of a process that we look after: a signal of the terminal is ours alone. No other
// system has it die with us.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
