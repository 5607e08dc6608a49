package replica

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// persistedState is the part of the machine's state that must survive a restart. It does not contain the cursor, which the partition stores
// with its state.
//
//field:message note
//field:reserved 4 5
type persistedState struct {
	secret []byte     `wire:"1"` // secret of the lease of the site of version 0.1.0
	next   log.Writer `wire:"2"` // site that a replica of version 0.1.0 was about to take; 0: none
	key    []byte     `wire:"3"` // secret of the lease of next

	dated uint32 `wire:"6"` // exif.Version with which no derived record lacks a date
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

// noteDated stores dated durably.
func (m *Machine) noteDated(version uint32) error {
	n := m.note
	n.dated = version
	var b kv.Batch
	b.Put(m.noteKey(), encodePersistedState(nil, &n))
	err := kv.CommitAndWait(m.o.Store, &b)
	if err == nil {
		m.note = n
	}
	return err
}
