// Package command is the command line: what the flags mean, and how a server or a prediction
// is put together from the other packages.
//
//	sightline serve ──▶ settings ──▶ lock ─▶ blobs ─▶ engine ─▶ pool ─▶ httpd ─▶ SIGTERM ─▶ drain
//	sightline predict ──▶ pictures ──▶ engine and analysers, one a core ──▶ table or JSON, in order
//	sightline version
//
// Both commands run the same engine over the same bundles, which are in the binary: predict
// needs no server, no files and no network.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitSome   = 3
)

// errSome is returned when some pictures failed and others did not. They have been told.
var errSome = errors.New("some pictures failed")

// errTold is returned when everything failed and has been told.
var errTold = Told(exitFailed)

// Run runs one command and returns the process's exit code: 0 when all went well, 1 when it
// failed, 2 for a mistake in the command line, 3 when some of the pictures failed.
func Run(ctx context.Context, env Env) int {
	if env.Program == nil {
		env.Program = NewOrigin()
	}
	root := newRoot(&env)
	root.SetArgs(append([]string{}, env.Args...)) // never nil, which would mean the process's own
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	var said told
	switch {
	case err == nil, system.IsBrokenPipe(err):
		return exitOK
	case errors.Is(err, errSome):
		return exitSome
	case errors.As(err, &said):
		return int(said)
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "%s: %s\nSee '%s --help'.\n", cmd.CommandPath(), cleanLines(err.Error()), cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(env.Stderr, "%s: %s\n", cmd.CommandPath(), cleanLines(err.Error()))
	return exitFailed
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usagef("unknown command %q", args[0])
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	serve := newServe(env)
	env.Program.Describe(root, serve)
	root.AddCommand(serve, newImport(env), newExport(env), newSearch(env), newTrain(env), newBackup(env), newRestore(env), newDoctor(env), newApp(env), newKey(env), newCertificate(env), newStatus(env), newVersion(), newDecodeVideo(env))
	root.AddCommand(env.Program.Commands(env)...)
	called(root.Name(), root)
	return root
}

func newVersion() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the program's version",
		Args:  NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
					"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s, %s/%s)\n", cmd.Root().Name(), version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
