package feed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/sync/wire"
)

// uploads contains the pictures and objects that replicas are uploading, by application. Bytes for two applications are sent twice, so that
// neither learns what the other has.
//
//	chunk, chunk, chunk ──▶ part ──hash──▶ complete: pinned in the blobs until an operation's record
//	                        in memory                claims it or UploadTTL is over
//
// No caller can read a part. Its memory is reserved at the start, so that the upload can be finished. If the process ends, the replica
// sends the lost bytes again.
type uploads struct {
	o *Options

	mu       sync.Mutex
	parts    map[uploadKey]*part
	complete map[uploadKey]time.Time // expiry of the pin
	bytes    uint64                  // reserved for all parts, in full size
	of       map[string]share        // by application
	next     time.Time               // time of the next sweep
}

// share is the part of the uploads that an application uses.
type share struct {
	bytes    uint64 // reserved for its parts
	complete uint64
}

// partCost is added to the bytes of each part, so that many tiny parts cannot get around the limit.
const partCost = 512

// uploadKey identifies an upload.
type uploadKey struct {
	app  string
	hash blob.Hash
}

// part is an incomplete upload.
type part struct {
	data []byte
	size uint64 // bytes of the complete blob
	over time.Time
}

// uploadChunk is a range of bytes of an upload.
type uploadChunk struct {
	uploadKey
	data     []byte
	at, size uint64
}

// state is the progress of an upload.
type state struct {
	size     uint64 // received bytes; of a complete upload, all of them
	complete bool
	new      bool // this chunk completed it
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

// add adds a chunk. Errors: errPlace for a chunk that does not follow the received bytes; *wire.Refusal over a limit, or if the complete
// bytes have another hash; and those of the blobs.
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

// errPlace refuses a chunk that does not start at the end of the part.
type errPlace struct{ begun uint64 }

func (e *errPlace) Error() string { return fmt.Sprintf("%d bytes were received", e.begun) }

// gather adds a chunk to its part, and returns all bytes once the upload is complete.
func (u *uploads) gather(x uploadChunk, now time.Time) (s state, data []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until, ok := u.complete[x.uploadKey]; ok && now.Before(until) {
		return state{size: x.size, complete: true}, nil, nil
	}
	if n := u.o.Limits.Uploads; u.of[x.app].complete >= n {
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
		return state{size: have}, nil, nil // repeated, because its answer was lost
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

// begin starts a part if there is room for all of it. The caller must hold mu.
func (u *uploads) begin(x uploadChunk) (*part, error) {
	room, limit := x.size+partCost, u.o.Limits.UploadBytes
	if u.bytes+room > limit || u.of[x.app].bytes+room > max(limit/4, u.o.Limits.BlobSize+partCost) {
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

// take changes an application's share. The caller must hold mu.
func (u *uploads) take(app string, bytes, complete int64) {
	s := u.of[app]
	s.bytes += uint64(bytes)
	s.complete += uint64(complete)
	if s == (share{}) {
		delete(u.of, app)
		return
	}
	if u.of == nil {
		u.of = map[string]share{}
	}
	u.of[app] = s
}

// drop deletes a part. The caller must hold mu.
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

// due reports whether it is time for a sweep.
func (u *uploads) due(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !now.Before(u.next)
}

// sweep drops abandoned uploads and those of deleted applications, and releases expired ones.
func (u *uploads) sweep(ctx context.Context, now time.Time, isDeleted func(app string) bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = now.Add(sweepEvery)
	for key, p := range u.parts {
		if !now.Before(p.over) || isDeleted(key.app) {
			u.drop(key)
		}
	}
	for key, until := range u.complete {
		if now.Before(until) && !isDeleted(key.app) {
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
