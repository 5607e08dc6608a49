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

// A replica keeps no operations of others, but it notes which one deleted an input, while it folds it:
//
//	gone/id/ID      place in the log ‖ the operation
//	gone/seq/PLACE  ID
//
// for as many entries of the log as an origin is sure to keep. Deleting all inputs leaves no note of any, and nor does
// a snapshot, whose past is not known.
const (
	goneID  = "gone/id/"
	goneSeq = "gone/seq/"
)

// goneKept is the number of entries for which deletions are remembered.
const goneKept = 4096

func goneIDKey(app catalog.AppID, id string) []byte { return append(app.LocalKey(goneID), id...) }

func goneSeqKey(app catalog.AppID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(app.LocalKey(goneSeq), seq)
}

// recordDeletion notes the deletions among entries, and forgets older ones.
func (p *Partition) recordDeletion(tx *kv.Overlay, entries []log.Entry, verdicts []fold.Verdict) error {
	some := false
	for i := range entries {
		if verdicts[i].Code != fold.OK {
			continue
		}
		switch entries[i].Op.Body.(type) {
		case *log.InputDeleteAll:
			p.dropGone(tx)
		case *log.InputDelete:
			seq := binary.BigEndian.AppendUint64(nil, entries[i].Seq)
			tx.Put(goneIDKey(p.o.App, verdicts[i].ID), log.Encode(seq, &entries[i].Op))
			tx.Put(goneSeqKey(p.o.App, entries[i].Seq), []byte(verdicts[i].ID))
			some = true
		}
	}
	if last := entries[len(entries)-1].Seq; some && last > goneKept {
		return p.forgetDeletion(tx, last-goneKept)
	}
	return nil
}

// dropGone forgets all of them.
func (p *Partition) dropGone(tx *kv.Overlay) {
	for _, name := range []string{goneID, goneSeq} {
		lo := p.o.App.LocalKey(name)
		hi := bytes.Clone(lo)
		hi[len(hi)-1]++
		tx.DeleteRange(lo, hi)
	}
}

// forgetDeletion forgets the deletions before a place.
func (p *Partition) forgetDeletion(tx *kv.Overlay, before uint64) error {
	var keys [][]byte
	var ids []string
	err := tx.Scan(goneSeqKey(p.o.App, 0), goneSeqKey(p.o.App, before), func(key, id []byte) bool {
		keys, ids = append(keys, bytes.Clone(key)), append(ids, string(id))
		return true
	})
	if err != nil {
		return err
	}
	for i, id := range ids {
		tx.Delete(keys[i])
		switch note, err := tx.Get(goneIDKey(p.o.App, id)); {
		case isMissing(err):
		case err != nil:
			return err
		case bytes.HasPrefix(note, keys[i][len(keys[i])-8:]): // and no later input with the id
			tx.Delete(goneIDKey(p.o.App, id))
		}
	}
	return nil
}

// deletion is the operation of the log that deleted the input that had an id last, if it was noted.
func (p *Partition) deletion(id string) (by log.Entry, known bool, err error) {
	note, err := p.o.Store.Get(goneIDKey(p.o.App, id))
	switch {
	case isMissing(err):
		return by, false, nil
	case err != nil:
		return by, false, err
	case len(note) < 8:
		return by, false, fmt.Errorf("%w: note of a deletion of %d bytes", kv.ErrCorrupt, len(note))
	}
	by.Seq = binary.BigEndian.Uint64(note)
	by.Op, err = log.Decode(note[8:])
	return by, err == nil, err
}
