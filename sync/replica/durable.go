package replica

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
)

// syncInterval is the minimum time between two syncs of pulled entries. A crash can undo the entries of that time.
const syncInterval = time.Second

// durableCursor is the durable part of the pulled entries.
type durableCursor struct {
	cursor partition.Cursor // cursor at the last sync
	next   time.Duration    // earliest time of the next sync
}

// syncStore syncs the pulled entries, once the replica has caught up and when it loses its connection to the origin. Batches of a pull are not
// synced, since they can be pulled again. But a replica that starts offline could not pull them.
func (m *Machine) syncStore() error {
	away := !m.running || !m.online
	if m.origin.purged || !away && (!m.pull.caught || m.at < m.durable.next) {
		return nil
	}
	c := m.p.Cursor()
	if c == m.durable.cursor {
		return nil
	}
	err := kv.CommitAndWait(m.o.Store, &kv.Batch{})
	if errors.Is(err, kv.ErrFull) { // the replica can pull the entries again
		m.durable.next = m.at + longPause
		return nil
	}
	if err != nil {
		return err
	}
	m.durable = durableCursor{cursor: c, next: m.at + syncInterval}
	return nil
}
