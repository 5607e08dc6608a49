package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
)

// A change of applications, keys and clients is one operation of the control log, or several in one batch. Its effect is visible and
// durable when the call returns. by is the caller.

// ErrName is returned for an invalid name or description.
var ErrName = errors.New("invalid name")

// ErrDefaultModel is returned for a default model that does not exist.
var ErrDefaultModel = errors.New("no such model")

// ErrNoKey is returned for a key that does not exist or belongs to another application.
var ErrNoKey = errors.New("no such key")

// maxNameBytes bounds the names of applications and the descriptions of keys.
const maxNameBytes = 256

// NewApp has the settings of an application to create.
type NewApp struct {
	Name         string `json:"name"`                 // 1 to 256 bytes without control characters
	Language     string `json:"language"`             // default language of names; immutable
	DefaultModel string `json:"default_model"`        // ID of a public model that pages and commands use first; empty: the general model
	Owner        string `json:"-"`                    // ID of the account that owns it; empty: the operator
	LocalOnly    bool   `json:"local_only,omitempty"` // sync sends nothing of it to edges, pages and other replicas
}

// AppChange has the mutable settings of an application; nil: unchanged.
type AppChange struct {
	Name         *string        `json:"name,omitempty"`
	DefaultModel *string        `json:"default_model,omitempty"`
	MaxStale     *time.Duration `json:"max_stale,omitempty"` // from MinMaxStale to RefuseStale; 0: DefaultMaxStale
	LocalOnly    *bool          `json:"local_only,omitempty"`
}

// Times after the last contact with the origin: an edge then first refuses writes, and later all calls.
const (
	DefaultMaxStale = 24 * time.Hour // of an application without another setting
	MinMaxStale     = time.Minute
	RefuseStale     = 7 * 24 * time.Hour
)

// ErrMaxStale is returned for a time that is out of bounds.
var ErrMaxStale = fmt.Errorf("an edge must accept writes for %v to %v after it last synced its keys", MinMaxStale, RefuseStale)

// Client has the credentials for an application's access tokens.
type Client struct {
	ID     string `json:"client_id"`     // 32 lower-case hex digits
	Secret string `json:"client_secret"` // 64 lower-case hex digits: 256 random bits, shown once
}

// NewKey has the settings of an API key to create.
type NewKey struct {
	App         string   `json:"app_id"`
	Scopes      []string `json:"scopes"`      // by name, such as "All" or "Inputs_Get"
	Description string   `json:"description"` // at most 256 bytes without control characters
}

// Contents counts what an application holds.
type Contents struct {
	Inputs    int `json:"inputs"`
	Concepts  int `json:"concepts"`
	Models    int `json:"models"`
	Versions  int `json:"versions"`
	Workflows int `json:"workflows"`
	Keys      int `json:"keys"`
}

// text returns a name or description without surrounding space, or ErrName if it is invalid.
func text(field, s string, least int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) < least || !form.IsText(s, maxNameBytes) {
		return "", fmt.Errorf("%w: the %s must have %d to %d bytes and no control characters", ErrName, field, least, maxNameBytes)
	}
	return s, nil
}

// CreateApp creates an application and its client. It returns the client's secret, which is not stored. Errors: ErrName, lang.ErrUnknown,
// ErrDefaultModel and the store's.
func (r *Register) CreateApp(ctx context.Context, by Caller, a NewApp) (catalog.App, Client, error) {
	name, err := text("name", a.Name, 1)
	if err != nil {
		return catalog.App{}, Client{}, err
	}
	if !lang.Valid(a.Language) {
		return catalog.App{}, Client{}, fmt.Errorf("%q: %w", a.Language, lang.ErrUnknown)
	}
	if err := r.defaultModel("", a.DefaultModel); err != nil {
		return catalog.App{}, Client{}, err
	}
	id, err := log.NewID(r.o.Rand)
	if err != nil {
		return catalog.App{}, Client{}, err
	}
	client, set, err := r.newClient(id, "")
	if err != nil {
		return catalog.App{}, Client{}, err
	}
	create := &log.AppCreate{ID: id, Name: name, Language: a.Language, DefaultModel: a.DefaultModel, Owner: a.Owner, LocalOnly: a.LocalOnly}
	if err := r.submit(ctx, by.Account, ErrApplication, create, set); err != nil {
		return catalog.App{}, Client{}, err
	}
	r.relist()
	record, err := r.App(id)
	if err == nil {
		err = r.auditDone(by, ActionCreateApp, id)
	}
	return record, client, err
}

// defaultModel checks that a model is public or belongs to the application.
func (r *Register) defaultModel(app, id string) error {
	if _, public := r.o.Models.Model(id); public || id == "" {
		return nil
	}
	if app, err := catalog.ParseAppID(app); err == nil {
		_, err := catalog.Read(r.o.Store, app).Model(id)
		if err == nil || !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
	}
	return fmt.Errorf("%w: %q", ErrDefaultModel, id)
}

// newClient returns a client with a new secret, a new ID if id is empty, and the operation that stores it.
func (r *Register) newClient(app, id string) (client Client, set *log.ClientSet, err error) {
	if client.ID = id; id == "" {
		if client.ID, err = log.NewID(r.o.Rand); err != nil {
			return Client{}, nil, err
		}
	}
	secret, hash, err := r.secret()
	client.Secret = secret
	return client, &log.ClientSet{App: app, ID: client.ID, Secret: hash}, err
}

// ChangeApp changes an application. Errors: ErrApplication, ErrName, ErrDefaultModel and the
// store's.
func (r *Register) ChangeApp(ctx context.Context, by Caller, id string, change AppChange) (catalog.App, error) {
	if _, err := r.App(id); err != nil {
		return catalog.App{}, err
	}
	op := &log.AppChange{ID: id, DefaultModel: change.DefaultModel, LocalOnly: change.LocalOnly}
	if change.Name != nil {
		name, err := text("name", *change.Name, 1)
		if err != nil {
			return catalog.App{}, err
		}
		op.Name = &name
	}
	if change.DefaultModel != nil {
		if err := r.defaultModel(id, *change.DefaultModel); err != nil {
			return catalog.App{}, err
		}
	}
	if d := change.MaxStale; d != nil {
		if *d != 0 && (*d < MinMaxStale || *d > RefuseStale) {
			return catalog.App{}, ErrMaxStale
		}
		seconds := uint64(*d / time.Second)
		op.MaxStale = &seconds
	}
	if err := r.submit(ctx, by.Account, ErrApplication, op); err != nil {
		return catalog.App{}, err
	}
	r.notifyChange(id)
	app, err := r.App(id)
	if err == nil {
		err = r.auditDone(by, ActionChangeApp, id)
	}
	return app, err
}

// notifyChange notifies the host that an application's record has changed.
func (r *Register) notifyChange(app string) {
	if r.o.Changed != nil {
		r.o.Changed(app)
	}
}

// App returns an application's record. Errors: ErrApplication and the store's.
func (r *Register) App(id string) (catalog.App, error) {
	record, err := r.Reader().App(id)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrApplication, id)
	}
	return record, err
}

// Apps lists the applications of all accounts, in the order of their IDs.
func (r *Register) Apps() ([]catalog.App, error) {
	return catalog.Collect(r.Reader().Apps)
}

// Client returns an application's client as it is stored. Errors: ErrApplication and the store's.
func (r *Register) Client(app string) (catalog.Client, error) {
	client, err := r.Reader().ClientOf(app)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %q has no client", ErrApplication, app)
	}
	return client, err
}

// Contents counts what an application holds, in the state that its engine last stored. The cost grows with its models
// and keys but not with its inputs. Errors: ErrApplication and the store's.
func (r *Register) Contents(id string) (Contents, error) {
	app, err := catalog.ParseAppID(id)
	if err != nil {
		return Contents{}, fmt.Errorf("%w: %q", ErrApplication, id)
	}
	if _, err := r.App(id); err != nil {
		return Contents{}, err
	}
	snapshot := r.o.Store.Snapshot()
	defer snapshot.Close()
	v := catalog.Read(snapshot, app)
	keys, err := r.Keys(id)
	if err != nil {
		return Contents{}, err
	}
	h, err := v.Header()
	if err != nil {
		return Contents{}, err
	}
	n := Contents{Inputs: int(h.Counts.Processed + h.Counts.ToProcess + h.Counts.Errors), Concepts: int(h.Concepts), Keys: len(keys)}
	var models []log.Dot
	count := func(n *int) bool {
		*n++
		return true
	}
	err = errors.Join(
		v.Models(func(m catalog.Model) bool {
			models = append(models, m.Dot)
			return count(&n.Models)
		}),
		v.Workflows(func(catalog.Workflow) bool { return count(&n.Workflows) }),
	)
	for _, m := range models {
		err = errors.Join(err, v.Versions(m, func(catalog.Version) bool { return count(&n.Versions) }))
	}
	return n, err
}

// ReplaceSecret gives an application's client another secret, which it returns and does not store. All
// tokens that were issued before become invalid. Errors: ErrApplication and the store's.
func (r *Register) ReplaceSecret(ctx context.Context, by Caller, app string) (Client, error) {
	if _, err := r.App(app); err != nil {
		return Client{}, err
	}
	old, err := r.Reader().ClientOf(app)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) { // an application from before there were clients has none
		return Client{}, err
	}
	client, set, err := r.newClient(app, old.ID)
	if err == nil {
		err = r.audit(by, ActionReplaceSecret, app)
	}
	if err != nil {
		return Client{}, err
	}
	return client, r.submit(ctx, by.Account, ErrApplication, set)
}

// RevokeTokens invalidates all tokens that were issued for an application. Errors: ErrApplication
// and the store's.
func (r *Register) RevokeTokens(ctx context.Context, by Caller, app string) error {
	if _, err := r.App(app); err != nil {
		return err
	}
	if err := r.audit(by, ActionRevokeTokens, app); err != nil {
		return err
	}
	return r.submit(ctx, by.Account, ErrApplication, &log.TokensRevoke{App: app})
}
