package account

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
)

// byEdge is the key and the endpoint under which usage counts the calls of edges, because an edge reports only their number.
const byEdge = "edge"

// CountEdgeCalls counts the calls that an edge answered for an application as calls of the account. count is the number of all calls that
// the edge ever answered, so repeating a report is harmless. If the account has calls left, over is zero. Otherwise over is the start of
// the next month. An edge answers until it receives over, so edges may exceed the limit of an account by their calls between two reports.
//
// A count falls only if an operator has restored the folder of an edge. The next report then counts from the lower count.
func (r *Registry) CountEdgeCalls(account, app, edge string, count uint64) (over time.Time, err error) {
	now := r.o.Now()
	var added uint64
	var left bool
	err = r.meters.with(account, now, func(m *meter) (err error) {
		added, left, err = m.report(reportKey(app, edge), count)
		return err
	})
	if added > 0 {
		r.usage.count(&api.CountedCall{App: app, By: byEdge, Route: byEdge}, int64(added), now)
	}
	if errors.Is(err, auth.ErrQuota) { // the account does not exist any longer
		return nextMonth(now), nil
	}
	if err == nil && !left {
		over = nextMonth(now)
	}
	return over, err
}

// report adds the calls since the last report, and returns their number and whether the account has calls left. The caller holds the lock
// of the meter, which is up to date.
func (m *meter) report(key []byte, count uint64) (added uint64, left bool, err error) {
	last, err := readReport(m.store, key)
	if err != nil {
		return 0, false, err
	}
	used, limit := m.counter()
	if count != last {
		before := m.quota
		added = max(count, last) - last
		*used += added
		var b kv.Batch
		b.Put(key, binary.BigEndian.AppendUint64(nil, count))
		wait, err := m.commit(&b, before)
		if err == nil {
			err = wait()
		}
		if err != nil {
			m.known = false
			return 0, false, err
		}
	}
	return added, limit == 0 || *used < uint64(limit), nil
}

// leaseBytes is the length of a lease of calls. Earlier programs stored leases under the keys of counts.
const leaseBytes = 44

// readReport returns the last count that an edge reported, or 0 if it has reported none.
func readReport(store kv.Reader, key []byte) (uint64, error) {
	b, err := kv.Find(store, key)
	switch {
	case err != nil || b == nil || len(b) == leaseBytes:
		return 0, err
	case len(b) != 8:
		return 0, fmt.Errorf("%w: %d bytes for the calls of an edge", kv.ErrCorrupt, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}
