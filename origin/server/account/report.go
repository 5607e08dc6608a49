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

// byEdge is the key and the endpoint under which usage counts the calls of edges: an edge reports only how many there were.
const byEdge = "edge"

// Report adds the calls of an application that an edge answered to the calls of the account. count counts all calls that the edge ever
// answered, so the same report may come again. The account has no calls left until over; if over is zero, it has some. An edge answers
// until it receives over, so edges may pass the limit of an account by their calls between two reports.
//
// A count falls only when the folder of an edge was restored. The next report then counts from the lower one.
func (r *Registry) Report(account, app, edge string, count uint64) (over time.Time, err error) {
	now := r.o.Now()
	var added uint64
	var left bool
	err = r.meters.with(account, now, func(m *meter) (err error) {
		added, left, err = m.report(reportKey(app, edge), count)
		return err
	})
	if added > 0 {
		r.usage.count(&api.CountedCall{App: app, By: byEdge, Route: byEdge}, added, now)
	}
	if errors.Is(err, auth.ErrQuota) { // the account was deleted
		return nextMonth(now), nil
	}
	if err == nil && !left {
		over = nextMonth(now)
	}
	return over, err
}

// report adds what is new in a count, and returns how much that is and whether the account has calls left. The meter is up to date and
// locked.
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
			return 0, false, err
		}
	}
	return added, limit == 0 || *used < uint64(limit), nil
}

// leaseBytes is the length of a lease of calls. Earlier programs kept leases under the keys of counts.
const leaseBytes = 44

// readReport reads the last count of an edge; 0: it has reported none.
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
