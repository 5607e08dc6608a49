package command

import (
	"context"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// audited is a node whose operator's actions are in the audit log: what takes something away before it is
// done, what makes something after it, before it is told.
type audited struct{ *node }

var _ control.Service = audited{}

func (a audited) did(action account.Action, target string) error {
	return a.accounts.Record(account.Event{Actor: account.ByOperator, Action: action, Target: target})
}

// CreateApp implements [control.Service].
func (a audited) CreateApp(ctx context.Context, n control.NewApp) (control.App, control.Client, error) {
	app, client, err := a.node.CreateApp(ctx, n)
	if err == nil {
		err = a.did(account.AppCreate, app.ID)
	}
	return app, client, err
}

// ChangeApp implements [control.Service].
func (a audited) ChangeApp(ctx context.Context, id string, c control.AppChange) (control.App, error) {
	app, err := a.node.ChangeApp(ctx, id, c)
	if err == nil {
		err = a.did(account.AppChange, app.ID)
	}
	return app, err
}

// DeleteApp implements [control.Service].
func (a audited) DeleteApp(ctx context.Context, id string) error {
	if err := a.known(id); err != nil {
		return err
	}
	if err := a.did(account.AppDelete, id); err != nil {
		return err
	}
	if err := a.node.DeleteApp(ctx, id); err != nil {
		return err
	}
	return a.accounts.DropUsage(id)
}

// ReplaceSecret implements [control.Service].
func (a audited) ReplaceSecret(ctx context.Context, app string) (control.Client, error) {
	if err := a.known(app); err != nil {
		return control.Client{}, err
	}
	if err := a.did(account.ClientSecret, app); err != nil {
		return control.Client{}, err
	}
	return a.node.ReplaceSecret(ctx, app)
}

// RevokeTokens implements [control.Service].
func (a audited) RevokeTokens(ctx context.Context, app string) error {
	if err := a.known(app); err != nil {
		return err
	}
	if err := a.did(account.TokensRevoke, app); err != nil {
		return err
	}
	return a.node.RevokeTokens(ctx, app)
}

// CreateKey implements [control.Service].
func (a audited) CreateKey(ctx context.Context, k control.NewKey) (string, control.Key, error) {
	key, record, err := a.node.CreateKey(ctx, k)
	if err == nil {
		err = a.did(account.KeyCreate, record.App+"/"+record.ID)
	}
	return key, record, err
}

// DeleteKey implements [control.Service].
func (a audited) DeleteKey(ctx context.Context, id string) error {
	k, err := a.keyOf(id)
	if err != nil {
		return err
	}
	if err := a.did(account.KeyDelete, k.App+"/"+auth.By(k.Hash)); err != nil {
		return err
	}
	return a.node.DeleteKey(ctx, id)
}

// ReplaceKey implements [control.Service].
func (a audited) ReplaceKey(ctx context.Context, id string) (string, control.Key, error) {
	k, err := a.keyOf(id)
	if err != nil {
		return "", control.Key{}, err
	}
	if err := a.did(account.KeyReplace, k.App+"/"+auth.By(k.Hash)); err != nil {
		return "", control.Key{}, err
	}
	key, record, err := a.node.ReplaceKey(ctx, id)
	if err == nil {
		err = a.did(account.KeyCreate, record.App+"/"+record.ID)
	}
	return key, record, err
}

// CreateEdge implements [control.Service].
func (a audited) CreateEdge(ctx context.Context, n control.NewEdge) (string, control.Edge, error) {
	token, e, err := a.node.CreateEdge(ctx, n)
	if err == nil {
		err = a.didTo(account.EdgeCreate, &e)
	}
	return token, e, err
}

// RevokeEdge implements [control.Service].
func (a audited) RevokeEdge(ctx context.Context, id string) (control.Edge, error) {
	e, err := a.register.Edge(id)
	if err != nil {
		return control.Edge{}, asked(err)
	}
	shown := shownEdge(&e)
	if err := a.didTo(account.EdgeRevoke, &shown); err != nil {
		return control.Edge{}, err
	}
	return a.node.RevokeEdge(ctx, id)
}

// didTo notes what was done to an edge with each application that it holds.
func (a audited) didTo(action account.Action, e *control.Edge) error {
	for _, app := range e.Apps {
		if err := a.did(action, app+"/"+e.ID); err != nil {
			return err
		}
	}
	return nil
}
