package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
)

// call lets a client call a node, which may believe that it leads. While a call waits, others may be made at other nodes, and further writes of
// inputs at the same one.
func (w *world) call(n *node) {
	if w.depth >= maxDepth || !n.leads() || n.calls > 0 && !n.writes {
		return
	}
	p := n.process
	w.stats.Calls++
	w.depth++
	p.calls++
	choice := w.rng.IntN(choices)
	if p.calls > 1 {
		choice %= inputWrites
	}
	p.writes = choice < inputWrites
	err := w.make(p, choice)
	p.calls--
	w.depth--
	switch {
	case err == nil:
		w.stats.Acknowledged++
	case p.dead:
	case errors.Is(err, kv.ErrFollows), errors.Is(err, api.ErrBusy): // api.ErrBusy: the control log has the action, and the audit log lacks it
		w.stats.Followed++
	default:
		w.fail(fmt.Errorf("node %s: call %d: %w", p.self, choice, err))
	}
	if n.process == p {
		n.turn()
	}
}

// Kinds of calls: the first ones only write inputs.
const (
	inputWrites = 7
	choices     = 15
)

// make makes a call.
func (w *world) make(p *process, choice int) error {
	ctx, operator := context.Background(), register.Caller{Account: w.owner}
	switch choice {
	case 0, 1, 2:
		if len(w.repeats) > 0 {
			return w.appendNumber(p)
		}
		return w.create(p)
	case 4:
		return w.remove(p)
	case 5:
		return w.edge.sync(p)
	case 3, 6:
		return w.appendNumber(p)
	case 7:
		app, _, err := p.engine.Register.CreateApp(ctx, operator, register.NewApp{Name: "short", Language: "en"})
		if err == nil {
			_, err = p.engine.Partition(app.ID)
		}
		if errors.Is(err, register.ErrApplication) {
			return nil // the term ended, and another node deleted it
		}
		return err
	case 8:
		return w.removeApp(p)
	case 9:
		_, _, err := p.engine.Register.CreateKey(ctx, operator, register.NewKey{App: w.app.String(), Scopes: []string{"All"}})
		return err
	case 10:
		_, err := p.engine.Step(ctx, w.now())
		return err
	case 11:
		spent, err := p.accounts.SpendSome(api.CountedCall{Account: w.owner, App: w.app.String()}, int64(1+w.rng.IntN(9)))
		if errors.Is(err, auth.ErrQuota) {
			err = nil
		}
		if w.spent += spent; w.spent > monthly {
			return fmt.Errorf("the account made %d calls of %d", w.spent, monthly)
		}
		return err
	case 12:
		return w.giveBack(p)
	case 13:
		return w.dismiss(p)
	default:
		_, err := p.accounts.Rename(ctx, w.owner, fmt.Sprint("Name ", w.rng.IntN(100)), "192.0.2.1")
		return err
	}
}

// create adds inputs.
func (w *world) create(p *process) error {
	origin, err := p.engine.Origin(w.app.String())
	if err != nil {
		return err
	}
	var bodies []log.Body
	var ids []string
	for range 1 + w.rng.IntN(3) {
		w.serial++
		ids = append(ids, fmt.Sprint("i", w.serial))
		b := &log.InputCreate{ID: ids[len(ids)-1], URL: "http://x/" + ids[len(ids)-1]}
		if w.rng.IntN(6) == 0 { // larger than a record
			large := make([]byte, 2000+w.rng.IntN(5000))
			_, _ = w.random.Read(large)
			b.Meta = fmt.Appendf(nil, `{"large":"%x"}`, large)
		}
		bodies = append(bodies, b)
	}
	verdicts, err := origin.Submit(context.Background(), "key", bodies, nil)
	for i, id := range ids {
		switch {
		case err == nil && verdicts[i].Code == fold.OK:
			w.inputs.add(id, verdicts[i].Dot)
		case err == nil:
			return fmt.Errorf("input %s: %v", id, verdicts[i])
		case errors.Is(err, kv.ErrFollows):
			w.never[id] = true
		}
	}
	return err
}

// remove deletes an acknowledged input.
func (w *world) remove(p *process) error {
	origin, err := p.engine.Origin(w.app.String())
	if err != nil {
		return err
	}
	id, dot, ok := w.inputs.draw(w.rng)
	if !ok {
		return nil
	}
	w.inputs.remove(id) // without an answer it may be deleted or not
	if _, err = origin.Submit(context.Background(), "key", []log.Body{&log.InputDelete{Input: dot}}, nil); err == nil {
		w.deleted[id] = true
	} else if errors.Is(err, kv.ErrFollows) {
		w.inputs.add(id, dot)
	}
	return err
}

// removeApp deletes an application.
func (w *world) removeApp(p *process) error {
	ids, err := p.engine.Register.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id != w.app.String() {
			err = p.engine.Register.DeleteApp(context.Background(), register.Caller{Account: w.owner}, id)
			if errors.Is(err, register.ErrApplication) {
				err = nil
			}
			break
		}
	}
	return err
}

// session lets the edge begin a session with a node, for its other operations than pushes.
func (w *world) session(n *node) {
	if !n.leads() || n.calls > 0 {
		return
	}
	if _, err := w.edge.begin(n.process); err != nil {
		w.fail(fmt.Errorf("node %s: session: %w", n.self, err))
	}
}

// read lets a client read at a node, if etcd confirms its claim.
func (w *world) read(n *node) {
	if !n.leads() || n.calls > 0 || !n.store.MayAnswer(w.etcd.claim) {
		return
	}
	w.stats.Reads++
	origin, err := n.engine.Origin(w.app.String())
	if err == nil {
		err = w.oracle.check(origin)
	}
	if err != nil {
		w.fail(fmt.Errorf("node %s: read: %w", n.self, err))
	}
}
