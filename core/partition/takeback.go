package partition

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A log lacks the place of a replica if it was restored from a backup, or if its disk went back in time. It takes back the frames that its
// replicas keep:
//
//	log    ─ 1 … 50 ─ 51 52               the epoch of 51 is another one
//	kept      48 … 50 ─ 51 52 … 90 ◆      sealed
//
// It appends the operations whose names it lacks, in the order in which they come, and skips the others: a name has one content. The fold gives
// each its effect once, in any order. The origin lists those that end in a conflict, with their content.
//
// The origin may refuse an operation that its maker sends again, for example if its token was revoked since. It records the reason, and
// lists the operation when another replica returns it:
//
//	refused/WRITER SEQ  reason

// ErrOpening is returned for an operation on a log in another opening than that of the caller's session.
var ErrOpening = errors.New("the log was opened again since the session began")

// ErrSeal is returned by TakeBack for a frame without a seal of this log: it is forged, or the backup is older than the key.
var ErrSeal = errors.New("entries without a seal of this log")

const refusedName = "refused/"

func refusedKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, refusedName, dot) }

// Opening returns the epoch with which the log appends entries now.
func (p *Origin) Opening() log.Epoch { return p.log.Opening() }

// SetOpening gives the log another opening: its next entries have another epoch. The next operation has another writer, too.
func (p *Origin) SetOpening(e log.Epoch) {
	defer p.locks.take(appending).unlock()
	p.log.SetOpening(e)
	p.o.Epoch = e
	p.spoil(p.own.writer)
}

// HasPlace reports whether the log has a place: an entry of an epoch with the chain up to it. Errors: those of kv.
func (p *Origin) HasPlace(m log.Mark, chain log.Chain) (bool, error) { return p.log.Has(m, chain) }

// Common returns the greatest entry that the log has of the epoch of one of the marks, at or before it, with the chain up to it; 0: none. The
// chain is zero if the log was trimmed beyond that entry. Errors: those of kv.
func (p *Origin) Common(marks []log.Mark) (seq uint64, chain log.Chain, err error) {
	if seq = p.log.Common(marks...); seq == 0 {
		return 0, chain, nil
	}
	chain, err = p.log.Chain(seq)
	if errors.Is(err, log.ErrTrimmed) {
		return seq, log.Chain{}, nil
	}
	return seq, chain, err
}

// Returned are frames that a replica gives back.
type Returned struct {
	Opening log.Epoch // opening of the log in the replica's session
	Frames  []Frame
	Missing map[log.Dot]string // reason for each operation whose picture or manifest this origin lacks
}

// TakeBack appends those operations of the frames that the log lacks, and lists those without an effect as conflicts. When it returns no error,
// all of that survives a crash and is visible. also is as in [Partition.Submit]. Errors: ErrOpening, ErrSeal, kv.ErrFull, and those of Submit.
func (p *Origin) TakeBack(ctx context.Context, b *Returned, also func(*kv.Batch)) error {
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

// takeBack appends the operations under the lock appending.
func (p *Origin) takeBack(b *Returned, also func(*kv.Batch)) (last uint64, wait func() error, err error) {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return 0, nil, err
	}
	if b.Opening != p.log.Opening() {
		return 0, nil, ErrOpening
	}
	if err := p.o.Store.Room(); err != nil {
		return 0, nil, err
	}
	if err := p.log.WaitDurable(); err != nil { // verdicts need all of the log
		return 0, nil, err
	}
	if err := p.foldTo(p.log.LastSeq()); err != nil {
		return 0, nil, err
	}
	if err := p.clocks.read(p.log, p.o.Clock()); err != nil {
		return 0, nil, err
	}
	t := taking{p: p, missing: b.Missing, taken: map[log.Dot]bool{}}
	for i := range b.Frames {
		if err := t.frame(&b.Frames[i]); err != nil {
			return 0, nil, err
		}
	}
	if err := t.try(); err != nil {
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
		return p.log.LastSeq(), func() error { return nil }, kv.CommitAndWait(p.o.Store, batch) // the next Back reads it
	}
	if _, wait, err = p.log.Append(t.ops, batch); err != nil {
		return 0, nil, err
	}
	return p.log.LastSeq(), wait, p.recordAppended(t.ops)
}

// taking sorts the operations of frames into those that the log takes and those that it lists.
type taking struct {
	p       *Origin
	missing map[log.Dot]string
	ops     []log.Op         // operations that the log will append
	taken   map[log.Dot]bool // operations that are no longer conflicts
	lost    []Conflict
}

// madeClocks are the clocks by which the operations of the log were made, as far as the log has them. The first Back reads the log for them.
type madeClocks struct {
	of   map[log.Dot]log.HLC
	to   uint64    // last entry in of
	used time.Time // of the last Back
}

// madeUnused is the time after which the clocks are dropped that no Back needs: 32 bytes for each entry.
const madeUnused = time.Hour

// read reads the clocks of the entries of a log that were appended since the last Back. The caller holds appending.
func (m *madeClocks) read(l *log.Store, now time.Time) error {
	if m.used = now; m.of == nil {
		m.of = map[log.Dot]log.HLC{}
	}
	return l.Read(max(m.to+1, l.Floor()), func(e log.Entry) bool {
		if _, twice := m.of[e.Op.Dot]; !twice {
			m.of[e.Op.Dot] = e.Op.MadeAt()
		}
		m.to = e.Seq
		return true
	})
}

// differs reports whether the log has an operation with the name of op that was made at another time.
func (m *madeClocks) differs(op *log.Op) bool {
	made, ok := m.of[op.Dot]
	return ok && made != op.MadeAt()
}

// lostFor is the prefix of all reasons for listing an operation that was returned.
const lostFor = "restore: "

// CheckSeal returns ErrSeal if the log never had the entries of a frame. A log without a key has no seals.
func (p *Origin) CheckSeal(f *Frame) error {
	if !f.hasChain() || p.sealKey == nil || !hmac.Equal(f.Seal, p.Seal(f.To, f.Chain)) {
		return fmt.Errorf("entries %d to %d: %w", f.From+1, f.To, ErrSeal)
	}
	return nil
}

// frame sorts the operations of a frame, after it has checked that this log had them.
func (t *taking) frame(f *Frame) error {
	if err := t.p.CheckSeal(f); err != nil {
		return err
	}
	entries, err := log.DecodeRows(f.Rows, f.From)
	for i := range entries {
		if err == nil {
			err = t.sort(&entries[i].Op)
		}
	}
	return err
}

// sort decides about one operation. The caller holds appending, and the whole log is folded.
func (t *taking) sort(op *log.Op) error {
	had, err := t.p.names(op.Dot.Writer)
	if err != nil || t.taken[op.Dot] { // taken: it came again after a horizon dropped its name
		return err
	}
	used := t.p.clocks.differs(op)
	if used || !had.Has(op.Dot.Seq) { // if the writer is the own one, this process has not made the operation
		t.p.spoil(op.Dot.Writer)
	}
	switch {
	case had.Has(op.Dot.Seq) && !used:
		return t.compare(op)
	case used, t.refersToUsed(op):
		t.lose(op, usedName.Detail)
		return nil
	}
	t.ops = append(t.ops, *op)
	t.taken[op.Dot] = true
	if why := t.missing[op.Dot]; why != "" {
		t.lose(op, why)
	}
	return nil
}

// refersToUsed reports whether op is about a thing whose creation was listed because its name was used again.
func (t *taking) refersToUsed(op *log.Op) bool {
	c, err := t.p.Conflict(log.SubjectDot(op.Body))
	if err == nil && c.Verdict.Detail == lostFor+usedName.Detail {
		return true
	}
	for i := range t.lost {
		if c := &t.lost[i]; c.Op.Dot == log.SubjectDot(op.Body) && c.Verdict.Detail == lostFor+usedName.Detail {
			return true
		}
	}
	return false
}

// compare lists an operation that the log has if the origin has refused it since. An operation that was listed for its missing picture or
// manifest is no longer a conflict once that has come.
func (t *taking) compare(op *log.Op) error {
	why, err := kv.Find(t.p.o.Store, refusedKey(t.p.o.App, op.Dot))
	if why != nil {
		t.lose(op, string(why))
	}
	if err != nil || t.missing[op.Dot] != "" {
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
func noteRefused(b *kv.Batch, app catalog.AppID, ops []log.Op) {
	for i := range ops {
		if now, refused := ops[i].Body.(*log.Refused); refused {
			b.Put(refusedKey(app, ops[i].Dot), []byte(now.Reason))
		}
	}
}

// Reasons for listing an operation as a conflict although it is taken back.
const (
	LostPicture  = "the bytes of the picture are lost"
	LostManifest = "the weights of the version are lost"
)

// lose lists an operation.
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
	verdicts, _, err := foldEntries(fold.NewUpTo(p.o.App, p.o.Rules), p.clock, kv.NewOverlay(p.o.Store), entries)
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
		if c.Verdict.Detail != lostFor+usedName.Detail { // otherwise another thing has the name
			var err error
			if c.ID, err = p.SubjectID(c.Op.Body); err != nil {
				return err
			}
		}
		PutConflict(b, p.o.App, c)
	}
	noteRefused(b, p.o.App, t.ops)
	return nil
}

// A log seals its entries for its replicas, with a key that only its store and its backups have:
//
//	seal   the key
const sealName = "seal"

// openSeal reads or creates the key of the log's seals. A log without seals cannot take entries back.
func (p *Origin) openSeal() error {
	if p.o.App == catalog.Control {
		return nil
	}
	key, err := kv.Find(p.o.Store, p.o.App.LocalKey(sealName))
	if err == nil && key == nil && p.o.Secret != [32]byte{} && p.closed == nil {
		key = p.o.Secret[:]
		var b kv.Batch
		b.Put(p.o.App.LocalKey(sealName), key)
		if err = kv.CommitAndWait(p.o.Store, &b); errors.Is(err, kv.ErrFull) { // the next opening creates the key
			return nil
		}
	}
	p.sealKey = bytes.Clone(key)
	return err
}

// Seal returns a code by which this log, or one restored from its backup, recognizes its entries up to seq; nil: the log has no key. Its
// replicas store the code with the entries.
func (p *Origin) Seal(seq uint64, chain log.Chain) []byte {
	if p.sealKey == nil {
		return nil
	}
	h := hmac.New(sha256.New, p.sealKey)
	h.Write(p.o.App[:])
	h.Write(binary.BigEndian.AppendUint64(nil, seq))
	h.Write(chain[:])
	return h.Sum(nil)
}
