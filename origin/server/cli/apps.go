package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// withFolder runs do on a data folder. A server may have the folder open.
func withFolder(ctx context.Context, dir string, env *server.Env, u server.Use, do func(control.Folder) error) error {
	if dir == "" {
		return server.Usagef("--data is required")
	}
	s, done, err := server.Attach(ctx, dir, env, u)
	if err != nil {
		return err
	}
	err = do(s)
	if _, other := s.(*control.Caller); other && system.IsNotListening(err) { // the process with the folder has just ended
		return errors.Join(done(), withFolder(ctx, dir, env, u, do))
	}
	if control.IsMistake(err) {
		err = server.UsageError{Err: err}
	}
	return errors.Join(err, done())
}

const FolderHelp = `

Works directly on the data folder, whether or not a server is running.`

// FolderCommand holds the common flags of commands about applications, keys, edges and heads.
type FolderCommand struct {
	Env    *server.Env
	cmd    *cobra.Command
	use    server.Use
	dir    string
	AsJSON bool
}

// OnFolder completes a command that runs do on a data folder. output describes the output with --json.
func OnFolder(
	env *server.Env, u server.Use, cmd *cobra.Command, output string,
	do func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error,
) *cobra.Command {
	c := &FolderCommand{Env: env, use: u}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.With(cmd, func(ctx context.Context, s control.Folder) error { return do(ctx, c, s, args) })
	}
	return c.Flags(cmd, output)
}

// Flags adds the common flags to a command. It is for commands that do some work before they open the folder; for others use [OnFolder].
func (c *FolderCommand) Flags(cmd *cobra.Command, output string) *cobra.Command {
	c.cmd = cmd
	cmd.Flags().StringVar(&c.dir, "data", "", "data `folder`")
	cmd.Flags().BoolVar(&c.AsJSON, "json", false, "print "+output)
	return cmd
}

// With runs do on the data folder.
func (c *FolderCommand) With(cmd *cobra.Command, do func(context.Context, control.Folder) error) error {
	return withFolder(cmd.Context(), c.dir, c.Env, c.use, func(s control.Folder) error { return do(cmd.Context(), s) })
}

// OneArgument returns a check for exactly one argument. argument describes it in the error.
func OneArgument(argument string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return server.Usagef("expected one argument: %s", argument)
		}
		return nil
	}
}

// pair is a name and a value that a command prints.
type pair struct{ name, value string }

// print prints pairs as a JSON object, or as lines.
func (c *FolderCommand) print(pairs ...pair) error {
	if c.AsJSON {
		object := map[string]string{}
		for _, p := range pairs {
			object[p.name] = p.value
		}
		return server.NewJSONEncoder(c.Env.Stdout).Encode(object)
	}
	for _, p := range pairs {
		if _, err := fmt.Fprintf(c.Env.Stdout, "%-13s  %s\n", p.name, server.Printable(p.value)); err != nil {
			return err
		}
	}
	return nil
}

// Print prints v as a JSON object with --json, and otherwise a formatted line.
func (c *FolderCommand) Print(v any, format string, args ...any) error {
	if c.AsJSON {
		return server.NewJSONEncoder(c.Env.Stdout).Encode(v)
	}
	_, err := fmt.Fprintf(c.Env.Stdout, format, args...)
	return err
}

// Group returns a command with subcommands.
func Group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + FolderHelp,
		RunE: showHelp,
	}
	cmd.AddCommand(below...)
	return cmd
}

// showHelp shows the help of a command that only has subcommands.
func showHelp(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return server.Usagef("unknown command %q", args[0])
	}
	return cmd.Help()
}

func newApp(env *server.Env) *cobra.Command {
	return Group("app", "Manage applications",
		`Manages the applications of a data folder. An application has its own inputs, concepts and
models, which no other application can see.`,
		newAppCreate(env), newAppList(env), newAppChange(env), newAppDelete(env), newAppSecret(env), newAppRevoke(env))
}

func newAppCreate(env *server.Env) *cobra.Command {
	var a register.NewApp
	cmd := OnFolder(env, server.Use{Create: true}, &cobra.Command{
		Use:   "create NAME",
		Short: "Create an application; print its ID and client credentials",
		Long: `Creates an application and prints its app_id, client_id and client_secret (for access tokens from
POST /v2/token). The secret is not shown again. The new application has no API key: see
'{prog} key create'. Creates the folder if it does not exist.` + FolderHelp,
		Example: `  {prog} app create birds --data ./data
  {prog} app create Vögel --language de --data ./data --json`,
		Args: OneArgument("the name"),
	}, "a JSON object with app_id, client_id and client_secret", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		a.Name = args[0]
		app, err := control.CreateApp.Do(ctx, s, a)
		if err != nil {
			return err
		}
		return c.print(pair{"app_id", app.App.ID}, pair{"client_id", app.Client.ID}, pair{"client_secret", app.Client.Secret})
	})
	cmd.Flags().StringVar(&a.Language, "language", "en", "default language `code` of concept names; cannot be changed later")
	cmd.Flags().StringVar(&a.DefaultModel, "default-model", "", "`ID` of the public model that pages select by default; does not affect the API")
	cmd.Flags().BoolVar(&a.LocalOnly, "local-only", false, "keep the application on this server: sync does not send it to edges, pages or other replicas")
	return cmd
}

func newAppList(env *server.Env) *cobra.Command {
	return OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "list",
		Short:   "List applications",
		Long:    `Lists the applications of a data folder, oldest first.` + FolderHelp,
		Example: `  {prog} app list --data ./data`,
		Args:    server.NoArguments,
	}, "one JSON object per line", func(ctx context.Context, c *FolderCommand, s control.Folder, _ []string) error {
		apps, err := control.Apps.Do(ctx, s, control.Nothing{})
		if err != nil {
			return err
		}
		return PrintTable(c, apps, "APP_ID\tNAME\tLANGUAGE\tCREATED", func(a control.App) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", a.ID, server.Printable(a.Name), a.Language, a.Created.Format(time.DateTime))
		})
	})
}

func newAppChange(env *server.Env) *cobra.Command {
	var name, model, stale string
	var local bool
	var change register.AppChange
	cmd := OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "update ID",
		Aliases: []string{"change"},
		Short:   "Change an application's settings",
		Long: `Changes an application's settings. The language cannot be changed.

With --local-only, sync stops sending the application to edges, pages and other replicas. A replica
that has it sends its own changes first and then deletes its copy. --local-only=false shares it
again, and replicas receive all of it.` + FolderHelp,
		Example: `  {prog} app update 0123456789abcdef0123456789abcdef --name "Birds of 2026" --data ./data
  {prog} app update 0123456789abcdef0123456789abcdef --local-only --data ./data`,
		Args: OneArgument("the app_id"),
	}, "the application as a JSON object", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		app, err := control.ChangeApp.Do(ctx, s, control.ChangedApp{ID: args[0], Change: change})
		if err != nil {
			return err
		}
		if c.AsJSON {
			return server.NewJSONEncoder(c.Env.Stdout).Encode(app)
		}
		pairs := []pair{{"app_id", app.ID}, {"name", app.Name}, {"default_model", app.DefaultModel}}
		if app.LocalOnly {
			pairs = append(pairs, pair{"local_only", "true"})
		}
		return c.print(pairs...)
	})
	cmd.Flags().StringVar(&name, "name", "", "new `name`")
	cmd.Flags().StringVar(&model, "default-model", "", "`ID` of the model that pages select by default; empty for the general model")
	cmd.Flags().StringVar(&stale, "max-edge-age", "", "`duration` for which edges accept writes without contact to this server, such as 48h; 0 means 24h")
	cmd.Flags().BoolVar(&local, "local-only", false, "keep the application on this server: sync does not send it to edges, pages or other replicas")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("name") {
			change.Name = &name
		}
		if cmd.Flags().Changed("default-model") {
			change.DefaultModel = &model
		}
		if cmd.Flags().Changed("max-edge-age") {
			d, err := time.ParseDuration(stale)
			if err != nil {
				return server.UsageError{Err: register.ErrMaxStale}
			}
			change.MaxStale = &d
		}
		if cmd.Flags().Changed("local-only") {
			change.LocalOnly = &local
		}
		if change == (register.AppChange{}) {
			return server.Usagef("nothing to change: give --name, --default-model, --max-edge-age or --local-only")
		}
		return nil
	}
	return cmd
}

func newAppDelete(env *server.Env) *cobra.Command {
	yes := false
	cmd := OnFolder(env, server.Use{}, &cobra.Command{
		Use:   "delete ID",
		Short: "Permanently delete an application and its contents",
		Long: `Deletes an application. Its keys and tokens stop working immediately; its inputs, concepts, models,
workflows and pictures are permanently removed. On a terminal you must type its name; in scripts
use --yes. Run '{prog} export' first to keep a copy.` + FolderHelp,
		Example: `  {prog} export birds.zip --app 0123456789abcdef0123456789abcdef --data ./data
  {prog} app delete 0123456789abcdef0123456789abcdef --data ./data`,
		Args: OneArgument("the app_id"),
	}, "the deleted application as a JSON object", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		return c.deleteApp(ctx, s, c.cmd.Root().Name(), args[0], yes)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "skip the confirmation")
	return cmd
}

// deletedApp is the output of app delete --json.
type deletedApp struct {
	ID   string `json:"app_id"`
	Name string `json:"name"`
	register.Contents
}

func (c *FolderCommand) deleteApp(ctx context.Context, s control.Folder, name, id string, yes bool) error {
	app, err := findApp(ctx, s, id)
	if err != nil {
		return err
	}
	contents, err := control.CountApp.Do(ctx, s, control.ID{ID: id})
	if err != nil {
		return err
	}
	if !yes {
		if !server.IsTerminal(c.Env.Stdin) {
			return server.Usagef("this would delete %q with %s; pass --yes to confirm", app.Name, formatContents(contents))
		}
		if err := c.confirm(ctx, name, app, contents); err != nil {
			return err
		}
	}
	if _, err := control.DeleteApp.Do(ctx, s, control.ID{ID: id}); err != nil {
		return err
	}
	return c.Print(deletedApp{app.ID, app.Name, contents}, "deleted %s (%s) with %s\n", server.Printable(app.Name), app.ID, formatContents(contents))
}

// findApp returns the application with the given id.
func findApp(ctx context.Context, s control.Folder, id string) (control.App, error) {
	apps, err := control.Apps.Do(ctx, s, control.Nothing{})
	if err != nil {
		return control.App{}, err
	}
	i := slices.IndexFunc(apps, func(a control.App) bool { return a.ID == id })
	if i < 0 {
		return control.App{}, fmt.Errorf("%w: %q", register.ErrApplication, id)
	}
	return apps[i], nil
}

// confirm asks the user to type the application's name. It returns an error if the user types anything else.
func (c *FolderCommand) confirm(ctx context.Context, name string, app control.App, contents register.Contents) error {
	fmt.Fprintf(c.Env.Stderr, `%s will be permanently deleted, with %s.
To keep a copy, stop here (Ctrl-C) and run:

    %s export FILE.zip --app %s --data %s

Type the application's name to delete it: `, server.Printable(app.Name), formatContents(contents), name, app.ID, server.Quote(c.dir))
	typed := make(chan string, 1)
	go func() { // ends only with a line or with the process
		line, _ := bufio.NewReader(c.Env.Stdin).ReadString('\n')
		typed <- line
	}()
	select {
	case line := <-typed:
		if strings.TrimSpace(line) == app.Name {
			return nil
		}
		return errors.New("the name does not match; nothing was deleted")
	case <-ctx.Done():
		return errors.New("interrupted; nothing was deleted")
	}
}

// formatContents returns the sizes of an application in words.
func formatContents(c register.Contents) string {
	parts := make([]string, 0, 6)
	for _, n := range []struct {
		n    int
		word string
	}{{c.Inputs, "input"}, {c.Concepts, "concept"}, {c.Models, "model"}, {c.Versions, "model version"}, {c.Workflows, "workflow"}, {c.Keys, "key"}} {
		if n.n != 1 {
			n.word += "s"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n.n, n.word))
	}
	return strings.Join(parts[:5], ", ") + " and " + parts[5]
}

func newAppSecret(env *server.Env) *cobra.Command {
	return OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "rotate-secret ID",
		Aliases: []string{"secret"},
		Short:   "Replace the client secret and print the new one",
		Long: `Replaces the client secret of an application. The old secret and all access tokens stop working
immediately.` + FolderHelp,
		Example: `  {prog} app rotate-secret 0123456789abcdef0123456789abcdef --data ./data --json`,
		Args:    OneArgument("the app_id"),
	}, "a JSON object with client_id and client_secret", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		client, err := control.ReplaceSecret.Do(ctx, s, control.ID{ID: args[0]})
		if err != nil {
			return err
		}
		return c.print(pair{"client_id", client.ID}, pair{"client_secret", client.Secret})
	})
}

func newAppRevoke(env *server.Env) *cobra.Command {
	return OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "revoke-tokens ID",
		Aliases: []string{"revoke"},
		Short:   "Revoke all access tokens of an application",
		Long:    `Revokes all access tokens of an application. The client secret stays valid and can issue new ones.` + FolderHelp,
		Example: `  {prog} app revoke-tokens 0123456789abcdef0123456789abcdef --data ./data`,
		Args:    OneArgument("the app_id"),
	}, "a JSON object with app_id", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		if _, err := control.RevokeTokens.Do(ctx, s, control.ID{ID: args[0]}); err != nil || !c.AsJSON {
			return err
		}
		return c.print(pair{"app_id", args[0]})
	})
}

// PrintTable prints rows as a table, or with --json as one JSON object per line.
func PrintTable[T any](c *FolderCommand, rows []T, head string, row func(T) string) error {
	w := c.Env.Stdout
	if c.AsJSON {
		e := server.NewJSONEncoder(w)
		for _, r := range rows {
			if err := e.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, head)
	for _, r := range rows {
		fmt.Fprintln(table, row(r))
	}
	return table.Flush()
}
