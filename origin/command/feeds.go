package command

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/origin/httpd"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/feed"
)

// liveTime bounds a call of the sync protocol: a stream ends by itself before.
const liveTime = 65 * time.Minute

// feedInterval is how often the feed lets go of what nobody reads any more.
const feedInterval = 5 * time.Second

// feeds are the mount of the sync protocol, where the engine is one that others can pull from. It
// stands before the interface's, whose calls it has none of: its requests are neither counted
// nor held to the rate of calls.
func (srv *Server) feeds() ([]httpd.Mount, error) {
	engine, ok := srv.engine.(native)
	if !ok {
		return nil, nil
	}
	var err error
	srv.feed, err = feed.New(feed.Options{
		Engine: engine, Blobs: srv.folder.Blobs, Holder: srv.hosted, Run: srv.pool.Run,
		Clock: system.Now, Wait: system.Await, Log: srv.log, Releases: srv.releases(),
	})
	if err != nil {
		return nil, err
	}
	srv.begin(func(ctx context.Context) {
		system.Every(ctx, feedInterval, func(ctx context.Context) {
			if err := srv.feed.Step(ctx); err != nil && ctx.Err() == nil {
				srv.log.Error("feed", "error", err)
			}
		})
	})
	return []httpd.Mount{{Prefix: feed.Prefix, Handler: srv.feed, Live: true, CallTimeout: liveTime}}, nil
}
