package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// note is what the machine itself must know after a restart. Where the replica stands is not
// in it: that is the partition's, and changes with its state.
type note struct {
	secret []byte   // of the site's lease
	next   log.Site // that the replica is about to take; 0: none
	key    []byte   // the secret of next

	left []log.Epoch // of the logs that the replica has left for a newer one, the oldest first; not more than leftEpochs

	renewed string // that and when the replica took another site, for people; empty: it did not
}

// leftEpochs bounds the epochs of logs that a replica remembers.
const leftEpochs = 16

// leave notes that the replica leaves the log of an epoch.
func (n *note) leave(epoch log.Epoch) {
	if epoch == (log.Epoch{}) || slices.Contains(n.left, epoch) {
		return
	}
	n.left = append(slices.Clone(n.left[max(0, len(n.left)-leftEpochs+1):]), epoch)
}

// secretOf is the secret of a site.
func (n *note) secretOf(site log.Site) []byte {
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
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.note.secret = d.Raw()
		case 2:
			m.note.next = log.Site(d.Uint32())
		case 3:
			m.note.key = d.Raw()
		case 4:
			m.note.renewed = d.Text()
		case 5:
			var e log.Epoch
			d.Hash(e[:])
			m.note.left = append(m.note.left, e)
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
	e.Uint(2, uint64(n.next))
	e.Raw(3, n.key)
	e.Text(4, n.renewed)
	for _, epoch := range n.left {
		e.Hash(5, epoch[:])
	}
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
