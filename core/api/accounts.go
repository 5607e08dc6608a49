package api

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
)

// login opens a session for an account, as scripts do; people sign in on the web pages.
func login(x *Call) error {
	email, err := x.body.text("email")
	if err != nil {
		return refuse(ErrAccountRequest, err)
	}
	password, err := x.body.text("password")
	if err != nil {
		return refuse(ErrAccountRequest, err)
	}
	if x.s.o.Accounts == nil {
		return auth.ErrLogin
	}
	session, account, err := x.s.o.Accounts.Login(x.ctx, email, password, x.remote)
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("session_token")
		w.String(session)
		w.Name("v2_user_id")
		w.String(account)
	})
	x.call.response.Header = append(x.call.response.Header, noStore)
	return nil
}

// oneElement is the only element of a list of a call that makes something.
func oneElement(x *Call, list string) (object, error) {
	elements, _, err := x.body.some(list, 1, ErrAccountRequest)
	if err != nil {
		return object{}, err
	}
	for o, err := range elements {
		return o, refuseIf(ErrAccountRequest, err)
	}
	return object{}, nil
}

// Bounds of what an account makes, over /v2 and on the pages, about: two calls at once may pass them.
const (
	MaxApps = 200 // of an account
	MaxKeys = 500 // of an application
)

// createApp makes an application for the account whose session it is. Its language is English
// where the call says nothing: clients of old cannot.
func createApp(x *Call) error {
	o, err := oneElement(x, "apps")
	if err != nil {
		return err
	}
	var a NewApp
	for name, to := range map[string]*string{"name": &a.Name, "default_language": &a.Language} {
		if *to, err = o.text(name); err != nil {
			return refuse(ErrAccountRequest, err)
		}
	}
	if a.Language == "" {
		a.Language = lang.English
	}
	owned, err := x.s.o.Apps.Owned(x.who.Account)
	if err != nil {
		return err
	}
	if len(owned) >= MaxApps {
		return refusef(ErrAccountRequest, "An account can have at most %d applications.", MaxApps)
	}
	made, err := x.s.o.Apps.CreateApp(x.ctx, x.who.Account, x.remote, a)
	if err != nil {
		return err
	}
	x.elsewhere = true
	writeApps(x, []catalog.App{made})
	return nil
}

func listApps(x *Call) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	owned, err := x.s.o.Apps.Owned(x.who.Account)
	if err != nil {
		return err
	}
	writeApps(x, cut(owned, p))
	return nil
}

// ownedApp is an application of the account; another's is answered like one that is not there.
func ownedApp(x *Call, id string) (catalog.App, error) {
	app, err := x.s.o.Apps.App(id)
	if err == nil && app.Owner != x.who.Account {
		return app, errPath
	}
	return app, unless(err, errPath)
}

func readApp(x *Call) error {
	app, err := ownedApp(x, x.ids["app_id"])
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("app")
		writeAppRecord(w, &app)
	})
	return nil
}

func writeApps(x *Call, apps []catalog.App) {
	x.ok(func(w *jsonio.Writer) {
		w.Name("apps")
		w.Array()
		for i := range apps {
			writeAppRecord(w, &apps[i])
		}
		w.End(']')
	})
}

func writeAppRecord(w *jsonio.Writer, a *catalog.App) {
	w.Object()
	w.Name("id")
	w.String(a.ID)
	w.Name("name")
	w.String(a.Name)
	w.Name("default_language")
	w.String(a.Language)
	if a.Owner != "" {
		w.Name("user_id")
		w.String(a.Owner)
	}
	w.Name("created_at")
	w.String(timestamp(a.Created.Time()))
	if a.LocalOnly {
		w.Name("local_only")
		w.Bool(true)
	}
	w.End('}')
}

// createKey makes a key to one of the account's applications. Its id is the key itself: here it
// is told, and never again.
func createKey(x *Call) error {
	o, err := oneElement(x, "keys")
	if err != nil {
		return err
	}
	k := NewKey{}
	if k.Description, err = o.text("description"); err != nil {
		return refuse(ErrAccountRequest, err)
	}
	if k.Scopes, err = o.texts("scopes"); err != nil {
		return refuse(ErrAccountRequest, err)
	}
	apps, _, err := o.some("apps", 1, ErrAccountRequest)
	if err != nil {
		return err
	}
	for app, err := range apps {
		if err != nil {
			return refuse(ErrAccountRequest, err)
		}
		if k.App, err = app.text("id"); err != nil {
			return refuse(ErrAccountRequest, err)
		}
		user, err := app.text("user_id")
		if err != nil {
			return refuse(ErrAccountRequest, err)
		}
		if user != "" && user != me && user != x.who.Account {
			return errPath
		}
	}
	if _, err := ownedApp(x, k.App); err != nil {
		return err
	}
	keys, err := x.s.o.Apps.Keys(k.App)
	if err != nil {
		return err
	}
	if len(keys) >= MaxKeys {
		return refusef(ErrAccountRequest, "An application can have at most %d keys.", MaxKeys)
	}
	key, record, err := x.s.o.Apps.CreateKey(x.ctx, x.who.Account, x.remote, k)
	if err != nil {
		return err
	}
	x.elsewhere = true
	writeKeys(x, []keyRow{{key, record}})
	x.call.response.Header = append(x.call.response.Header, noStore)
	return nil
}

// listKeys lists the keys of all the account's applications, by the start of their hashes.
func listKeys(x *Call) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	owned, err := x.s.o.Apps.Owned(x.who.Account)
	if err != nil {
		return err
	}
	var rows []keyRow
	for i := range owned {
		keys, err := x.s.o.Apps.Keys(owned[i].ID)
		if err != nil {
			return err
		}
		for _, k := range keys {
			rows = append(rows, keyRow{auth.By(k.Hash), k})
		}
	}
	writeKeys(x, cut(rows, p))
	return nil
}

// keyRow is a key as answers show it.
type keyRow struct {
	id string
	catalog.Key
}

func writeKeys(x *Call, rows []keyRow) {
	x.ok(func(w *jsonio.Writer) {
		w.Name("keys")
		w.Array()
		for i := range rows {
			writeKey(x, w, &rows[i])
		}
		w.End(']')
	})
}

func writeKey(x *Call, w *jsonio.Writer, k *keyRow) {
	w.Object()
	w.Name("id")
	w.String(k.id)
	if k.Description != "" {
		w.Name("description")
		w.String(k.Description)
	}
	w.Name("scopes")
	writeTexts(w, k.Scopes)
	w.Name("apps")
	w.Array()
	w.Object()
	w.Name("id")
	w.String(k.App)
	w.Name("user_id")
	w.String(x.who.Account)
	w.End('}')
	w.End(']')
	w.Name("created_at")
	w.String(timestamp(k.Created.Time()))
	w.End('}')
}

func writeTexts(w *jsonio.Writer, texts []string) {
	w.Array()
	for _, text := range texts {
		w.String(text)
	}
	w.End(']')
}

// listScopes lists the scopes that a key can be made with.
func listScopes(x *Call) error { return answerScopes(x, auth.ScopeNames()) }

// listMyScopes lists those of whoever asks.
func listMyScopes(x *Call) error { return answerScopes(x, x.who.Scopes.Names()) }

func answerScopes(x *Call, names []string) error {
	app, err := x.s.o.Apps.App(x.app.ID)
	if err != nil {
		return fmt.Errorf("application %s: %w", x.app.ID, err)
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("scopes")
		writeTexts(w, names)
		w.Name("app")
		writeAppRecord(w, &app)
	})
	return nil
}
