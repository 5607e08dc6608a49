package account

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
)

// Leased is a share of an account's calls that somebody else answers without asking.
//
//	counted as used:  used ─────────┬── calls of the lease ──┐
//	                                │ spent │ not yet        │ …………… limit
//
// All of its calls are counted as used when they are leased, so the limit holds whatever becomes of the
// holder. What it did not spend is the account's again when it returns the lease, and is lost when it does not.
// What it says that it has spent is counted for the pages when it says so, as calls of an edge.
type Leased struct {
	Number uint64    // of the lease; 0: the account may make any number of calls, and nothing is leased
	Calls  uint64    // in all, those that are spent among them
	Until  time.Time // nothing of it may be spent from then on; zero: it has no end
}

// Shares of a lease.
const (
	shareOfLease = 16   // of the calls left, one in so many is leased to one holder
	mostLeased   = 1000 // calls that a holder has and has not spent
)

// share is how many calls a holder is to have of an account that has so many left.
func share(left uint64) uint64 { return min(max(left/shareOfLease, 1), mostLeased) }

// lease is what is kept of a holder's, for an application.
type lease struct {
	number, calls, spent uint64
	period               uint32 // months since year 0; 0: of the calls before the address was verified
	account              [16]byte
}

const leaseBytes = 3*8 + 4 + 16

func (l *lease) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, l.number)
	b = binary.BigEndian.AppendUint64(b, l.calls)
	b = binary.BigEndian.AppendUint64(b, l.spent)
	b = binary.BigEndian.AppendUint32(b, l.period)
	return append(b, l.account[:]...)
}

func readLease(store kv.Reader, key []byte) (l lease, err error) {
	b, err := store.Get(key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return l, nil
	case err != nil:
		return l, err
	case len(b) != leaseBytes:
		return l, fmt.Errorf("%w: %d bytes for a lease", kv.ErrCorrupt, len(b))
	}
	l = lease{number: binary.BigEndian.Uint64(b), calls: binary.BigEndian.Uint64(b[8:]), spent: binary.BigEndian.Uint64(b[16:]), period: binary.BigEndian.Uint32(b[24:])}
	copy(l.account[:], b[28:])
	return l, nil
}

// Lease renews the lease of calls that a holder has for an application of an account, which has spent so many of it,
// or begins one for a holder without, or with one that is over: its number is another then, and what is left
// of the one before is lost. The same may be asked again: nothing is leased twice. The error is auth.ErrQuota
// for an account that is no more.
func (r *Registry) Lease(account, app, holder string, number, spent uint64) (Leased, error) {
	return r.meters.lease(account, app, holder, number, spent, (*meter).extend)
}

// Return ends a lease: what was not spent of it is the account's again. One that is over is no error.
func (r *Registry) Return(account, app, holder string, number, spent uint64) error {
	_, err := r.meters.lease(account, app, holder, number, spent, (*meter).takeBack)
	return err
}

// leasing changes a lease; ours: the holder speaks of the very one that is kept.
type leasing func(m *meter, l *lease, ours bool, number, spent uint64) Leased

// byEdge is whose calls, and of what, those are that an edge has answered: it tells no more of them than how many.
const byEdge = "edge"

func (ms *meters) lease(account, app, holder string, number, spent uint64, do leasing) (out Leased, err error) {
	key, now := leaseKey(app, holder), ms.r.o.Now()
	for {
		m := ms.of(account)
		m.busy.Store(true)
		var answered uint64
		out, answered, err = m.lease(key, number, spent, now, do)
		if answered > 0 {
			ms.r.usage.count(&api.Spent{App: app, By: byEdge, Route: byEdge}, answered, now)
		}
		if !errors.Is(err, errGone) {
			return out, err
		}
	}
}

// lease changes a lease, and returns how many calls more than the last time its holder has answered.
func (m *meter) lease(key []byte, number, spent uint64, now time.Time, do leasing) (out Leased, answered uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(now); err != nil {
		return Leased{}, 0, err
	}
	l, err := readLease(m.store, key)
	if err != nil {
		return Leased{}, 0, err
	}
	before, quota := l, m.quota
	known := number != 0 && l.number == number && string(l.account[:]) == string(bytesOf(m.id)) && spent >= l.spent && spent <= l.calls
	out = do(m, &l, known && l.period == m.period(), number, spent)
	if l == before {
		return out, 0, nil
	}
	if known {
		answered = spent - before.spent
	}
	var b kv.Batch
	b.Put(key, l.encode())
	b.Put(quotaKey(m.id), m.quota.encode())
	wait, err := m.store.Commit(&b)
	if err != nil {
		m.quota = quota
		return Leased{}, 0, err
	}
	return out, answered, wait()
}

// period is what the account's calls are counted in now.
func (m *meter) period() uint32 {
	if m.verified {
		return m.quota.month
	}
	return 0
}

// extend has a lease have the share that it should have, or begins another.
func (m *meter) extend(l *lease, ours bool, number, spent uint64) Leased {
	used, limit := m.counter()
	if limit == 0 {
		return Leased{}
	}
	if !ours {
		*l = lease{number: max(l.number, number) + 1, period: m.period(), account: [16]byte(bytesOf(m.id))}
		spent = 0
	}
	l.spent = spent
	room := uint64(max(limit-int64(*used), 0))
	held := l.calls - l.spent
	if want := share(room + held); 2*held < want {
		n := min(want-held, room)
		*used += n
		l.calls += n
	}
	out := Leased{Number: l.number, Calls: l.calls}
	if l.period != 0 {
		out.Until = time.Date(int(l.period/12), time.Month(l.period%12)+2, 1, 0, 0, 0, 0, time.UTC)
	}
	return out
}

// takeBack ends a lease.
func (m *meter) takeBack(l *lease, ours bool, _, spent uint64) Leased {
	if ours {
		used, _ := m.counter()
		*used -= min(l.calls-spent, *used)
		l.calls, l.spent = spent, spent
	}
	return Leased{}
}
