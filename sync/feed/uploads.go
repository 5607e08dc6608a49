package feed

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/wire"
)

// uploads contains the pictures and objects that replicas are uploading, by application. Bytes for two applications are sent twice, so that
// neither learns what the other has.
//
//	chunk, chunk, chunk ──▶ part ──hash──▶ complete: pinned in the blobs until an operation's record
//	                        in memory                claims it or UploadTTL is over
//
// No caller can read a part. A part takes memory for its received bytes, in the share of its account. If there is no place for more, idle
// parts are deleted, see idlest. If that happens or the process ends, the replica sends the lost bytes again.
type uploads struct {
	o      *Options
	places *shares.Shares // bytes of parts, by account

	mu       sync.Mutex
	parts    map[uploadKey]*part
	complete map[uploadKey]pin
	of       map[string]*accountUploads
}

// accountUploads are the uploads of an account.
type accountUploads struct {
	parts    list.List // of uploadKey; the part that got no bytes for the longest time is the first
	complete uint64
}

// pin is a complete upload that no operation names yet.
type pin struct {
	until   time.Time
	account string
}

const (
	partCost = 512              // added to the bytes of each part, so that many tiny parts cannot get around the limit
	idlePart = 10 * time.Second // minimum time without new bytes after which a part can be deleted to make room
)

func newUploads(o *Options) uploads {
	return uploads{
		o: o, places: shares.New(int64(o.Limits.UploadBytes), int64(o.Limits.BlobSize+partCost)),
		parts: map[uploadKey]*part{}, complete: map[uploadKey]pin{}, of: map[string]*accountUploads{},
	}
}

// uploadKey identifies an upload.
type uploadKey struct {
	app  string
	hash blob.Hash
}

// part is an incomplete upload.
type part struct {
	data    []byte
	size    uint64 // bytes of the complete blob
	used    time.Time
	account string
	place   *list.Element // in the parts of its account
}

// uploadChunk is a range of bytes of an upload.
type uploadChunk struct {
	uploadKey
	account  string
	data     []byte
	at, size uint64
}

// has reports whether an upload is complete.
func (u *uploads) has(app string, h blob.Hash, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	x, ok := u.complete[uploadKey{app, h}]
	return ok && now.Before(x.until)
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

// errPlace refuses a chunk that does not start at the end of the part.
var errPlace = errors.New("the chunk does not follow the received bytes")

// add adds a chunk. It returns the number of received bytes, which are all once the upload is complete. Errors: errPlace; *wire.Refusal over a
// limit, or if the complete bytes have another hash; and those of the blobs.
func (u *uploads) add(ctx context.Context, x uploadChunk, now time.Time) (received uint64, err error) {
	received, data, err := u.gather(x, now)
	if err != nil || data == nil {
		return received, err
	}
	if blob.Sum(data) != x.hash {
		return 0, &wire.Refusal{Code: wire.RefusedContent, Detail: "the bytes do not match this hash; send them again from the start"}
	}
	if _, err := u.o.Pinner.Pin(ctx, data); err != nil {
		return 0, err
	}
	u.mu.Lock()
	old, twice := u.complete[x.uploadKey]
	if !twice {
		u.account(x.account).complete++
	}
	u.complete[x.uploadKey] = pin{now.Add(u.o.Limits.UploadTTL), cmp.Or(old.account, x.account)}
	u.mu.Unlock()
	if twice {
		err = u.o.Pinner.Unpin(ctx, x.hash)
	}
	return received, err
}

// gather adds a chunk to its part, and returns all bytes if the chunk completes the upload.
func (u *uploads) gather(x uploadChunk, now time.Time) (received uint64, data []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c, ok := u.complete[x.uploadKey]; ok && now.Before(c.until) {
		return x.size, nil, nil
	}
	if n, a := u.o.Limits.Uploads, u.of[x.account]; a != nil && a.complete >= n {
		return 0, nil, &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many uploads without an operation that refers to them: at most %d", n),
			Limit: "Uploads", Value: n, WaitMillis: uint64(time.Minute.Milliseconds()),
		}
	}
	p := u.parts[x.uploadKey]
	if p == nil || p.size != x.size && x.at == 0 {
		u.drop(x.uploadKey)
		p = &part{size: x.size, account: x.account}
	}
	have, end := uint64(len(p.data)), x.at+uint64(len(x.data))
	switch {
	case have > 0 && p.size == x.size && end <= have:
		return have, nil, nil // repeated, because its answer was lost
	case p.size != x.size, x.at != have:
		return have, nil, errPlace
	case end == x.size && have == 0:
		return end, x.data, nil
	case end == x.size:
		u.drop(x.uploadKey)
		return end, append(p.data, x.data...), nil
	}
	need := int64(len(x.data))
	if have == 0 {
		need += partCost
	}
	x.account = p.account
	if err := u.makeRoom(&x, need, now); err != nil {
		return 0, nil, err
	}
	if have == 0 {
		p.place = u.account(p.account).parts.PushBack(x.uploadKey)
		u.parts[x.uploadKey] = p
	}
	u.of[p.account].parts.MoveToBack(p.place)
	p.data, p.used = append(p.data, x.data...), now
	return end, nil, nil
}

// account returns the uploads of an account. The caller must hold mu.
func (u *uploads) account(id string) *accountUploads {
	a := u.of[id]
	if a == nil {
		a = &accountUploads{}
		u.of[id] = a
	}
	return a
}

// makeRoom takes n bytes for a chunk. It deletes idle parts if necessary. The caller must hold mu.
func (u *uploads) makeRoom(x *uploadChunk, n int64, now time.Time) error {
	for !u.places.TryAcquire(x.account, n) {
		key, ok := u.idlest(x, n, now)
		if !ok {
			return busy("too many uploads at once")
		}
		u.drop(key)
	}
	return nil
}

// idlest returns the part that has to make room for n bytes of a chunk: the one that got no bytes for the longest time, at least idlePart,
// of the account with the most bytes. If n bytes are free, the account of the chunk uses more than its share. Then it is a part of that
// account. The caller must hold mu.
func (u *uploads) idlest(x *uploadChunk, n int64, now time.Time) (key uploadKey, ok bool) {
	account := x.account
	if n > u.places.Free() {
		for id := range u.of {
			if u.places.InUse(id) > u.places.InUse(account) {
				account = id
			}
		}
	}
	a := u.of[account]
	if a == nil {
		return key, false
	}
	first := a.parts.Front()
	if first != nil && first.Value == x.uploadKey {
		first = first.Next()
	}
	if first == nil {
		return key, false
	}
	key = first.Value.(uploadKey)
	return key, now.Sub(u.parts[key].used).Abs() >= idlePart
}

// drop deletes a part. The caller must hold mu.
func (u *uploads) drop(key uploadKey) {
	p := u.parts[key]
	if p == nil {
		return
	}
	u.places.Release(p.account, int64(len(p.data))+partCost)
	u.of[p.account].parts.Remove(p.place)
	delete(u.parts, key)
	u.forget(p.account)
}

// forget deletes an account without uploads. The caller must hold mu.
func (u *uploads) forget(id string) {
	if a := u.of[id]; a != nil && a.complete == 0 && a.parts.Len() == 0 {
		delete(u.of, id)
	}
}

// sweep drops abandoned uploads and those of deleted applications, and releases expired ones.
func (u *uploads) sweep(ctx context.Context, now time.Time, isDeleted func(app string) bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, p := range u.parts {
		if now.Sub(p.used) >= u.o.Limits.PartialUploadTTL || isDeleted(key.app) {
			u.drop(key)
		}
	}
	for key, c := range u.complete {
		if now.Before(c.until) && !isDeleted(key.app) {
			continue
		}
		if err := u.o.Pinner.Unpin(ctx, key.hash); err != nil {
			return err
		}
		delete(u.complete, key)
		u.of[c.account].complete--
		u.forget(c.account)
	}
	return nil
}
