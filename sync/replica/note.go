package replica

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
)

// note is what the machine itself must know after a restart. Where the replica stands is not
// in it: that is the partition's, and changes with its state.
type note struct {
	secret []byte // of the site's lease
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
	d := field.Decode(data)
	for d.Next() {
		if d.Number == 1 {
			m.note.secret = d.Raw()
		}
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("note: %w: %w", kv.ErrCorrupt, err)
	}
	return nil
}

// writeNote makes the note durable.
func (m *Machine) writeNote(n note) error {
	var e field.Encoder
	e.Raw(1, n.secret)
	var b kv.Batch
	b.Put(m.noteKey(), e.Bytes(nil))
	wait, err := m.o.Store.Commit(&b)
	if err == nil {
		err = wait()
	}
	if err == nil {
		m.note = n
	}
	return err
}
