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
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Program is what a program says of itself, and what only it has. In help texts {prog} is its name.
type Program struct {
	Name, Short, Long string
	Serve             string                          // paragraphs of the help of serve
	Commands          func(env *Env) []*cobra.Command // that no other program has
	Server            Options
}

// Run runs one command of a program and returns the exit code of the process: 0 when all went well, 1 when it
// failed, 2 for a mistake in the command line, 3 when some of the pictures failed.
func Run(ctx context.Context, p Program, env Env) int {
	env.Options = p.Server
	root := p.command(&env)
	root.SetArgs(append([]string{}, env.Args...)) // never nil, which would mean the process's own
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	var said ExitError
	switch {
	case err == nil, system.IsBrokenPipe(err):
		return ExitOK
	case errors.As(err, &said):
		return int(said)
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "%s: %s\nSee '%s --help'.\n", cmd.CommandPath(), cleanLines(err.Error()), cmd.CommandPath())
		return ExitUsage
	}
	fmt.Fprintf(env.Stderr, "%s: %s\n", cmd.CommandPath(), cleanLines(err.Error()))
	return ExitFailed
}

func (p *Program) command(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:           p.Name,
		Short:         p.Short,
		Long:          p.Long,
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
	root.AddCommand(newServe(env, p.Serve), newImport(env), newExport(env), newSearch(env), newTrain(env), newBackup(env), newRestore(env), newDoctor(env), newApp(env), newKey(env), newCertificate(env), newStatus(env), newVersion(), newDecodeVideo(env))
	root.AddCommand(p.Commands(env)...)
	named(p.Name, root)
	return root
}

// named puts a program's name in the place of {prog} in the help of a command and of those below it.
func named(name string, cmd *cobra.Command) {
	r := strings.NewReplacer("{prog}", name)
	cmd.Short, cmd.Long, cmd.Example = r.Replace(cmd.Short), r.Replace(cmd.Long), r.Replace(cmd.Example)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = r.Replace(f.Usage) })
	for _, below := range cmd.Commands() {
		named(name, below)
	}
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
