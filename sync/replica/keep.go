package replica

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
)

// keepPause is the least time between two syncs of what was pulled: so much of it a crash may take
// back while writes go on at the origin.
const keepPause = time.Second

// kept is how far what was pulled outlives a crash.
type kept struct {
	cursor partition.Cursor // the store held it at the last sync
	next   time.Duration    // none is made before
}

// keep makes what was pulled durable, once the replica has caught up and when it loses its way to the
// origin: batches of a pull are not synced, since they can be pulled again, but a replica that is started
// without a network has nothing to pull them from.
func (m *Machine) keep() error {
	away := !m.running || !m.online
	if m.told.purged || !away && (!m.pull.caught || m.at < m.kept.next) {
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
