package core

import (
	"context"
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

// KeysDeleted says when keys were deleted, by what operations are signed with for them. Errors:
// ErrElsewhere and the store's.
func (c *Control) KeysDeleted() (map[string]time.Time, error) {
	if c.partition == nil {
		return nil, ErrElsewhere
	}
	l := c.partition.Log()
	at := map[string]time.Time{}
	err := l.Read(l.Floor(), func(e log.Entry) bool {
		if b, ok := e.Op.Body.(*log.KeyDelete); ok {
			at[auth.By(b.Hash)] = e.Op.At.Time()
		}
		return true
	})
	return at, err
}
