package feed

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// push accepts operations of one writer. The accepted ones are always the first ones of a push.
//
//	body ─▶ application, writer, opening ─▶ sequence ─▶ quota ─▶ pictures ─▶ log ─▶ verdicts
//	                                       │ had: skipped        │
//	                                       └ gap: 409            └ missing: those before it, or 409
//
// The operations count as calls of the account if the sender is not an edge: an edge reports its calls itself.
func (c *call) push() (api.Response, error) {
	m, err := read(c, c.f.o.Limits.PushBytes, "PushBytes", wire.DecodePush)
	if err != nil {
		return api.Response{}, err
	}
	p, err := c.open(m.App)
	if err == nil {
		err = c.writes(&m)
	}
	if err != nil {
		return api.Response{}, err
	}
	if err := c.checkOpening(p, m.Opening); err != nil {
		return api.Response{}, err
	}
	ops, err := c.operations(&m)
	if err != nil {
		return api.Response{}, err
	}
	sent := slices.Clone(ops)
	if err := c.sign(&m, ops); err != nil {
		return api.Response{}, err
	}
	out := wire.Pushed{Opening: m.Opening}
	if err := c.accept(p, &m, ops, sent, &out); err != nil {
		return api.Response{}, c.pushFailed(err, p, &m, sent, out.Accepted)
	}
	out.Head = p.Log().Head()
	out.Stable = c.f.o.Stable(m.App, out.Head)
	return message(out.Encode()), nil
}

// pushFailed returns the answer if the log accepted none of ops. had is the last operation of the writer in the log.
func (c *call) pushFailed(err error, p *partition.Origin, m *wire.Push, ops []log.Op, had uint64) error {
	var refused *wire.Refusal
	switch {
	case errors.As(err, &refused):
		return err
	case errors.Is(err, partition.ErrOpening):
		return c.checkOpening(p, m.Opening)
	case errors.Is(err, partition.ErrForged):
		return &wire.Refusal{Code: wire.RefusedWriter, Detail: err.Error()}
	case errors.Is(err, partition.ErrName):
		first, failed := p.FirstOther(ops)
		if failed != nil {
			return failed
		}
		return &wire.Refusal{Code: wire.RefusedContent, Detail: err.Error(), Accepted: first.Seq - 1}
	case errors.Is(err, partition.ErrGaps):
		return &wire.Refusal{Code: wire.RefusedLimit, Detail: err.Error(), Limit: wire.LimitGaps}
	case errors.Is(err, partition.ErrSequence):
		return &wire.Refusal{Code: wire.RefusedSequence, Detail: err.Error(), Accepted: had}
	}
	if refusal := c.refuseDeleted(m.App); refusal != nil {
		return refusal
	}
	return err
}

// operations decodes the operations of a push and checks that all belong to its writer.
func (c *call) operations(m *wire.Push) ([]log.Op, error) {
	ops, err := wire.DecodeOps(m.Rows)
	limit := c.f.o.Limits.PushOps
	switch {
	case err != nil:
		return nil, malformedError("operations: %v", err)
	case uint64(len(ops)) > limit:
		return nil, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many operations", Limit: "PushOps", Value: limit}
	}
	for i := range ops {
		if ops[i].Dot.Writer != m.Writer {
			return nil, &wire.Refusal{Code: wire.RefusedWriter, Detail: "operations belong to another writer"}
		}
		if ops[i].Dot.Seq != ops[0].Dot.Seq+uint64(i) || ops[i].Dot.Seq == 0 {
			return nil, malformedError("operations are not in sequence")
		}
	}
	return ops, nil
}

// accept appends the operations that the origin can accept to the log. sent are the operations before any was refused.
func (c *call) accept(p *partition.Origin, m *wire.Push, ops, sent []log.Op, out *wire.Pushed) error {
	had, err := p.Names(m.Writer)
	if err != nil {
		return err
	}
	out.Accepted = had.Last()
	if len(ops) == 0 {
		return nil
	}
	if ops[0].Dot.Seq > had.Last()+1 && !m.Gap {
		return &wire.Refusal{Code: wire.RefusedSequence, Detail: "earlier operations are missing", Accepted: had.Last()}
	}
	known := 0 // the log has the first operations
	for known < len(ops) && had.Has(ops[known].Dot.Seq) {
		known++
	}
	fresh, all, sent := ops[known:], sent, sent[known:]
	if err := c.charge(m, sent); err != nil {
		return err
	}
	if had.Last() == 0 {
		if err := c.newWriter(); err != nil {
			return err
		}
	}
	n := needs{c: c, p: p}
	defer n.release()
	if fresh, err = n.resolve(fresh); err != nil {
		return err
	}
	if len(fresh) == 0 && len(n.lacks) > 0 {
		return &wire.Refusal{Code: wire.RefusedBlobs, Detail: "send the pictures that the operations refer to first", Blobs: n.lacks, Accepted: had.Last()}
	}
	counted := int64(0)
	if fresh, counted, err = c.count(fresh, sent); err != nil {
		return err
	}
	n.cut(len(fresh))
	if len(fresh) == 0 { // the log has all: append them again, which compares the newest and waits until all are durable
		fresh, sent, known = ops, all, 0
	}
	offer := partition.Offer{Opening: m.Opening, Ops: fresh, Before: m.Before, Gap: m.Gap, Also: n.also}
	if known > 0 {
		offer.Before = ops[known-1].MadeAt()
	}
	verdicts, _, err := p.AcceptOffer(c.ctx, &offer)
	if err != nil {
		if err = errors.Join(err, c.giveBack(counted, sent[:min(len(verdicts), len(sent))])); !errors.Is(err, kv.ErrFull) || len(verdicts) == 0 {
			return err
		}
	}
	reportVerdicts(out, fresh, verdicts)
	if done := known + len(verdicts); done < len(ops) { // the log may have later ones
		out.Accepted = ops[done].Dot.Seq - 1
	}
	if err != nil {
		out.WaitMillis = 30_000
	}
	return nil
}

// charge counts a push against the quotas of its sender. sent are the operations that the log may lack.
func (c *call) charge(m *wire.Push, sent []log.Op) error {
	if err := c.mayCall(sent); err != nil {
		return err
	}
	if err := c.sends(uint64(len(m.Rows)), false); err != nil {
		return err
	}
	n := max(uint64(len(sent)), uint64(len(m.Rows))/opBytes)
	if err := c.f.meters.ops.take(c, n, c.now, "operations"); err != nil {
		return err
	}
	return c.f.meters.each.take(c.app+" "+m.Writer.String(), n, c.now, "operations")
}

// newWriter counts a writer that the log does not know yet. Each of them takes some bytes of every copy of the state.
func (c *call) newWriter() error {
	if err := c.f.meters.openings.take(c.user(), 1, c.now, "writers"); err != nil {
		return err
	}
	return c.f.meters.writers.take(c.app, 1, c.now, "writers")
}

// opBytes is the average size of an operation. A larger push counts as more operations.
const opBytes = 4 << 10

// reportVerdicts adds the verdicts of operations to the answer.
func reportVerdicts(out *wire.Pushed, ops []log.Op, verdicts []fold.Verdict) {
	for i := range verdicts {
		v, seq := &verdicts[i], ops[i].Dot.Seq
		out.Accepted = max(out.Accepted, seq)
		if v.Code != 0 && v.Code != fold.OK && v.Code != fold.Superseded {
			out.Verdicts = append(out.Verdicts, wire.Verdict{Seq: seq, Code: uint32(v.Code), Detail: v.Detail, Dot: v.Dot, ID: v.ID})
		}
	}
}
