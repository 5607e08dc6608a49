package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// edge is an edge with its own writer. It syncs with any node.
type edge struct {
	*world
	writer  log.Writer
	ops     []log.Op
	numbers []*number // for each operation; nil: it creates an input
	acked   int       // number of operations that the origin has
	pushes  int       // number of pushes that wait
	place   log.Mark
	chain   log.Chain
}

// draw draws the edge's writer.
func (e *edge) draw(w *world) {
	secret := make([]byte, partition.SecretSize)
	_, _ = w.random.Read(secret)
	e.world, e.writer = w, partition.WriterOf(w.app, secret)
}

// begin begins a session with a node. It returns nil if etcd does not confirm the node's claim.
func (e *edge) begin(p *process) (*partition.Origin, error) {
	origin, err := p.engine.Origin(e.app.String())
	if err != nil || !p.store.MayAnswer(e.etcd.claim) {
		return nil, err
	}
	e.stats.Sessions++
	if e.place.To > 0 {
		if has, err := origin.HasPlace(e.place, e.chain); err != nil || !has {
			return nil, errors.Join(fmt.Errorf("the log, from %d to %d, lacks the place of the edge, entry %d", origin.Log().Floor(), origin.Log().Head(), e.place.To), err)
		}
	}
	return origin, nil
}

// sync begins a session with a node, pushes operations, and reads the end of the log.
func (e *edge) sync(p *process) error {
	origin, err := e.begin(p)
	if err != nil || origin == nil {
		return err
	}
	if len(e.ops) > 0 && e.pushes == 0 && e.now().Sub(e.ops[max(0, e.acked-3)].At.Time()) >= keepOffline/2 { // a horizon may drop its names
		e.draw(e.world)
		e.ops, e.numbers, e.acked = nil, nil, 0
	}
	e.write()
	from := max(0, e.acked-e.rng.IntN(3))
	n := len(e.ops)
	e.pushes++
	verdicts, _, err := origin.Accept(context.Background(), e.ops[from:n], nil)
	e.pushes--
	if err != nil {
		return err
	}
	e.acknowledge(from, verdicts)
	l := origin.Log()
	head := l.Head()
	if head > e.place.To {
		if e.chain, err = l.Chain(head); err == nil {
			e.place = log.Mark{Epoch: l.EpochOf(head).Epoch, To: head}
		}
	}
	return err
}

// write makes the edge's next operation: it creates an input, or appends a number to one.
func (e *edge) write() {
	op := log.Op{Dot: log.Dot{Writer: e.writer, Seq: uint64(len(e.ops) + 1)}, At: log.HLC(e.now().UnixMilli()) << 16, By: "key"}
	var x *number
	if id, dot, ok := e.inputs.draw(e.rng); ok && e.rng.IntN(2) == 0 {
		x = e.number(id, dot)
		op.Body = x.body
	} else {
		e.serial++
		id := fmt.Sprint("e", e.serial)
		op.Body = &log.InputCreate{ID: id, URL: "http://x/" + id}
	}
	e.ops, e.numbers = append(e.ops, op), append(e.numbers, x)
}

// acknowledge notes the effects of operations that the log has, starting at one of them.
func (e *edge) acknowledge(from int, verdicts []fold.Verdict) {
	for i, v := range verdicts {
		at := from + i
		if at < e.acked || v.Code != fold.OK { // the zero Verdict, of an operation that the log had, is OK
			continue
		}
		if x := e.numbers[at]; x != nil {
			x.acked = true
		} else {
			e.inputs.add(e.ops[at].Body.(*log.InputCreate).ID, e.ops[at].Dot)
		}
	}
	e.acked = max(e.acked, from+len(verdicts))
}
