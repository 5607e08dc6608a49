package account

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
)

const (
	deviceEvery = 5 * time.Minute     // time between two writes of a device's contact
	deviceLife  = 90 * 24 * time.Hour // time for which pages and folders are remembered after their last contact
	maxDevices  = 100                 // maximum number of an application's pages and folders; a new one replaces the one with the oldest contact
)

// devices are the last contacts of the edges, pages and folders of applications. A contact stays in memory and is written after deviceEvery
// at most, so a crash loses the last minutes.
type devices struct {
	store   kv.Store
	follows *atomic.Bool

	mu     sync.Mutex // held until a write is durable
	recent map[deviceAt]*contact
}

// deviceAt names a device of an application.
type deviceAt struct{ app, id string }

// contact is the state of a device since its last contact.
type contact struct {
	api.Device
	written time.Time // time of the contact in the store; zero: none
}

// key returns the key of a device.
func (at deviceAt) key() []byte { return key(tableDevice, bytesOf(at.app), bytesOf(at.id)) }

// NoteContact remembers the contact of a device of an application. An empty name, position 0 and no time of keys keep the earlier values.
// Errors: those of the store. If the registry follows, NoteContact does nothing.
func (r *Registry) NoteContact(app string, d api.Device) error {
	s := &r.devices
	s.mu.Lock()
	defer s.mu.Unlock()
	at := deviceAt{app, d.ID}
	if s.follows.Load() || !isID(app) || !isID(d.ID) {
		return nil
	}
	c := s.recent[at]
	if c == nil {
		all, err := s.list(app)
		if err != nil {
			return err
		}
		c = &contact{}
		if i := slices.IndexFunc(all, func(x api.Device) bool { return x.ID == d.ID }); i >= 0 {
			c.Device, c.written = all[i], all[i].Contact
		} else if err := s.makeRoom(app, all); err != nil {
			return err
		}
		s.recent[at] = c
	}
	c.ID, c.Kind, c.Contact = d.ID, d.Kind, d.Contact
	if d.Name != "" {
		c.Name = d.Name
	}
	if d.Position > 0 {
		c.Position = d.Position
	}
	if !d.KeysAsOf.IsZero() {
		c.KeysAsOf = d.KeysAsOf
	}
	return nil
}

// makeRoom deletes the page or folder with the oldest contact if there are too many. all are the devices of the application, newest contact
// first. The caller holds mu.
func (s *devices) makeRoom(app string, all []api.Device) error {
	others := slices.DeleteFunc(all, func(d api.Device) bool { return d.Kind == "edge" })
	if len(others) < maxDevices {
		return nil
	}
	at := deviceAt{app, others[len(others)-1].ID}
	delete(s.recent, at)
	var b kv.Batch
	b.Delete(at.key())
	return unlessFollows(kv.CommitAndWait(s.store, &b))
}

// Devices returns the edges, pages and folders that have contacted an application, the last contact first.
func (r *Registry) Devices(app string) ([]api.Device, error) {
	now := r.o.Now()
	r.devices.mu.Lock()
	defer r.devices.mu.Unlock()
	all, err := r.devices.list(app)
	return slices.DeleteFunc(all, func(d api.Device) bool { return d.Kind != "edge" && now.Sub(d.Contact) > deviceLife }), err
}

// list returns the devices of an application, the last contact first. The caller holds mu.
func (s *devices) list(app string) (all []api.Device, err error) {
	prefix := key(tableDevice, bytesOf(app))
	known := map[string]bool{}
	for at, c := range s.recent {
		if at.app == app {
			all, known[at.id] = append(all, c.Device), true
		}
	}
	for k, v := range kv.WithPrefix(s.store, prefix, &err) {
		if known[hex.EncodeToString(k[len(prefix):])] {
			continue
		}
		var d api.Device
		if err := json.Unmarshal(v, &d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b api.Device) int { return b.Contact.Compare(a.Contact) })
	return all, err
}

// flush writes the contacts whose stored ones are older than age, and forgets those that are as in the store.
func (s *devices) flush(age time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follows.Load() {
		return nil
	}
	var b kv.Batch
	var written []*contact
	for at, c := range s.recent {
		switch {
		case c.Contact.Equal(c.written):
			delete(s.recent, at)
		case c.Contact.Sub(c.written) >= age:
			data, err := json.Marshal(&c.Device)
			if err != nil {
				return err
			}
			b.Put(at.key(), data)
			written = append(written, c)
		}
	}
	if len(written) == 0 {
		return nil
	}
	if err := kv.CommitAndWait(s.store, &b); err != nil {
		return err
	}
	for _, c := range written {
		c.written = c.Contact
	}
	return nil
}

// drop forgets the contacts that were not written, all or those of an application.
func (s *devices) drop(app string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.recent {
		if app == "" || at.app == app {
			delete(s.recent, at)
		}
	}
}
