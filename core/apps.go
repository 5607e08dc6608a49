package core

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
)

// errDeleted is the error of running calls and background work of an application that was deleted in the meantime.
var errDeleted = fmt.Errorf("%w: the application was deleted", auth.ErrKeyUnknown)

// isDeleted reports whether err means that the application was deleted in the meantime.
func isDeleted(err error) bool { return errors.Is(err, errDeleted) }

// apps has the open applications and their partitions. It opens an application at the first request.
//
//	key ──register──▶ application's record
//	                         │
//	                         ▼
//	                     partition of the application
type apps struct {
	o        Options
	register *register.Register
	sets     map[[32]byte]*predict.Set // by base: the newest, and older networks that still serve applications

	storage *storage // nil: storage has no limits

	mu   sync.Mutex
	open map[catalog.AppID]*application
}

// application is an application with its background workers.
type application struct {
	ID           string
	Partition    *partition.Partition            // the part that Origin or Replica contains
	Origin       *partition.Origin               // nil at a replica
	Copy         *partition.Replica              // nil at an origin; the origin's log determines the network of a replica
	current      atomic.Pointer[api.Application] // the application as requests use it
	inputs       *ingest.Worker
	hasUnsettled bool // only for Step: pictures of pending operations and conflicts may be pinned
	renewal

	pictureTasks atomic.Int64 // number of tasks with pictures that were handed out and have not come back
}

func (a *application) caller() string { return a.current.Load().Caller() }

// show updates the application that requests use to its record.
func (a *application) show(record *catalog.App) {
	a.current.Store(&api.Application{
		ID: a.ID, Owner: record.Owner, Language: record.Language, DefaultModel: record.DefaultModel, Partition: a.Partition, Origin: a.Origin, Replica: a.Copy,
		Training: func(v *catalog.Version) (float64, bool) { return a.queue().Progress(v) },
	})
}

func openApps(o Options, of *register.Register) (*apps, error) {
	a := &apps{o: o, register: of, open: map[catalog.AppID]*application{}}
	if o.Storage != nil {
		a.storage = &storage{limits: o.Storage, size: o.PictureSize, apps: a, owners: map[string]string{}, tallies: map[catalog.AppID]*tally{}}
	}
	if o.App != "" {
		if _, err := of.App(o.App); err != nil {
			return nil, err
		}
	}
	if err := a.loadSets(); err != nil {
		return nil, err
	}
	if o.App != "" {
		if _, err := a.application(o.App); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// ids returns the ids of the served applications in ascending order. The caller must not change the slice.
func (a *apps) ids() ([]string, error) {
	if a.o.App != "" {
		return []string{a.o.App}, nil
	}
	return a.register.IDs()
}

// application returns an application. It opens the application if necessary.
func (a *apps) application(id string) (*application, error) {
	app, err := catalog.ParseAppID(id)
	if err != nil || a.o.App != "" && id != a.o.App {
		return nil, fmt.Errorf("%w: %q", register.ErrApplication, id)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	open, ok := a.open[app]
	if ok && a.o.App == "" {
		return open, nil
	}
	record, err := a.register.App(id)
	if err != nil {
		return nil, err
	}
	if !ok {
		open = &application{ID: id}
		if err := a.openPartition(open, app); err != nil {
			return nil, fmt.Errorf("application %s: %w", id, err)
		}
		a.open[app] = open
	}
	open.show(&record)
	return open, nil
}

// refresh reads the record of an open application again, for the next requests.
func (a *apps) refresh(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := catalog.ParseAppID(id)
	if err != nil || a.open[app] == nil {
		return
	}
	if record, err := a.register.App(id); err == nil { // an error means that it was just deleted
		a.open[app].show(&record)
	}
}

// detach removes a deleted application from the open applications, and shuts its partition.
func (a *apps) detach(id string) {
	app, err := catalog.ParseAppID(id)
	if err != nil {
		return
	}
	a.mu.Lock()
	open := a.open[app]
	delete(a.open, app)
	a.mu.Unlock()
	if open != nil {
		open.Partition.Shut(errDeleted)
	}
	if a.storage != nil {
		a.storage.forget(app)
	}
}

// openPartition opens an application's partition, with its index and the watchers of both.
func (a *apps) openPartition(to *application, app catalog.AppID) error {
	settings, err := a.register.PartitionOptions(app)
	if err != nil {
		return err
	}
	serving, err := a.serving(app)
	if err != nil {
		return err
	}
	settings.Index = &index.Options{Space: SpaceOf(serving), NoColumns: a.o.NoColumns}
	settings.Retention = a.o.Retention
	_, copied, err := a.register.AppRecordSeq(app.String())
	if err != nil {
		return err
	}
	if serving != a.o.Models {
		next := SpaceOf(a.o.Models)
		settings.Index.Next = &next
	}
	to.inputs = ingest.New(app, serving.Base())
	if settings.Watch = to.inputs.Watch; settings.Follow {
		to.inputs.Follow()
	}
	if a.storage != nil {
		settings.Quota = appQuota{a.storage, app}
	}
	if copied > 0 { // an app record came from an origin, so the application is a replica
		if to.Copy, err = partition.OpenReplica(settings, partition.ReplicaOptions{}); err == nil {
			to.Partition = to.Copy.Partition
		}
	} else if to.Origin, err = partition.OpenOrigin(settings); err == nil {
		to.Partition = to.Origin.Partition
	}
	if err != nil {
		return err
	}
	if settings.Follow {
		return a.beginRenewal(to, app)
	}
	return a.begin(to, app)
}

// begin starts the work on an application that only the writing machine does.
func (a *apps) begin(to *application, app catalog.AppID) error {
	err := to.inputs.Attach(to.Partition)
	if err == nil && to.Copy == nil {
		err = a.chooseNetwork(to)
	}
	if err == nil && to.renew == nil {
		err = a.beginRenewal(to, app)
	}
	return err
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
		if errors.Is(err, register.ErrApplication) {
			continue // deleted in the meantime
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
	var err error
	for _, app := range a.open {
		err = errors.Join(err, app.Partition.Close())
	}
	return err
}
