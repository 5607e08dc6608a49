package feed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/sync/wire"
)

// uploads are pictures and objects on their way here. They are an application's: the same bytes sent
// for two are sent twice, so that nobody learns what another has.
//
//	piece, piece, piece ──▶ part ──hash──▶ whole: held in the blobs, until an operation's record
//	                        in memory              claims it or its time is over
//
// Nobody can read a part. Its room is reserved when it begins, so an upload that began can be finished. A replica sends
// again what is lost with the process.
type uploads struct {
	o *Options

	mu       sync.Mutex
	parts    map[uploadKey]*part
	complete map[uploadKey]time.Time // until when it is held
	bytes    uint64                  // of all parts, in full size
	of       map[string]share        // by application
	next     time.Time               // when something may be over
}

// share is an application's of the uploads.
type share struct {
	bytes uint64 // of its parts
	whole uint64
}

// partCost is added to the bytes of each part, so that many tiny parts cannot get around the limit.
const partCost = 512

// uploadKey names an upload.
type uploadKey struct {
	app  string
	hash blob.Hash
}

// part is the beginning of an upload.
type part struct {
	data []byte
	size uint64 // of the whole
	over time.Time
}

// uploadChunk is some bytes of an upload at their place.
type uploadChunk struct {
	uploadKey
	data     []byte
	at, size uint64
}

// state is the progress of an upload.
type state struct {
	size     uint64 // received bytes; of a complete upload, all of them
	complete bool
	new      bool // it became whole by this piece
}

// has reports whether an upload is complete.
func (u *uploads) has(app string, h blob.Hash, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	until, ok := u.complete[uploadKey{app, h}]
	return ok && now.Before(until)
}

// receivedBytes returns the number of received bytes of an incomplete upload.
func (u *uploads) receivedBytes(app string, h blob.Hash) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.parts[uploadKey{app, h}]; p != nil {
		return uint64(len(p.data))
	}
	return 0
}

// add adds a piece. Errors: *wire.Refusal for a piece that does not follow the received bytes, with errPlace, or that completes an object
// of another hash; and those of the blobs.
func (u *uploads) add(ctx context.Context, x uploadChunk, now time.Time) (state, error) {
	if u.due(now) {
		if err := u.sweep(ctx, now, func(string) bool { return false }); err != nil {
			return state{}, err
		}
	}
	s, data, err := u.gather(x, now)
	if err != nil || data == nil {
		return s, err
	}
	if blob.Sum(data) != x.hash {
		return state{}, &wire.Refusal{Code: wire.RefusedContent, Detail: "the bytes do not match this hash; send them again from the start"}
	}
	if _, err := u.o.Pinner.Pin(ctx, data); err != nil {
		return state{}, err
	}
	u.mu.Lock()
	_, twice := u.complete[x.uploadKey]
	if !twice {
		if u.complete == nil {
			u.complete = map[uploadKey]time.Time{}
		}
		u.complete[x.uploadKey] = now.Add(u.o.Limits.UploadTTL)
		u.take(x.app, 0, 1)
	}
	u.mu.Unlock()
	if twice {
		if err := u.o.Pinner.Unpin(ctx, x.hash); err != nil {
			return state{}, err
		}
	}
	return state{size: x.size, complete: true, new: !twice}, nil
}

// errPlace is the refusal of a piece that does not begin where the part ends.
type errPlace struct{ begun uint64 }

func (e *errPlace) Error() string { return fmt.Sprintf("%d bytes were received", e.begun) }

// gather adds a piece to its part, and returns all bytes once the part is complete.
func (u *uploads) gather(x uploadChunk, now time.Time) (s state, data []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until, ok := u.complete[x.uploadKey]; ok && now.Before(until) {
		return state{size: x.size, complete: true}, nil, nil
	}
	if n := u.o.Limits.Uploads; u.of[x.app].whole >= n {
		return s, nil, &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many uploads without an operation that refers to them: at most %d", n),
			Limit: "Uploads", Value: n, WaitMillis: uint64(time.Minute.Milliseconds()),
		}
	}
	p := u.parts[x.uploadKey]
	if p != nil && p.size != x.size {
		if x.at > 0 {
			return s, nil, &errPlace{uint64(len(p.data))}
		}
		u.drop(x.uploadKey)
		p = nil
	}
	have := uint64(0)
	if p != nil {
		have = uint64(len(p.data))
	}
	end := x.at + uint64(len(x.data))
	switch {
	case p != nil && end <= have:
		return state{size: have}, nil, nil // its answer was lost
	case x.at != have:
		return s, nil, &errPlace{have}
	case end == x.size:
		if p == nil {
			return s, x.data, nil
		}
		data = append(p.data, x.data...)
		u.drop(x.uploadKey)
		return s, data, nil
	}
	if p == nil {
		if p, err = u.begin(x); err != nil {
			return s, nil, err
		}
	}
	p.data = append(p.data, x.data...)
	p.over = now.Add(u.o.Limits.PartialUploadTTL)
	return state{size: end}, nil, nil
}

// begin begins a part, if there is room for all of it; mu is held.
func (u *uploads) begin(x uploadChunk) (*part, error) {
	room, most := x.size+partCost, u.o.Limits.UploadBytes
	if u.bytes+room > most || u.of[x.app].bytes+room > max(most/4, u.o.Limits.BlobSize+partCost) {
		return nil, &wire.Refusal{Code: wire.RefusedBusy, Detail: "too many uploads at once", WaitMillis: 5000}
	}
	p := &part{size: x.size}
	if u.parts == nil {
		u.parts = map[uploadKey]*part{}
	}
	u.parts[x.uploadKey] = p
	u.bytes += room
	u.take(x.app, int64(room), 0)
	return p, nil
}

// take changes an application's share; mu is held.
func (u *uploads) take(app string, bytes, whole int64) {
	s := u.of[app]
	s.bytes += uint64(bytes)
	s.whole += uint64(whole)
	if s == (share{}) {
		delete(u.of, app)
		return
	}
	if u.of == nil {
		u.of = map[string]share{}
	}
	u.of[app] = s
}

// drop forgets a part; mu is held.
func (u *uploads) drop(key uploadKey) {
	if p := u.parts[key]; p != nil {
		room := p.size + partCost
		u.bytes -= room
		u.take(key.app, -int64(room), 0)
		delete(u.parts, key)
	}
}

// sweepEvery is the time between two checks of uploads.
const sweepEvery = time.Minute

// due reports whether it is time to look through the uploads.
func (u *uploads) due(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !now.Before(u.next)
}

// sweep drops abandoned uploads and those of deleted applications, and releases expired ones.
func (u *uploads) sweep(ctx context.Context, now time.Time, gone func(app string) bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = now.Add(sweepEvery)
	for key, p := range u.parts {
		if !now.Before(p.over) || gone(key.app) {
			u.drop(key)
		}
	}
	for key, until := range u.complete {
		if now.Before(until) && !gone(key.app) {
			continue
		}
		if err := u.o.Pinner.Unpin(ctx, key.hash); err != nil {
			return err
		}
		delete(u.complete, key)
		u.take(key.app, 0, -1)
	}
	return nil
}
