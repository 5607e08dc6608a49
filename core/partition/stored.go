package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A restored origin lacks entries that its replicas have pulled. A replica therefore stores the entries after the stable one as they came:
//
//	kept/RUN SEQ      an entryRecord
//	left/SITE SEQ     operation of a site that the replica left; SEQ 0: entry of the log by which the log has all of them
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
	leftName   = "left/"

	entryOverhead = 64 // approximate bytes of an entry without its operation
)

// defaultKeep is the default of Replica.Keep, in bytes.
const defaultKeep = 32 << 20

// SiteLife is a life of a replica that writes as a site.
type SiteLife struct {
	Site log.Writer
	Life
}

// StoredPlace is a place among the stored entries. The zero StoredPlace is before all of them.
type StoredPlace struct {
	Run uint32
	Seq uint64
}

// StoredEntry is an entry as a replica stores it.
type StoredEntry struct {
	At     StoredPlace
	Before log.Chain // chain of the log before the entry
	Life   uint64    // life that made the operation; 0: unknown
	Seal   []byte    // seal of the log up to the entry; nil: none came
	Op     log.Op
}

// entryRecord is an entry as it is stored under kept/RUN SEQ.
//
//field:message
type entryRecord struct {
	before log.Chain `wire:"1"`       // chain of the log before the entry
	life   uint64    `wire:"2,fixed"` // life that made the operation
	seal   []byte    `wire:"3"`       // seal of the log up to the entry
	op     []byte    `wire:"4"`
}

// storedState describes the stored entries. It is part of replicaState.
type storedState struct {
	run   uint32    `wire:"1"`
	since uint64    `wire:"2"` // entry of its log by which earlier runs and left operations are returned
	bytes uint64    `wire:"3"`
	epoch log.Epoch `wire:"4"` // epoch of the log that has the run
	to    uint64    `wire:"6"` // last entry of the run that StoreEntries has stored; 0: none
}

func storedEntryKey(app catalog.AppID, at StoredPlace) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(app.LocalKey(storedName), at.Run), at.Seq)
}

func leftKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, leftName, dot) }

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
	defer p.rest().unlock()
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
		if err := m.beginRun(r.Epoch, snapshot); err != nil {
			return err
		}
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
		if err := m.beginRun(r.Epoch, r.To); err != nil {
			return err
		}
	}
	p := m.p
	lives := bySite(r.Lives)
	for i := range r.Entries {
		x := &r.Entries[i]
		data := r.row(i)
		entry := entryRecord{before: before, life: lifeOf(lives[x.Op.Dot.Writer], x.Op.Dot.Seq), op: data}
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
	err := m.deleteStored(storedEntryKey(p.o.App, StoredPlace{Run: n.kept.run}), storedEntryKey(p.o.App, StoredPlace{n.kept.run, n.cursor.Stable + 1}), always)
	if err != nil {
		return err
	}
	var done []log.Writer
	if err := leftSites(p.tx, p.o.App, func(site log.Writer, by uint64) {
		if by <= n.cursor.Stable {
			done = append(done, site)
		}
	}); err != nil {
		return err
	}
	for _, site := range done {
		p.tx.DeleteRange(leftKey(p.o.App, log.Dot{Writer: site}), leftKey(p.o.App, log.Dot{Writer: site + 1}))
	}
	return nil
}

// beginRun begins another run of stored entries for another epoch, because that log may continue differently from the backup.
func (m *pullBatch) beginRun(epoch log.Epoch, at uint64) error {
	k := &m.note.kept
	if k.epoch != epoch {
		*k = storedState{run: k.run + 1, bytes: k.bytes, epoch: epoch}
	}
	k.since = at
	var sites []log.Writer
	err := leftSites(m.p.tx, m.p.o.App, func(site log.Writer, _ uint64) { sites = append(sites, site) })
	for _, site := range sites {
		m.p.tx.Put(leftKey(m.p.o.App, log.Dot{Writer: site}), binary.BigEndian.AppendUint64(nil, at))
	}
	return err
}

// leave stores the operations up to last of the site that the replica leaves: the log has them, but they may not be stable.
func (m *pullBatch) leave(last uint64) error {
	p, site := m.p, m.note.site
	if last < p.log.Floor() {
		return nil
	}
	p.tx.Put(leftKey(p.o.App, log.Dot{Writer: site}), binary.BigEndian.AppendUint64(nil, m.note.cursor.Seq))
	return p.log.Read(p.log.Floor(), func(e log.Entry) bool {
		if e.Seq <= last {
			p.tx.Put(leftKey(p.o.App, e.Op.Dot), log.Encode(nil, &e.Op))
		}
		return e.Seq < last
	})
}

// leftSites yields each site that the replica left, and the entry by which the log has its operations.
func leftSites(r kv.Reader, app catalog.AppID, yield func(site log.Writer, by uint64)) error {
	lo, hi := under(app, leftName)
	return r.Scan(lo, hi, func(key, value []byte) bool {
		if dot := log.KeyDot(key); dot.Seq == 0 && len(value) == 8 {
			yield(dot.Writer, binary.BigEndian.Uint64(value))
		}
		return true
	})
}

// StoredEpoch returns the epoch of the log that has the newest run of stored entries; zero: none.
func (p *Partition) StoredEpoch() log.Epoch {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return log.Epoch{}
	}
	return p.replica.replicaState.kept.epoch
}

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
	k.Before, k.Life, k.Seal = x.before, x.life, x.seal
	if err == nil {
		k.Op, err = log.Decode(x.op)
	}
	if err != nil {
		err = fmt.Errorf("kept entry %d: %w: %w", k.At.Seq, kv.ErrCorrupt, err)
	}
	return k, err
}

// ConfirmedSites returns the sites of this replica with operations that the log has and that may not be stable. The sites that the replica
// left come first.
func (p *Partition) ConfirmedSites() (sites []log.Writer, err error) {
	if p.replica == nil {
		return nil, ErrReplica
	}
	err = leftSites(p.o.Store, p.o.App, func(site log.Writer, _ uint64) { sites = append(sites, site) })
	if _, confirmed := p.Outbox(); confirmed >= p.log.Floor() && p.Site() != 0 {
		sites = append(sites, p.Site())
	}
	return sites, err
}

// ConfirmedAfter yields the operations of one of [Partition.ConfirmedSites] after a sequence number, oldest first, until yield returns
// false.
func (p *Partition) ConfirmedAfter(site log.Writer, after uint64, yield func(log.Op) bool) error {
	if p.replica == nil {
		return ErrReplica
	}
	if site == p.Site() {
		_, confirmed := p.Outbox()
		return p.own(after, confirmed, yield)
	}
	var failed error
	err := p.o.Store.Scan(leftKey(p.o.App, log.Dot{Writer: site, Seq: after + 1}), leftKey(p.o.App, log.Dot{Writer: site + 1}), func(_, value []byte) bool {
		var op log.Op
		if op, failed = log.Decode(bytes.Clone(value)); failed != nil {
			return false
		}
		return yield(op)
	})
	return errors.Join(err, failed)
}

// Lose lists local operations as conflicts, with their content. A log had them, was restored from a backup since, and will refuse them.
// When Lose returns, the list survives a crash. Errors: those of kv.
func (p *Partition) Lose(ops []log.Op, why string) (err error) {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	var b kv.Batch
	for i := range ops {
		c := Conflict{Op: ops[i], Verdict: fold.Verdict{Code: fold.Refused, Detail: why}}
		if c.ID, err = p.NameOf(c.Op.Body); err != nil {
			return err
		}
		p.PutConflict(&b, &c)
	}
	return kv.Sync(p.o.Store, &b)
}
