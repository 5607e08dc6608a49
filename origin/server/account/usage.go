package account

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
)

const (
	usageDays = 400     // number of days for which usage is stored
	maxCells  = 1 << 16 // maximum number of counters between two flushes
)

// usage counts calls for display. It counts in memory and writes every few seconds. A crash loses counts that were not written. No account
// loses calls by that, because quotas are counted separately.
type usage struct {
	store   kv.Store
	follows *atomic.Bool // the registry follows, so count drops calls and flush writes none

	mu     sync.Mutex
	cells  map[cellKey]*cell
	pruned uint32 // day of the last removal of old days

	flushing sync.Mutex // held while stored counts are read and written again, until the write is durable
}

// cellKey is the key of a counter.
type cellKey struct {
	app, by, route string
	day            uint32 // since 1970
}

// cell is a counter.
type cell struct{ calls, last int64 } // last in Unix seconds

const secondsPerDay = 24 * 60 * 60

func dayOf(t time.Time) uint32 { return uint32(t.Unix() / secondsPerDay) }

// count adds calls to a counter, or subtracts them, unless the registry follows. If memory has too many counters, a new combination is counted
// for its application only.
func (u *usage) count(c *api.CountedCall, calls int64, now time.Time) {
	k := cellKey{c.App, c.By, c.Route, dayOf(now)}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.follows.Load() {
		return
	}
	if len(u.cells) >= maxCells && u.cells[k] == nil {
		k.by, k.route = "", ""
	}
	u.add(k, cell{calls, now.Unix()})
}

// add adds to a counter, and creates it if it is missing. The caller holds mu.
func (u *usage) add(k cellKey, more cell) {
	c := u.cells[k]
	if c == nil {
		c = &cell{}
		u.cells[cellKey{strings.Clone(k.app), strings.Clone(k.by), strings.Clone(k.route), k.day}] = c
	}
	c.calls += more.calls
	c.last = max(c.last, more.last)
}

// flush adds the counts to the store. Counts that it cannot write stay in memory.
func (u *usage) flush() error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	return u.flushHeld()
}

// flushHeld is flush for a caller that holds flushing.
func (u *usage) flushHeld() error {
	u.mu.Lock()
	cells := u.cells
	u.cells = map[cellKey]*cell{}
	u.mu.Unlock()
	if len(cells) == 0 {
		return nil
	}
	err := u.write(cells)
	if err != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		for k, c := range cells {
			u.add(k, *c)
		}
	}
	return err
}

func (u *usage) write(cells map[cellKey]*cell) error {
	tx := kv.NewOverlay(u.store)
	for k, c := range cells {
		app := bytesOf(k.app)
		row := append(append(dayKey(k.day, app), k.by...), 0)
		row = append(row, k.route...)
		n, err := number(tx, row, 8)
		if err != nil {
			return err
		}
		n[0] += uint64(c.calls)
		tx.Put(row, numbers(n))
		total := append(key(tableKey, app), k.by...)
		if n, err = number(tx, total, 16); err != nil {
			return err
		}
		n[0] += uint64(c.calls)
		n[1] = max(n[1], uint64(c.last))
		tx.Put(total, numbers(n))
	}
	return kv.CommitAndWait(u.store, tx.Batch())
}

// number returns the stored 8-byte numbers at key k, size bytes in total. It returns zeros if the key does not exist.
func number(r kv.Reader, k []byte, size int) ([]uint64, error) {
	n := make([]uint64, size/8)
	b, err := kv.Find(r, k)
	if err != nil || b == nil {
		return n, err
	}
	if len(b) != size {
		return nil, fmt.Errorf("%w: %d bytes of usage", kv.ErrCorrupt, len(b))
	}
	for i := range n {
		n[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return n, nil
}

func numbers(n []uint64) (b []byte) {
	for _, v := range n {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// prune removes days older than usageDays, once a day.
func (u *usage) prune(now time.Time) error {
	today := dayOf(now)
	u.mu.Lock()
	due := u.pruned != today && today > usageDays
	u.pruned = today
	u.mu.Unlock()
	if !due {
		return nil
	}
	u.flushing.Lock()
	defer u.flushing.Unlock()
	if u.follows.Load() {
		return nil
	}
	var b kv.Batch
	b.DeleteRange(dayKey(0, nil), dayKey(today-usageDays, nil))
	return kv.CommitAndWait(u.store, &b)
}

// Day holds the number of calls of one day.
type Day struct {
	Date  string `json:"date"` // 2006-01-02, UTC
	Calls int64  `json:"calls"`
}

// Count holds the number of calls of one key or endpoint.
type Count struct {
	Name  string
	Calls int64
}

// Usage holds the calls of an application over some days.
type Usage struct {
	Total     int64
	Days      []Day   // every day, oldest first
	Keys      []Count // by start of the key's hash, "token", "session" or "edge"; most calls first
	Endpoints []Count // by method and path of the route table, or "edge"; most calls first
}

// Usage returns the calls of an application in the last days, including today.
func (r *Registry) Usage(app string, days int) (Usage, error) {
	now := r.o.Now()
	if err := r.usage.flush(); err != nil {
		return Usage{}, err
	}
	var (
		out       Usage
		keys      = map[string]int64{}
		endpoints = map[string]int64{}
		today     = dayOf(now)
	)
	for d := range uint32(min(max(days, 1), usageDays)) {
		day := today - uint32(min(max(days, 1), usageDays)) + 1 + d
		calls, err := r.usage.day(day, app, keys, endpoints)
		if err != nil {
			return Usage{}, err
		}
		date := time.Unix(int64(day)*secondsPerDay, 0).UTC().Format(time.DateOnly)
		out.Days = append(out.Days, Day{date, calls})
		out.Total += calls
	}
	out.Keys, out.Endpoints = counts(keys), counts(endpoints)
	return out, nil
}

// day returns the calls of an application on one day, and adds them to keys and endpoints.
func (u *usage) day(day uint32, app string, keys, endpoints map[string]int64) (calls int64, err error) {
	prefix := dayKey(day, bytesOf(app))
	for k, v := range kv.WithPrefix(u.store, prefix, &err) {
		by, route, ok := strings.Cut(string(k[len(prefix):]), "\x00")
		if ok && len(v) == 8 {
			n := int64(binary.BigEndian.Uint64(v))
			calls += n
			keys[by] += n
			endpoints[route] += n
		}
	}
	return calls, err
}

func counts(m map[string]int64) []Count {
	all := []Count{}
	for name, n := range m {
		all = append(all, Count{name, n})
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name))
	})
	return all
}

// KeyUse is the usage of a key.
type KeyUse struct {
	Calls int64
	Last  time.Time
}

// KeyUses returns the usage of an application's keys, by the start of their hashes.
func (r *Registry) KeyUses(app string) (map[string]KeyUse, error) {
	if err := r.usage.flush(); err != nil {
		return nil, err
	}
	uses := map[string]KeyUse{}
	prefix := key(tableKey, bytesOf(app))
	var err error
	for k, v := range kv.WithPrefix(r.o.Store, prefix, &err) {
		if len(v) == 16 {
			last := time.Unix(int64(binary.BigEndian.Uint64(v[8:])), 0).UTC()
			uses[string(k[len(prefix):])] = KeyUse{int64(binary.BigEndian.Uint64(v)), last}
		}
	}
	return uses, err
}

// DropUsage deletes the counts and the contacts of devices of a deleted application, including the counts that edges reported.
func (r *Registry) DropUsage(app string) error {
	now := r.o.Now()
	r.usage.flushing.Lock()
	defer r.usage.flushing.Unlock()
	if r.follows.Load() {
		return kv.ErrFollows
	}
	if err := r.usage.flushHeld(); err != nil {
		return err
	}
	if !isID(app) {
		return ErrUnknown
	}
	id := bytesOf(app)
	r.devices.drop(app)
	var b kv.Batch
	for _, prefix := range [][]byte{key(tableKey, id), key(tableReport, id), key(tableDevice, id)} {
		kv.DeletePrefix(&b, prefix)
	}
	for day := dayOf(now) - usageDays; day <= dayOf(now); day++ {
		kv.DeletePrefix(&b, dayKey(day, id))
	}
	return kv.CommitAndWait(r.o.Store, &b)
}
