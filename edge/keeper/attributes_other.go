//go:build unix && !linux

package keeper

import "syscall"

// attributes are those of the server's process: a signal of the terminal is the keeper's alone. No other
// system has the server die with the keeper.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
