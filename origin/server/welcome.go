package server

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// LocalApp is the application that a first start makes.
const LocalApp = "local"

// Welcome makes a new folder's application and its key, and prints them for the person who started
// the server, with commands of the program. The key is printed once. It does nothing for a folder that has a key.
func (n *Node) Welcome(ctx context.Context, w io.Writer, name string) error {
	keys, err := control.Keys.Do(ctx, n, control.ID{ID: ""})
	if err != nil || len(keys) > 0 {
		return err
	}
	apps, err := control.Apps.Do(ctx, n, control.Nothing{})
	if err != nil {
		return err
	}
	n.Fresh = len(apps) == 0
	var app string
	if len(apps) > 0 {
		app = apps[0].ID // the process died before its key was made
	} else {
		made, err := control.CreateApp.Do(ctx, n, register.NewApp{Name: LocalApp, Language: n.Settings.Language})
		if err != nil {
			return err
		}
		app = made.App.ID
	}
	key, err := control.CreateKey.Do(ctx, n, register.NewKey{App: app, Scopes: []string{"All"}, Description: "created at the first start"})
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

`, LocalApp, app, key.Key, key.Key, n.Settings.PublicURL, name, app, Quote(n.Settings.Data))
	return nil
}

// Quote makes an argument of a shell's command line of a path.
func Quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
