package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
)

// appStore reads applications, keys and clients for requests. It reads the store for each request, so that a deleted key is invalid at
// the next request.
type appStore struct{ e *Engine }

var _ api.Applications = appStore{}

// Open implements [api.Applications].
func (s appStore) Open(id string) (*api.Application, error) {
	app, err := s.e.apps.application(id)
	if errors.Is(err, register.ErrApplication) {
		return nil, fmt.Errorf("%w: %w", catalog.ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	return app.current.Load(), nil
}

// App implements [api.Applications].
func (s appStore) App(id string) (catalog.App, error) { return s.e.Register.Reader().App(id) }

// Key implements [api.Applications].
func (s appStore) Key(hash auth.Hash) (catalog.Key, error) { return s.e.Register.Reader().Key(hash) }

// Client implements [api.Applications].
func (s appStore) Client(id string) (catalog.Client, error) { return s.e.Register.Reader().Client(id) }

// AppsOf implements [api.Applications]. The order is by id.
func (s appStore) AppsOf(account string) ([]catalog.App, error) {
	var owned []catalog.App
	err := s.e.Register.Reader().Apps(func(app catalog.App) bool {
		if app.Owner == account && account != "" {
			owned = append(owned, app)
		}
		return true
	})
	return owned, err
}

// Keys implements [api.Applications]. The order is by hash.
func (s appStore) Keys(app string) ([]catalog.Key, error) { return s.e.Register.Keys(app) }

// CreateApp implements [api.Applications].
func (s appStore) CreateApp(ctx context.Context, account, remote string, a api.NewApp) (catalog.App, error) {
	app, _, err := s.e.Register.CreateApp(ctx, register.Caller{Account: account, Remote: remote}, register.NewApp{Name: a.Name, Language: a.Language, Owner: account})
	return app, requestError(err)
}

// CreateKey implements [api.Applications].
func (s appStore) CreateKey(ctx context.Context, account, remote string, k api.NewKey) (string, catalog.Key, error) {
	key, record, err := s.e.Register.CreateKey(ctx, register.Caller{Account: account, Remote: remote}, register.NewKey{App: k.App, Scopes: k.Scopes, Description: k.Description})
	return key, record, requestError(err)
}

// requestError wraps errors that a request causes in api.ErrAccountRequest.
func requestError(err error) error {
	for _, wrong := range []error{register.ErrName, register.ErrDefaultModel, lang.ErrUnknown, auth.ErrScope} {
		if errors.Is(err, wrong) {
			return fmt.Errorf("%w: %w", api.ErrAccountRequest, err)
		}
	}
	if errors.Is(err, register.ErrApplication) { // just deleted
		return fmt.Errorf("%w: %w", catalog.ErrNotFound, err)
	}
	return err
}
