package core

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// ErrApplication is returned for an application that cannot be made, or is not there.
var ErrApplication = errors.New("no such application")

// apps holds the applications: their records and keys in the control partition, and each
// one's own partition, opened when it is first asked for.
//
//	control log ──fold──▶ App, Key records
//	                         │ Authorize: hash of the key → key record → application
//	                         ▼
//	                     partition of the application
type apps struct {
	o       Options
	control *partition.Partition
	sets    map[[32]byte]*predict.Set // by base: the newest, and those of older networks that still serve

	mu   sync.Mutex
	open map[catalog.AppID]*application
}

// application is an application and what works for it in the background.
type application struct {
	api.Application
	inputs *ingest.Worker
	renewal
}

func openApps(o Options) (*apps, error) {
	settings, err := o.partition(catalog.Control)
	if err != nil {
		return nil, err
	}
	control, err := partition.Open(settings)
	if err != nil {
		return nil, fmt.Errorf("control partition: %w", err)
	}
	a := &apps{o: o, control: control, open: map[catalog.AppID]*application{}}
	if err := a.loadSets(); err != nil {
		return nil, errors.Join(err, control.Close())
	}
	return a, nil
}

// partition is how the partition of an application is opened.
func (o *Options) partition(app catalog.AppID) (partition.Options, error) {
	p := partition.Options{Store: o.Store, App: app, Site: log.Origin, Clock: o.Clock}
	if _, err := io.ReadFull(o.Rand, p.Epoch[:]); err != nil {
		return p, fmt.Errorf("random source: %w", err)
	}
	return p, nil
}

// Authorize implements [api.Applications]. It reads the store, so a key that was deleted is
// unknown to the next request.
func (a *apps) Authorize(authorization string) (*api.Application, auth.Principal, error) {
	hash, err := auth.Key(authorization)
	if err != nil {
		return nil, auth.Principal{}, err
	}
	key, err := catalog.Read(a.o.Store, catalog.Control).Key(hash)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, auth.Principal{}, auth.ErrKeyUnknown
	}
	if err != nil {
		return nil, auth.Principal{}, err
	}
	app, err := a.application(key.App)
	if err != nil {
		return nil, auth.Principal{}, err
	}
	return &app.Application, auth.Principal{App: key.App, By: auth.By(hash), Scopes: auth.SetOf(key.Scopes)}, nil
}

// Owner implements [api.Applications]: whoever the host says owns the folder may do everything.
func (a *apps) Owner(id string) (*api.Application, auth.Principal, error) {
	app, err := a.application(id)
	if err != nil {
		return nil, auth.Principal{}, err
	}
	return &app.Application, auth.Principal{App: id, Scopes: auth.All}, nil
}

// application opens an application.
func (a *apps) application(id string) (*application, error) {
	app, err := catalog.ParseAppID(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrApplication, id)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if open, ok := a.open[app]; ok {
		return open, nil
	}
	record, err := catalog.Read(a.o.Store, catalog.Control).App(id)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q", ErrApplication, id)
	}
	if err != nil {
		return nil, err
	}
	open := &application{Application: api.Application{ID: id, Language: record.Language, DefaultModel: record.DefaultModel}}
	if err := a.openPartition(open, app); err != nil {
		return nil, fmt.Errorf("application %s: %w", id, err)
	}
	a.open[app] = open
	return open, nil
}

// openPartition opens an application's partition, with its index and what watches both.
func (a *apps) openPartition(to *application, app catalog.AppID) error {
	settings, err := a.o.partition(app)
	if err != nil {
		return err
	}
	serving, err := a.serving(app)
	if err != nil {
		return err
	}
	settings.Index = &index.Options{Space: spaceOf(serving)}
	if serving != a.o.Models {
		next := spaceOf(a.o.Models)
		settings.Index.Next = &next
	}
	to.inputs = ingest.New(app, serving.Base())
	settings.Watch = to.inputs.Watch
	if to.Partition, err = partition.Open(settings); err != nil {
		return err
	}
	to.inputs.Serve(to.Partition)
	return a.beginRenewal(to, app)
}

// ids are those of all applications, in their order.
func (a *apps) ids() ([]string, error) {
	var ids []string
	err := catalog.Read(a.o.Store, catalog.Control).Apps(func(app catalog.App) bool {
		ids = append(ids, app.ID)
		return true
	})
	return ids, err
}

// all opens all applications and returns them in the order of their ids.
func (a *apps) all() ([]*application, error) {
	ids, err := a.ids()
	if err != nil {
		return nil, err
	}
	apps := make([]*application, 0, len(ids))
	for _, id := range ids {
		app, err := a.application(id)
		if err != nil {
			return nil, err
		}
		apps = append(apps, app)
	}
	return apps, nil
}

func (a *apps) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.control.Close()
	for _, app := range a.open {
		err = errors.Join(err, app.Partition.Close())
	}
	return err
}

// maxNameBytes bounds the names of applications and the descriptions of keys.
const maxNameBytes = 256

// CreateApp makes an application. Its language is the default for names and never changes.
// The errors are ErrApplication for a name that cannot be, lang.ErrUnknown, and the store's.
func (e *Engine) CreateApp(ctx context.Context, name, language string) (catalog.App, error) {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > maxNameBytes || strings.ContainsFunc(name, unicode.IsControl) {
		return catalog.App{}, fmt.Errorf("%w: a name of 1 to %d bytes without control characters is needed", ErrApplication, maxNameBytes)
	}
	if !lang.Valid(language) {
		return catalog.App{}, fmt.Errorf("%q: %w", language, lang.ErrUnknown)
	}
	var b [16]byte
	if _, err := io.ReadFull(e.apps.o.Rand, b[:]); err != nil {
		return catalog.App{}, fmt.Errorf("random source: %w", err)
	}
	id := hex.EncodeToString(b[:])
	if err := e.apps.submit(ctx, &log.AppCreate{ID: id, Name: name, Language: language}); err != nil {
		return catalog.App{}, err
	}
	return catalog.Read(e.apps.o.Store, catalog.Control).App(id)
}

// CreateKey makes a key to an application and returns it: it is told once, here. The
// errors are ErrApplication, auth.ErrScope and the store's.
func (e *Engine) CreateKey(ctx context.Context, app string, scopes []string, description string) (key string, err error) {
	if scopes, err = auth.Scopes(scopes); err != nil {
		return "", err
	}
	if len(description) > maxNameBytes || strings.ContainsFunc(description, unicode.IsControl) {
		return "", fmt.Errorf("%w: a description has at most %d bytes without control characters", ErrApplication, maxNameBytes)
	}
	if _, err := e.apps.application(app); err != nil {
		return "", err
	}
	if key, err = auth.NewKey(e.apps.o.Rand); err != nil {
		return "", err
	}
	err = e.apps.submit(ctx, &log.KeyCreate{Hash: auth.HashKey(key), App: app, Scopes: scopes, Description: description})
	if err != nil {
		return "", err
	}
	return key, nil
}

// Apps lists the applications, in the order of their ids.
func (e *Engine) Apps() ([]catalog.App, error) {
	var all []catalog.App
	err := catalog.Read(e.apps.o.Store, catalog.Control).Apps(func(app catalog.App) bool {
		all = append(all, app)
		return true
	})
	return all, err
}

// submit appends one operation to the control log.
func (a *apps) submit(ctx context.Context, body log.Body) error {
	verdicts, err := a.control.Submit(ctx, "", []log.Body{body}, nil)
	if err != nil {
		return err
	}
	if v := verdicts[0]; v.Code != fold.OK {
		return fmt.Errorf("control log: %v: %s", v.Code, v.Detail)
	}
	return nil
}
