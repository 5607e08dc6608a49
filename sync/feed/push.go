package feed

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// push accepts operations of one site. The accepted ones are always the first ones of a push.
//
//	body ─▶ application, site, epoch ─▶ sequence ─▶ quota ─▶ pictures ─▶ log ─▶ verdicts
//	                                     │ had: skipped        │
//	                                     └ gap: 409            └ missing: those before it, or 409
//
// The operations count as calls of the account if the sender is not an edge: an edge reports its calls itself.
func (c *call) push() (api.Response, error) {
	limits := &c.f.o.Limits
	body, err := c.body(limits.PushBytes, "PushBytes")
	if err != nil {
		return api.Response{}, err
	}
	m, err := wire.DecodePush(body)
	if err != nil {
		return api.Response{}, malformedError("push: %v", err)
	}
	p, err := c.open(m.App)
	if err == nil && m.Again {
		err = c.wrote(p, m.Site)
	} else if err == nil {
		err = c.writes(m.Site)
	}
	if err != nil {
		return api.Response{}, err
	}
	epoch := p.Log().Epoch()
	if m.Epoch != epoch {
		return api.Response{}, &wire.Refusal{Code: wire.RefusedEpoch, Detail: "the log has a different epoch; start a new session", Epoch: epoch}
	}
	if err := c.leads(p, m.Base, m.Chain, m.Seal); err != nil {
		return api.Response{}, err
	}
	ops, err := c.operations(&m)
	if err != nil {
		return api.Response{}, err
	}
	if n := len(ops); n > 0 && ops[0].Dot.Seq <= m.Older {
		if err := p.ResolveNames(ops[:min(uint64(n), m.Older-ops[0].Dot.Seq+1)]); err != nil {
			return api.Response{}, err
		}
	}
	sent := slices.Clone(ops)
	if err := c.sign(&m, ops); err != nil {
		return api.Response{}, err
	}
	out := wire.Pushed{Epoch: epoch}
	if err := c.accept(p, &m, ops, sent, &out); err != nil {
		return api.Response{}, c.pushFailed(err, m.App)
	}
	out.Head = p.Log().Head()
	out.Stable = c.f.o.Stable(m.App, out.Head)
	return message(out.Encode()), nil
}

// pushFailed returns the answer if the log accepted nothing.
func (c *call) pushFailed(err error, app string) error {
	var refused *wire.Refusal
	switch {
	case errors.As(err, &refused):
		return err
	case errors.Is(err, partition.ErrForged):
		return &wire.Refusal{Code: wire.RefusedSite, Detail: err.Error()}
	case errors.Is(err, partition.ErrLife):
		return &wire.Refusal{Code: wire.RefusedEpoch, Detail: err.Error()}
	case errors.Is(err, partition.ErrSequence):
		return &wire.Refusal{Code: wire.RefusedSequence, Detail: err.Error()}
	}
	if refusal := c.refuseDeleted(app); refusal != nil {
		return refusal
	}
	return err
}

// operations decodes the operations of a push and checks that all belong to its site.
func (c *call) operations(m *wire.Push) ([]log.Op, error) {
	ops, err := wire.DecodeOps(m.Block)
	limit := c.f.o.Limits.PushOps
	switch {
	case errors.Is(err, wire.ErrTooLarge), err == nil && uint64(len(ops)) > limit:
		return nil, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many operations", Limit: "PushOps", Value: limit}
	case err != nil:
		return nil, malformedError("operations: %v", err)
	}
	for i := range ops {
		if ops[i].Dot.Writer != m.Site {
			return nil, &wire.Refusal{Code: wire.RefusedSite, Detail: "operations belong to another site"}
		}
		if ops[i].Dot.Seq != ops[0].Dot.Seq+uint64(i) || ops[i].Dot.Seq == 0 {
			return nil, malformedError("operations are not in sequence")
		}
	}
	return ops, nil
}

// accept appends the operations that the origin can accept to the log. sent are the operations before any was refused.
func (c *call) accept(p *partition.Partition, m *wire.Push, ops, sent []log.Op, out *wire.Pushed) error {
	had, err := p.SiteSeq(m.Site)
	if err != nil {
		return err
	}
	out.Accepted = had
	if len(ops) == 0 {
		return nil
	}
	if ops[0].Dot.Seq > had+1 {
		return &wire.Refusal{Code: wire.RefusedSequence, Detail: "earlier operations are missing", Accepted: had}
	}
	fresh := ops[min(had+1-ops[0].Dot.Seq, uint64(len(ops))):]
	all, sent := sent, sent[len(ops)-len(fresh):]
	if err := c.mayCall(m, sent); err != nil {
		return err
	}
	if err := c.sends(uint64(len(m.Block)), false); err != nil {
		return err
	}
	if err := c.meter(m.Site, max(uint64(len(fresh)), uint64(len(m.Block))/opBytes)); err != nil {
		return err
	}
	n := needs{c: c, p: p, had: had, again: m.Again}
	defer n.release()
	also := n.also
	if why := c.older(m.App, m.Site); why != "" && !m.Again {
		if also, err = keepRefused(p, fresh, why); err != nil {
			return err
		}
	}
	if fresh, err = n.meet(fresh); err != nil {
		return err
	}
	if len(fresh) == 0 && len(n.lacks) > 0 {
		return n.missing()
	}
	counted := int64(0)
	if fresh, counted, err = c.count(m, fresh, sent); err != nil {
		return err
	}
	n.cut(len(fresh))
	if len(fresh) == 0 { // the log has all: append one again, which waits until it is durable
		fresh, sent = ops[:1], all
	}
	verdicts, last, err := c.append(p, m, fresh, sent, also)
	if err != nil {
		if err = errors.Join(err, c.giveBack(counted, sent[:min(len(verdicts), len(sent))])); !errors.Is(err, kv.ErrFull) || len(verdicts) == 0 {
			return err
		}
	}
	c.reportVerdicts(out, fresh, verdicts, last)
	if err != nil {
		out.WaitMillis = 30_000
	}
	return nil
}

// append appends operations to the log, as [partition.Partition.Accept] does.
func (c *call) append(p *partition.Partition, m *wire.Push, ops, sent []log.Op, also func(*kv.Batch)) (verdicts []fold.Verdict, last uint64, err error) {
	lives := make([]partition.Life, len(m.Lives))
	for i := range m.Lives {
		lives[i] = partition.Life(m.Lives[i])
	}
	if m.Again {
		return p.AcceptAgain(c.ctx, ops, sent, lives, also)
	}
	return p.AcceptOf(c.ctx, ops, lives, also)
}

// keepRefused refuses operations of a superseded site. It returns a function that stores their content as conflicts in the batch.
func keepRefused(p *partition.Partition, ops []log.Op, why string) (also func(*kv.Batch), err error) {
	conflicts := make([]partition.Conflict, len(ops))
	for i := range ops {
		c := &conflicts[i]
		c.Op, c.Verdict = ops[i], fold.Verdict{Code: fold.Refused, Detail: "scope: " + why}
		if c.ID, err = p.NameOf(c.Op.Body); err != nil {
			return nil, err
		}
		partition.Refuse(&ops[i], c.Verdict.Detail)
	}
	return func(b *kv.Batch) {
		for i := range conflicts {
			p.PutConflict(b, &conflicts[i])
		}
	}, nil
}

// opBytes is the average size of an operation. A larger push counts as more operations.
const opBytes = 4 << 10

// meter counts n operations against the rates of the site and the application.
func (c *call) meter(site log.Writer, n uint64) error {
	if err := c.f.meters.ops.take(c, n, c.now, "operations"); err != nil {
		return err
	}
	return c.f.meters.sites.take(c.app+" "+dotText(site), n, c.now, "operations")
}

// reportVerdicts adds the verdicts of operations to the answer.
func (c *call) reportVerdicts(out *wire.Pushed, ops []log.Op, verdicts []fold.Verdict, last uint64) {
	skipped := 0
	for i := range verdicts {
		v := &verdicts[i]
		out.Accepted = max(out.Accepted, ops[i].Dot.Seq)
		switch v.Code {
		case 0:
			skipped++
		case fold.OK, fold.Superseded:
		default:
			out.Verdicts = append(out.Verdicts, wire.Verdict{Seq: ops[i].Dot.Seq, Code: uint32(v.Code), Detail: v.Detail, Dot: v.Dot, ID: v.ID})
		}
	}
	if n := uint64(len(verdicts) - skipped); n > 0 {
		out.Runs = []wire.Run{{First: ops[skipped].Dot.Seq, Seq: last - n + 1, Count: n}}
	}
}

// picture is the picture of an operation.
type picture struct {
	hash        blob.Hash
	contentType string
}

// pictureOf returns the picture of an operation; false: it has none.
func pictureOf(body log.Body) (picture, bool) {
	switch b := body.(type) {
	case *log.InputCreate:
		return picture{b.Blob, b.ContentType}, !b.Blob.IsZero()
	case *log.InputFetched:
		return picture{b.Blob, b.ContentType}, !b.Blob.IsZero()
	}
	return picture{}, false
}
