package sim

import (
	"slices"

	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
)

// etcd is the model of the two keys that a cluster has in etcd.
type etcd struct {
	revision  int64
	claim     int64 // revision of the last claim
	records   int64
	events    []channel.Event
	compacted int64 // events up to this revision are lost for watches
}

// do runs a transaction. It reports whether its guards held. A negative Term or Version omits that guard, as a transaction of etcd without If
// does.
func (e *etcd) do(t channel.Txn) bool {
	if t.Term >= 0 && t.Term != e.claim || t.Key == channel.Log && t.Version >= 0 && t.Version != e.records {
		return false
	}
	e.revision++
	event := channel.Event{Key: t.Key, Revision: e.revision, Value: t.Value}
	if t.Key == channel.Primary {
		e.claim = e.revision
	} else {
		e.records++
	}
	event.Version = e.records
	e.events = append(e.events, event)
	return true
}

// after returns the events after a revision. ok is false if a compaction removed some.
func (e *etcd) after(revision int64) (events []channel.Event, ok bool) {
	if revision < e.compacted {
		return nil, false
	}
	i, _ := slices.BinarySearchFunc(e.events, revision, func(x channel.Event, r int64) int {
		if x.Revision <= r {
			return -1
		}
		return 1
	})
	return e.events[i:], true
}

// compact removes the events up to a revision.
func (e *etcd) compact(revision int64) {
	if e.compacted = max(e.compacted, revision); e.compacted > e.revision {
		e.compacted = e.revision
	}
}
