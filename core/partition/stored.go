package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A restored origin lacks entries that its replicas have pulled. A replica therefore stores the entries after the stable one as they came:
//
//	kept/RUN SEQ      an entryRecord
//
// A snapshot of another epoch begins another run, since its log may continue differently from the backup. Before a replica installs a
// snapshot, it stores the snapshot's entries ([Partition.StoreEntries]), as far as the origin has them. So it can return everything that it
// shows.
//
//	kept          … 50 ─ 51 … 90 ◆         of the log before the restore
//	StoreEntries  … 50 ─ 51 … 57 ◆ … 99 ◆  of the log that took 51 to 90 back, among other entries
//	… 99 is stable                         the replica deletes the first run
//
// Where entries are missing, a run has a gap. The origin takes the entries with [Partition.TakeBack].

const (
	storedName = "kept/"

	entryOverhead = 64 // approximate bytes of an entry without its operation
)

// defaultKeep is the default of Replica.Keep, in bytes.
const defaultKeep = 32 << 20

// StoredPlace is a place among the stored entries. The zero StoredPlace is before all of them.
type StoredPlace struct {
	Run uint32
	Seq uint64
}

// StoredEntry is an entry as a replica stores it.
type StoredEntry struct {
	At     StoredPlace
	Before log.Chain // chain of the log before the entry
	Seal   []byte    // seal of the log up to the entry; nil: none came
	Op     log.Op
}

// entryRecord is an entry as it is stored under kept/RUN SEQ.
//
//field:message
//field:reserved 2
type entryRecord struct {
	before log.Chain `wire:"1"` // chain of the log before the entry
	seal   []byte    `wire:"3"` // seal of the log up to the entry
	op     []byte    `wire:"4"`
}

// storedState describes the stored entries. It is part of replicaState.
type storedState struct {
	run   uint32    `wire:"1"`
	since uint64    `wire:"2"` // entry of its log by which earlier runs are returned
	bytes uint64    `wire:"3"`
	epoch log.Epoch `wire:"4"` // epoch of the log that has the run
	to    uint64    `wire:"6"` // last entry of the run that StoreEntries has stored; 0: none
}

func storedEntryKey(app catalog.AppID, at StoredPlace) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(app.LocalKey(storedName), at.Run), at.Seq)
}

// under returns the first key of the records with a name, and the first key after them.
func under(app catalog.AppID, name string) (lo, hi []byte) {
	lo = app.LocalKey(name)
	hi = bytes.Clone(lo)
	hi[len(hi)-1]++
	return lo, hi
}

// StoreEntries stores entries that a snapshot up to entry snapshot contains, before the replica installs it. before is the chain of the log
// up to r.From. Errors: ErrChain, kv.ErrFull, and others of kv. After an error the store is unchanged.
func (p *Partition) StoreEntries(r *Run, before log.Chain, snapshot uint64) error {
	if p.replica == nil {
		return ErrReplica
	}
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if _, err := r.check(Cursor{Epoch: r.Epoch, Seq: r.From, Chain: before}); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	if err := p.o.Store.Room(); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	m := p.newMix()
	k := &m.note.kept
	if r.Epoch != k.epoch {
		m.beginRun(r.Epoch, snapshot)
	}
	if err := m.keepRun(r, before); err != nil {
		return err
	}
	k.to = r.To
	p.tx.Put(noteKey(p.o.App), m.note.encode())
	defer p.locks.take(showing).unlock()
	err := p.o.Store.Apply(p.tx.Batch())
	if err == nil {
		p.replica.replicaState = m.note
	}
	return err
}

// keepRun stores the entries of a run. Beyond the limit of bytes it deletes the oldest entries.
func (m *pullBatch) keepRun(r *Run, before log.Chain) error {
	if r.Epoch != m.note.kept.epoch {
		m.beginRun(r.Epoch, r.To)
	}
	p := m.p
	for i := range r.Entries {
		x := &r.Entries[i]
		data := r.row(i)
		entry := entryRecord{before: before, op: data}
		if x.Seq == r.To {
			entry.seal = r.Seal
		}
		value := encodeEntryRecord(nil, &entry)
		if x.Seq <= m.note.kept.to { // StoreEntries stored it before the snapshot
			at := StoredPlace{m.note.kept.run, x.Seq}
			if err := m.deleteStored(storedEntryKey(p.o.App, at), storedEntryKey(p.o.App, StoredPlace{at.Run, at.Seq + 1}), always); err != nil {
				return err
			}
		}
		p.tx.Put(storedEntryKey(p.o.App, StoredPlace{m.note.kept.run, x.Seq}), value)
		m.note.kept.bytes += uint64(len(value)) + entryOverhead
		before = before.Next(data)
	}
	return m.limitStored()
}

// chainBefore returns the chain before a run that starts at a cursor.
func chainBefore(r *Run, at Cursor) log.Chain {
	if at.Seq == 0 && at.Epoch == (log.Epoch{}) {
		return log.Chain(r.Epoch)
	}
	return at.Chain
}

// limitStored deletes the oldest stored entries if they exceed the limit.
func (m *pullBatch) limitStored() error {
	n := &m.note.kept
	limit := m.p.replica.storedLimit
	if n.bytes <= limit {
		return nil
	}
	lo, hi := under(m.p.o.App, storedName)
	return m.deleteStored(lo, hi, func() bool { return n.bytes > limit-limit/8 })
}

func always() bool { return true }

// deleteStored deletes stored entries of a range, oldest first, while more reports true.
func (m *pullBatch) deleteStored(lo, hi []byte, more func() bool) error {
	n := &m.note.kept
	var keys [][]byte
	err := m.p.tx.Scan(lo, hi, func(key, value []byte) bool {
		if !more() {
			return false
		}
		keys = append(keys, bytes.Clone(key))
		n.bytes -= min(n.bytes, uint64(len(value))+entryOverhead)
		return true
	})
	for _, key := range keys {
		m.p.tx.Delete(key)
	}
	return err
}

// deleteStable deletes the stored entries that are stable.
func (m *pullBatch) deleteStable() error {
	p, n := m.p, &m.note
	if n.cursor.Stable <= p.replica.cursor.Stable && n.cursor.Epoch == p.replica.cursor.Epoch {
		return nil
	}
	if n.cursor.Stable > n.kept.since {
		lo, _ := under(p.o.App, storedName)
		if err := m.deleteStored(lo, storedEntryKey(p.o.App, StoredPlace{Run: n.kept.run}), always); err != nil {
			return err
		}
	}
	return m.deleteStored(storedEntryKey(p.o.App, StoredPlace{Run: n.kept.run}), storedEntryKey(p.o.App, StoredPlace{n.kept.run, n.cursor.Stable + 1}), always)
}

// beginRun begins another run of stored entries for another epoch, because that log may continue differently from the backup.
func (m *pullBatch) beginRun(epoch log.Epoch, at uint64) {
	k := &m.note.kept
	if k.epoch != epoch {
		*k = storedState{run: k.run + 1, bytes: k.bytes, epoch: epoch}
	}
	k.since = at
}

// StoredEpoch returns the epoch of the log that has the newest run of stored entries; zero: none.
func (p *Partition) StoredEpoch() log.Epoch { return p.place().kept.epoch }

// StoredFrom returns the place of the first stored entry that an origin may lack after a restore from a backup. backup is the backup's last
// entry, and chain is the chain up to it. With the zero Chain, the origin may lack all of them.
func (p *Partition) StoredFrom(backup uint64, chain log.Chain) (from StoredPlace, err error) {
	if chain == (log.Chain{}) {
		return from, nil
	}
	err = p.EntriesAfter(StoredPlace{}, func(k StoredEntry) bool {
		if k.At.Seq == backup+1 && k.Before == chain {
			from = StoredPlace{k.At.Run, backup}
		}
		return true
	})
	return from, err
}

// EntriesAfter yields the stored entries after a place, in the order in which they came, until yield returns false.
func (p *Partition) EntriesAfter(at StoredPlace, yield func(StoredEntry) bool) error {
	return scanStored(p.o.Store, p.o.App, at, yield)
}

func scanStored(r kv.Reader, app catalog.AppID, at StoredPlace, yield func(StoredEntry) bool) error {
	_, hi := under(app, storedName)
	var failed error
	err := r.Scan(storedEntryKey(app, StoredPlace{at.Run, at.Seq + 1}), hi, func(key, value []byte) bool {
		k := StoredEntry{}
		if k, failed = readStored(key, bytes.Clone(value)); failed != nil {
			return false
		}
		return yield(k)
	})
	return errors.Join(err, failed)
}

// LastStored returns the last stored entry of the log that the replica pulls now. sealed is false if it does not exist or came without a
// seal. If a sealed snapshot reaches further, it returns the place of the snapshot without an operation, with the chain up to it in Before.
func (p *Partition) LastStored() (k StoredEntry, sealed bool, err error) {
	lo, hi := under(p.o.App, storedName)
	var failed error
	err = p.o.Store.ScanBack(lo, hi, func(key, value []byte) bool {
		k, failed = readStored(key, bytes.Clone(value))
		return false
	})
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return StoredEntry{}, false, ErrReplica
	}
	n := &p.replica.replicaState
	sealed = k.At.Run == n.kept.run && len(k.Seal) > 0
	if len(n.seal) > 0 && (!sealed || k.At.Seq < n.cursor.Seq) {
		return StoredEntry{At: StoredPlace{n.kept.run, n.cursor.Seq}, Before: n.cursor.Chain, Seal: n.seal}, true, errors.Join(err, failed)
	}
	return k, sealed, errors.Join(err, failed)
}

func readStored(key, value []byte) (k StoredEntry, err error) {
	k.At = StoredPlace{binary.BigEndian.Uint32(key[len(key)-12:]), binary.BigEndian.Uint64(key[len(key)-8:])}
	x, err := decodeEntryRecord(value)
	k.Before, k.Seal = x.before, x.seal
	if err == nil {
		k.Op, err = log.Decode(x.op)
	}
	if err != nil {
		err = fmt.Errorf("kept entry %d: %w: %w", k.At.Seq, kv.ErrCorrupt, err)
	}
	return k, err
}
