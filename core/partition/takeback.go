package partition

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// An origin that was restored from a backup takes back the entries that its replicas have stored of its log:
//
//	backup ─ 1 … 50                       site 1
//	log    ─ 1 … 50 ─ 51 52               written since the restore, by a site that only the restored log has
//	stored      48 … 50 ─ 51 52 … 90 ◆    of the log before the restore, sealed
//
// Entries that follow the log's last one keep their places. Others are appended as new entries with the same operations. An operation that
// the log has is skipped. One that does not follow its site's previous operations, or ends in a conflict, is listed as a conflict with its
// content. No dot names two operations, since a restored log writes as another site.
//
// An operation may then come after one that deletes its result. The origin records such early deletions, and deletes the thing as soon as
// an entry creates it:
//
//	early/SITE SEQ    dot of the thing: the deletion
//
// The origin may refuse an operation that its replica sends again, for example if its token was revoked since. It records the reason, and
// lists the operation when another replica returns it:
//
//	refused/SITE SEQ  reason

// ErrRestored is returned by TakeBack for a log that was not restored from a backup.
var ErrRestored = errors.New("the log was not restored from a backup")

const (
	earlyName   = "early/"
	refusedName = "refused/"
)

func earlyKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, earlyName, dot) }

func refusedKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, refusedName, dot) }

// LivesOf returns the recorded lives that made entries of the log.
func (p *Partition) LivesOf(entries []log.Entry) (lives []SiteLife, err error) {
	type span struct{ first, last uint64 }
	spans := map[log.Writer]span{}
	var sites []log.Writer
	for i := range entries {
		d := entries[i].Op.Dot
		s, known := spans[d.Writer]
		if !known {
			sites = append(sites, d.Writer)
			s.first = d.Seq
		}
		s.last = d.Seq
		spans[d.Writer] = s
	}
	for _, site := range sites {
		if site.IsOrigin() {
			continue
		}
		of, err := p.Lives(site, spans[site].first, spans[site].last)
		if err != nil {
			return nil, err
		}
		for _, l := range of {
			lives = append(lives, SiteLife{site, l})
		}
	}
	return lives, nil
}

// Backup returns the last entry of the backup from which the log was restored, with the chain up to it. restored is false if the log was
// not restored. The chain is zero if the log was trimmed beyond that entry.
func (p *Partition) Backup() (seq uint64, chain log.Chain, restored bool, err error) {
	if p.replica != nil {
		return 0, chain, false, nil
	}
	if seq, restored = p.log.BackupHead(); !restored {
		return 0, chain, false, nil
	}
	chain, err = p.log.Chain(seq)
	if errors.Is(err, log.ErrTrimmed) {
		return seq, log.Chain{}, true, nil
	}
	return seq, chain, true, err
}

// StoredRun is a run of entries that a replica has stored.
type StoredRun struct {
	From    uint64
	Before  log.Chain // chain of the log up to From
	Entries []log.Entry
	Lives   []SiteLife
	Seal    []byte             // seal of the log up to the last entry
	Missing map[log.Dot]string // reason for each operation whose picture or manifest this origin lacks
}

// TakeBack appends those entries that the log lost when it was restored from a backup, and lists the others as conflicts. When it returns
// no error, all of that survives a crash and is visible. also is as
// in [Partition.Submit]. Errors: ErrRestored, kv.ErrFull, and those of Submit.
func (p *Partition) TakeBack(ctx context.Context, b *StoredRun, also func(*kv.Batch)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	last, wait, err := p.takeBack(b, also)
	if err == nil {
		err = wait()
	}
	if err == nil {
		err = p.foldTo(last)
	}
	if err != nil {
		return fmt.Errorf("take back: %w", err)
	}
	return nil
}

// takeBack appends the entries under the lock appending.
func (p *Partition) takeBack(b *StoredRun, also func(*kv.Batch)) (last uint64, wait func() error, err error) {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return 0, nil, err
	}
	if _, _, restored, err := p.Backup(); err != nil || !restored || p.o.App == catalog.Control {
		return 0, nil, errors.Join(err, ErrRestored)
	}
	if err := p.o.Store.Room(); err != nil {
		return 0, nil, err
	}
	if err := p.log.Settle(); err != nil { // verdicts need all of the log
		return 0, nil, err
	}
	if err := p.foldTo(p.log.LastSeq()); err != nil {
		return 0, nil, err
	}
	t, err := p.sort(b)
	if err != nil {
		return 0, nil, err
	}
	batch := &kv.Batch{}
	if also != nil {
		also(batch)
	}
	if err := t.note(batch); err != nil {
		return 0, nil, err
	}
	if len(t.ops) == 0 {
		if batch.Len() == 0 {
			return p.log.LastSeq(), func() error { return nil }, nil
		}
		wait, err = p.o.Store.Commit(batch)
		return p.log.LastSeq(), wait, err
	}
	if _, wait, err = p.log.Append(t.ops, batch); err != nil {
		return 0, nil, err
	}
	p.hear(t.ops)
	return p.log.LastSeq(), wait, nil
}

// hear records the last appended operation of each site in ops.
func (p *Partition) hear(ops []log.Op) {
	defer p.locks.take(hearing).unlock()
	for i := range ops {
		d := ops[i].Dot
		if d.Writer == p.o.Site {
			p.last = d.Seq
			continue
		}
		p.remoteSites[d.Writer] = siteProgress{seq: d.Seq, at: ops[i].At}
	}
}

// taking sorts stored entries into those that the log takes and those that it cannot take.
type taking struct {
	p     *Partition
	exact bool     // the entries keep their places
	ops   []log.Op // operations that the log will append
	own   []bool   // for each of ops: it is this log's own operation and was not stored by a replica
	lives []SiteLife
	taken map[log.Dot]bool
	lost  []Conflict

	rolled newNames
	moved  map[*log.Op]log.Dot // lost operations that the log has by the names of another site
}

// noSeal is the reason for not taking back an entry that may never have been in the log.
const noSeal = "the entry has no seal of this log"

// otherLife is the reason for not taking back an operation if another life of its site has made that sequence number, or the one before.
const otherLife = "another life of the replica wrote since"

// lostFor is the prefix of all reasons for not taking back an operation.
const lostFor = "restore: "

// sort finds the entries that the log lacks. The caller holds appending, and the whole log is folded.
func (p *Partition) sort(b *StoredRun) (*taking, error) {
	lives := bySite(b.Lives)
	sealed, exact, err := p.recognize(b)
	t := &taking{p: p, exact: exact, taken: map[log.Dot]bool{}, moved: map[*log.Op]log.Dot{}}
	if err == nil {
		t.rolled, err = p.rolledBack()
	}
	if err != nil {
		return nil, err
	}
	had := map[log.Writer]uint64{}
	var creations madeByEntries
	for i := range b.Entries {
		op := &b.Entries[i].Op
		d := op.Dot
		if _, known := had[d.Writer]; !known {
			if had[d.Writer], err = p.lastOf(d.Writer); err != nil {
				return nil, err
			}
		}
		life := lifeOf(lives[d.Writer], d.Seq)
		known := d.Seq <= had[d.Writer]
		as, moved, err := p.sentAgain(op)
		switch {
		case err != nil:
		case moved:
			t.exact = false // what follows may name it
			err = t.meets(op, as, &creations)
		case d.Seq <= had[d.Writer]:
			if err = t.compare(op, life); err == nil && b.Missing[d] == "" {
				err = t.clearConflict(op)
			}
		case !sealed:
			t.lose(op, noSeal)
		case d.Seq != had[d.Writer]+1 || d.Writer == p.o.Site:
			t.lose(op, "operations before it are lost")
		default:
			if err = t.take(op, lives[d.Writer], b.Missing[d]); t.taken[d] {
				had[d.Writer] = d.Seq
			}
		}
		if err != nil {
			return nil, err
		}
		if sealed {
			creations.add(d, op.Body, known, t.taken[d])
		}
	}
	doomed, err := p.live(creations.deleted)
	if err == nil && (!t.exact || len(doomed) > 0) {
		t.exact = false
		err = t.try(doomed)
	}
	return t, err
}

// meets handles an operation that its replica sends again as another site. as is its name in the log; zero: the log lacks it so far.
func (t *taking) meets(op *log.Op, as log.Dot, creations *madeByEntries) error {
	if as == (log.Dot{}) {
		t.lose(op, "its replica sends it again as another site")
		return nil
	}
	t.rolled[op.Dot], t.moved[op] = as, as
	e, err := t.p.earlyAs(op, as)
	if e.kill != nil {
		creations.deleted = append(creations.deleted, entryDeletion{body: e.kill.Body})
		t.taken[e.met] = true
	}
	return err
}

// madeByEntries collects deletions of the inputs and models that entries make. A later entry of the run deletes those in deleted together
// with all others. It may not delete them in this log: the log has that later entry already, perhaps before them, or takes it now, but not
// them.
type madeByEntries struct{ inputs, models, deleted []entryDeletion }

// entryDeletion is the deletion of a thing that an entry makes.
type entryDeletion struct {
	body    log.Body
	present bool // the log has the entry, or takes it now
}

// add adds an entry. known reports whether the log had it before, and taken whether the log takes it now.
func (m *madeByEntries) add(dot log.Dot, body log.Body, known, taken bool) {
	switch b := body.(type) {
	case *log.InputCreate:
		m.inputs = append(m.inputs, entryDeletion{&log.InputDelete{Input: dot}, known || taken})
	case *log.ModelCreate:
		m.models = append(m.models, entryDeletion{&log.ModelDelete{Model: dot}, known || taken})
	case *log.InputDeleteAll:
		byOrder := b.Upto == nil
		m.inputs = m.all(m.inputs, known && byOrder, taken && byOrder)
	case *log.ModelDeleteAll:
		m.models = m.all(m.models, known, taken)
	}
}

// all returns the things that remain after an entry that deletes all of them.
func (m *madeByEntries) all(things []entryDeletion, known, taken bool) []entryDeletion {
	if !known && !taken {
		return things
	}
	for _, d := range things {
		if known || !d.present {
			m.deleted = append(m.deleted, d)
		}
	}
	return nil
}

// live returns the deletions whose things exist, or are not known yet.
func (p *Partition) live(deletions []entryDeletion) (out []log.Body, err error) {
	r := catalog.Read(p.o.Store, p.o.App)
	for _, d := range deletions {
		body := d.body
		dot, name := subject(body)
		if _, err = name(r, dot); errors.Is(err, catalog.ErrNotFound) {
			var h siteProgress
			if h, err = p.siteProgress(dot.Writer); err == nil && dot.Seq > h.seq {
				out = append(out, body)
			}
		} else if err == nil {
			out = append(out, body)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lastOf returns the sequence number of the last operation of a site in the log.
func (p *Partition) lastOf(site log.Writer) (uint64, error) {
	if site == p.o.Site {
		return p.last, nil
	}
	h, err := p.siteProgress(site)
	return h.seq, err
}

// recognize reports whether this log sealed the entries, and whether they continue it without a gap.
func (p *Partition) recognize(b *StoredRun) (sealed, exact bool, err error) {
	chain, head := b.Before, p.log.LastSeq()
	var at log.Chain
	found := false
	for i := range b.Entries {
		if seq := b.From + uint64(i); seq == head {
			at, found = chain, true
		}
		chain = chain.Next(log.Encode(nil, &b.Entries[i].Op))
	}
	to := b.From + uint64(len(b.Entries))
	sealed = len(b.Entries) > 0 && b.Seal != nil && hmac.Equal(b.Seal, p.Seal(to, chain))
	if !found || !sealed {
		return sealed, false, nil
	}
	have, err := p.log.Chain(head)
	return sealed, err == nil && have == at, err
}

// take schedules an operation to be appended, and also lists it if reason is not empty. It only lists the operation if the previous one of
// its site comes from a different life than in this log: two replicas have used the site, or the disk of one was rolled back.
func (t *taking) take(op *log.Op, lives []Life, reason string) error {
	life, followed := lifeOf(lives, op.Dot.Seq), lifeOf(lives, op.Dot.Seq-1)
	before, err := t.p.lifeAt(op.Dot.Writer, op.Dot.Seq-1)
	for _, l := range t.lives {
		if l.Site == op.Dot.Writer {
			before = l.Life
		}
	}
	if !t.exact && followed != 0 && before.ID != 0 && followed != before.ID {
		t.lose(op, otherLife)
		return err
	}
	t.ops = append(t.ops, *op)
	t.taken[op.Dot] = true
	if reason != "" {
		t.lose(op, reason)
	}
	if before.ID != life {
		t.lives = append(t.lives, SiteLife{op.Dot.Writer, Life{First: op.Dot.Seq, ID: life}})
	}
	return err
}

// compare lists an operation if another life has made its sequence number, or if the origin has refused it since.
func (t *taking) compare(op *log.Op, life uint64) error {
	have, err := t.p.lifeAt(op.Dot.Writer, op.Dot.Seq)
	if err != nil {
		return err
	}
	if life != 0 && have.ID != 0 && have.ID != life {
		t.lose(op, otherLife)
		return nil
	}
	why, err := t.p.o.Store.Get(refusedKey(t.p.o.App, op.Dot))
	if err == nil {
		t.lose(op, string(why))
	}
	return ignoreMissing(err)
}

// noteRefused records the refused ones among ops, which are appended next. It lists those of had that were not refused before.
func (p *Partition) noteRefused(b *kv.Batch, ops, had []log.Op) (err error) {
	for i := range ops {
		now, refused := ops[i].Body.(*log.Refused)
		if !refused {
			continue
		}
		b.Put(refusedKey(p.o.App, ops[i].Dot), []byte(now.Reason))
		if i >= len(had) {
			continue
		}
		if _, before := had[i].Body.(*log.Refused); before {
			continue
		}
		c := Conflict{Op: had[i], Verdict: fold.Verdict{Code: fold.Refused, Detail: lostFor + now.Reason}}
		if c.ID, err = p.NameOf(c.Op.Body); err != nil {
			return err
		}
		p.PutConflict(b, &c)
	}
	return nil
}

// clearConflict removes an operation from the conflicts if it was listed for its missing picture or manifest, which came now.
func (t *taking) clearConflict(op *log.Op) error {
	c, err := t.p.Conflict(op.Dot)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil
	case err == nil && c.Op.At == op.At && (c.Verdict.Detail == lostFor+LostPicture || c.Verdict.Detail == lostFor+LostManifest):
		t.taken[op.Dot] = true
	}
	return err
}

// Reasons for listing an operation as a conflict although it is taken back.
const (
	LostPicture  = "the bytes of the picture are lost"
	LostManifest = "the weights of the version are lost"
)

// lose lists an operation that is not taken.
func (t *taking) lose(op *log.Op, why string) {
	if _, refused := op.Body.(*log.Refused); refused {
		return // it has no content
	}
	t.lost = append(t.lost, Conflict{Op: *op, Verdict: fold.Verdict{Code: fold.Refused, Detail: lostFor + why}})
}

// try folds the operations over a copy of the state. It finds operations that end in a conflict, and things that were deleted before.
func (t *taking) try(doomed []log.Body) error {
	p, ops := t.p, t.ops
	t.ops = nil
	for i := range ops {
		t.ops, t.own = append(t.ops, ops[i]), append(t.own, false)
		e, err := p.early(&ops[i], true)
		if err != nil {
			return err
		}
		if e.unsure {
			t.lost = append(t.lost, Conflict{Op: ops[i], Verdict: fold.Verdict{Code: fold.Gone, Detail: lostFor + deletedAll}})
		}
		if e.kill != nil {
			t.ops, t.own = append(t.ops, *e.kill), append(t.own, true)
			t.taken[e.met] = true
		}
	}
	for _, body := range doomed {
		t.ops, t.own = append(t.ops, log.Op{At: p.clock.Next(), Body: body}), append(t.own, true)
	}
	entries := t.entries()
	if len(entries) == 0 {
		return nil
	}
	f := fold.NewUpTo(p.o.App, p.o.Rules)
	verdicts, _, err := p.foldEntries(f, kv.NewOverlay(p.o.Store), entries)
	if err != nil {
		return err
	}
	for i := range entries {
		if c := verdicts[i]; !t.own[i] && isConflict(c.Code) {
			if _, refused := entries[i].Op.Body.(*log.Refused); !refused {
				t.lost = append(t.lost, Conflict{Op: entries[i].Op, Seq: entries[i].Seq, Verdict: c})
			}
		}
	}
	return nil
}

// entries names this log's own operations, and returns all operations as the next entries.
func (t *taking) entries() (entries []log.Entry) {
	p, last := t.p, t.p.last
	for i := range t.ops {
		op := &t.ops[i]
		if t.own[i] {
			last++
			op.Dot = log.Dot{Writer: p.o.Site, Seq: last}
		}
		t.rolled.rename(op)
		entries = append(entries, log.Entry{Seq: p.log.LastSeq() + 1 + uint64(i), Op: *op})
	}
	return entries
}

// note adds to b the records that belong to the operations: lives, early deletions and conflicts.
func (t *taking) note(b *kv.Batch) error {
	p := t.p
	for _, l := range t.lives {
		putLife(b, p.o.App, l.Site, l.Life)
	}
	for dot := range t.taken {
		b.Delete(conflictKey(p.o.App, dot))
	}
	for op, as := range t.moved {
		putRenamed(b, p.o.App, op, as)
	}
	for i := range t.lost {
		c := &t.lost[i]
		var err error
		if c.ID, err = p.NameOf(c.Op.Body); err != nil {
			return err
		}
		p.PutConflict(b, c)
	}
	if err := p.noteRefused(b, t.ops, nil); err != nil {
		return err
	}
	return p.noteEarly(b, t.ops, true, t.exact)
}
