// Package reembed changes the network of an application. The old network serves until the new one has analysed all inputs.
//
//	inputs that the new network has not analysed ──Take──▶ pictures ──Done──▶ derived records, second space of the index
//	                                    none left │
//	current versions of the old network ────Take──▶ trainings from their frozen inputs ──Done──▶ heads, kept until then
//	                                    none left │
//	                                              ▼
//	                       one operation: the network, and the new versions ──▶ every reader sees both, or neither
//
// The application's state contains the progress: the index knows which inputs a network has not analysed, and an existing derived record
// is not computed again. So after a kill the worker continues from that state. Trainings are short, so the worker starts them again. It
// never compares vectors of two networks, because each embedding and each space of the index names its network.
//
// If the new network already serves, the worker looks for inputs that the old one analysed during the switch, and for inputs whose
// derived record was lost in a crash. It also trains versions again that replicas trained with the old network and sent after the switch.
package reembed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/training"
)

// maxTries is the maximum number of analyses of a picture by the new network. After that its input has no predictions until the next start,
// which tries again. A missing picture is tried again before the next start, and delays nothing.
const maxTries = 3

// lookEvery is the time between two looks for inputs without a derived record if the last look found none.
const lookEvery = time.Second

// lateEvery is the time between two looks for late versions of the old network. Each look reads the manifests of all models.
const lateEvery = time.Minute

// Options configure a worker.
type Options struct {
	App       catalog.AppID
	Partition *partition.Partition // its index has a space for the base of Models
	Models    training.Models      // the new network
	Rand      io.Reader            // source of the versions' ids
}

// Worker re-embeds the inputs of one application. It is safe for concurrent use.
type Worker struct {
	o    Options
	base [32]byte // base model of the new network

	mu      sync.Mutex
	todo    []uint32        // ordinals that lack a derived record, from the last look
	out     map[uint32]bool // ordinals that Take returned and Done has not yet received
	failed  map[uint32]failure
	looked  time.Time         // time of the last look
	seq     uint64            // sequence number of the view that the last look read
	left    uint64            // inputs without a derived record in the last look
	all     uint64            // inputs that were ready in the last look
	known   bool              // a look has taken place
	serving bool              // the new network serves
	renewed map[log.Dot]*head // versions trained again, by model
	runs    map[*training.Run]log.Dot
	late    time.Time // time of the last look for late versions
	lateSeq uint64    // sequence number of the view that it read; 0: look again
}

// failure records the failed tries of an input.
type failure struct {
	tries   int
	missing bool      // the store lacks the picture
	due     time.Time // time of the next try if the picture is missing
}

// Cause is the reason why a task has no derived record.
type Cause int

// The causes.
const (
	Unreadable Cause = iota // the picture cannot be analysed: the worker tries it [maxTries] times
	Transient               // the picture is not the cause: the worker tries it again
	Missing                 // the store lacks the picture, or its bytes are damaged: the worker tries it again after pauses that double
)

// The pauses before a missing picture is tried again double from firstPause to longPause.
const (
	firstPause = time.Second
	longPause  = time.Hour
)

// head is a version that was trained again.
type head struct {
	from    string // version that it replaces
	id      string
	outcome *training.Outcome // nil while its run has not ended
}

// manifest returns the manifest of the trained head, or nil while there is none.
func (h *head) manifest() []byte {
	if h.outcome == nil {
		return nil
	}
	return h.outcome.Manifest
}

// New returns a worker.
func New(o Options) *Worker {
	return &Worker{
		o: o, base: o.Models.Base(), out: map[uint32]bool{}, failed: map[uint32]failure{},
		renewed: map[log.Dot]*head{}, runs: map[*training.Run]log.Dot{},
	}
}

// Task is an input whose picture the new network has not analysed.
type Task struct {
	Ord  uint32
	Dot  log.Dot
	Blob blob.Hash
	Crop raster.Crop
}

// Base returns the base model that analyses the tasks.
func (w *Worker) Base() [32]byte { return w.base }

// Take returns at most n inputs for analysis. An input is not returned again before Done.
func (w *Worker) Take(now time.Time, n int) ([]Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n <= 0 || len(w.todo) == 0 && now.Sub(w.looked) < lookEvery && !w.looked.IsZero() {
		return nil, nil
	}
	v := w.o.Partition.View()
	defer v.Close()
	if len(w.todo) == 0 && (w.left > 0 || w.seq != v.Seq() || w.looked.IsZero()) {
		if err := w.look(v, now); err != nil {
			return nil, err
		}
	}
	var tasks []Task
	for len(tasks) < n && len(w.todo) > 0 {
		ord := w.todo[0]
		w.todo = w.todo[1:]
		in, err := v.Input(ord)
		if errors.Is(err, catalog.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return tasks, err
		}
		w.out[ord] = true
		tasks = append(tasks, Task{Ord: ord, Dot: in.Dot, Blob: in.Blob, Crop: in.Crop})
	}
	return tasks, nil
}

// look collects the remaining inputs and versions.
func (w *Worker) look(v *partition.View, now time.Time) error {
	h, err := v.Header()
	if err != nil {
		return err
	}
	at := w.o.Partition.Index().At(v.Reader)
	ready, err := at.Ready()
	if err != nil {
		return err
	}
	lacking, err := at.UnanalysedInputs(w.base)
	if err != nil {
		return err
	}
	w.known, w.serving = true, h.Base == w.base
	w.looked, w.seq, w.all, w.left = now, v.Seq(), ready.GetCardinality(), lacking.GetCardinality()
	w.todo = w.todo[:0]
	for it := lacking.Iterator(); it.HasNext(); {
		ord := it.Next()
		f := w.failed[ord]
		due := f.tries < maxTries
		if f.missing {
			due = !now.Before(f.due)
		}
		if due && !w.out[ord] {
			w.todo = append(w.todo, ord)
		}
	}
	for ord := range w.failed {
		if !lacking.Contains(ord) {
			delete(w.failed, ord) // deleted since
		}
	}
	return nil
}

// Done stores the result of a task at now: its derived record, or nil and the cause. It returns errors of the store.
func (w *Worker) Done(now time.Time, t Task, d *catalog.DerivedData, c Cause) error {
	var err error
	if d != nil {
		err = w.o.Partition.AddDerived([]log.Dot{t.Dot}, func(b kv.Writer, inputs []catalog.Input) {
			for i := range inputs {
				catalog.PutDerived(b, w.o.App, w.base, inputs[i].Blob, inputs[i].Crop, *d)
			}
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.out, t.Ord)
	switch {
	case d != nil && err == nil:
		delete(w.failed, t.Ord)
	case d == nil && c != Transient: // an error of the store is not the picture's
		f := w.failed[t.Ord]
		if f.tries++; c == Missing {
			f.due = now.Add(min(firstPause<<min(f.tries-1, 12), longPause))
		}
		f.missing = c == Missing
		w.failed[t.Ord] = f
	}
	return err
}

// Missing returns the number of inputs whose pictures the store lacks, as of the last look and the tries since.
func (w *Worker) Missing() (n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.failed {
		if f.missing {
			n++
		}
	}
	return n
}

// Progress returns how many inputs the new network has analysed, how many it could not analyse, and the number of all inputs. It counts
// from the last look. It also reports whether the new network serves, and returns true before the first look.
func (w *Worker) Progress() (done, failed, all uint64, serving bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ahead := uint64(len(w.todo) + len(w.out))
	for ord, f := range w.failed {
		_, pending := slices.BinarySearch(w.todo, ord)
		pending = pending || w.out[ord]
		switch {
		case f.tries >= maxTries && pending:
			failed++
			ahead--
		case f.tries >= maxTries:
			failed++
		case !pending:
			ahead++ // until the next look
		}
	}
	return w.all - min(w.all, ahead+failed), failed, w.all, w.serving || !w.known
}

// HasAnalysedAll reports whether a look found nothing that the new network has not analysed.
func (w *Worker) HasAnalysedAll() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.looked.IsZero() && len(w.todo) == 0 && len(w.out) == 0 && w.left <= uint64(len(w.failed))
}

// Serving reports whether the new network serves, as of the last look.
func (w *Worker) Serving() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serving
}

// Trainings returns at most n trainings of current versions of the old network. Call it after all inputs are analysed. A training is not
// returned again before EndRun.
func (w *Worker) Trainings(now time.Time, n int) ([]*training.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n <= 0 || w.serving && now.Sub(w.late) < lateEvery {
		return nil, nil
	}
	v := w.o.Partition.View()
	defer v.Close()
	if w.serving {
		if w.late = now; w.lateSeq == v.Seq() {
			return nil, nil
		}
		w.lateSeq = v.Seq()
	}
	old, err := w.old(v)
	if err != nil {
		return nil, err
	}
	var runs []*training.Run
	for _, version := range old {
		if len(runs) == n {
			break
		}
		if h := w.renewed[version.Model]; h != nil && h.from == version.ID {
			continue
		}
		id, err := log.NewID(w.o.Rand)
		if err != nil {
			return runs, err
		}
		h := &head{from: version.ID, id: id}
		own := w.o.Partition.View() // the run's
		run, err := training.Retrain(own, w.o.Models, version, h.id)
		if err != nil {
			return runs, errors.Join(err, own.Close())
		}
		w.renewed[version.Model], w.runs[run] = h, version.Model
		runs = append(runs, run)
	}
	if len(runs) == n {
		w.lateSeq = 0 // there may be more
	}
	return runs, nil
}

// old returns the current versions whose embeddings come from another network.
func (w *Worker) old(v *partition.View) ([]catalog.Version, error) {
	var old []catalog.Version
	var failed error
	err := v.Models(func(m catalog.Model) bool {
		current, err := v.CurrentVersion(m.Dot)
		if errors.Is(err, catalog.ErrNotFound) {
			return true
		}
		var manifest catalog.Manifest
		if err == nil {
			manifest, err = v.Manifest(&current)
		}
		if err == nil && manifest.Base != w.base {
			old = append(old, current)
		}
		failed = err
		return err == nil
	})
	return old, errors.Join(err, failed)
}

// EndRun ends a run. A version whose training inputs were all deleted cannot be trained again. It keeps the old network and cannot
// predict.
func (w *Worker) EndRun(r *training.Run, trouble error) error {
	r.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	model := w.runs[r]
	delete(w.runs, r)
	h := w.renewed[model]
	outcome := r.Outcome()
	if err := errors.Join(trouble, r.Err()); err != nil || outcome == nil {
		delete(w.renewed, model)
		w.lateSeq = 0 // it is due again
		return err
	}
	h.outcome = outcome
	return nil
}

// Switch makes the new network serve if every input is analysed and every current version is trained again. Do not call it during a
// training of the old network. If done is false, the next Take or Trainings returns the remaining work.
func (w *Worker) Switch(ctx context.Context) (done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.runs) > 0 || len(w.out) > 0 {
		return false, nil
	}
	v := w.o.Partition.View()
	defer v.Close()
	lacking, err := w.o.Partition.Index().At(v.Reader).UnanalysedInputs(w.base)
	if err != nil {
		return false, err
	}
	for it := lacking.Iterator(); it.HasNext(); {
		if w.failed[it.Next()].tries < maxTries {
			w.looked = time.Time{}
			return false, nil
		}
	}
	old, err := w.old(v)
	if err != nil {
		return false, err
	}
	body := &log.NetworkSwitch{Base: w.base}
	var objects [][]byte
	for i := range old {
		h := w.renewed[old[i].Model]
		if h == nil || h.from != old[i].ID {
			return false, nil
		}
		if data := h.manifest(); data != nil {
			body.Versions = append(body.Versions, log.RetrainedVersion{Model: old[i].Model, From: h.from, Version: h.id, Manifest: blob.Sum(data), Detail: h.outcome.Result.Detail})
			objects = append(objects, data)
		}
	}
	verdicts, err := w.o.Partition.Submit(ctx, "", []log.Body{body}, func(b *kv.Batch) {
		for _, data := range objects {
			catalog.PutObject(b, w.o.App, data)
		}
	})
	if err != nil {
		return false, err
	}
	if c := verdicts[0].Code; c != fold.OK && c != fold.Superseded {
		return false, fmt.Errorf("switch to the new network: %v %s", c, verdicts[0].Detail)
	}
	w.serving = true
	clear(w.renewed)
	return true, nil
}

// Publish adds the late versions that were trained again with the network that serves. It reports whether there was one.
func (w *Worker) Publish(ctx context.Context) (done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for model, h := range w.renewed {
		if !w.serving || h.manifest() == nil {
			continue
		}
		v := w.o.Partition.View()
		current, err := v.CurrentVersion(model)
		if err = errors.Join(err, v.Close()); errors.Is(err, catalog.ErrNotFound) || err == nil && current.ID != h.from {
			delete(w.renewed, model) // it was deleted, or trained again
			continue
		}
		if err != nil {
			return done, err
		}
		if _, err = training.AddVersion(ctx, w.o.Partition, w.o.App, model, h.id, h.outcome); err != nil {
			return done, err
		}
		h.outcome, done = nil, true
	}
	return done, nil
}
