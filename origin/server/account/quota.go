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

// TrialCalls is the total number of calls that an account may make before it verifies its email address.
const TrialCalls = 100

const (
	maxReserved = 1024 // maximum number of calls stored as used at once
	shareOfLeft = 64   // at once at most 1/shareOfLeft of the calls left are stored as used
	maxMeters   = 4096 // maximum number of meters in memory, without meters in use
)

// quota holds an account's counters. Stored, they take 28 bytes in the order of the fields. Older records lack predicted.
type quota struct {
	trial uint64 // calls made before the email address was verified
	month uint32 // months since year 0
	used  uint64 // calls of that month, including reserved ones

	// predicted is the time at which the bucket of predicted pictures is empty, in ns since 1970. The bucket drains at a constant rate: the
	// account's limit in bytes during the lifetime of a predicted picture.
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

// Spend implements [api.Calls]. For an account with unlimited calls it writes nothing. If the registry follows, it returns kv.ErrFollows.
func (r *Registry) Spend(_ context.Context, c api.CountedCall) (left int64, err error) {
	now := r.o.Now()
	left = -1
	if r.follows.Load() {
		return 0, kv.ErrFollows
	}
	if c.Account != "" {
		if left, err = r.meters.spend(c.Account, now); err != nil {
			return 0, err
		}
	}
	r.usage.count(&c, 1, now)
	return left, nil
}

// SpendSome counts up to n calls like [Registry.Spend], and returns the number that it counted. If none are left, it returns auth.ErrQuota.
// For n = 0 it only checks that. If n is negative, it returns -n calls to the account.
func (r *Registry) SpendSome(c api.CountedCall, n int64) (spent int64, err error) {
	now := r.o.Now()
	switch {
	case r.follows.Load():
		err = kv.ErrFollows
	case c.Account == "":
		spent = n
	case n <= 0:
		if err = r.meters.with(c.Account, now, func(m *meter) error { return m.giveBack(-n, now) }); err == nil {
			spent = n
		}
	default:
		for spent < n && err == nil {
			if _, err = r.meters.spend(c.Account, now); err == nil {
				spent++
			}
		}
		if spent > 0 && errors.Is(err, auth.ErrQuota) {
			err = nil
		}
	}
	if spent != 0 {
		r.usage.count(&c, spent, now)
	}
	return spent, err
}

// giveBack returns n calls that were counted. For n = 0 it checks that calls are left. The caller holds the lock of the meter, which is up to
// date.
func (m *meter) giveBack(n int64, now time.Time) error {
	if n == 0 {
		if left, limit := m.allowance(); limit >= 0 && left == 0 {
			return m.over(now)
		}
		return nil
	}
	used, limit := m.counter()
	if limit == 0 {
		return nil
	}
	before := m.quota
	made := *used
	if m.verified { // the block belongs to the plan's counter, and its calls were not made
		made -= uint64(m.block)
	}
	*used -= min(made, uint64(n))
	_, err := m.commit(&kv.Batch{}, before)
	return err
}

// meters holds the meters of the accounts that make calls.
type meters struct {
	r *Registry

	mu      sync.Mutex
	byID    map[string]*meter
	evicted <-chan struct{} // closed when the newest eviction is durable; nil: no eviction

	evicting sync.Mutex
}

// meter counts the calls of one account.
//
//	stored:   used ──────────────┐
//	          0 ……………… handed out │ block ▏ …………… limit
//
// The block is stored as used. The meter hands out its calls from memory.
type meter struct {
	store kv.Store
	plan  Plan
	id    string
	reads bool            // made while the registry followed; commit returns kv.ErrFollows
	free  atomic.Bool     // the account has unlimited calls; the other fields do not matter
	busy  atomic.Bool     // used since the last call of rest
	after <-chan struct{} // closed when the store shows the calls that earlier meters returned; nil: no earlier meter

	mu       sync.Mutex
	known    bool // the following fields match the store
	closed   bool // another meter may count for the account
	verified bool
	limit    int64 // a month; 0: unlimited
	quota    quota
	block    int64 // calls in quota.used that have not been made yet

	wait func() error // waits until the store shows quota; it may be called several times; nil: no Commit yet
}

// of returns the meter of an account. It creates one if needed. While the registry follows, each caller gets its own meter, which reads the
// present records and never writes.
func (ms *meters) of(id string) *meter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.r.follows.Load() {
		return &meter{store: ms.r.o.Store, plan: ms.r.o.Plan, id: id, reads: true}
	}
	m := ms.byID[id]
	if m == nil {
		m = &meter{store: ms.r.o.Store, plan: ms.r.o.Plan, id: id, after: ms.evicted}
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
		if m.reads {
			return 0, kv.ErrFollows
		}
		left, err := m.spend(now)
		if !errors.Is(err, errMeterClosed) {
			return left, err
		}
	}
}

// errMeterClosed is returned by a meter that was evicted.
var errMeterClosed = errors.New("the meter was put away")

// spend counts a call. It holds the lock while it reserves more calls, because other callers would find none left.
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
		left := max(limit-int64(*used)+m.block, 0) // edges may report more calls than were left
		m.mu.Unlock()
		return left, nil
	}
	room := limit - int64(*used)
	if room <= 0 {
		m.mu.Unlock()
		return 0, m.over(now)
	}
	n := min(max(room/shareOfLeft, 1), maxReserved)
	wait, err := m.add(used, n)
	if n == 1 || err != nil { // concurrent callers share a sync
		m.mu.Unlock()
		if err == nil {
			if err = wait(); err != nil {
				m.forget()
			}
		}
		return room - 1, err
	}
	defer m.mu.Unlock()
	if err := wait(); err != nil {
		m.known = false
		return 0, err
	}
	m.block += n - 1
	return room - 1, nil
}

// ready loads the meter if needed and begins a new month. If the clock goes back, the month stays.
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
	if m.after != nil {
		<-m.after
	}
	if m.wait != nil {
		_ = m.wait() // after a failed Commit, the store has no newer record, or takes no more calls
	}
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

// counter returns the counter for a new call and its limit. A limit of 0 means unlimited.
func (m *meter) counter() (used *uint64, limit int64) {
	if m.verified {
		return &m.quota.used, m.limit
	}
	return &m.quota.trial, TrialCalls
}

// add commits n more calls.
func (m *meter) add(used *uint64, n int64) (wait func() error, err error) {
	before := m.quota
	*used += uint64(n)
	return m.commit(&kv.Batch{}, before)
}

// commit writes the counters together with batch b. If that fails, it restores the counters to before. The caller need not wait. If it waits
// and that fails, it must make the meter load its record again.
func (m *meter) commit(b *kv.Batch, before quota) (wait func() error, err error) {
	if m.reads {
		m.quota = before
		return nil, kv.ErrFollows
	}
	b.Put(quotaKey(m.id), m.quota.encode())
	if wait, err = m.store.Commit(b); err != nil {
		m.quota = before
		return nil, err
	}
	m.wait = sync.OnceValue(wait)
	return m.wait, nil
}

// over returns the error for an account without calls left.
func (m *meter) over(now time.Time) error {
	if !m.verified {
		return fmt.Errorf("%w: verify your email address to make more than %d", auth.ErrQuota, TrialCalls)
	}
	return fmt.Errorf("%w: your plan allows %d a month; the next month begins on %s", auth.ErrQuota, m.limit, nextMonth(now).Format(time.DateOnly))
}

// nextMonth returns the start of the next month, in UTC.
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

// invalidate makes an account's meter load its record again.
func (ms *meters) invalidate(id string) {
	ms.mu.Lock()
	m := ms.byID[id]
	ms.mu.Unlock()
	if m != nil {
		m.forget()
	}
}

// forget makes the meter load its record again.
func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = false
	m.free.Store(false)
}

// drop closes all meters and writes nothing. Their blocks are lost.
func (ms *meters) drop() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.byID {
		m.mu.Lock()
		m.closed, m.block = true, 0
		m.free.Store(false)
		m.mu.Unlock()
	}
	ms.byID, ms.evicted = map[string]*meter{}, nil
}

// rest evicts meters that have not been used since the last call of rest, if more than maxMeters exist.
func (ms *meters) rest() error {
	ms.mu.Lock()
	crowded := len(ms.byID) > maxMeters
	ms.mu.Unlock()
	return ms.evict(func(m *meter) bool { return !m.busy.Swap(false) && crowded })
}

// close evicts all meters, which returns their reserved calls.
func (ms *meters) close() error { return ms.evict(func(*meter) bool { return true }) }

// evict removes the idle meters and returns their reserved calls to the store, in one batch. While it waits, other meters count. A new
// meter of an evicted account waits too, before it reads the store. If another machine writes now, the reserved calls are lost.
func (ms *meters) evict(idle func(*meter) bool) error {
	ms.evicting.Lock()
	defer ms.evicting.Unlock()
	done := make(chan struct{})
	defer close(done)
	waits, err := ms.remove(idle, done)
	err = unlessFollows(err)
	for _, wait := range waits {
		err = errors.Join(err, unlessFollows(wait()))
	}
	return err
}

// remove is evict without waiting. It returns the waits of all Commits that the evicted meters made.
func (ms *meters) remove(idle func(*meter) bool, done <-chan struct{}) (waits []func() error, err error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
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
		if m.wait != nil {
			waits = append(waits, m.wait)
		}
		m.closed = true
		m.free.Store(false)
		m.mu.Unlock()
		delete(ms.byID, m.id)
	}
	if b.Len() > 0 {
		var wait func() error
		if wait, err = ms.r.o.Store.Commit(&b); err == nil {
			waits = append(waits, wait)
		}
	}
	if len(waits) > 0 {
		ms.evicted = done
	}
	return waits, err
}
