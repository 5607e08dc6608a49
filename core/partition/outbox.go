package partition

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// The outbox of a replica has its own operations, of all writers that its store has had, by positions from 1. An operation is pending until
// the log has it, and stays until nobody can lose it:
//
//	positions   1 … 40 │ 41 … 57 │ 58 59 │ 60 61
//	             left  │ confirmed│pending│ pending, of the next writer
//	                   │ in the log up to entry 90, which is not stable

// ErrOutbox is returned by Submit if ReplicaOptions.MaxPending operations already wait for the origin.
var ErrOutbox = errors.New("too many operations are waiting for the origin")

// outboxWriter is a writer with operations in the outbox. Its operation 1 has the position first.
type outboxWriter struct {
	writer log.Writer
	writerRecord
}

// outboxWriters are the writers of an outbox, in the order of their positions.
type outboxWriters []outboxWriter

// writerRecord is stored under writer/WRITER.
//
//field:message
type writerRecord struct {
	secret []byte `wire:"1"`
	first  uint64 `wire:"2"`
}

const writerName = "writer/"

func writerKey(app catalog.AppID, w log.Writer) []byte { return w.AppendKey(app.LocalKey(writerName)) }

// readWriters reads the writers of the outbox, in the order of their positions. That of a store of version 0.1.0 is a site.
func readWriters(r kv.Reader, app catalog.AppID, site log.Writer) (writers outboxWriters, err error) {
	if site != 0 {
		writers = append(writers, outboxWriter{site, writerRecord{first: 1}})
	}
	for key, value := range kv.WithPrefix(r, app.LocalKey(writerName), &err) {
		x, failed := decodeWriterRecord(bytes.Clone(value))
		if failed != nil {
			return nil, fmt.Errorf("writer: %w", failed)
		}
		writers = append(writers, outboxWriter{log.KeyWriter(key), x})
	}
	slices.SortFunc(writers, func(a, b outboxWriter) int { return int(int64(a.first) - int64(b.first)) })
	return writers, err
}

// confirmedRun is a run of positions whose operations the log has at or before the entry place.
type confirmedRun struct {
	first uint64 `wire:"1"`
	last  uint64 `wire:"2"`
	place uint64 `wire:"3"`
}

// maxConfirmed is the number of runs above which a run grows instead of another one beginning. The operations of a grown run stay longer in
// the outbox.
const maxConfirmed = 256

// confirmedRuns are the confirmed positions of an outbox, in ascending order.
type confirmedRuns []confirmedRun

// find returns the index of the first run that ends at a position or after it.
func (c confirmedRuns) find(at uint64) int {
	return sort.Search(len(c), func(i int) bool { return c[i].last >= at })
}

// has reports whether a position is confirmed.
func (c confirmedRuns) has(at uint64) bool {
	i := c.find(at)
	return i < len(c) && c[i].first <= at
}

// after returns the first position above at that is not confirmed.
func (c confirmedRuns) after(at uint64) uint64 {
	for i := c.find(at + 1); i < len(c) && c[i].first <= at+1; i++ {
		at = c[i].last
	}
	return at + 1
}

// count returns the number of confirmed positions from first to last.
func (c confirmedRuns) count(first, last uint64) (n uint64) {
	for _, r := range c {
		if lo, hi := max(r.first, first), min(r.last, last); lo <= hi {
			n += hi - lo + 1
		}
	}
	return n
}

// add returns the runs with another position. It changes c.
func (c confirmedRuns) add(at, place uint64) confirmedRuns {
	i := c.find(at)
	switch {
	case i < len(c) && c[i].first <= at:
	case i > 0 && c[i-1].last+1 == at && (c[i-1].place == place || len(c) >= maxConfirmed):
		c[i-1].last, c[i-1].place = at, max(c[i-1].place, place)
	default:
		c = slices.Insert(c, i, confirmedRun{at, at, place})
	}
	return c
}

// stable joins the first runs, as far as the log has their operations at or before an entry. It returns the first position that stays in
// the outbox. It changes c. The joined run begins at 1, so that operations which a crash keeps in the outbox are not pending again.
func (c confirmedRuns) stable(floor, entry uint64) (confirmedRuns, uint64) {
	n := 0
	for n < len(c) && c[n].first <= floor && c[n].place <= entry {
		floor = max(floor, c[n].last+1)
		n++
	}
	if n == 0 {
		return c, floor
	}
	c[n-1].first = 1
	return c[n-1:], floor
}

// index returns the index of a writer; -1: it has no operations in the outbox.
func (w outboxWriters) index(of log.Writer) int {
	return slices.IndexFunc(w, func(x outboxWriter) bool { return x.writer == of })
}

// position returns the position that an operation has or had in the outbox, which ends at last; 0: its writers have not made it.
func (w outboxWriters) position(dot log.Dot, last uint64) uint64 {
	i := w.index(dot.Writer)
	if i < 0 || dot.Seq == 0 {
		return 0
	}
	if i+1 < len(w) {
		last = w[i+1].first - 1
	}
	if at := w[i].first + dot.Seq - 1; at <= last {
		return at
	}
	return 0
}

// Position returns the position of an operation in the outbox of a replica; 0: the outbox lacks it.
func (p *Replica) Position(dot log.Dot) uint64 {
	if at := p.outboxWriters().position(dot, p.log.LastSeq()); at >= p.log.Floor() {
		return at
	}
	return 0
}

func (p *Replica) owns(w log.Writer) bool   { return p.madeBy(w) }
func (p *Replica) madeBy(w log.Writer) bool { return p.outboxWriters().index(w) >= 0 }

// Outbox returns the position of the last operation of a replica that survives a crash, and the last position before the first pending
// operation.
func (p *Replica) Outbox() (last, settled uint64) {
	defer p.locks.take(reading).unlock()
	last = p.log.Head()
	return last, min(p.confirmed.after(p.log.Floor()-1)-1, last)
}

// Pending yields the pending operations after a position with their positions, oldest first, until yield returns false. They survive a
// crash.
func (p *Replica) Pending(after uint64, yield func(at uint64, op log.Op) bool) error {
	confirmed := p.place().confirmed
	after = confirmed.after(max(after, p.log.Floor()-1)) - 1
	return p.LocalOps(after, func(at uint64, op log.Op) bool { return confirmed.has(at) || yield(at, op) })
}

// LocalOps yields the operations in the outbox after a position with their positions, oldest first, until yield returns false: pending ones,
// and confirmed ones that may not be stable.
func (p *Replica) LocalOps(after uint64, yield func(at uint64, op log.Op) bool) error {
	if after = max(after, p.log.Floor()-1); after >= p.log.Head() {
		return nil
	}
	return p.log.Read(after+1, func(e log.Entry) bool { return yield(e.Seq, e.Op) })
}

// local returns a loop over LocalOps up to a position. If reading fails, the loop ends and sets err.
func (p *Replica) local(after, last uint64, err *error) iter.Seq2[uint64, log.Op] {
	return func(yield func(uint64, log.Op) bool) {
		failed := p.LocalOps(after, func(at uint64, op log.Op) bool { return at <= last && yield(at, op) && at < last })
		if failed != nil {
			*err = failed
		}
	}
}

// Secret returns the secret of a writer in the outbox; nil: it has none.
func (p *Replica) Secret(w log.Writer) []byte {
	writers := p.outboxWriters()
	if i := writers.index(w); i >= 0 {
		return writers[i].secret
	}
	return nil
}

// room implements [side].
func (p *Replica) room(n int) error {
	lock := p.locks.take(reading)
	floor, last := p.log.Floor(), p.log.LastSeq()
	waiting := last + 1 - floor - p.confirmed.count(floor, last) + uint64(n)
	lock.unlock()
	if waiting > p.limit {
		return fmt.Errorf("%d of %d: %w", waiting, p.limit, ErrOutbox)
	}
	return nil
}

// note implements [side]. It notes the secret of the writer, which the replica shows when it pushes, and the token of the operations.
func (p *Replica) note(b *kv.Batch, ops []log.Op, t Token, first uint64) error {
	if p.own.seq == 0 {
		b.Put(writerKey(p.o.App, p.own.writer), encodeWriterRecord(nil, &writerRecord{p.own.secret[:], first}))
	}
	if t == (Token{}) {
		return nil
	}
	for i := range ops {
		b.Put(tokenKey(p.o.App, ops[i].Dot), encodeToken(nil, &t))
	}
	return nil
}

// leave deletes the records of the operations before position floor, which leave the outbox: their tokens, and writers without others.
func (m *pullBatch) leave(floor uint64) (err error) {
	p, w := m.p, m.p.outboxWriters()
	var dropped [][]byte
	for i := 0; i < len(w) && w[i].first < floor && err == nil; i++ {
		last, done := floor-1, i+1 < len(w) && w[i+1].first <= floor
		if done {
			last = w[i+1].first - 1
		}
		lo, hi := log.Dot{Writer: w[i].writer}, log.Dot{Writer: w[i].writer, Seq: last - w[i].first + 2}
		for key := range kv.Range(p.tx, tokenKey(p.o.App, lo), tokenKey(p.o.App, hi), &err) {
			dropped = append(dropped, bytes.Clone(key))
		}
		if done {
			dropped = append(dropped, writerKey(p.o.App, w[i].writer))
			m.done = i + 1
		}
	}
	for _, key := range dropped {
		p.tx.Delete(key)
	}
	if m.done > 0 {
		m.note.site = 0
	}
	return err
}

// openOutbox finds the last operation of the outbox that the state has: the state counts pending operations as entries after the cursor.
func (p *Replica) openOutbox(h catalog.Header) error {
	// A crash may undo the trim after the batch with which operations left.
	runs := append(confirmedRuns(nil), p.confirmed...)
	if _, floor := runs.stable(p.log.Floor(), p.cursor.Stable); floor > p.log.Floor() {
		if err := p.log.Trim(floor); err != nil && !errors.Is(err, kv.ErrFull) {
			return err
		}
	}
	p.seq = p.log.Floor() - 1
	if p.torn {
		return nil
	}
	if h.Seq < p.cursor.Seq {
		return fmt.Errorf("state of entry %d with the cursor at %d: %w", h.Seq, p.cursor.Seq, kv.ErrCorrupt)
	}
	for range h.Seq - p.cursor.Seq {
		p.seq = p.confirmed.after(p.seq)
	}
	p.seq = p.confirmed.after(p.seq) - 1
	if p.seq > p.log.Head() {
		return fmt.Errorf("state with operation %d of an outbox that ends at %d: %w", p.seq, p.log.Head(), kv.ErrCorrupt)
	}
	return nil
}

// foldRun implements [side]. It folds operations of the outbox over the state, and writes their undo records.
func (p *Replica) foldRun(entries []log.Entry) (err error) {
	defer func() {
		if err != nil {
			p.forget()
		}
	}()
	first, last := entries[0].Seq, entries[len(entries)-1].Seq
	p.tx.Reset(p.o.Store)
	verdicts, out, err := p.foldLocal(p.pending, p.tx, entries)
	if err != nil {
		return err
	}
	if err := p.noteUndo(p.tx, p.o.Store, p.tx.Batch()); err != nil {
		return err
	}
	analysed, err := findIndexable(p.index, p.tx, p.o.App, entries, out)
	if err != nil {
		return err
	}
	at := p.pending.Seq()
	if err := p.apply(change{indexed: out, analysed: analysed, watched: withoutDeletions(out), moved: func() { p.seq, p.at = last, at }}); err != nil {
		return err
	}
	p.fillTickets(first, verdicts)
	return nil
}

// foldLocal folds entries of the outbox into tx. It numbers them after the last entry in tx.
func (p *Replica) foldLocal(f *fold.Fold, tx *kv.Overlay, entries []log.Entry) (verdicts []fold.Verdict, out fold.Outcome, err error) {
	h, err := catalog.Read(tx, p.o.App).Header()
	if err == nil {
		err = f.Begin(tx)
	}
	if err != nil {
		return nil, out, err
	}
	verdicts = make([]fold.Verdict, len(entries))
	for i := range entries {
		e := &entries[i]
		position := e.Seq
		e.Seq = h.Seq + 1 + uint64(i)
		p.clock.Observe(e.Op.At)
		if verdicts[i], err = f.ApplyPending(e, position); err != nil {
			return nil, out, err
		}
	}
	return verdicts, f.End(), nil
}

// Try returns the verdicts that bodies would get if this replica submitted them now. It submits nothing. So a caller can refuse an
// operation at once, instead of sending it to the origin, whose state may differ by then. Try borrows bodies. Errors: those of kv.
func (p *Replica) Try(by string, bodies []log.Body) (verdicts []fold.Verdict, err error) {
	if len(bodies) == 0 {
		return nil, nil
	}
	entries := make([]log.Entry, len(bodies))
	for i, body := range bodies {
		dot := log.Dot{Writer: tried, Seq: 1 + uint64(i)}
		entries[i] = log.Entry{Seq: p.log.LastSeq() + 1 + uint64(i), Op: log.Op{Dot: dot, At: p.clock.Next(), By: by, Body: body}}
	}
	v := p.View()
	verdicts, _, err = p.foldLocal(fold.NewPending(p.o.App, p.o.Rules), kv.NewOverlay(v.snapshot), entries)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, fmt.Errorf("try: %w", err)
	}
	return verdicts, nil
}

// tried is the writer of operations that are only tried. No writer is drawn with this number.
const tried log.Writer = 1<<62 - 1
