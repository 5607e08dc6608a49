package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// persistedState is the part of the machine's state that must survive a restart. It does not contain the cursor, which the partition stores with
// its state.
//
//field:message note
type persistedState struct {
	secret []byte   `wire:"1"` // of the site's lease
	next   log.Site `wire:"2"` // that the replica is about to take; 0: none
	key    []byte   `wire:"3"` // the secret of next

	left []log.Epoch `wire:"5"` // of the logs that the replica has left for a newer one, the oldest first; not more than leftEpochs

	renewed string `wire:"4"` // that and when the replica took another site, for people; empty: it did not
}

// leftEpochs bounds the epochs of logs that a replica remembers.
const leftEpochs = 16

// leave notes that the replica leaves the log of an epoch.
func (n *persistedState) leave(epoch log.Epoch) {
	if epoch == (log.Epoch{}) || slices.Contains(n.left, epoch) {
		return
	}
	n.left = append(slices.Clone(n.left[max(0, len(n.left)-leftEpochs+1):]), epoch)
}

// secretOf is the secret of a site.
func (n *persistedState) secretOf(site log.Site) []byte {
	if n.next != 0 && site == n.next {
		return n.key
	}
	return n.secret
}

func (m *Machine) noteKey() []byte { return m.o.App.LocalKey("sync") }

func (m *Machine) readNote() error {
	data, err := m.o.Store.Get(m.noteKey())
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.note, err = decodePersistedState(data); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	return nil
}

// writeNote makes the note durable.
func (m *Machine) writeNote(n persistedState) error {
	var b kv.Batch
	b.Put(m.noteKey(), encodePersistedState(nil, &n))
	err := kv.Sync(m.o.Store, &b)
	if err == nil {
		m.note = n
	}
	return err
}
