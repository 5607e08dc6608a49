package keeper

import "syscall"

// attributes are those of the server's process: a signal of the terminal is the keeper's alone, and
// the server dies with the keeper.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
