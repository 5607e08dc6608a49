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
//	backup ─ 1 … 50
//	log    ─ 1 … 50 ─ 51 52               written since the restore
//	stored      48 … 50 ─ 51 52 … 90 ◆    of the log before the restore, sealed
//
// It appends the operations whose names the log lacks, and skips the others: a name has one content. The fold gives each its effect once,
// in any order. The origin lists those that end in a conflict, with their content.
//
// The origin may refuse an operation that its maker sends again, for example if its token was revoked since. It records the reason, and
// lists the operation when another replica returns it:
//
//	refused/WRITER SEQ  reason

// ErrRestored is returned by TakeBack for a log that was not restored from a backup.
var ErrRestored = errors.New("the log was not restored from a backup")

const refusedName = "refused/"

func refusedKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, refusedName, dot) }

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
	t := taking{p: p, taken: map[log.Dot]bool{}}
	if err := t.sort(b); err != nil {
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
	return p.log.LastSeq(), wait, p.hear(t.ops)
}

// taking sorts stored entries into those that the log takes and those that it lists.
type taking struct {
	p     *Partition
	ops   []log.Op         // operations that the log will append
	taken map[log.Dot]bool // operations that are no longer conflicts
	lost  []Conflict
}

// noSeal is the reason for not taking back an entry that may never have been in the log.
const noSeal = "the entry has no seal of this log"

// lostFor is the prefix of all reasons for not taking back an operation.
const lostFor = "restore: "

// sort finds the operations that the log lacks. The caller holds appending, and the whole log is folded.
func (t *taking) sort(b *StoredRun) error {
	p := t.p
	sealed := p.recognize(b)
	for i := range b.Entries {
		op := &b.Entries[i].Op
		had, err := p.names(op.Dot.Writer)
		if err != nil {
			return err
		}
		foreign := p.checkOwn(op)
		switch {
		case t.taken[op.Dot]: // it came again after a horizon dropped its name
		case had.Has(op.Dot.Seq) && foreign:
			t.lose(op, usedName.Detail)
		case had.Has(op.Dot.Seq):
			err = t.compare(op, b.Missing[op.Dot])
		case !sealed:
			t.lose(op, noSeal)
		default:
			t.ops = append(t.ops, *op)
			t.taken[op.Dot] = true
			if why := b.Missing[op.Dot]; why != "" {
				t.lose(op, why)
			}
		}
		if err != nil {
			return err
		}
	}
	return t.try()
}

// recognize reports whether this log sealed the entries.
func (p *Partition) recognize(b *StoredRun) bool {
	chain := b.Before
	for i := range b.Entries {
		chain = chain.Next(log.Encode(nil, &b.Entries[i].Op))
	}
	return len(b.Entries) > 0 && b.Seal != nil && hmac.Equal(b.Seal, p.Seal(b.From+uint64(len(b.Entries)), chain))
}

// compare lists an operation that the log has if the origin has refused it since. An operation that was listed for its missing picture or
// manifest is a conflict no more once that has come; missing is the reason why it has not.
func (t *taking) compare(op *log.Op, missing string) error {
	why, err := t.p.o.Store.Get(refusedKey(t.p.o.App, op.Dot))
	if err == nil {
		t.lose(op, string(why))
	}
	if err = ignoreMissing(err); err != nil || missing != "" {
		return err
	}
	c, err := t.p.Conflict(op.Dot)
	if err == nil && (c.Verdict.Detail == lostFor+LostPicture || c.Verdict.Detail == lostFor+LostManifest) {
		t.taken[op.Dot] = true
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

// noteRefused records the refused ones among ops, which are appended next.
func (p *Partition) noteRefused(b *kv.Batch, ops []log.Op) {
	for i := range ops {
		if now, refused := ops[i].Body.(*log.Refused); refused {
			b.Put(refusedKey(p.o.App, ops[i].Dot), []byte(now.Reason))
		}
	}
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

// try folds the operations over a copy of the state, and lists those that end in a conflict.
func (t *taking) try() error {
	if len(t.ops) == 0 {
		return nil
	}
	p := t.p
	entries := make([]log.Entry, len(t.ops))
	for i := range t.ops {
		entries[i] = log.Entry{Seq: p.log.LastSeq() + 1 + uint64(i), Op: t.ops[i]}
	}
	verdicts, _, err := p.foldEntries(fold.NewUpTo(p.o.App, p.o.Rules), kv.NewOverlay(p.o.Store), entries)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		if _, refused := t.ops[i].Body.(*log.Refused); !refused && isConflict(v.Code) {
			t.lost = append(t.lost, Conflict{Op: t.ops[i], Seq: entries[i].Seq, Verdict: v})
		}
	}
	return nil
}

// note adds to b the conflicts of the operations.
func (t *taking) note(b *kv.Batch) error {
	p := t.p
	for dot := range t.taken {
		b.Delete(conflictKey(p.o.App, dot))
	}
	for i := range t.lost {
		c := &t.lost[i]
		var err error
		if c.ID, err = p.NameOf(c.Op.Body); err != nil {
			return err
		}
		p.PutConflict(b, c)
	}
	p.noteRefused(b, t.ops)
	return nil
}
