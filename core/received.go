package core

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Identify says for whom a request speaks that is none of the interface's calls, and when what it
// was asked with ends; see [api.Service.Identify].
func (e *Engine) Identify(ctx context.Context, r *api.Request) (auth.Principal, time.Time, error) {
	return e.service.Identify(ctx, r)
}

// AppGone reports whether an application was deleted, by its id.
func (c *Control) AppGone(id string) (bool, error) { return c.read().AppGone(id) }

// Serving is the base of the network that serves an application as r shows it.
func (e *Engine) Serving(r catalog.Reader) ([32]byte, error) { return e.service.Serving(r) }

// ReceivedJob is the job of a picture that another site has made an input of, whose bytes are in
// the blobs: what was derived from it there is made here again. Its result is for
// [Engine.Received], and holds the picture until it is released.
func ReceivedJob(picture blob.Hash, crop raster.Crop, base [32]byte) api.Job {
	job := api.FetchJob("", crop, base)
	job.Blob = picture
	return *job
}

// Received is what the result of a [ReceivedJob] gave.
func (e *Engine) Received(base [32]byte, r *api.Result) ingest.Outcome {
	return e.service.Fetched(base, r)
}

// KeysDeleted says when keys of an application were deleted or replaced, by what operations are
// signed with for them. Errors: ErrElsewhere and the store's.
func (c *Control) KeysDeleted(app string) (map[string]time.Time, error) {
	o, unlock, err := c.outdated()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return maps.Clone(o.at[app]), nil
}

// outdated returns what the control log says up to its end, under its lock.
func (c *Control) outdated() (o *outdated, unlock func(), err error) {
	if c.partition == nil {
		return nil, nil, ErrElsewhere
	}
	o = &c.gone
	o.mu.Lock()
	l := c.partition.Log()
	err = l.Read(max(o.read+1, l.Floor()), func(e log.Entry) bool {
		o.take(&e)
		return true
	})
	if err != nil {
		o.mu.Unlock()
		return nil, nil, err
	}
	return o, o.mu.Unlock, nil
}

// outdated is what the control log says of keys and tokens that let nobody in any more, up to an entry.
type outdated struct {
	mu   sync.Mutex
	read uint64                          // entry that was read last
	of   map[auth.Hash]string            // applications of keys that live
	at   map[string]map[string]time.Time // when keys were deleted, by application

	clients     map[string]string       // their applications
	generations map[string][]generation // by application
}

// take reads the next entry.
func (o *outdated) take(e *log.Entry) {
	if o.read = e.Seq; o.of == nil {
		o.of, o.at = map[auth.Hash]string{}, map[string]map[string]time.Time{}
		o.clients, o.generations = map[string]string{}, map[string][]generation{}
	}
	drop := func(h auth.Hash) {
		app, ok := o.of[h]
		if !ok {
			return
		}
		delete(o.of, h)
		if o.at[app] == nil {
			o.at[app] = map[string]time.Time{}
		}
		o.at[app][auth.By(h)] = e.Op.At.Time()
	}
	o.began(e)
	switch b := e.Op.Body.(type) {
	case *log.KeyCreate:
		drop(b.Replaces)
		o.of[b.Hash] = b.App
	case *log.KeyDelete:
		drop(b.Hash)
	case *log.AppDelete:
		delete(o.at, b.ID)
		delete(o.generations, b.ID)
		maps.DeleteFunc(o.of, func(_ auth.Hash, app string) bool { return app == b.ID })
		maps.DeleteFunc(o.clients, func(_, app string) bool { return app == b.ID })
	}
}
