package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
)

// ErrSequence is returned by Accept if operations are missing between the log's last one of the site and the first given one.
var ErrSequence = errors.New("operations are missing before these")

// ErrForged is returned by Accept for operations that another single site cannot have issued.
var ErrForged = errors.New("operations do not come from one other site")

// Limits of another site's operation. Accept refuses one that exceeds them.
const (
	MaxOperation = 2 << 20   // bytes of its encoding; the largest of a call of /v2 has 1.3 MB
	maxBy        = 256       // bytes of By
	maxFormless  = 128 << 10 // bytes of an operation from before the rules for its form
)

// siteProgress is the last appended operation of a site.
type siteProgress struct {
	seq uint64
	at  log.HLC // clock of operation seq; 0: appended before this process started
}

// Accept appends operations of one other site, in sequence. It skips those that the log has, so sending again is safe. If operations are
// missing before the first, it returns ErrSequence and writes nothing. If it returns no error, all of ops survive a crash and their effect
// is visible.
//
//	had ─┬─ appended ──────────────────────┬─ not sent yet
//	   skip      clamp, vet, append       verdicts
//
// If the site may not write an operation (see [Admit]), Accept appends a log.Refused of the same dot, so that the sequence has no gap and
// the site learns the reason. It sets an operation's clock that is over two seconds ahead to its own clock. also is as in
// [Partition.Submit].
//
// verdicts belong to the first len(verdicts) operations. With kv.ErrFull these are the operations before the first one for which the
// store has no space; otherwise all of them. A skipped operation has the zero Verdict. All of these operations are at or before entry
// last of the log, so a site that has folded that entry knows their verdicts. Accept borrows ops. Errors: ErrForged, ErrSequence,
// kv.ErrFull and those of Submit.
func (p *Partition) Accept(ctx context.Context, ops []log.Op, also func(*kv.Batch)) (verdicts []fold.Verdict, last uint64, err error) {
	return p.AcceptOf(ctx, ops, nil, also)
}

// AcceptOf is [Partition.Accept] with the lives of the replica that made ops and the operation before them, as far as the replica has
// recorded them. If other lives made the log's operations of these sequence numbers, AcceptOf appends nothing and returns ErrLife.
func (p *Partition) AcceptOf(ctx context.Context, ops []log.Op, lives []Life, also func(*kv.Batch)) (verdicts []fold.Verdict, last uint64, err error) {
	return p.accept(ctx, ops, nil, lives, also)
}

// AcceptAgain is [Partition.AcceptOf] for operations that the log had before it was restored from a backup. ops are the operations as the
// caller has them, sent as the site has them. AcceptAgain lists an operation that is refused now as a conflict with its content. It does not
// check the form of operations, since the log may have had them before the rules.
func (p *Partition) AcceptAgain(ctx context.Context, ops, sent []log.Op, lives []Life, also func(*kv.Batch)) (verdicts []fold.Verdict, last uint64, err error) {
	return p.accept(ctx, ops, sent, lives, also)
}

func (p *Partition) accept(ctx context.Context, ops, sent []log.Op, lives []Life, also func(*kv.Batch)) (verdicts []fold.Verdict, last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if len(ops) == 0 {
		return nil, p.log.Head(), nil
	}
	if err := p.contiguous(ops); err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	if err := p.prepareOps(ops); err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	a, err := p.admit(ops, sent, lives, also)
	if err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	if err = a.wait(); err == nil {
		err = p.foldTo(a.last)
	}
	verdicts = make([]fold.Verdict, a.skipped, len(ops))
	if a.ticket != nil {
		p.drop(a.first, a.ticket)
		verdicts = append(verdicts, a.ticket.verdicts...)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("accept: %w", err)
	}
	return verdicts, a.last, a.full
}

// SiteSeq returns the sequence number of the last appended operation of a site, 0 for none. It may not survive a crash yet.
func (p *Partition) SiteSeq(site log.Writer) (uint64, error) {
	if site == p.Site() {
		defer p.locks.take(appending).unlock()
		if site == p.o.Site {
			return p.last, nil
		}
	}
	h, err := p.siteProgress(site)
	return h.seq, err
}

// siteProgress returns the last appended operation of a site. If this process has not appended one, the state has it, since [Open] has
// folded the whole log.
func (p *Partition) siteProgress(site log.Writer) (siteProgress, error) {
	lock := p.locks.take(hearing)
	h, ok := p.remoteSites[site]
	lock.unlock()
	if ok {
		return h, nil
	}
	seq, err := catalog.Read(p.o.Store, p.o.App).SiteSeq(site)
	return siteProgress{seq: seq}, err
}

// contiguous checks that all operations belong to one other site, in sequence.
func (p *Partition) contiguous(ops []log.Op) error {
	if p.replica != nil {
		return ErrReplica
	}
	first := ops[0].Dot
	if first.Writer == 0 || first.Writer == log.Origin || first.Writer == p.Site() || first.Seq == 0 || p.o.App == catalog.Control {
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
	skipped     int
	first, last uint64  // first and last appended entry
	ticket      *ticket // nil: nothing was appended
	wait        func() error
	full        error // kv.ErrFull: some operations were not appended
}

// admit appends those operations that the log lacks. sent is as in AcceptAgain, or nil.
func (p *Partition) admit(ops, sent []log.Op, lives []Life, also func(*kv.Batch)) (a admission, err error) {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return a, err
	}
	site, from := ops[0].Dot.Writer, ops[0].Dot.Seq
	had, err := p.siteProgress(site)
	if err != nil {
		return a, err
	}
	if from > had.seq+1 {
		return a, fmt.Errorf("writer %v, operation %d after %d: %w", site, from, had.seq, ErrSequence)
	}
	born, err := p.follow(ops, lives, had.seq)
	if err != nil {
		return a, err
	}
	a.skipped = int(min(had.seq+1-from, uint64(len(ops))))
	fresh := ops[a.skipped:]
	if err := p.o.Store.Room(); err != nil {
		if fresh = roomy(fresh); len(fresh) < len(ops)-a.skipped {
			a.full = fmt.Errorf("accept: %w", err)
		}
	}
	if len(fresh) == 0 { // other calls may still wait for these entries to be synced
		a.last, a.wait = p.log.LastSeq(), p.log.Settle
		return a, nil
	}
	vetted, err := p.vet(fresh, had, sent != nil)
	if err != nil {
		return a, err
	}
	var batch *kv.Batch
	if also != nil || len(born) > 0 {
		batch = &kv.Batch{}
	}
	if also != nil {
		also(batch)
	}
	for _, l := range born {
		if l.First < from+uint64(a.skipped)+uint64(len(vetted)) {
			putLife(batch, p.o.App, site, l)
		}
	}
	kills, err := p.deletedEarly(vetted, sent[min(a.skipped, len(sent)):], &batch)
	if err != nil {
		return a, err
	}
	if err := p.reserve(vetted, batch); err != nil {
		return a, err
	}
	a.first = p.log.LastSeq() + 1
	a.last = a.first + uint64(len(vetted)) - 1
	a.ticket = p.expect(a.first, len(vetted))
	if _, a.wait, err = p.log.Append(append(vetted[:len(vetted):len(vetted)], kills...), batch); err != nil {
		p.unreserve(vetted)
		p.drop(a.first, a.ticket)
		return a, err
	}
	p.hear(vetted[len(vetted)-1:])
	p.hear(kills)
	return a, nil
}

// follow checks that the same lives made the operations up to had, which the log has, and their predecessor. It returns the lives to record
// with the operations after had.
func (p *Partition) follow(ops []log.Op, lives []Life, had uint64) (born []Life, err error) {
	if len(lives) == 0 {
		return nil, nil
	}
	site, last := ops[0].Dot.Writer, ops[len(ops)-1].Dot.Seq
	known := Life{}
	if had > 0 {
		if known, err = p.lifeAt(site, min(had, last)); err != nil {
			return nil, err
		}
		if theirs := lifeOf(lives, min(had, last)); theirs != 0 && known.ID != 0 && theirs != known.ID {
			return nil, fmt.Errorf("writer %v, operation %d: %w", site, min(had, last), ErrLife)
		}
	}
	for seq, at := had+1, known.ID; seq <= last; seq++ {
		if id := lifeOf(lives, seq); id != at && id != 0 {
			born, at = append(born, Life{First: seq, ID: id}), id
		}
	}
	return born, nil
}

// roomy returns the operations before the first one that does not free space. A refused deletion frees none.
func roomy(ops []log.Op) []log.Op {
	for i := range ops {
		if !log.Deletes(ops[i].Body) || Admit(&ops[i]) != "" {
			return ops[:i]
		}
	}
	return ops
}

// vet returns the operations as the log appends them. Their clocks rise and are not far ahead, and operations that the site may not write
// are replaced by a log.Refused. again: the log had them before it was restored.
func (p *Partition) vet(ops []log.Op, had siteProgress, again bool) ([]log.Op, error) {
	rule := Admit
	if again {
		rule = AdmitAgain
	}
	vetted := make([]log.Op, len(ops))
	at := had.at
	for i := range ops {
		op := ops[i]
		if op.SetAt(p.clock.Accept(op.At)); op.At <= at {
			op.SetAt(p.clock.Next()) // the site's clock went back, or was set to ours a moment ago
		}
		at = op.At
		why := rule(&op)
		if why == "" {
			var err error
			if why, err = p.checkHostedName(op.Body); err != nil {
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
func (p *Partition) checkHostedName(body log.Body) (why string, err error) {
	b, ok := body.(*log.InputCreate)
	if !ok || b.Hosted == [16]byte{} {
		return "", nil
	}
	_, _, err = catalog.HostedInput(p.o.Store, b.Hosted)
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

// Admit returns the reason why another site may not write an operation; "": it may. The operation must have a kind that [AdmitAgain] allows,
// and the form that a call of /v2 gives it: see [form.Check].
func Admit(op *log.Op) (why string) { return admit(op, 0) }

// AdmitAgain is [Admit] for an operation that the log had before it was restored from a backup.
func AdmitAgain(op *log.Op) (why string) { return admit(op, maxFormless) }

// admit checks the form of an operation only if its encoding is longer than formless bytes.
func admit(op *log.Op, formless int) (why string) {
	switch {
	case !form.IsReplicas(op.Body):
		return "schema: unsupported kind of operation"
	case !form.IsText(op.By, maxBy):
		return "schema: invalid author"
	}
	switch size := len(log.Encode(nil, op)); {
	case size > MaxOperation:
		return "schema: operation too large"
	case size > formless:
		return form.Check(op.Body)
	}
	return ""
}
