package feed

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// maxBack is the maximum number of entries of one request. A replica adds frames until they have wire.MaxOps.
const maxBack = 2 * wire.MaxOps

// back accepts frames that a replica keeps and that the log may lack. Their seals prove that the log had them. If the origin lacks the picture of
// an entry, it accepts the entry and lists it as a conflict.
func (c *call) back() (api.Response, error) {
	m, err := read(c, c.f.o.Limits.PushBytes, "PushBytes", wire.DecodeBack)
	if err != nil {
		return api.Response{}, err
	}
	p, err := c.open(m.App)
	if err != nil {
		return api.Response{}, err
	}
	if err := c.checkOpening(p, m.Opening); err != nil {
		return api.Response{}, err
	}
	b := partition.Returned{Opening: m.Opening}
	var ops []log.Op
	for _, frame := range m.Frames {
		f, entries, err := decodeFrame(frame)
		if err != nil {
			return api.Response{}, malformedError("frame: %v", err)
		}
		if len(ops)+len(entries) > maxBack {
			return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many entries", Limit: "Entries", Value: maxBack}
		}
		b.Frames = append(b.Frames, f)
		for i := range entries {
			ops = append(ops, entries[i].Op)
		}
	}
	if len(b.Frames) == 0 {
		return api.Response{}, malformedError("back: no frames")
	}
	if err := c.f.meters.ops.take(c, uint64(max(len(ops), len(c.r.Body)/opBytes)), c.now, "operations"); err != nil {
		return api.Response{}, err
	}
	for i := range b.Frames { // before their pictures are analysed, which counts as no call
		if err := p.CheckSeal(&b.Frames[i]); err != nil {
			return api.Response{}, &wire.Refusal{Code: wire.RefusedContent, Detail: err.Error()}
		}
	}
	if err := c.takeBack(p, &b, ops); err != nil {
		if refusal := c.refuseDeleted(m.App); refusal != nil {
			return api.Response{}, refusal
		}
		return api.Response{}, err
	}
	return message((&wire.TakenBack{Opening: m.Opening, To: b.Frames[len(b.Frames)-1].To}).Encode()), nil
}

// decodeFrame reads a message Entries as the origin sent it.
func decodeFrame(data []byte) (f partition.Frame, entries []log.Entry, err error) {
	e, err := wire.DecodeEntriesFrame(data)
	if err != nil {
		return f, nil, err
	}
	f = partition.Frame{Epoch: e.Epoch, From: e.From, To: e.To, Chain: e.Chain, Rows: e.Rows, Seal: e.Seal, Before: e.Before}
	if entries, err = log.DecodeRows(e.Rows, e.From); err == nil && uint64(len(entries)) != e.To-e.From {
		err = fmt.Errorf("%w: %d entries from %d to %d", wire.ErrFormat, len(entries), e.From, e.To)
	}
	return f, entries, err
}

// checkOpening returns a refusal if the log has another opening.
func (c *call) checkOpening(p *partition.Origin, opening log.Epoch) error {
	if now := p.Opening(); opening != now {
		return &wire.Refusal{Code: wire.RefusedEpoch, Detail: partition.ErrOpening.Error(), Epoch: now}
	}
	return nil
}

// takeBack appends what the log lacks of frames, with derived records of the pictures. ops are their operations.
func (c *call) takeBack(p *partition.Origin, b *partition.Returned, ops []log.Op) error {
	dots := make([]log.Dot, 0, len(ops)) // an earlier replica may have given back the inputs without their pictures
	for i := range ops {
		switch b := ops[i].Body.(type) {
		case *log.InputCreate:
			dots = append(dots, ops[i].Dot)
		case *log.InputFetched:
			dots = append(dots, b.Input)
		}
	}
	n := needs{c: c, p: p, again: true}
	defer n.release()
	var err error
	if b.Missing, err = n.regain(ops); err != nil {
		return err
	}
	err = p.TakeBack(c.ctx, b, n.also)
	if errors.Is(err, partition.ErrOpening) {
		return c.checkOpening(p, b.Opening)
	}
	if err != nil || len(n.derived) == 0 {
		return err
	}
	return p.AddDerived(dots, func(w kv.Writer, _ []catalog.Input) { n.put(w) })
}

// regain collects again the derived records and manifests of operations that the log had. missing are those whose picture or manifest the
// origin lacks.
func (n *needs) regain(ops []log.Op) (missing map[log.Dot]string, err error) {
	v, err := n.view()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	missing = map[log.Dot]string{}
	for i := range ops {
		op := ops[i] // needs may change the operation in ops to a refused one
		available, err := n.resolveOne(v.Reader, ops, i)
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
		if len(n.wants) >= n.c.f.o.Limits.Pictures {
			if err := n.analyse(ops); err != nil {
				return nil, err
			}
		}
	}
	return missing, n.analyse(ops)
}

// manifests collects the manifests of the versions in a network switch. available is false if the origin lacks one.
func (n *needs) manifests(r catalog.Reader, op log.Op, s *log.NetworkSwitch) (available bool, err error) {
	available = true
	for _, v := range s.Versions {
		has, err := n.manifest(r, &op, v.Version, v.Manifest)
		if err != nil {
			return false, err
		}
		available = available && has
	}
	return available, nil
}

// lostBytes names the part of an operation that the origin lacks.
func lostBytes(body log.Body) string {
	switch body.(type) {
	case *log.VersionResult, *log.NetworkSwitch:
		return partition.LostManifest
	}
	return partition.LostPicture
}
