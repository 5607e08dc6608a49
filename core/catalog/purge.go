package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Purge deletes the data of a deleted application. The batch that deletes the application's record creates the purge. It runs when
// nobody writes to the partition any longer:
//
//	scheduled ──Step──▶ key range and public names deleted, a part at a time ──Done──▶ the purge is deleted
//
// Pictures are deleted once no record refers to them, see blob.HostedNames.Collect.
type Purge struct {
	App AppID
	Seq uint64 // position in the control log

	from []byte // key at which the search for public names continues; empty: at the start
}

func schedulePurge(b kv.Writer, app AppID, seq uint64) {
	p := Purge{App: app, Seq: seq}
	b.Put(p.key(), p.encode())
}

func (p *Purge) key() []byte { return Control.TidyKey(string(tidyPurge) + string(p.App[:])) }

func (p *Purge) encode() []byte { return append(binary.BigEndian.AppendUint64(nil, p.Seq), p.from...) }

// Purges returns the pending purges of deleted applications, from the control partition.
func (r Reader) Purges() ([]Purge, error) {
	prefix := r.app.TidyKey(string(tidyPurge))
	var purges []Purge
	var failed error
	for key, value := range kv.WithPrefix(r.kv, prefix, &failed) {
		id := key[len(prefix):]
		if len(id) != len(AppID{}) || len(value) < 8 {
			return nil, fmt.Errorf("%w: purge of %x with %d bytes", field.ErrFormat, id, len(value))
		}
		purges = append(purges, Purge{App: AppID(id), Seq: binary.BigEndian.Uint64(value), from: bytes.Clone(value[8:])})
	}
	return purges, failed
}

// Step deletes some of the application's data, reading about limit keys, and reports whether more is left. The progress survives a crash.
func (p *Purge) Step(tx *kv.Overlay, limit int) (more bool, err error) {
	lo, hi := p.App.Range()
	tx.DeleteRange(lo, hi)
	t := tidier{tx: tx, r: Read(tx, Control), app: Control, left: limit}
	err = t.sweepFrom([]byte{tableHosted}, p.from, func(key, _ []byte) (bool, error) {
		return bytes.HasSuffix(key, p.App[:]), nil
	}, func(next []byte) {
		p.from = next
		tx.Put(p.key(), p.encode())
	})
	return t.more, err
}

// Done deletes the completed purge.
func (p *Purge) Done(b kv.Writer) { b.Delete(p.key()) }
