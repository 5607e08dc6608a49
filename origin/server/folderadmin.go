package server

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
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// operator is the caller of the operator's changes to applications, keys and clients.
var operator register.Caller

// operations holds the operator's operations on the folder of a node.
var operations = control.Table[*Node]{}

func init() {
	control.Add(operations, control.CreateApp, createApp)
	control.Add(operations, control.Apps, appsOf)
	control.Add(operations, control.ChangeApp, changeApp)
	control.Add(operations, control.CountApp, countApp)
	control.Add(operations, control.DeleteApp, deleteApp)
	control.Add(operations, control.ReplaceSecret, replaceSecret)
	control.Add(operations, control.RevokeTokens, revokeTokens)
	control.Add(operations, control.CreateKey, createKey)
	control.Add(operations, control.Keys, keysOf)
	control.Add(operations, control.DeleteKey, deleteKey)
	control.Add(operations, control.ReplaceKey, replaceKey)
	control.Add(operations, control.CreateEdge, createEdge)
	control.Add(operations, control.Edges, edgesOf)
	control.Add(operations, control.RevokeEdge, revokeEdge)
	control.Add(operations, control.ExportHead, exportHead)
	control.Add(operations, control.ImportHead, importHead)
	control.Add(operations, control.Checkpoint, checkpoint)
	control.Add(operations, control.ShowStatus, showStatus)
}

// Do implements [control.Folder].
func (n *Node) Do(ctx context.Context, name string, in, out any) error {
	return operations.Do(ctx, n, name, in, out)
}

func createApp(ctx context.Context, n *Node, a register.NewApp) (control.CreatedApp, error) {
	app, client, err := n.Register.CreateApp(ctx, operator, a)
	if err != nil {
		return control.CreatedApp{}, err
	}
	view, err := n.operatorView(&app)
	return control.CreatedApp{App: view, Client: client}, err
}

// operatorView returns an application in the form for the operator.
func (n *Node) operatorView(a *catalog.App) (control.App, error) {
	client, err := n.Register.Client(a.ID)
	if errors.Is(err, register.ErrApplication) { // the application is older than clients
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

func appsOf(_ context.Context, n *Node, _ control.Nothing) ([]control.App, error) {
	all, err := n.Register.Apps()
	apps := make([]control.App, 0, len(all))
	for i := range all {
		view, e := n.operatorView(&all[i])
		apps, err = append(apps, view), errors.Join(err, e)
	}
	slices.SortStableFunc(apps, func(a, b control.App) int { return a.Created.Compare(b.Created) })
	return apps, err
}

func changeApp(ctx context.Context, n *Node, in control.ChangedApp) (control.App, error) {
	app, err := n.Register.ChangeApp(ctx, operator, in.ID, in.Change)
	if err != nil {
		return control.App{}, err
	}
	return n.operatorView(&app)
}

func countApp(_ context.Context, n *Node, app control.ID) (register.Contents, error) {
	return n.Register.Contents(app.ID)
}

// deleteApp deletes an application. If no background work runs, it also removes the application's data.
func deleteApp(ctx context.Context, n *Node, app control.ID) (control.Nothing, error) {
	err := n.Register.DeleteApp(ctx, operator, app.ID)
	if err == nil && !n.works {
		err = n.purge(ctx)
	}
	if err == nil {
		err = n.Accounts.DropUsage(app.ID)
	}
	return control.Nothing{}, err
}

// purge removes the data of deleted applications.
func (n *Node) purge(ctx context.Context) error {
	n.quiet.Lock()
	defer n.quiet.Unlock()
	return n.Register.Purge(ctx, system.Now())
}

func replaceSecret(ctx context.Context, n *Node, app control.ID) (register.Client, error) {
	return n.Register.ReplaceSecret(ctx, operator, app.ID)
}

func revokeTokens(ctx context.Context, n *Node, app control.ID) (control.Nothing, error) {
	return control.Nothing{}, n.Register.RevokeTokens(ctx, operator, app.ID)
}

func createKey(ctx context.Context, n *Node, k register.NewKey) (control.CreatedKey, error) {
	return createdKey(n.Register.CreateKey(ctx, operator, k))
}

func createdKey(key string, record catalog.Key, err error) (control.CreatedKey, error) {
	if err != nil {
		return control.CreatedKey{}, err
	}
	return control.CreatedKey{Key: key, Record: shownKey(&record)}, nil
}

func shownKey(k *catalog.Key) control.Key {
	return control.Key{ID: auth.ByKey(k.Hash), App: k.App, Scopes: k.Scopes, Description: k.Description, By: k.By, Created: k.Created.Time()}
}

func keysOf(_ context.Context, n *Node, app control.ID) ([]control.Key, error) {
	all, err := n.Register.Keys(app.ID)
	keys := make([]control.Key, 0, len(all))
	for i := range all {
		keys = append(keys, shownKey(&all[i]))
	}
	slices.SortStableFunc(keys, func(a, b control.Key) int {
		return cmp.Or(strings.Compare(a.App, b.App), a.Created.Compare(b.Created))
	})
	return keys, err
}

// keyOf returns the key with the given id.
func (n *Node) keyOf(id string) (catalog.Key, error) {
	all, err := n.Register.Keys("")
	for _, k := range all {
		if auth.ByKey(k.Hash) == id {
			return k, err
		}
	}
	return catalog.Key{}, errors.Join(err, fmt.Errorf("%w: %q", register.ErrNoKey, id))
}

func deleteKey(ctx context.Context, n *Node, key control.ID) (control.Nothing, error) {
	k, err := n.keyOf(key.ID)
	if err != nil {
		return control.Nothing{}, err
	}
	return control.Nothing{}, n.Register.DeleteKey(ctx, operator, k.App, k.Hash)
}

func replaceKey(ctx context.Context, n *Node, old control.ID) (control.CreatedKey, error) {
	k, err := n.keyOf(old.ID)
	if err != nil {
		return control.CreatedKey{}, err
	}
	return createdKey(n.Register.ReplaceKey(ctx, operator, k.App, k.Hash))
}

// createEdge creates an edge. An account needs a verified email address to have an edge. An edge reports its calls only from time to time,
// so an edge of an unverified account could answer far more calls than the trial allows.
func createEdge(ctx context.Context, n *Node, e control.NewEdge) (control.CreatedEdge, error) {
	for _, id := range e.Apps {
		app, err := n.Register.App(id)
		if err != nil {
			return control.CreatedEdge{}, err
		}
		if app.Owner == "" {
			continue
		}
		owner, err := n.Accounts.Account(app.Owner)
		if err != nil {
			return control.CreatedEdge{}, err
		}
		if !owner.Verified {
			return control.CreatedEdge{}, fmt.Errorf("application %s: %w", id, control.ErrUnverified)
		}
	}
	token, record, err := n.Register.CreateEdge(ctx, operator, e.Name, e.Apps)
	if err != nil {
		return control.CreatedEdge{}, err
	}
	return control.CreatedEdge{Token: token, Record: shownEdge(&record)}, nil
}

func shownEdge(e *catalog.Edge) control.Edge {
	view := control.Edge{ID: e.ID, Name: e.Name, Apps: e.Apps, Site: uint32(e.Site), Created: e.Created.Time()}
	if e.Enrolled != 0 {
		view.Enrolled = e.Enrolled.Time()
	}
	if e.Revoked != 0 {
		view.Revoked = e.Revoked.Time()
	}
	return view
}

func edgesOf(_ context.Context, n *Node, _ control.Nothing) ([]control.Edge, error) {
	all, err := n.Register.Edges()
	edges := make([]control.Edge, 0, len(all))
	for i := range all {
		edges = append(edges, shownEdge(&all[i]))
	}
	slices.SortStableFunc(edges, func(a, b control.Edge) int { return a.Created.Compare(b.Created) })
	return edges, err
}

func revokeEdge(ctx context.Context, n *Node, edge control.ID) (control.Edge, error) {
	if err := n.Register.RevokeEdge(ctx, operator, edge.ID); err != nil {
		return control.Edge{}, err
	}
	e, err := n.Register.Edge(edge.ID)
	return shownEdge(&e), err
}
