package partition

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A replica does not store the operations of others. But when it folds the deletion of an input, it records it:
//
//	gone/id/ID      entry of the log ‖ the operation
//	gone/seq/PLACE  ID
//
// It keeps a record for as many entries of the log as an origin certainly stores. It deletes all records when all inputs are deleted, and
// when it installs a snapshot, whose past is unknown.
const (
	deletedID  = "gone/id/"
	deletedSeq = "gone/seq/"
)

// deletionRetention is the number of entries for which a replica keeps the records of deletions.
const deletionRetention = 4096

func deletedIDKey(app catalog.AppID, id string) []byte { return append(app.LocalKey(deletedID), id...) }

func deletedSeqKey(app catalog.AppID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(app.LocalKey(deletedSeq), seq)
}

// recordDeletion records the deletions among entries, and deletes older records.
func (p *Replica) recordDeletion(tx *kv.Overlay, entries []log.Entry, verdicts []fold.Verdict) error {
	some := false
	for i := range entries {
		if verdicts[i].Code != fold.OK {
			continue
		}
		switch entries[i].Op.Body.(type) {
		case *log.InputDeleteAll:
			p.deleteDeletions(tx)
		case *log.InputDelete:
			if verdicts[i].ID == "" { // its input has not come
				continue
			}
			seq := binary.BigEndian.AppendUint64(nil, entries[i].Seq)
			tx.Put(deletedIDKey(p.o.App, verdicts[i].ID), log.Encode(seq, &entries[i].Op))
			tx.Put(deletedSeqKey(p.o.App, entries[i].Seq), []byte(verdicts[i].ID))
			some = true
		}
	}
	if last := entries[len(entries)-1].Seq; some && last > deletionRetention {
		return p.forgetDeletion(tx, last-deletionRetention)
	}
	return nil
}

// deleteDeletions deletes the records of all deletions.
func (p *Replica) deleteDeletions(tx *kv.Overlay) {
	for _, name := range []string{deletedID, deletedSeq} {
		kv.DeletePrefix(tx, p.o.App.LocalKey(name))
	}
}

// forgetDeletion deletes the records of deletions before entry before.
func (p *Replica) forgetDeletion(tx *kv.Overlay, before uint64) (err error) {
	var keys [][]byte
	for key, id := range kv.Range(tx, deletedSeqKey(p.o.App, 0), deletedSeqKey(p.o.App, before), &err) {
		keys = append(keys, bytes.Clone(key))
		of := deletedIDKey(p.o.App, string(id))
		note, failed := kv.Find(tx, of)
		if failed != nil {
			return failed
		}
		if bytes.HasPrefix(note, key[len(key)-8:]) { // unless a later input with the ID was deleted, too
			keys = append(keys, of)
		}
	}
	for _, key := range keys {
		tx.Delete(key)
	}
	return err
}

// deletion returns the recorded entry of the log that last deleted the input with an ID.
func (p *Replica) deletion(id string) (by log.Entry, known bool, err error) {
	note, err := kv.Find(p.o.Store, deletedIDKey(p.o.App, id))
	switch {
	case err != nil || note == nil:
		return by, false, err
	case len(note) < 8:
		return by, false, fmt.Errorf("%w: note of a deletion of %d bytes", kv.ErrCorrupt, len(note))
	}
	by.Seq = binary.BigEndian.Uint64(note)
	by.Op, err = log.Decode(note[8:])
	return by, err == nil, err
}
