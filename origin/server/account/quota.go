package account

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
)

// TrialCalls is the number of calls that an account may ever make while its address is not verified.
const TrialCalls = 100

const (
	mostReserved = 1024 // calls made durable at once
	shareOfLeft  = 64   // of the calls left, one in so many is made durable at once
	mostMeters   = 4096 // in memory, but for those that are in use
)

// quota is an account's counters, as they are kept: 28 bytes, of the numbers in their order. Older records lack the last.
type quota struct {
	trial uint64 // calls while the address was not verified
	month uint32 // months since year 0
	used  uint64 // calls of that month, those reserved among them

	// predicted is the time at which the bucket of predicted pictures is empty, in ns since 1970. The bucket drains
	// steadily: by the account's limit of bytes in the life of such a picture.
	predicted int64
}

func (q quota) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, q.trial)
	b = binary.BigEndian.AppendUint32(b, q.month)
	b = binary.BigEndian.AppendUint64(b, q.used)
	return binary.BigEndian.AppendUint64(b, uint64(q.predicted))
}

func readQuota(store kv.Reader, id string) (q quota, err error) {
	b, err := kv.Find(store, quotaKey(id))
	switch {
	case err != nil || b == nil:
		return q, err
	case len(b) == 20:
		b = binary.BigEndian.AppendUint64(b[:20:20], 0)
	case len(b) != 28:
		return q, fmt.Errorf("%w: %d bytes for a quota", kv.ErrCorrupt, len(b))
	}
	q = quota{trial: binary.BigEndian.Uint64(b), month: binary.BigEndian.Uint32(b[8:]), used: binary.BigEndian.Uint64(b[12:])}
	q.predicted = int64(binary.BigEndian.Uint64(b[20:]))
	return q, nil
}

func monthOf(t time.Time) uint32 {
	t = t.UTC()
	return uint32(t.Year())*12 + uint32(t.Month()) - 1
}

// Spend implements [api.Calls]. An account that may make any number of calls costs no write.
func (r *Registry) Spend(_ context.Context, c api.CountedCall) (left int64, err error) {
	now := r.o.Now()
	left = -1
	if c.Account != "" {
		if left, err = r.meters.spend(c.Account, now); err != nil {
			return 0, err
		}
	}
	r.usage.count(&c, 1, now)
	return left, nil
}

// meters count the calls of the accounts that make some.
type meters struct {
	r *Registry

	mu   sync.Mutex
	byID map[string]*meter
}

// meter counts one account's calls.
//
//	stored:   used ──────────────┐
//	          0 ……………… handed out │ block ▏ …………… limit
//
// The block was made durable as used, and is handed out from memory.
type meter struct {
	store kv.Store
	plan  Plan
	id    string
	free  atomic.Bool // any number of calls; nothing else need be looked at
	busy  atomic.Bool // used since the last rest

	mu       sync.Mutex
	known    bool // what follows is as the store has it
	closed   bool // another meter may count for the account
	verified bool
	limit    int64 // a month; 0: any number
	quota    quota
	block    int64 // calls of quota.used that were not made yet
}

// of returns an account's meter.
func (ms *meters) of(id string) *meter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.byID[id]
	if m == nil {
		m = &meter{store: ms.r.o.Store, plan: ms.r.o.Plan, id: id}
		ms.byID[id] = m
	}
	return m
}

func (ms *meters) spend(id string, now time.Time) (left int64, err error) {
	for {
		m := ms.of(id)
		if !m.busy.Load() {
			m.busy.Store(true)
		}
		if m.free.Load() {
			return -1, nil
		}
		left, err := m.spend(now)
		if !errors.Is(err, errMeterClosed) {
			return left, err
		}
	}
}

// errMeterClosed is returned by a meter that no longer counts.
var errMeterClosed = errors.New("the meter was put away")

// spend counts a call. It holds the lock while it reserves more, since others would find nothing left.
func (m *meter) spend(now time.Time) (int64, error) {
	m.mu.Lock()
	if err := m.ready(now); err != nil {
		m.mu.Unlock()
		return 0, err
	}
	used, limit := m.counter()
	switch {
	case limit == 0:
		m.mu.Unlock()
		return -1, nil
	case m.block > 0 && m.verified:
		m.block--
		left := max(limit-int64(*used)+m.block, 0) // edges may have reported more than were left
		m.mu.Unlock()
		return left, nil
	}
	room := limit - int64(*used)
	if room <= 0 {
		m.mu.Unlock()
		return 0, m.over(now)
	}
	n := min(max(room/shareOfLeft, 1), mostReserved)
	wait, err := m.add(used, n)
	if n == 1 || err != nil { // racing callers share a sync
		m.mu.Unlock()
		if err == nil {
			err = wait()
		}
		return room - 1, err
	}
	defer m.mu.Unlock()
	if err := wait(); err != nil {
		return 0, err
	}
	m.block += n - 1
	return room - 1, nil
}

// ready brings the meter up to date: it is read, and a new month begins. The clock going back begins none.
func (m *meter) ready(now time.Time) error {
	if m.closed {
		return errMeterClosed
	}
	if !m.known {
		if err := m.load(); err != nil {
			return err
		}
	}
	if month := monthOf(now); m.verified && month > m.quota.month {
		m.quota.month, m.quota.used, m.block = month, 0, 0
	}
	return nil
}

func (m *meter) load() (err error) {
	rec, err := load(m.store, m.id)
	if errors.Is(err, ErrUnknown) {
		return fmt.Errorf("%w: the account was deleted", auth.ErrQuota)
	}
	if err != nil {
		return err
	}
	if m.quota, err = readQuota(m.store, m.id); err != nil {
		return err
	}
	m.verified, m.limit = rec.Verified, m.plan.Calls
	m.known = true
	m.free.Store(m.verified && m.limit == 0)
	return nil
}

// counter returns the counter of a call, and its limit; 0: unlimited.
func (m *meter) counter() (used *uint64, limit int64) {
	if m.verified {
		return &m.quota.used, m.limit
	}
	return &m.quota.trial, TrialCalls
}

// add writes n more calls.
func (m *meter) add(used *uint64, n int64) (wait func() error, err error) {
	before := m.quota
	*used += uint64(n)
	return m.commit(&kv.Batch{}, before)
}

// commit writes the counters together with a batch. If they cannot be written, they are what they were before.
func (m *meter) commit(b *kv.Batch, before quota) (wait func() error, err error) {
	b.Put(quotaKey(m.id), m.quota.encode())
	if wait, err = m.store.Commit(b); err != nil {
		m.quota = before
	}
	return wait, err
}

// over returns the error for an account without calls left.
func (m *meter) over(now time.Time) error {
	if !m.verified {
		return fmt.Errorf("%w: verify your email address to make more than %d", auth.ErrQuota, TrialCalls)
	}
	return fmt.Errorf("%w: your plan allows %d a month; the next month begins on %s", auth.ErrQuota, m.limit, nextMonth(now).Format(time.DateOnly))
}

// nextMonth returns the time when the next month begins, in UTC.
func nextMonth(now time.Time) time.Time {
	t := now.UTC()
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

func (m *meter) allowance() (left, limit int64) {
	used, limit := m.counter()
	if limit == 0 {
		return -1, -1
	}
	left = limit - int64(*used)
	if m.verified {
		left += m.block
	}
	return max(left, 0), limit
}

// invalidate has an account's meter read its record again.
func (ms *meters) invalidate(id string) {
	ms.mu.Lock()
	m := ms.byID[id]
	ms.mu.Unlock()
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = false
	m.free.Store(false)
}

// rest puts away meters that have not been used since the last rest, when there are many.
func (ms *meters) rest() error {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if len(ms.byID) <= mostMeters {
		for _, m := range ms.byID {
			m.busy.Store(false)
		}
		return nil
	}
	return ms.evict(func(m *meter) bool { return !m.busy.Swap(false) })
}

// close gives back what is reserved.
func (ms *meters) close() error {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.evict(func(*meter) bool { return true })
}

// evict gives back what meters have reserved, in one batch, and forgets them.
func (ms *meters) evict(idle func(*meter) bool) error {
	var b kv.Batch
	for _, m := range slices.Collect(maps.Values(ms.byID)) {
		if !idle(m) {
			continue
		}
		m.mu.Lock()
		if m.block > 0 {
			m.quota.used -= uint64(m.block)
			m.block = 0
			b.Put(quotaKey(m.id), m.quota.encode())
		}
		m.closed = true
		m.free.Store(false)
		m.mu.Unlock()
		delete(ms.byID, m.id)
	}
	if b.Len() == 0 {
		return nil
	}
	return ms.r.o.Store.Apply(&b)
}
