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

// Version is the program's version. Release builds set it.
var Version = "development"

// Env is the environment that a process gives to a command.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        func() []string // returns "NAME=value" strings
	Options        Options         // the program's options of the server; package cli sets them
	Data           data.Options    // options of data folders; empty except in tests, which inject faults
}

// Lookup returns the value of an environment variable, or "" if it is not set.
func (e *Env) Lookup(name string) string {
	for _, v := range e.Environ() {
		if value, ok := strings.CutPrefix(v, name+"="); ok && value != "" {
			return value
		}
	}
	return ""
}

// UsageError is an error in flags or arguments.
type UsageError struct{ Err error }

func (u UsageError) Error() string { return u.Err.Error() }
func (u UsageError) Unwrap() error { return u.Err }

// Usagef returns a UsageError, for which the program ends with exit code 2.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Exit codes.
const (
	ExitOK      = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitPartial = 3 // some of several items failed
)

// ExitError ends a program with an exit code and without a message. The command has already reported the error.
type ExitError int

func (t ExitError) Error() string { return fmt.Sprintf("exit status %d", int(t)) }

// NoArguments refuses arguments with a UsageError.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
