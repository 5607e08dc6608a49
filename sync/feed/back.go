package feed

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// back accepts entries of any site that the log lost when it was restored from a backup. Their seal proves that the log had them. If the
// origin lacks the picture of an entry, it accepts the entry and lists it as a conflict.
func (c *call) back() (api.Response, error) {
	body, err := c.body(c.f.o.Limits.PushBytes, "PushBytes")
	if err != nil {
		return api.Response{}, err
	}
	m, err := wire.DecodeBack(body)
	if err != nil {
		return api.Response{}, malformedError("back: %v", err)
	}
	p, err := c.open(m.App)
	if err != nil {
		return api.Response{}, err
	}
	epoch := p.Log().Epoch()
	if m.Epoch != epoch {
		return api.Response{}, &wire.Refusal{Code: wire.RefusedEpoch, Detail: "the log has a different epoch; start a new session", Epoch: epoch}
	}
	entries, err := wire.DecodeEntries(m.Block, m.From)
	switch {
	case len(m.Block) == 0:
		entries = nil
	case errors.Is(err, wire.ErrTooLarge):
		return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many entries", Limit: "Entries", Value: wire.MaxOps}
	case err != nil:
		return api.Response{}, malformedError("entries: %v", err)
	}
	if err := c.f.meters.ops.take(c, uint64(max(len(entries), len(m.Block)/opBytes)), c.now, "operations"); err != nil {
		return api.Response{}, err
	}
	if m.Present {
		return c.rolledBack(p, &m, entries)
	}
	if len(entries) > 0 {
		if err := c.takeBack(p, &m, entries); err != nil {
			if refusal := c.refuseDeleted(m.App); refusal != nil {
				return api.Response{}, refusal
			}
			return api.Response{}, err
		}
	}
	return message((&wire.TakenBack{Epoch: epoch, To: m.From + uint64(len(entries))}).Encode()), nil
}

// rolledBack checks whether the log lacks the entries because its disk was rolled back. If so, the log gets another epoch.
func (c *call) rolledBack(p *partition.Partition, m *wire.Back, entries []log.Entry) (api.Response, error) {
	if err := c.notice(p, &partition.StoredRun{From: m.From, Before: m.Chain, Entries: entries, Seal: m.Seal}); err != nil {
		return api.Response{}, err
	}
	return message((&wire.TakenBack{Epoch: p.Log().Epoch(), To: m.From + uint64(len(entries))}).Encode()), nil
}

// notice returns a refusal if the log lacks entries that it has sealed, because its disk was rolled back. The log gets another epoch then.
func (c *call) notice(p *partition.Partition, b *partition.StoredRun) error {
	found, err := p.RolledBack(b)
	if err == nil && found {
		err = c.f.o.Register.RolledBack()
	}
	if err != nil || !found {
		return err
	}
	head, epoch := p.Log().Head(), p.Log().Epoch()
	had := b.From + uint64(len(b.Entries))
	c.f.o.Log.Warn("the data folder was set back to an older copy; replicas give back what it lacks", "app", c.app, "entries", head, "had", had)
	return &wire.Refusal{Code: wire.RefusedEpoch, Detail: wasRolledBack, Epoch: epoch}
}

// leads checks that the log has the position that a replica has folded. The replica's operations use that log's names, and a snapshot must
// not replace entries that the log lacks. leads ignores a position without a valid seal.
func (c *call) leads(p *partition.Partition, seq uint64, chain log.Chain, seal []byte) error {
	if len(seal) == 0 {
		return nil
	}
	if have, err := p.Log().Chain(seq); err == nil && have == chain {
		return nil
	}
	return c.notice(p, &partition.StoredRun{From: seq, Before: chain, Seal: seal})
}

// wasRolledBack is the refusal for a replica that detected the rollback of the log.
const wasRolledBack = "the data folder of the origin was set back to an older copy; start a new session"

// takeBack appends entries to the log, with derived records of their pictures.
func (c *call) takeBack(p *partition.Partition, m *wire.Back, entries []log.Entry) error {
	b := partition.StoredRun{From: m.From, Before: m.Chain, Entries: entries, Seal: m.Seal}
	ops := make([]log.Op, len(entries))
	for i := range entries {
		ops[i] = entries[i].Op
	}
	n := needs{c: c, p: p, again: true}
	defer n.release()
	var err error
	if b.Missing, err = n.regain(ops); err != nil {
		return err
	}
	err = p.TakeBack(c.ctx, &b, n.also)
	if errors.Is(err, partition.ErrRestored) {
		return &wire.Refusal{Code: wire.RefusedEpoch, Detail: err.Error(), Epoch: p.Log().Epoch()}
	}
	if err != nil || len(n.derived) == 0 {
		return err
	}
	// An earlier replica may have given back the inputs without their pictures.
	dots := make([]log.Dot, 0, len(ops))
	for i := range ops {
		switch b := ops[i].Body.(type) {
		case *log.InputCreate:
			dots = append(dots, entries[i].Op.Dot)
		case *log.InputFetched:
			dots = append(dots, b.Input)
		}
	}
	return p.AddDerived(dots, func(w kv.Writer, _ []catalog.Input) { n.put(w) })
}

// regain collects again the derived records and manifests of operations that the log had. missing are those whose picture or manifest the
// origin lacks.
func (n *needs) regain(ops []log.Op) (missing map[log.Dot]string, err error) {
	v := n.p.View()
	defer v.Close()
	base, err := n.c.f.o.Engine.Serving(v.Reader)
	if err != nil {
		return nil, err
	}
	missing = map[log.Dot]string{}
	var wants []want
	for i := range ops {
		op := ops[i] // needs may change the operation in ops to a refused one
		available, err := n.meetOne(v.Reader, base, ops[:i+1], i, &wants)
		if s, ok := op.Body.(*log.NetworkSwitch); ok {
			available, err = n.manifests(v.Reader, ops[i], s)
		}
		ops[i] = op
		if err != nil {
			return nil, err
		}
		if !available {
			missing[op.Dot] = lostBytes(op.Body)
		}
		if len(wants) >= int(n.c.f.o.Limits.Pictures) || i == len(ops)-1 {
			if err := n.rederive(base, wants); err != nil {
				return nil, err
			}
			wants = wants[:0]
		}
	}
	if err := n.rederive(base, wants); err != nil {
		return nil, err
	}
	return missing, nil
}

// manifests collects the manifests of the versions in a network switch. available is false if the origin lacks one.
func (n *needs) manifests(r catalog.Reader, op log.Op, s *log.NetworkSwitch) (available bool, err error) {
	available = true
	for _, v := range s.Versions {
		has, err := n.manifest(r, &op, &log.VersionResult{Version: v.Version, Manifest: v.Manifest})
		if err != nil {
			return false, err
		}
		available = available && has
	}
	return available, nil
}

// lostBytes names the part of an operation that the origin lacks.
func lostBytes(body log.Body) string {
	if _, ok := body.(*log.VersionResult); ok {
		return partition.LostManifest
	}
	return partition.LostPicture
}

// rederive analyses the pictures of operations that the log had. If an analysis refuses a picture now, rederive accepts the operation
// anyway.
func (n *needs) rederive(base [32]byte, wants []want) error {
	return n.each(base, wants, func(w *want, o *ingest.Outcome) {
		if o.Code == catalog.InputReady {
			n.keep(base, w, o)
		}
	})
}
