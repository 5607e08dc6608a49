package account

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
)

// Storage limits the data of all applications of an account. A zero field means no limit.
type Storage struct {
	Inputs int64
	Bytes  int64 // size of pictures and records
}

// StorageLimits implements [api.Storage]. An account that no longer exists has no limits.
func (r *Registry) StorageLimits(id string) (api.StorageLimits, error) {
	o := &r.o.Storage
	if id == "" || o.Unverified == (Storage{}) && o.Verified == (Storage{}) {
		return api.StorageLimits{}, nil
	}
	var verified bool
	err := r.meters.with(id, r.o.Now(), func(m *meter) error {
		verified = m.verified
		return nil
	})
	switch {
	case errors.Is(err, auth.ErrQuota):
		return api.StorageLimits{}, nil
	case err != nil:
		return api.StorageLimits{}, err
	case verified:
		return api.StorageLimits{Inputs: o.Verified.Inputs, Bytes: o.Verified.Bytes, Advice: "delete inputs to make room"}, nil
	}
	return api.StorageLimits{Inputs: o.Unverified.Inputs, Bytes: o.Unverified.Bytes, Advice: "verify its email address to store more, or delete inputs"}, nil
}

// CountPicture implements [api.Storage]. The count survives a restart. A power failure may lose the counts of calls in progress, since no
// call waits for its count.
func (r *Registry) CountPicture(id string, bytes int64, life time.Duration) (fits bool, err error) {
	limits, err := r.StorageLimits(id)
	if err != nil || limits.Bytes == 0 {
		return err == nil, err
	}
	now := r.o.Now()
	err = r.meters.with(id, now, func(m *meter) error {
		empty := max(m.quota.predicted, now.UnixNano())
		empty = min(empty, now.Add(life).UnixNano()) // if the clock went back
		empty += int64(float64(bytes) / float64(limits.Bytes) * float64(life))
		if fits = empty <= now.Add(life).UnixNano(); !fits {
			return nil
		}
		before := m.quota
		m.quota.predicted = empty
		_, err := m.commit(&kv.Batch{}, before)
		return err
	})
	return fits, err
}

// with calls do with the account's meter, which is locked and up to date.
func (ms *meters) with(id string, now time.Time, do func(*meter) error) error {
	for {
		m := ms.of(id)
		m.busy.Store(true)
		m.mu.Lock()
		err := m.ready(now)
		if err == nil {
			err = do(m)
		}
		m.mu.Unlock()
		if !errors.Is(err, errMeterClosed) {
			return err
		}
	}
}
