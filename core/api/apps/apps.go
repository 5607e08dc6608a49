// Package apps has the calls of accounts and clients: sessions, access tokens, applications, keys and scopes.
// These calls write through the host, which has the accounts, and not into the log of an application.
// Only one answer contains a new secret, and caches must not store that answer.
package apps

import (
	"cmp"
	"fmt"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
)

// Login opens a session of an account for scripts. Users sign in on the web pages.
func Login(x *call.Call) error {
	var err error
	email, password := call.Read(&err, x.Body.Text, "email"), call.Read(&err, x.Body.Text, "password")
	if err != nil {
		return call.Refuse(call.ErrAccountRequest, err)
	}
	if x.Host.Accounts == nil {
		return auth.ErrLogin
	}
	session, account, err := x.Host.Accounts.Login(x.Ctx, email, password, x.Remote)
	if err != nil {
		return err
	}
	return x.NoStore(x.OK(func(w *jsonio.Writer) {
		w.Text("session_token", session)
		w.Text("v2_user_id", account)
	}))
}

// oneElement returns the only element of a list in a request that creates something.
func oneElement(o call.Object, list string) (call.Object, error) {
	elements, _, err := o.LimitedObjects(list, 1, call.ErrAccountRequest)
	if err != nil {
		return call.Object{}, err
	}
	for o, err := range elements {
		return o, call.Refuse(call.ErrAccountRequest, err)
	}
	return call.Object{}, nil
}

// CreateApp creates an application for the session's account. If the request has no language, as from
// old clients, the language is English.
func CreateApp(x *call.Call) error {
	o, err := oneElement(x.Body, "apps")
	if err != nil {
		return err
	}
	a := call.NewApp{Name: call.Read(&err, o.Text, "name"), Language: call.Read(&err, o.Text, "default_language")}
	if err != nil {
		return call.Refuse(call.ErrAccountRequest, err)
	}
	a.Language = cmp.Or(a.Language, lang.English)
	owned, err := x.Host.Apps.AppsOf(x.Principal.Account)
	if err != nil {
		return err
	}
	if len(owned) >= call.MaxApps {
		return call.Refusef(call.ErrAccountRequest, "An account can have at most %d applications.", call.MaxApps)
	}
	app, err := x.Host.Apps.CreateApp(x.Ctx, x.Principal.Account, x.Remote, a)
	if err != nil {
		return err
	}
	x.Elsewhere = true
	return writeApps(x, []catalog.App{app})
}

// ListApps lists the applications of the account.
func ListApps(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	owned, err := x.Host.Apps.AppsOf(x.Principal.Account)
	if err != nil {
		return err
	}
	return writeApps(x, call.PageRows(owned, p))
}

// ownedApp returns an application of the account. For another account's application it returns the same error as for a missing one.
func ownedApp(x *call.Call, id string) (catalog.App, error) {
	app, err := x.Host.Apps.App(id)
	if err == nil && app.Owner != x.Principal.Account {
		return app, call.NoPath
	}
	return app, call.ReplaceNotFound(err, call.NoPath)
}

// ReadApp answers with one application of the account.
func ReadApp(x *call.Call) error {
	app, err := ownedApp(x, x.IDs["app_id"])
	if err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("app")
		writeAppRecord(w, &app)
	})
}

func writeApps(x *call.Call, apps []catalog.App) error {
	return x.OK(func(w *jsonio.Writer) {
		w.List("apps", len(apps), func(i int) { writeAppRecord(w, &apps[i]) })
	})
}

func writeAppRecord(w *jsonio.Writer, a *catalog.App) {
	w.Object()
	w.Text("id", a.ID)
	w.Text("name", a.Name)
	w.Text("default_language", a.Language)
	show.WriteText(w, "user_id", a.Owner)
	w.Text("created_at", show.Timestamp(a.Created.Time()))
	show.WriteTrue(w, "local_only", a.LocalOnly)
	w.End('}')
}

// CreateKey creates a key to one of the account's applications. Its id in the answer is the key itself, which
// no later answer shows.
func CreateKey(x *call.Call) error {
	o, err := oneElement(x.Body, "keys")
	if err != nil {
		return err
	}
	k := call.NewKey{Description: call.Read(&err, o.Text, "description"), Scopes: call.Read(&err, o.Texts, "scopes")}
	if err != nil {
		return call.Refuse(call.ErrAccountRequest, err)
	}
	app, err := oneElement(o, "apps")
	if err != nil {
		return err
	}
	k.App = call.Read(&err, app.Text, "id")
	user := call.Read(&err, app.Text, "user_id")
	switch {
	case err != nil:
		return call.Refuse(call.ErrAccountRequest, err)
	case user != "" && user != call.Me && user != x.Principal.Account:
		return call.NoPath
	}
	if _, err := ownedApp(x, k.App); err != nil {
		return err
	}
	keys, err := x.Host.Apps.Keys(k.App)
	if err != nil {
		return err
	}
	if len(keys) >= call.MaxKeys {
		return call.Refusef(call.ErrAccountRequest, "An application can have at most %d keys.", call.MaxKeys)
	}
	key, record, err := x.Host.Apps.CreateKey(x.Ctx, x.Principal.Account, x.Remote, k)
	if err != nil {
		return err
	}
	x.Elsewhere = true
	return x.NoStore(writeKeys(x, []keyRow{{key, record}}))
}

// ListKeys lists the keys of all the account's applications. Their ids are the start of the key's hash.
func ListKeys(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	owned, err := x.Host.Apps.AppsOf(x.Principal.Account)
	if err != nil {
		return err
	}
	var rows []keyRow
	for i := range owned {
		keys, err := x.Host.Apps.Keys(owned[i].ID)
		if err != nil {
			return err
		}
		for _, k := range keys {
			rows = append(rows, keyRow{auth.ByKey(k.Hash), k})
		}
	}
	return writeKeys(x, call.PageRows(rows, p))
}

// keyRow is a key as answers show it.
type keyRow struct {
	id string
	catalog.Key
}

func writeKeys(x *call.Call, rows []keyRow) error {
	return x.OK(func(w *jsonio.Writer) {
		w.List("keys", len(rows), func(i int) { writeKey(x, w, &rows[i]) })
	})
}

func writeKey(x *call.Call, w *jsonio.Writer, k *keyRow) {
	w.Object()
	w.Text("id", k.id)
	show.WriteText(w, "description", k.Description)
	w.Name("scopes")
	writeTexts(w, k.Scopes)
	w.Name("apps")
	w.Array()
	w.Object()
	w.Text("id", k.App)
	w.Text("user_id", x.Principal.Account)
	w.End('}')
	w.End(']')
	w.Text("created_at", show.Timestamp(k.Created.Time()))
	w.End('}')
}

func writeTexts(w *jsonio.Writer, texts []string) {
	w.Array()
	for _, text := range texts {
		w.String(text)
	}
	w.End(']')
}

// ListScopes lists the scopes that a key can have.
func ListScopes(x *call.Call) error { return answerScopes(x, auth.ScopeNames()) }

// ListMyScopes lists the scopes of the caller.
func ListMyScopes(x *call.Call) error { return answerScopes(x, x.Principal.Scopes.Names()) }

func answerScopes(x *call.Call, names []string) error {
	app, err := x.Host.Apps.App(x.App.ID)
	if err != nil {
		return fmt.Errorf("application %s: %w", x.App.ID, err)
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("scopes")
		writeTexts(w, names)
		w.Name("app")
		writeAppRecord(w, &app)
	})
}
