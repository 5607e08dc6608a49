package replica

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
)

// syncInterval is the minimum time between two syncs of pulled entries. A crash may undo so much of them while the origin accepts writes.
const syncInterval = time.Second

// durableCursor is the durable part of the pulled entries.
type durableCursor struct {
	cursor partition.Cursor // the store held it at the last sync
	next   time.Duration    // none is made before
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
	err := kv.Sync(m.o.Store, &kv.Batch{})
	if errors.Is(err, kv.ErrFull) { // what was pulled can be pulled again
		m.durable.next = m.at + longPause
		return nil
	}
	if err != nil {
		return err
	}
	m.durable = durableCursor{cursor: c, next: m.at + syncInterval}
	return nil
}
