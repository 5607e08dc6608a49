package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// operator asks for what the operator does with applications, keys and clients.
var operator register.Who

// asked tells mistakes of the caller from trouble.
func asked(err error) error {
	for _, m := range []struct{ mistake, kind error }{
		{register.ErrApplication, control.ErrUnknownApp},
		{register.ErrNoKey, control.ErrUnknownKey},
		{register.ErrNoEdge, control.ErrUnknownEdge},
		{register.ErrName, control.ErrArgument},
		{register.ErrDefaultModel, control.ErrArgument},
		{register.ErrMaxStale, control.ErrArgument},
		{auth.ErrScope, control.ErrArgument},
		{lang.ErrUnknown, control.ErrArgument},
	} {
		if errors.Is(err, m.mistake) {
			return &mistaken{err, m.kind}
		}
	}
	return err
}

// mistaken is an error of the engine in its own words, and of a kind that crosses the socket.
type mistaken struct{ err, kind error }

func (m *mistaken) Error() string   { return m.err.Error() }
func (m *mistaken) Unwrap() []error { return []error{m.err, m.kind} }

// CreateApp implements [control.Service].
func (n *node) CreateApp(ctx context.Context, a control.NewApp) (control.App, control.Client, error) {
	app, client, err := n.register.CreateApp(ctx, operator, register.NewApp{Name: a.Name, Language: a.Language, DefaultModel: a.DefaultModel, LocalOnly: a.LocalOnly})
	if err != nil {
		return control.App{}, control.Client{}, asked(err)
	}
	shown, err := n.shown(&app)
	return shown, control.Client(client), err
}

// shown is an application as the operator sees it.
func (n *node) shown(a *catalog.App) (control.App, error) {
	client, err := n.register.Client(a.ID)
	if errors.Is(err, register.ErrApplication) { // it was made before there were clients
		err = nil
	}
	out := control.App{
		ID: a.ID, Name: a.Name, Language: a.Language, DefaultModel: a.DefaultModel, Owner: a.Owner, Client: client.ID, Created: a.Created.Time(),
		LocalOnly: a.LocalOnly,
	}
	if a.MaxStale != 0 {
		out.MaxStale = (time.Duration(a.MaxStale) * time.Second).String()
	}
	return out, err
}

// Apps implements [control.Service].
func (n *node) Apps(context.Context) ([]control.App, error) {
	all, err := n.register.Apps()
	apps := make([]control.App, 0, len(all))
	for i := range all {
		shown, e := n.shown(&all[i])
		apps, err = append(apps, shown), errors.Join(err, e)
	}
	slices.SortStableFunc(apps, func(a, b control.App) int { return a.Created.Compare(b.Created) })
	return apps, err
}

// ChangeApp implements [control.Service].
func (n *node) ChangeApp(ctx context.Context, id string, c control.AppChange) (control.App, error) {
	change := register.AppChange{Name: c.Name, DefaultModel: c.DefaultModel, LocalOnly: c.LocalOnly}
	if c.MaxStale != nil {
		d, err := time.ParseDuration(*c.MaxStale)
		if err != nil {
			return control.App{}, &mistaken{register.ErrMaxStale, control.ErrArgument}
		}
		change.MaxStale = &d
	}
	app, err := n.register.ChangeApp(ctx, operator, id, change)
	if err != nil {
		return control.App{}, asked(err)
	}
	return n.shown(&app)
}

// Contents implements [control.Service].
func (n *node) Contents(_ context.Context, id string) (control.Contents, error) {
	c, err := n.register.Contents(id)
	return control.Contents(c), asked(err)
}

// DeleteApp implements [control.Service]. Where nothing works in the background, what the
// application holds is removed here.
func (n *node) DeleteApp(ctx context.Context, id string) error {
	err := n.register.DeleteApp(ctx, operator, id)
	if err == nil && !n.works {
		err = n.purge(ctx)
	}
	if err == nil {
		err = n.accounts.DropUsage(id)
	}
	return asked(err)
}

// purge removes what deleted applications held.
func (n *node) purge(ctx context.Context) error {
	n.quiet.Lock()
	defer n.quiet.Unlock()
	return n.register.Purge(ctx, system.Now())
}

// ReplaceSecret implements [control.Service].
func (n *node) ReplaceSecret(ctx context.Context, app string) (control.Client, error) {
	client, err := n.register.ReplaceSecret(ctx, operator, app)
	return control.Client(client), asked(err)
}

// RevokeTokens implements [control.Service].
func (n *node) RevokeTokens(ctx context.Context, app string) error {
	return asked(n.register.RevokeTokens(ctx, operator, app))
}

// CreateKey implements [control.Service].
func (n *node) CreateKey(ctx context.Context, k control.NewKey) (string, control.Key, error) {
	key, record, err := n.register.CreateKey(ctx, operator, register.NewKey{App: k.App, Scopes: k.Scopes, Description: k.Description})
	if err != nil {
		return "", control.Key{}, asked(err)
	}
	return key, shownKey(&record), nil
}

func shownKey(k *catalog.Key) control.Key {
	return control.Key{ID: auth.By(k.Hash), App: k.App, Scopes: k.Scopes, Description: k.Description, By: k.By, Created: k.Created.Time()}
}

// Keys implements [control.Service].
func (n *node) Keys(_ context.Context, app string) ([]control.Key, error) {
	all, err := n.register.Keys(app)
	keys := make([]control.Key, 0, len(all))
	for i := range all {
		keys = append(keys, shownKey(&all[i]))
	}
	slices.SortStableFunc(keys, func(a, b control.Key) int {
		return cmp.Or(strings.Compare(a.App, b.App), a.Created.Compare(b.Created))
	})
	return keys, err
}

// keyOf finds a key by its id.
func (n *node) keyOf(id string) (catalog.Key, error) {
	all, err := n.register.Keys("")
	for _, k := range all {
		if auth.By(k.Hash) == id {
			return k, err
		}
	}
	return catalog.Key{}, errors.Join(err, fmt.Errorf("%w: %q", control.ErrUnknownKey, id))
}

// DeleteKey implements [control.Service].
func (n *node) DeleteKey(ctx context.Context, id string) error {
	k, err := n.keyOf(id)
	if err != nil {
		return err
	}
	return asked(n.register.DeleteKey(ctx, operator, k.App, k.Hash))
}

// ReplaceKey implements [control.Service].
func (n *node) ReplaceKey(ctx context.Context, id string) (string, control.Key, error) {
	k, err := n.keyOf(id)
	if err != nil {
		return "", control.Key{}, err
	}
	key, record, err := n.register.ReplaceKey(ctx, operator, k.App, k.Hash)
	if err != nil {
		return "", control.Key{}, asked(err)
	}
	return key, shownKey(&record), nil
}

// CreateEdge implements [control.Service]. An account needs a verified address to have an edge: an edge reports its calls from time to
// time, so one of an account without would answer far more than the calls of a trial.
func (n *node) CreateEdge(ctx context.Context, e control.NewEdge) (string, control.Edge, error) {
	for _, id := range e.Apps {
		app, err := n.register.App(id)
		if err != nil {
			return "", control.Edge{}, asked(err)
		}
		if app.Owner == "" {
			continue
		}
		owner, err := n.accounts.Account(app.Owner)
		if err != nil {
			return "", control.Edge{}, err
		}
		if !owner.Verified {
			return "", control.Edge{}, &mistaken{fmt.Errorf("application %s: its account must verify its email address before it can have an edge", id), control.ErrArgument}
		}
	}
	token, record, err := n.register.CreateEdge(ctx, operator, e.Name, e.Apps)
	if err != nil {
		return "", control.Edge{}, asked(err)
	}
	return token, shownEdge(&record), nil
}

func shownEdge(e *catalog.Edge) control.Edge {
	shown := control.Edge{ID: e.ID, Name: e.Name, Apps: e.Apps, Site: uint32(e.Site), Created: e.Created.Time()}
	if e.Enrolled != 0 {
		shown.Enrolled = e.Enrolled.Time()
	}
	if e.Revoked != 0 {
		shown.Revoked = e.Revoked.Time()
	}
	return shown
}

// Edges implements [control.Service].
func (n *node) Edges(context.Context) ([]control.Edge, error) {
	all, err := n.register.Edges()
	edges := make([]control.Edge, 0, len(all))
	for i := range all {
		edges = append(edges, shownEdge(&all[i]))
	}
	slices.SortStableFunc(edges, func(a, b control.Edge) int { return a.Created.Compare(b.Created) })
	return edges, err
}

// RevokeEdge implements [control.Service].
func (n *node) RevokeEdge(ctx context.Context, id string) (control.Edge, error) {
	if err := n.register.RevokeEdge(ctx, operator, id); err != nil {
		return control.Edge{}, asked(err)
	}
	e, err := n.register.Edge(id)
	return shownEdge(&e), asked(err)
}

// known returns an error that wraps control.ErrUnknownApp unless there is such an application.
func (n *node) known(app string) error {
	_, err := n.register.App(app)
	return asked(err)
}
