package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
)

// ErrSequence is returned by Accept if operations are missing between the log's last one of the writer and the first given one.
var ErrSequence = errors.New("operations are missing before these")

// ErrForged is returned by Accept for operations that another single writer cannot have made.
var ErrForged = errors.New("operations do not come from one other writer")

// ErrName is returned by Accept if the log has another operation by the name of one of the operations, or of the one before them: a machine
// has continued from an image of its memory.
var ErrName = errors.New("the log has another operation by this name")

// ErrGaps is returned by Accept if the names of a writer in the log would have too many gaps.
var ErrGaps = errors.New("too many gaps between the operations of a writer")

// Limits of another writer's operation, and of its names. Accept refuses what exceeds them.
const (
	MaxOperation = 2 << 20 // bytes of its encoding; the largest of a call of /v2 has 1.3 MB
	maxBy        = 256     // bytes of By
	maxRanges    = 64      // of the names of a writer
)

// Offer is a run of operations of one other writer.
type Offer struct {
	Opening log.Epoch // opening of the log in the writer's session; zero: any
	Ops     []log.Op
	Before  log.HLC         // clock that the writer gave the operation before the first one; 0: not known
	Gap     bool            // the sender does not have the operations between the log's last one and the first one
	Also    func(*kv.Batch) // as in [Partition.Submit]
}

// writerNames are the names of a writer in the log, which may not be folded yet.
type writerNames struct {
	catalog.Names
	at log.HLC // clock in the log of the newest operation that this process appended
}

// Accept is [Origin.AcceptOffer] of operations with nothing else to say about them.
func (p *Origin) Accept(ctx context.Context, ops []log.Op, also func(*kv.Batch)) (verdicts []fold.Verdict, last uint64, err error) {
	return p.AcceptOffer(ctx, &Offer{Ops: ops, Also: also})
}

// AcceptOffer appends operations of one other writer, in sequence. It skips those that the log has, so sending again is safe. If operations
// are missing before the first, it returns ErrSequence and writes nothing. If it returns no error, all of the operations survive a crash and
// their effect is visible.
//
//	had ─┬─ appended ──────────────────────┬─ not sent yet
//	   skip      clamp, vet, append       verdicts
//
// If the writer may not make an operation (see [Admit]), AcceptOffer appends a log.Refused of the same name, so that the sequence has no gap
// and the maker learns the reason. It sets an operation's clock that is over two seconds ahead to its own clock.
//
// verdicts belong to the first len(verdicts) operations. With kv.ErrFull these are the operations before the first one for which the
// store has no space; otherwise all of them. A skipped operation has the zero Verdict. All of these operations are at or before entry
// last of the log, so a replica that has folded that entry knows their verdicts. AcceptOffer borrows the operations. Errors: ErrForged,
// ErrSequence, ErrName, ErrGaps, kv.ErrFull and those of Submit.
func (p *Origin) AcceptOffer(ctx context.Context, o *Offer) (verdicts []fold.Verdict, last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if len(o.Ops) == 0 {
		return nil, p.log.Head(), nil
	}
	if err := p.contiguous(o.Ops); err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	if err := p.prepareOps(o.Ops); err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	a, err := p.admit(o)
	if err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	if err = a.wait(); err == nil {
		err = p.foldTo(a.last)
	}
	p.drop(a.first, a.ticket)
	verdicts = make([]fold.Verdict, a.end)
	for i, v := range a.ticket {
		verdicts[a.fresh[i]] = v
	}
	if err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	return verdicts, a.last, a.full
}

// Names returns the names of a writer in the log. Some of the operations may not survive a crash yet.
func (p *Origin) Names(w log.Writer) (catalog.Names, error) {
	defer p.locks.take(appending).unlock()
	n, err := p.names(w)
	copied := n.Names
	copied.Ranges = slices.Clone(copied.Ranges) // the next push changes them
	return copied, err
}

// names returns the names of a writer in the log. If this process has not appended any, the state has them, since [OpenOrigin] has folded
// the whole log. The caller holds appending, and may change the result only for [Origin.recordAppended].
func (p *Origin) names(w log.Writer) (*writerNames, error) {
	p.forgetAppended()
	if n := p.appended[w]; n != nil {
		return n, nil
	}
	n, err := catalog.Read(p.o.Store, p.o.App).Names(w)
	return &writerNames{Names: n}, err
}

// maxAppended is the number of writers whose names the partition keeps in memory once they are folded.
const maxAppended = 1024

// forgetAppended forgets the names of writers, if there are many, or if a horizon may have dropped some from the state, and the state has
// all others. The caller holds appending.
func (p *Origin) forgetAppended() {
	if len(p.appended) < maxAppended && !p.dropsNames {
		return
	}
	lock := p.locks.take(reading)
	folded := p.seq
	lock.unlock()
	if folded == p.log.LastSeq() {
		clear(p.appended)
		p.dropsNames = false
	}
}

// noteHorizons notes whether appended operations have a horizon. The caller holds appending.
func (p *Origin) noteHorizons(ops []log.Op) {
	for i := range ops {
		_, is := ops[i].Body.(*log.Horizon)
		p.dropsNames = p.dropsNames || is
	}
}

// recordAppended records appended operations of other writers. The caller holds appending.
func (p *Origin) recordAppended(ops []log.Op) error {
	p.noteHorizons(ops)
	for i := range ops {
		dot := ops[i].Dot
		n, err := p.names(dot.Writer)
		if err != nil {
			return err
		}
		p.appended[dot.Writer] = n
		if n.Has(dot.Seq) {
			continue
		}
		if n.at = ops[i].At; dot.Seq > n.Last() && !dot.Writer.IsSite() {
			n.Newest = ops[i].MadeAt()
		}
		n.Add(dot.Seq)
	}
	return nil
}

// contiguous checks that all operations belong to one other writer, in sequence.
func (p *Origin) contiguous(ops []log.Op) error {
	first := ops[0].Dot
	if first.Writer == 0 || first.Writer.IsOrigin() || first.Writer == log.Writer(p.drawn.Load()) || first.Seq == 0 || p.o.App == catalog.Control {
		return fmt.Errorf("writer %v, operation %d: %w", first.Writer, first.Seq, ErrForged)
	}
	for i := range ops {
		switch dot := ops[i].Dot; {
		case dot.Writer != first.Writer:
			return fmt.Errorf("operation of writer %v among those of writer %v: %w", dot.Writer, first.Writer, ErrForged)
		case dot.Seq != first.Seq+uint64(i):
			return fmt.Errorf("writer %v, operation %d after %d: %w", dot.Writer, dot.Seq, ops[max(i, 1)-1].Dot.Seq, ErrSequence)
		}
	}
	return nil
}

// admission is the result of appending operations.
type admission struct {
	fresh       []int          // indexes of the appended operations
	end         int            // number of operations that the log has now
	first, last uint64         // first and last appended entry
	ticket      []fold.Verdict // nil: nothing was appended
	wait        func() error
	full        error // kv.ErrFull: some operations were not appended
}

// admit appends those operations that the log lacks.
func (p *Origin) admit(o *Offer) (a admission, err error) {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return a, err
	}
	if o.Opening != (log.Epoch{}) && o.Opening != p.log.Opening() {
		return a, ErrOpening
	}
	had, err := p.names(o.Ops[0].Dot.Writer)
	if err != nil {
		return a, err
	}
	if err := o.follows(had); err != nil {
		return a, err
	}
	if err := p.compareOlder(o.Ops, had); err != nil {
		return a, err
	}
	var fresh []log.Op
	full := p.o.Store.Room()
	for a.end = 0; a.end < len(o.Ops); a.end++ {
		op := &o.Ops[a.end]
		if had.Has(op.Dot.Seq) {
			continue
		}
		if full != nil && (!log.OnlyDeletes(op.Body) || Admit(op) != "") { // a refused deletion frees nothing
			a.full = fmt.Errorf("accept: %w", full)
			break
		}
		fresh, a.fresh = append(fresh, *op), append(a.fresh, a.end)
	}
	if len(fresh) == 0 { // other calls may still wait for these entries to be synced
		a.last, a.wait = p.log.LastSeq(), p.log.WaitDurable
		return a, nil
	}
	vetted, err := p.vet(fresh, had.at)
	if err != nil {
		return a, err
	}
	batch := &kv.Batch{}
	if o.Also != nil {
		o.Also(batch)
	}
	if err := p.reserve(vetted, batch); err != nil {
		return a, err
	}
	noteRefused(batch, p.o.App, vetted) // also those that the quota refuses
	a.first = p.log.LastSeq() + 1
	a.last = a.first + uint64(len(vetted)) - 1
	a.ticket = p.expect(a.first, len(vetted))
	if _, a.wait, err = p.log.Append(vetted, batch); err != nil {
		p.o.Quota.Cancel(vetted)
		p.drop(a.first, a.ticket)
		return a, err
	}
	return a, p.recordAppended(vetted)
}

// follows checks that the operations continue those that the log has of their writer, or fill a gap between them.
func (o *Offer) follows(had *writerNames) error {
	first, newest := o.Ops[0].Dot, had.Last()
	if first.Seq > newest+1 && !o.Gap {
		return fmt.Errorf("writer %v, operation %d after %d: %w", first.Writer, first.Seq, newest, ErrSequence)
	}
	joins := func(r catalog.NameRange) bool {
		return r.First <= first.Seq+uint64(len(o.Ops)) && first.Seq <= r.Last+1
	}
	if len(had.Ranges) >= maxRanges && !slices.ContainsFunc(had.Ranges, joins) {
		return fmt.Errorf("writer %v: %w", first.Writer, ErrGaps)
	}
	made := o.Before
	if first.Seq <= newest && newest-first.Seq < uint64(len(o.Ops)) {
		made = o.Ops[newest-first.Seq].MadeAt()
	} else if first.Seq != newest+1 {
		return nil
	}
	if made != 0 && had.Newest != 0 && made != had.Newest {
		return fmt.Errorf("writer %v, operation %d: %w", first.Writer, newest, ErrName)
	}
	return nil
}

// compareOlder compares operations that end before the log's newest one of their writer with those that the log has by their names. Their sender
// is older than the log: its disk was set back, and perhaps its memory with it.
func (p *Origin) compareOlder(ops []log.Op, had *writerNames) error {
	if ops[len(ops)-1].Dot.Seq >= had.Last() {
		return nil
	}
	if err := p.clocks.read(p.log, p.o.Clock()); err != nil {
		return err
	}
	for i := range ops {
		if p.clocks.differs(&ops[i]) {
			return fmt.Errorf("writer %v, operation %d: %w", ops[i].Dot.Writer, ops[i].Dot.Seq, ErrName)
		}
	}
	return nil
}

// FirstOther returns the first of the operations that the log does not have as it is given, or has trimmed; the last one if it has all. It is
// for operations that Accept refuses with ErrName. Errors: those of kv.
func (p *Origin) FirstOther(ops []log.Op) (log.Dot, error) {
	defer p.locks.take(appending).unlock()
	err := p.clocks.read(p.log, p.o.Clock())
	for i := range ops {
		if made, ok := p.clocks.of[ops[i].Dot]; !ok || made != ops[i].MadeAt() {
			return ops[i].Dot, err
		}
	}
	return ops[len(ops)-1].Dot, err
}

// vet returns the operations as the log appends them. Their clocks rise and are not far ahead, and operations that the writer may not make
// are replaced by a log.Refused. at is the clock of the writer's operation before them; 0: not known.
func (p *Origin) vet(ops []log.Op, at log.HLC) ([]log.Op, error) {
	vetted := make([]log.Op, len(ops))
	for i := range ops {
		op := ops[i]
		if op.SetAt(p.clock.Accept(op.At)); op.At <= at {
			op.SetAt(p.clock.Next()) // the writer's clock went back, or was set to ours a moment ago
		}
		at = op.At
		why := Admit(&op)
		if why == "" {
			var err error
			if why, err = checkHostedName(p.o.Store, op.Body); err != nil {
				return nil, err
			}
		}
		if why != "" {
			Refuse(&op, why)
		}
		vetted[i] = op
	}
	return vetted, nil
}

// checkHostedName returns the reason to refuse an input if its public name belongs to another input's picture.
func checkHostedName(store kv.Reader, body log.Body) (why string, err error) {
	b, ok := body.(*log.InputCreate)
	if !ok || b.Hosted == [16]byte{} {
		return "", nil
	}
	_, _, err = catalog.HostedInput(store, b.Hosted)
	if errors.Is(err, catalog.ErrNotFound) {
		return "", nil
	}
	return "scope: the public name of another picture", err
}

// Refuse replaces an operation's body by a log.Refused. The content is lost.
func Refuse(op *log.Op, why string) {
	op.Body, op.Extra = &log.Refused{Reason: why}, log.Extra{}
	if !form.IsText(op.By, maxBy) {
		op.By = ""
	}
}

// Admit returns the reason why another writer may not make an operation; "": it may. The operation must have a kind that replicas make, and
// the form that a call of /v2 gives it: see [form.Check].
func Admit(op *log.Op) (why string) {
	switch {
	case !form.IsReplicaWritable(op.Body):
		return "schema: unsupported kind of operation"
	case !form.IsText(op.By, maxBy):
		return "schema: invalid author"
	case len(log.Encode(nil, op)) > MaxOperation:
		return "schema: operation too large"
	}
	return form.Check(op.Body)
}
