package server

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sightline-dev/sightline/origin/server/data"
)

// Version is set when a release is built.
var Version = "development"

// Env is the environment that a process gives to a command.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        func() []string // NAME=value
	Options        Options         // of the server of the program; [Run] sets them
	Data           data.Options    // of data folders; the program leaves it empty, tests put faults there
}

// Lookup returns the value of a variable; empty: it is not set.
func (e *Env) Lookup(name string) string {
	for _, v := range e.Environ() {
		if value, ok := strings.CutPrefix(v, name+"="); ok && value != "" {
			return value
		}
	}
	return ""
}

// UsageError is a mistake in flags or arguments.
type UsageError struct{ Err error }

func (u UsageError) Error() string { return u.Err.Error() }
func (u UsageError) Unwrap() error { return u.Err }

// Usagef is a mistake in flags or arguments: the program ends with exit code 2.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitSome   = 3 // some of several things failed
)

// ExitError ends a program with a code and without a message: what is wrong has been reported.
type ExitError int

func (t ExitError) Error() string { return fmt.Sprintf("exit status %d", int(t)) }

// NoArguments refuses arguments as a mistake of usage.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// IsTerminal reports whether w is a terminal that a person looks at.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
