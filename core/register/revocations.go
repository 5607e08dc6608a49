package register

import (
	"maps"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
)

// AppDeleted reports whether the application with an ID was deleted.
func (r *Register) AppDeleted(id string) (bool, error) { return r.Reader().AppDeleted(id) }

// KeysDeleted returns the times at which keys of an application were deleted or replaced. The map's key is the signature of operations
// that were made with the API key. Errors: ErrNotOrigin and the store's.
func (r *Register) KeysDeleted(app string) (map[string]time.Time, error) {
	o, unlock, err := r.lockRevocations()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return maps.Clone(o.at[app]), nil
}

// lockRevocations brings the cache up to the end of the control log and returns it locked. The caller must call unlock.
func (r *Register) lockRevocations() (o *revocations, unlock func(), err error) {
	if r.partition == nil {
		return nil, nil, ErrNotOrigin
	}
	o = &r.revocations
	o.mu.Lock()
	l := r.partition.Log()
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

// revocations caches the deleted keys and the revoked tokens of the control log, up to an entry.
type revocations struct {
	mu   sync.Mutex
	read uint64                          // entry that was read last
	of   map[auth.Hash]string            // application of each key that is not deleted
	at   map[string]map[string]time.Time // times at which keys were deleted, by application

	clients     map[string]string       // application of each client
	generations map[string][]generation // by application
}

// take reads the next entry of the control log.
func (o *revocations) take(e *log.Entry) {
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
		o.at[app][auth.ByKey(h)] = e.Op.At.Time()
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
