package core

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
)

// What is asked for applications, keys and clients is one operation of the control log each,
// or several in one batch; its effect can be read, and outlives a crash, when the call
// returns. by is who asks: the id of an account, or empty for the operator.

// ErrName is returned for a name, or a description, that cannot be one.
var ErrName = errors.New("bad name")

// ErrDefaultModel is returned for a default model that is not there.
var ErrDefaultModel = errors.New("no such model")

// ErrNoKey is returned for a key that is not there, or is another application's.
var ErrNoKey = errors.New("no such key")

// maxNameBytes bounds the names of applications and the descriptions of keys.
const maxNameBytes = 256

// NewApp is an application to be made.
type NewApp struct {
	Name         string // 1 to 256 bytes without control characters
	Language     string // default for names; it never changes
	DefaultModel string // id of a public model that pages and commands begin with; empty: the general one
	Owner        string // id of the account that it belongs to; empty: the operator's
}

// AppChange is what may change of an application; nil: it stays.
type AppChange struct{ Name, DefaultModel *string }

// Client is what an application asks for access tokens with.
type Client struct {
	ID     string // 32 lower-case hex digits
	Secret string // 64 of them: 256 random bits, told once
}

// NewKey is a key to be made.
type NewKey struct {
	App         string
	Scopes      []string // by name, such as "All" or "Inputs_Get"
	Description string   // at most 256 bytes without control characters
}

// Contents counts what an application holds.
type Contents struct{ Inputs, Concepts, Models, Versions, Workflows, Keys int }

// text checks a name or a description.
func text(what, s string, least int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) < least || len(s) > maxNameBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("%w: a %s of %d to %d bytes without control characters is needed", ErrName, what, least, maxNameBytes)
	}
	return s, nil
}

// CreateApp makes an application and its client, whose secret is told here and never again.
// Errors: ErrName, lang.ErrUnknown, ErrDefaultModel and the store's.
func (e *Engine) CreateApp(ctx context.Context, by string, a NewApp) (catalog.App, Client, error) {
	name, err := text("name", a.Name, 1)
	if err != nil {
		return catalog.App{}, Client{}, err
	}
	if !lang.Valid(a.Language) {
		return catalog.App{}, Client{}, fmt.Errorf("%q: %w", a.Language, lang.ErrUnknown)
	}
	if err := e.defaultModel("", a.DefaultModel); err != nil {
		return catalog.App{}, Client{}, err
	}
	id, err := log.NewID(e.apps.o.Rand)
	if err != nil {
		return catalog.App{}, Client{}, err
	}
	client, set, err := e.newClient(id, "")
	if err != nil {
		return catalog.App{}, Client{}, err
	}
	create := &log.AppCreate{ID: id, Name: name, Language: a.Language, DefaultModel: a.DefaultModel, Owner: a.Owner}
	if err := e.apps.submit(ctx, by, ErrApplication, create, set); err != nil {
		return catalog.App{}, Client{}, err
	}
	e.apps.relist()
	record, err := e.App(id)
	return record, client, err
}

// defaultModel checks that a model is a public one, or one of the application's own.
func (e *Engine) defaultModel(app, id string) error {
	if _, public := e.models.Model(id); public || id == "" {
		return nil
	}
	if app, err := catalog.ParseAppID(app); err == nil {
		_, err := catalog.Read(e.apps.o.Store, app).Model(id)
		if err == nil || !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
	}
	return fmt.Errorf("%w: %q", ErrDefaultModel, id)
}

// newClient makes a secret, and a client's id where there is none.
func (e *Engine) newClient(app, id string) (c Client, set *log.ClientSet, err error) {
	if c.ID = id; id == "" {
		if c.ID, err = log.NewID(e.apps.o.Rand); err != nil {
			return Client{}, nil, err
		}
	}
	var secret [32]byte
	if _, err := io.ReadFull(e.apps.o.Rand, secret[:]); err != nil {
		return Client{}, nil, fmt.Errorf("random source: %w", err)
	}
	c.Secret = hex.EncodeToString(secret[:])
	return c, &log.ClientSet{App: app, ID: c.ID, Secret: auth.HashKey(c.Secret)}, nil
}

// ChangeApp changes an application. Errors: ErrApplication, ErrName, ErrDefaultModel and the
// store's.
func (e *Engine) ChangeApp(ctx context.Context, by, id string, c AppChange) (catalog.App, error) {
	if _, err := e.App(id); err != nil {
		return catalog.App{}, err
	}
	op := &log.AppChange{ID: id, DefaultModel: c.DefaultModel}
	if c.Name != nil {
		name, err := text("name", *c.Name, 1)
		if err != nil {
			return catalog.App{}, err
		}
		op.Name = &name
	}
	if c.DefaultModel != nil {
		if err := e.defaultModel(id, *c.DefaultModel); err != nil {
			return catalog.App{}, err
		}
	}
	if err := e.apps.submit(ctx, by, ErrApplication, op); err != nil {
		return catalog.App{}, err
	}
	return e.apps.reshow(id)
}

// reshow has requests meet an open application as its record is now.
func (a *apps) reshow(id string) (catalog.App, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	record, err := a.record(id)
	if err != nil {
		return catalog.App{}, err
	}
	if app, err := catalog.ParseAppID(id); err == nil && a.open[app] != nil {
		a.open[app].show(&record)
	}
	return record, nil
}

// record reads an application's record.
func (a *apps) record(id string) (catalog.App, error) {
	record, err := catalog.Read(a.o.Store, catalog.Control).App(id)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrApplication, id)
	}
	return record, err
}

// App returns an application's record. Errors: ErrApplication and the store's.
func (e *Engine) App(id string) (catalog.App, error) { return e.apps.record(id) }

// Apps lists the applications of everybody, in the order of their ids.
func (e *Engine) Apps() ([]catalog.App, error) {
	var all []catalog.App
	err := catalog.Read(e.apps.o.Store, catalog.Control).Apps(func(app catalog.App) bool {
		all = append(all, app)
		return true
	})
	return all, err
}

// Client returns an application's client as it is kept. Errors: ErrApplication and the store's.
func (e *Engine) Client(app string) (catalog.Client, error) {
	c, err := catalog.Read(e.apps.o.Store, catalog.Control).ClientOf(app)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %q has no client", ErrApplication, app)
	}
	return c, err
}

// Contents counts what an application holds, at a cost that grows with its models and keys
// but not with its inputs. Errors: ErrApplication and the store's.
func (e *Engine) Contents(id string) (Contents, error) {
	app, err := e.apps.application(id)
	if err != nil {
		return Contents{}, err
	}
	v := app.Partition.View()
	defer v.Close()
	keys, err := e.Keys(id)
	if err != nil {
		return Contents{}, err
	}
	h, err := v.Header()
	if err != nil {
		return Contents{}, err
	}
	c := Contents{Inputs: int(h.Counts.Processed + h.Counts.ToProcess + h.Counts.Errors), Concepts: int(h.Concepts), Keys: len(keys)}
	var models []log.Dot
	count := func(n *int) bool {
		*n++
		return true
	}
	err = errors.Join(
		v.Models(func(m catalog.Model) bool {
			models = append(models, m.Dot)
			return count(&c.Models)
		}),
		v.Workflows(func(catalog.Workflow) bool { return count(&c.Workflows) }),
	)
	for _, m := range models {
		err = errors.Join(err, v.Versions(m, func(catalog.Version) bool { return count(&c.Versions) }))
	}
	return c, err
}

// ReplaceSecret gives an application's client another secret, told here and never again. All
// tokens that were issued before are dead. Errors: ErrApplication and the store's.
func (e *Engine) ReplaceSecret(ctx context.Context, by, app string) (Client, error) {
	if _, err := e.App(app); err != nil {
		return Client{}, err
	}
	old, err := catalog.Read(e.apps.o.Store, catalog.Control).ClientOf(app)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) { // one that was made before there were clients has none
		return Client{}, err
	}
	client, set, err := e.newClient(app, old.ID)
	if err != nil {
		return Client{}, err
	}
	return client, e.apps.submit(ctx, by, ErrApplication, set)
}

// RevokeTokens kills all tokens that were issued for an application. Errors: ErrApplication
// and the store's.
func (e *Engine) RevokeTokens(ctx context.Context, by, app string) error {
	return e.apps.submit(ctx, by, ErrApplication, &log.TokensRevoke{App: app})
}

// submit appends operations to the control log, all or none. gone is returned when what one
// of them names is not there.
func (a *apps) submit(ctx context.Context, by string, gone error, bodies ...log.Body) error {
	verdicts, err := a.control.Submit(ctx, by, bodies, nil)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		switch v.Code {
		case fold.OK:
		case fold.Gone:
			return gone
		default:
			return fmt.Errorf("control log: %v: %s", v.Code, v.Detail)
		}
	}
	return nil
}
