package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

func newKey(env *server.Env) *cobra.Command {
	return Group("key", "Manage API keys",
		`Manages API keys. A key belongs to one application and has the permissions of its scopes. Only a
hash is stored, so a lost key cannot be recovered: replace it.`,
		newKeyCreate(env), newKeyList(env), newKeyDelete(env), newKeyReplace(env))
}

func newKeyCreate(env *server.Env) *cobra.Command {
	var k register.NewKey
	cmd := OnFolder(env, server.Use{}, &cobra.Command{
		Use:   "create",
		Short: "Create an API key and print it",
		Long: `Creates an API key and prints it. It is not shown again.

Scopes are All, Predict, Predict_Feedback, Search, Search_Feedback, and the following with _Add,
_Get, _Patch and _Delete: Inputs, Concepts (not _Delete), Models (also _Train), Workflows.` + FolderHelp,
		Example: `  {prog} key create --app 0123456789abcdef0123456789abcdef --scopes All --data ./data
  {prog} key create --scopes Predict,Search,Inputs_Get --description kiosk --data ./data --json`,
		Args: server.NoArguments,
	}, "a JSON object with key, key_id and app_id", func(ctx context.Context, c *FolderCommand, s control.Folder, _ []string) (err error) {
		if k.App, err = ChooseApp(ctx, s, k.App); err != nil {
			return err
		}
		key, err := control.CreateKey.Do(ctx, s, k)
		if err != nil {
			return err
		}
		return c.printKey(key)
	})
	f := cmd.Flags()
	f.StringVar(&k.App, "app", "", "`ID` of the application; optional if there is only one")
	f.StringSliceVar(&k.Scopes, "scopes", []string{"All"}, "comma-separated `scopes`")
	f.StringVar(&k.Description, "description", "", "`text` that describes the key")
	return cmd
}

// printKey prints a new key alone on a line, so that a script can read it.
func (c *FolderCommand) printKey(k control.CreatedKey) error {
	return c.Print(map[string]string{"key": k.Key, "key_id": k.Record.ID, "app_id": k.Record.App}, "%s\n", k.Key)
}

func newKeyList(env *server.Env) *cobra.Command {
	var app string
	cmd := OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "list",
		Short:   "List API keys",
		Long:    `Lists API keys with ID, scopes and description. The keys themselves are not stored.` + FolderHelp,
		Example: `  {prog} key list --data ./data --json`,
		Args:    server.NoArguments,
	}, "one JSON object per line", func(ctx context.Context, c *FolderCommand, s control.Folder, _ []string) error {
		keys, err := control.Keys.Do(ctx, s, control.ID{ID: app})
		if err != nil {
			return err
		}
		return PrintTable(c, keys, "KEY_ID\tAPP_ID\tCREATED\tSCOPES\tDESCRIPTION", func(k control.Key) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", k.ID, k.App, k.Created.Format(time.DateTime), strings.Join(k.Scopes, ","), server.Printable(k.Description))
		})
	})
	cmd.Flags().StringVar(&app, "app", "", "list only the keys of the application with this `ID`")
	return cmd
}

func newKeyDelete(env *server.Env) *cobra.Command {
	return OnFolder(env, server.Use{}, &cobra.Command{
		Use:   "delete KEY|KEY_ID",
		Short: "Delete an API key; it stops working immediately",
		Long: `Deletes an API key, given the key itself, its ID (see '{prog} key list') or a unique prefix of
at least 8 digits. It stops working immediately.` + FolderHelp,
		Example: `  {prog} key delete 0123456789abcdef --data ./data`,
		Args:    OneArgument("an API key or key_id"),
	}, "the deleted key as a JSON object", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		k, err := findKey(ctx, s, args[0])
		if err != nil {
			return err
		}
		if _, err := control.DeleteKey.Do(ctx, s, control.ID{ID: k.ID}); err != nil {
			return err
		}
		return c.Print(k, "deleted %s of application %s\n", k.ID, k.App)
	})
}

func newKeyReplace(env *server.Env) *cobra.Command {
	return OnFolder(env, server.Use{}, &cobra.Command{
		Use:     "rotate KEY|KEY_ID",
		Aliases: []string{"replace"},
		Short:   "Replace an API key and print the new one",
		Long: `Creates a key with the same scopes and description and deletes the old one, atomically. Give the
old key as for '{prog} key delete'.` + FolderHelp,
		Example: `  {prog} key rotate 0123456789abcdef --data ./data --json`,
		Args:    OneArgument("an API key or key_id"),
	}, "a JSON object with key, key_id and app_id", func(ctx context.Context, c *FolderCommand, s control.Folder, args []string) error {
		k, err := findKey(ctx, s, args[0])
		if err != nil {
			return err
		}
		key, err := control.ReplaceKey.Do(ctx, s, control.ID{ID: k.ID})
		if err != nil {
			return err
		}
		return c.printKey(key)
	})
}

// findKey returns the key in a data folder that text identifies, see chosenKey.
func findKey(ctx context.Context, s control.Folder, text string) (control.Key, error) {
	keys, err := control.Keys.Do(ctx, s, control.ID{})
	if err != nil {
		return control.Key{}, err
	}
	return chosenKey(keys, text)
}

// chosenKey returns the key that text identifies: the key itself, or at least 8 digits of the start of its id.
func chosenKey(keys []control.Key, text string) (control.Key, error) {
	id := strings.ToLower(strings.TrimSpace(text))
	if strings.Trim(id, "0123456789abcdef") != "" || len(id) < 8 {
		return control.Key{}, server.Usagef("not a key or key ID (8 to 16 hex digits; see 'key list')") // text may be a key
	}
	hash := auth.HashKey(id)
	own := auth.ByKey(hash)
	var found []control.Key
	for _, k := range keys {
		if len(id) == 32 && k.ID == own || strings.HasPrefix(k.ID, id) {
			found = append(found, k)
		}
	}
	switch {
	case len(found) == 0 && len(id) == 32:
		return control.Key{}, server.Usagef("key not found in this folder (see 'key list')") // the error does not repeat the key
	case len(found) == 0:
		return control.Key{}, server.Usagef("no key with ID %s in this folder (see 'key list')", id)
	case len(found) > 1:
		return control.Key{}, server.Usagef("key ID %s is ambiguous: %d keys match; give more digits", id, len(found))
	}
	return found[0], nil
}
