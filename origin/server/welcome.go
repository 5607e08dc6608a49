package server

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// LocalApp is the name of the application that the first start creates.
const LocalApp = "local"

// CreateFirstApp creates the application and the key of a new data folder. It prints them to w for the operator, with commands of the
// program called name. It prints the key only once. If the folder has a key, CreateFirstApp does nothing.
func (n *Node) CreateFirstApp(ctx context.Context, w io.Writer, name string) error {
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
		app = apps[0].ID // an earlier process ended before it created the key
	} else {
		created, err := control.CreateApp.Do(ctx, n, register.NewApp{Name: LocalApp, Language: n.Settings.Language})
		if err != nil {
			return err
		}
		app = created.App.ID
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

// Quote returns path as an argument of a shell's command line, in quotes if necessary.
func Quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
