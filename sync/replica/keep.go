package replica

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
)

// keepPause is the minimum time between two syncs of pulled entries. A crash may undo so much of them while the origin accepts writes.
const keepPause = time.Second

// kept is the durable part of the pulled entries.
type kept struct {
	cursor partition.Cursor // the store held it at the last sync
	next   time.Duration    // none is made before
}

// keep syncs the pulled entries, once the replica has caught up and when it loses its connection to the origin. Batches of a pull are not
// synced, since they can be pulled again. But a replica that starts offline could not pull them.
func (m *Machine) keep() error {
	away := !m.running || !m.online
	if m.origin.purged || !away && (!m.pull.caught || m.at < m.kept.next) {
		return nil
	}
	c := m.p.Cursor()
	if c == m.kept.cursor {
		return nil
	}
	err := kv.Sync(m.o.Store, &kv.Batch{})
	if errors.Is(err, kv.ErrFull) { // what was pulled can be pulled again
		m.kept.next = m.at + longPause
		return nil
	}
	if err != nil {
		return err
	}
	m.kept = kept{cursor: c, next: m.at + keepPause}
	return nil
}
