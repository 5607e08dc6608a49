package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
)

// register is the engine's applications, keys and clients as requests ask for them. What is read
// is read from the store, so a key that was deleted is unknown to the next request.
type register struct{ e *Engine }

var _ api.Applications = register{}

// Open implements [api.Applications].
func (r register) Open(id string) (*api.Application, error) {
	app, err := r.e.apps.application(id)
	if errors.Is(err, ErrApplication) {
		return nil, fmt.Errorf("%w: %w", catalog.ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	return app.shown.Load(), nil
}

// App implements [api.Applications].
func (r register) App(id string) (catalog.App, error) { return r.e.read().App(id) }

// Key implements [api.Applications].
func (r register) Key(hash auth.Hash) (catalog.Key, error) { return r.e.read().Key(hash) }

// Client implements [api.Applications].
func (r register) Client(id string) (catalog.Client, error) { return r.e.read().Client(id) }

// Owned implements [api.Applications]: by id.
func (r register) Owned(account string) ([]catalog.App, error) {
	var owned []catalog.App
	err := r.e.read().Apps(func(app catalog.App) bool {
		if app.Owner == account && account != "" {
			owned = append(owned, app)
		}
		return true
	})
	return owned, err
}

// Keys implements [api.Applications]: by hash.
func (r register) Keys(app string) ([]catalog.Key, error) { return r.e.Keys(app) }

// CreateApp implements [api.Applications].
func (r register) CreateApp(ctx context.Context, account string, a api.NewApp) (catalog.App, error) {
	made, _, err := r.e.CreateApp(ctx, account, NewApp{Name: a.Name, Language: a.Language, Owner: account})
	return made, asked(err)
}

// CreateKey implements [api.Applications].
func (r register) CreateKey(ctx context.Context, account string, k api.NewKey) (string, catalog.Key, error) {
	key, record, err := r.e.CreateKey(ctx, account, NewKey{App: k.App, Scopes: k.Scopes, Description: k.Description})
	return key, record, asked(err)
}

// asked turns what a request can be wrong about into the error of requests.
func asked(err error) error {
	for _, wrong := range []error{ErrName, ErrDefaultModel, lang.ErrUnknown, auth.ErrScope} {
		if errors.Is(err, wrong) {
			return fmt.Errorf("%w: %w", api.ErrAccountRequest, err)
		}
	}
	if errors.Is(err, ErrApplication) { // deleted a moment ago
		return fmt.Errorf("%w: %w", catalog.ErrNotFound, err)
	}
	return err
}
