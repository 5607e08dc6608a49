package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sightline-dev/sightline/origin/server/control"
)

// localApp is the application that a first start makes.
const localApp = "local"

// welcome makes a new folder's application and its key, and tells them to whoever started
// the server, by the program's name: the key is told once. It does nothing for a folder that has a key.
func (n *node) welcome(ctx context.Context, w io.Writer, name string) error {
	keys, err := control.Keys.Do(ctx, n, control.ID{ID: ""})
	if err != nil || len(keys) > 0 {
		return err
	}
	apps, err := control.Apps.Do(ctx, n, control.Nothing{})
	if err != nil {
		return err
	}
	n.fresh = len(apps) == 0
	var app string
	if len(apps) > 0 {
		app = apps[0].ID // the process died before its key was made
	} else {
		made, err := control.CreateApp.Do(ctx, n, control.NewApp{Name: localApp, Language: n.settings.language})
		if err != nil {
			return err
		}
		app = made.App.ID
	}
	key, err := control.CreateKey.Do(ctx, n, control.NewKey{App: app, Scopes: []string{"All"}, Description: "created at the first start"})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, `
New data folder. Created the application %q:

    app_id  %s
    key     %s

This key is not shown again. Try it:

    curl -H 'Authorization: Key %s' %s/v2/models

To create more keys: %s key create --app %s --scopes All --data %s

`, localApp, app, key.Key, key.Key, n.settings.PublicURL, name, app, quote(n.settings.Data))
	return nil
}

// quote makes an argument of a shell's command line of a path.
func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
