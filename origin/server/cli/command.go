// Package cli has the commands that all programs share, and runs any command of a program: exit codes, progress, tables.
//
//	main ─▶ Run ─┬─▶ serve ─▶ [server.Options] of the program
//	             ├─▶ import, search, export, train ─▶ a session: a server's /v2, or a data folder
//	             └─▶ app, key, backup, restore, doctor, status ─▶ a data folder, through the process that has it open
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Program describes a program with the parts that differ between programs. In help texts {prog} is its name.
type Program struct {
	Name, Short, Long string
	Serve             string                                 // paragraphs in the help of serve
	Commands          func(env *server.Env) []*cobra.Command // commands of this program only
	Server            server.Options
}

// Main runs the command of the process and exits. It is a program's main function.
func Main(p Program) {
	ctx, stop := system.CancelOnSignal(context.Background())
	system.IgnoreBrokenPipes()
	code := Run(ctx, p, server.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ,
	})
	stop()
	os.Exit(code)
}

// Run runs one command of a program and returns the exit code of the process: 0 for success, 1 for a failure, 2 for a usage error, and 3 if
// some of several items failed.
func Run(ctx context.Context, p Program, env server.Env) int {
	env.Options = p.Server
	root := p.command(&env)
	root.SetArgs(append([]string{}, env.Args...)) // never nil: cobra would use the process's arguments
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage server.UsageError
	var exit server.ExitError
	switch {
	case err == nil, system.IsBrokenPipe(err):
		return server.ExitOK
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "%s: %s\nSee '%s --help'.\n", cmd.CommandPath(), server.PrintableLines(err.Error()), cmd.CommandPath())
		return server.ExitUsage
	}
	fmt.Fprintf(env.Stderr, "%s: %s\n", cmd.CommandPath(), server.PrintableLines(err.Error()))
	return server.ExitFailed
}

func (p *Program) command(env *server.Env) *cobra.Command {
	root := &cobra.Command{
		Use:               p.Name,
		Short:             p.Short,
		Long:              p.Long,
		Version:           server.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		RunE:              showHelp,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetGlobalNormalizationFunc(server.FlagName)
	// Old names of commands work, but the help does not show them.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if gt (len .Aliases) 0}}\n\nAliases:\n  {{.NameAndAliases}}{{end}}", "", 1))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return server.UsageError{Err: err} })
	root.AddCommand(server.NewServe(env, p.Serve), newImport(env), newExport(env), newSearch(env), newTrain(env), newBackup(env), newRestore(env), newDoctor(env), newApp(env), newKey(env), newCertificate(env), newStatus(env), newVersion(), newDecodeVideo(env))
	root.AddCommand(p.Commands(env)...)
	insertProgramName(p.Name, root)
	return root
}

// insertProgramName replaces {prog} by the program's name in the help of a command and of its subcommands.
func insertProgramName(name string, cmd *cobra.Command) {
	r := strings.NewReplacer("{prog}", name)
	cmd.Short, cmd.Long, cmd.Example = r.Replace(cmd.Short), r.Replace(cmd.Long), r.Replace(cmd.Example)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = r.Replace(f.Usage) })
	for _, below := range cmd.Commands() {
		insertProgramName(name, below)
	}
}

func newVersion() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the program's version",
		Args:  server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
					"version": server.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s, %s/%s)\n", cmd.Root().Name(), server.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
