package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/reembed"
	"github.com/sightline-dev/sightline/core/training"
)

// renewal is an application's progress towards the newest network: the network that serves it, and the work that the newest one still
// needs.
type renewal struct {
	renew *reembed.Worker

	mu        sync.Mutex
	trainings *training.Queue // queue for the network that serves
	base      [32]byte        // base of the network that serves
	old       [32]byte        // base of the network that served until now
	moved     time.Time       // time of that change; zero: nothing of the old network is left
	closing   bool            // everything is analysed: the queue hands out only trainings of the newest network
}

// queue returns the application's queue of trainings.
func (r *renewal) queue() *training.Queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trainings
}

// takeTrainings hands out at most n trainings, and returns the queue to which they go back. While the last trainings of the newest
// network run, it hands out none, because their versions would be the old network's.
func (r *renewal) takeTrainings(now time.Time, n int) ([]*training.Run, *training.Queue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, r.trainings, nil
	}
	runs, err := r.trainings.Take(now, n)
	return runs, r.trainings, err
}

// dropAfter is the time for which the old network's data stays after the change, for calls that began before it.
const dropAfter = time.Minute

// SpaceOf returns the space of the indexes over embeddings of a network.
func SpaceOf(set *predict.Set) index.Space {
	s := index.Space{Base: set.Base()}
	for _, c := range set.General().Concepts {
		s.Concepts = append(s.Concepts, c.ID)
	}
	return s
}

// loadSets loads the networks that serve applications.
func (a *apps) loadSets() error {
	a.sets = map[[32]byte]*predict.Set{a.o.Models.Base(): a.o.Models}
	ids, err := a.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		app, err := catalog.ParseAppID(id)
		if err != nil {
			return err
		}
		h, err := catalog.Read(a.o.Store, app).Header()
		if err != nil {
			return fmt.Errorf("application %s: %w", id, err)
		}
		if _, ok := a.sets[h.Base]; ok || h.Base == [32]byte{} {
			continue
		}
		_, copied, err := a.register.AppRecordSeq(id)
		if err != nil {
			return fmt.Errorf("application %s: %w", id, err)
		}
		if a.o.Older == nil {
			if copied > 0 {
				continue
			}
			return fmt.Errorf("%w: application %s was analysed with network %x, which is not available", api.ErrOptions, id, h.Base[:8])
		}
		set, err := a.o.Older(h.Base)
		switch {
		case err == nil:
			a.sets[h.Base] = set
		case copied == 0 || !errors.Is(err, fs.ErrNotExist): // a replica's network may be missing until its origin switches to ours
			return fmt.Errorf("network %x of application %s: %w", h.Base[:8], id, err)
		}
	}
	return nil
}

// older lists the networks that serve applications besides the newest one.
func (a *apps) older() (sets []api.Models) {
	for _, set := range a.sets {
		if set != a.o.Models {
			sets = append(sets, set)
		}
	}
	return sets
}

// serving returns the network that serves an application, or the newest network for an application without one.
func (a *apps) serving(app catalog.AppID) (*predict.Set, error) {
	h, err := catalog.Read(a.o.Store, app).Header()
	if err != nil {
		return nil, err
	}
	if set, ok := a.sets[h.Base]; ok {
		return set, nil
	}
	return a.o.Models, nil
}

// chooseNetwork makes the newest network serve an application without one.
func (a *apps) chooseNetwork(to *application) error {
	h, err := to.Partition.Header()
	if err != nil || h.Base != [32]byte{} {
		return err
	}
	_, err = to.Partition.Submit(context.Background(), "", []log.Body{&log.NetworkSwitch{Base: a.o.Models.Base()}}, nil)
	return err
}

// beginRenewal starts the work that moves the application to the newest network. A replica moves to the network that its origin's log
// names.
func (a *apps) beginRenewal(to *application, app catalog.AppID) error {
	v := to.Partition.View()
	h, err := v.Header()
	v.Close()
	if err != nil {
		return err
	}
	if h.Base == [32]byte{} {
		h.Base = a.o.Models.Base()
	}
	serving, ok := a.sets[h.Base]
	if !ok && to.Copy != nil {
		h.Base, serving, ok = a.o.Models.Base(), a.o.Models, true
	}
	if !ok { // the log was ahead of the state
		return fmt.Errorf("%w: network %x is not available", api.ErrOptions, h.Base[:8])
	}
	err = to.Partition.Index().DropOrphans(func(b *kv.Batch, base [32]byte) { catalog.ScheduleBaseCleanup(b, app, base) })
	if err != nil {
		return err
	}
	to.inputs.SetBase(h.Base)
	to.base, to.trainings = h.Base, training.NewQueue(to.Partition, serving)
	next := a.o.Models
	if to.Copy != nil {
		next = serving
	}
	to.renew = reembed.New(reembed.Options{App: app, Partition: to.Partition, Models: next, Rand: a.o.Rand})
	return nil
}

// takeRenewals hands out at most n tasks that analyse inputs of an application with the newest network.
func (e *Engine) takeRenewals(now time.Time, app *application, n int) (tasks []Task, err error) {
	if app.Copy != nil {
		return nil, nil
	}
	inputs, err := app.renew.Take(now, n)
	for _, in := range inputs {
		tasks = append(tasks, Task{Picture: api.ReembedJob(in.Blob, in.Crop, app.renew.Base()), app: app, renewed: &in})
	}
	if err != nil || !app.renew.HasAnalysedAll() {
		return tasks, err
	}
	app.mu.Lock()
	closing := app.closing
	app.mu.Unlock()
	if !closing && !app.renew.Serving() {
		return tasks, nil
	}
	runs, err := app.renew.Trainings(now, min(n-len(tasks), maxTrainings))
	for _, run := range runs {
		tasks = append(tasks, Task{Training: run, run: run, app: app, retrain: true})
	}
	return tasks, err
}

// stepRenewal switches an application to the newest network once everything that it needs exists. settled reports that its index has no
// more work.
func (e *Engine) stepRenewal(ctx context.Context, now time.Time, app *application, settled bool) (more bool, err error) {
	app.mu.Lock()
	defer app.mu.Unlock()
	if !app.moved.IsZero() {
		return false, e.dropOld(now, app)
	}
	if app.Copy != nil || e.apps.register.Follows() { // it has no network until the log names one, and must not choose one itself
		return e.followOrigin(now, app)
	}
	if app.renew.Serving() {
		app.closing = false
		return app.renew.Publish(ctx)
	}
	if !app.renew.HasAnalysedAll() || !settled {
		app.closing = false
		return false, nil
	}
	app.closing = true
	if app.trainings.InProgress() > 0 {
		return false, nil
	}
	done, err := app.renew.Switch(ctx)
	if !done || err != nil {
		return false, err
	}
	app.closing = false
	return true, e.switchNetwork(now, app, e.models)
}

// followOrigin switches a replica, or an application that another machine writes, to the network that the log names. The partition has prepared the index for that network.
func (e *Engine) followOrigin(now time.Time, app *application) (more bool, err error) {
	v := app.Partition.View()
	h, err := v.Header()
	if err = errors.Join(err, v.Close()); err != nil {
		return false, err
	}
	set, ok := e.apps.sets[h.Base]
	if h.Base == app.base || !ok || !app.Partition.Index().Has(h.Base) {
		return false, nil
	}
	return true, e.switchNetwork(now, app, set)
}

// switchNetwork switches the application to the network that its state names now.
func (e *Engine) switchNetwork(now time.Time, app *application, to *predict.Set) error {
	app.old, app.moved, app.base = app.base, now, to.Base()
	app.inputs.SetBase(app.base)
	app.trainings = training.NewQueue(app.Partition, to)
	return app.Partition.Index().Switch(app.base)
}

// dropOld deletes the old network's data once no call can use it any more.
func (e *Engine) dropOld(now time.Time, app *application) error {
	if now.Sub(app.moved) < dropAfter {
		return nil
	}
	if err := app.Partition.ForgetBase(app.old); err != nil && !errors.Is(err, kv.ErrFollows) { // the machine that writes does it
		return err
	}
	err := app.Partition.Index().Drop(app.old)
	if errors.Is(err, index.ErrSpace) {
		err = nil // dropped already
	}
	if err == nil {
		app.moved = time.Time{}
	}
	return err
}

// ReembedProgress is the progress of an application towards the newest network. Once Done and Failed add up to All, the application's
// models are trained again, which takes moments.
type ReembedProgress struct {
	App       string
	Done, All uint64 // inputs
	Failed    uint64 // inputs that the newest network could not analyse
}

// ReembedProgress lists the applications that an older network still serves.
func (e *Engine) ReembedProgress() ([]ReembedProgress, error) {
	apps, err := e.apps.all()
	if err != nil {
		return nil, err
	}
	var out []ReembedProgress
	for _, app := range apps {
		if done, failed, all, serving := app.renew.Progress(); !serving {
			out = append(out, ReembedProgress{App: app.ID, Done: done, All: all, Failed: failed})
		}
	}
	return out, nil
}

// MissingPictures returns the number of inputs whose pictures the store lacks, among those that the newest network has tried to analyse.
func (e *Engine) MissingPictures() (n uint64, err error) {
	apps, err := e.apps.all()
	if err != nil {
		return 0, err
	}
	for _, app := range apps {
		n += app.renew.Missing()
	}
	return n, nil
}
