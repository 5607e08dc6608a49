package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/control"
)

// localApp is the application that a first start makes.
const localApp = "local"

// welcome makes a new folder's application and its key, and tells them to whoever started
// the server: the key is told once. It does nothing for a folder that has a key.
func (n *node) welcome(ctx context.Context, w io.Writer) error {
	keys, err := n.Keys(ctx, "")
	if err != nil || len(keys) > 0 {
		return err
	}
	apps, err := n.Apps(ctx)
	if err != nil {
		return err
	}
	var app string
	if len(apps) > 0 {
		app = apps[0].ID // the process died before its key was made
	} else if app, err = n.CreateApp(ctx, localApp, n.settings.language); err != nil {
		return err
	}
	key, err := n.CreateKey(ctx, app, []string{"All"}, "made at the first start")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `
This data folder is new. It has one application now, %q:

    app_id  %s
    key     %s

The key is shown only this once. Try it:

    curl -H 'Authorization: Key %s' %s/v2/models

Make more with: sightline key create --app %s --scopes All --data %s

`, localApp, app, key, key, n.settings.publicURL, app, quote(n.settings.data))
	return nil
}

// quote makes an argument of a shell's command line of a path.
func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// withFolder runs do on a data folder, which a server may have open.
func withFolder(ctx context.Context, dir string, env *Env, u use, do func(control.Service) error) error {
	if dir == "" {
		return usagef("--data is needed: the data folder")
	}
	s, done, err := attach(ctx, dir, env, u)
	if err != nil {
		return err
	}
	err = do(s)
	if errors.Is(err, control.ErrArgument) || errors.Is(err, control.ErrUnknownApp) {
		err = usageError{err}
	}
	return errors.Join(err, done())
}

const folderHelp = `

The data folder is worked on directly; a server may have it open or not.`

func newApp(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "app",
		Short: "Make and list applications",
		Long: `Make and list the applications of a data folder. An application holds its own inputs,
concepts and models; what one holds no other can see.` + folderHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newAppCreate(env), newAppList(env))
	return cmd
}

func newAppCreate(env *Env) *cobra.Command {
	var dir, language string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an application and print its id",
		Long: `Make an application and print its app_id. It has no key yet: see 'sightline key create'.
The folder is made when it is missing.` + folderHelp,
		Example: `  sightline app create birds --data ./data
  sightline app create Vögel --language de --data ./data --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("one name is needed")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFolder(cmd.Context(), dir, env, use{make: true}, func(s control.Service) error {
				id, err := s.CreateApp(cmd.Context(), args[0], language)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"app_id": id})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data", "", "data `folder`")
	f.StringVar(&language, "language", "en", "language `code` of concept names when a request gives none; it never changes")
	f.BoolVar(&asJSON, "json", false, "print a JSON object with app_id")
	return cmd
}

func newAppList(env *Env) *cobra.Command {
	var dir string
	asJSON := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the applications",
		Long:    `List the applications of a data folder, the oldest first.` + folderHelp,
		Example: `  sightline app list --data ./data`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withFolder(cmd.Context(), dir, env, use{}, func(s control.Service) error {
				apps, err := s.Apps(cmd.Context())
				if err != nil {
					return err
				}
				return list(cmd.OutOrStdout(), asJSON, apps, "APP_ID\tNAME\tLANGUAGE\tCREATED", func(a control.App) string {
					return fmt.Sprintf("%s\t%s\t%s\t%s", a.ID, clean(a.Name), a.Language, a.Created.Format(time.DateTime))
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data", "", "data `folder`")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// list prints rows as a table, or as JSON one a line.
func list[T any](w io.Writer, asJSON bool, rows []T, head string, row func(T) string) error {
	if asJSON {
		e := json.NewEncoder(w)
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

func newKey(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make and list API keys",
		Long: `Make and list the API keys of a data folder's applications. A key stands for one
application and may do what its scopes say. The folder keeps a hash of it: whoever reads the
folder cannot use it, and a lost key is replaced by a new one.` + folderHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newKeyCreate(env), newKeyList(env))
	return cmd
}

func newKeyCreate(env *Env) *cobra.Command {
	var dir, app, description string
	var scopes []string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print it, once",
		Long: `Make a key for an application and print it. It is shown only now.

Scopes are All, Predict, Predict_Feedback, Search, Search_Feedback, and the following with _Add,
_Get, _Patch and _Delete: Inputs, Concepts (not _Delete), Models (also _Train), Workflows.` + folderHelp,
		Example: `  sightline key create --app 0123456789abcdef0123456789abcdef --scopes All --data ./data
  sightline key create --scopes Predict,Search,Inputs_Get --description kiosk --data ./data --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withFolder(cmd.Context(), dir, env, use{}, func(s control.Service) error {
				app, err := chooseApp(cmd.Context(), s, app)
				if err != nil {
					return err
				}
				key, err := s.CreateKey(cmd.Context(), app, scopes, description)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"key": key, "app_id": app})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data", "", "data `folder`")
	f.StringVar(&app, "app", "", "`id` of the application; not needed where there is one")
	f.StringSliceVar(&scopes, "scopes", []string{"All"}, "`scopes`, separated by commas")
	f.StringVar(&description, "description", "", "`text` to remember it by")
	f.BoolVar(&asJSON, "json", false, "print a JSON object with key and app_id")
	return cmd
}

func newKeyList(env *Env) *cobra.Command {
	var dir, app string
	asJSON := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the keys, by the start of their hash",
		Long:    `List what is known of the keys: not the keys themselves, which are not kept.` + folderHelp,
		Example: `  sightline key list --data ./data --json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withFolder(cmd.Context(), dir, env, use{}, func(s control.Service) error {
				keys, err := s.Keys(cmd.Context(), app)
				if err != nil {
					return err
				}
				return list(cmd.OutOrStdout(), asJSON, keys, "HASH\tAPP_ID\tCREATED\tSCOPES\tDESCRIPTION", func(k control.Key) string {
					return fmt.Sprintf("%s…\t%s\t%s\t%s\t%s", k.Prefix, k.App, k.Created.Format(time.DateTime), strings.Join(k.Scopes, ","), clean(k.Description))
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data", "", "data `folder`")
	f.StringVar(&app, "app", "", "`id` of an application: its keys alone")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}
