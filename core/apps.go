package core

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// ErrApplication is returned for an application that is not there.
var ErrApplication = errors.New("no such application")

// apps holds the applications: their records and keys in the control partition, and each
// one's own partition, opened when it is first asked for.
//
//	control log ──fold──▶ App, Key records
//	                         │ register: hash of the key → key record → application
//	                         ▼
//	                     partition of the application
type apps struct {
	o       Options
	control *partition.Partition
	sets    map[[32]byte]*predict.Set // by base: the newest, and those of older networks that still serve
	listed  listed

	mu   sync.Mutex
	open map[catalog.AppID]*application
}

// listed is the list of the applications' ids, which the background asks for many times a
// second. It is read anew after each change.
type listed struct {
	mu    sync.Mutex
	known bool
	ids   []string
}

// application is an application and what works for it in the background.
type application struct {
	ID        string
	Partition *partition.Partition
	shown     atomic.Pointer[api.Application] // as requests meet it
	inputs    *ingest.Worker
	renewal
}

// show has requests meet the application as its record says.
func (a *application) show(record *catalog.App) {
	a.shown.Store(&api.Application{
		ID: a.ID, Owner: record.Owner, Language: record.Language, DefaultModel: record.DefaultModel, Partition: a.Partition,
	})
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
	record, err := a.record(id)
	if err != nil {
		return nil, err
	}
	open := &application{ID: id}
	if err := a.openPartition(open, app); err != nil {
		return nil, fmt.Errorf("application %s: %w", id, err)
	}
	open.show(&record)
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

// ids are those of all applications, in their order; the list is shared.
func (a *apps) ids() ([]string, error) {
	l := &a.listed
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return l.ids, nil
	}
	var ids []string
	err := catalog.Read(a.o.Store, catalog.Control).Apps(func(app catalog.App) bool {
		ids = append(ids, app.ID)
		return true
	})
	l.ids, l.known = ids, err == nil
	return ids, err
}

// relist has the list of applications read anew.
func (a *apps) relist() {
	a.listed.mu.Lock()
	defer a.listed.mu.Unlock()
	a.listed.known, a.listed.ids = false, nil
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
		if errors.Is(err, ErrApplication) {
			continue // deleted since
		}
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
