package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Several machines can have one order of committed batches. One of them leads: its origins write. Those of the others follow. They fold the same
// log into the same state, and reject every write with kv.ErrFollows:
//
//	leads    Submit ─▶ Commit ─▶ fold ─▶ Apply: state, index
//	follows            batch  ─▶ Advance: fold ─▶ Apply: state, index
//
// A machine that begins to lead calls [Origin.Lead], and one that ends it [Origin.Follow].

// Advance folds what another machine has appended to the log, and takes in its redactions and trims. The caller calls it after each batch of
// that machine, before the store shows the next one, so that nothing else meets entries that are not folded. Errors: those of kv, and
// [fold.ErrNewer] for a network or rules that the program does not know.
func (p *Origin) Advance(ctx context.Context) error {
	if err := p.advance(ctx); err != nil {
		return fmt.Errorf("advance: %w", err)
	}
	return nil
}

func (p *Origin) advance(ctx context.Context) error {
	lock := p.locks.take(reading)
	next, why := p.seq+1, p.closed
	lock.unlock()
	if !errors.Is(why, kv.ErrFollows) {
		return why
	}
	if err := p.log.Advance(); err != nil {
		return err
	}
	if err := p.arrivals.prepareSwitches(ctx, next); err != nil {
		return err
	}
	if err := p.foldRest(); err != nil {
		return err
	}
	defer p.locks.take(folding).unlock()
	p.arrivals.some = true
	return nil
}

// arrivals adds inputs to the index whose derived records come apart from them. The partition's folding lock guards its fields.
type arrivals struct {
	p    *Partition
	some bool   // records may have come from another machine
	next uint32 // first input that the next step looks at
}

// prepareSwitches prepares the index for the switches of the network, starting at an entry.
func (a *arrivals) prepareSwitches(ctx context.Context, next uint64) error {
	if a.p.index == nil || next > a.p.log.Head() {
		return nil
	}
	var met error
	err := a.p.log.Read(next, func(e log.Entry) bool {
		if s, is := e.Op.Body.(*log.NetworkSwitch); is {
			met = a.prepareSwitch(ctx, s.Base)
		}
		return met == nil
	})
	return errors.Join(err, met)
}

// Lead makes an origin that followed write, with an opening of its log. All batches of other machines are visible. It reads no entry of the
// log, because [Origin.Advance] has folded all. It then writes what [OpenOrigin] would have written.
func (p *Origin) Lead(opening log.Epoch) error {
	err := p.lead(opening)
	if err == nil {
		err = p.begin()
	}
	if err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	return nil
}

func (p *Origin) lead(opening log.Epoch) error {
	defer p.locks.take(trimming | appending | folding | showing).unlock()
	if !errors.Is(p.closed, kv.ErrFollows) {
		return p.closed
	}
	writers, err := readWriters(p.o.Store, p.o.App, 0)
	if err == nil {
		err = p.log.Lead(opening)
	}
	if err != nil {
		return err
	}
	p.o.Epoch, p.writers, p.cleanupDue, p.closed = opening, writers, true, nil
	if err = p.openSeal(); err != nil {
		p.closed = kv.ErrFollows
	}
	return err
}

// Follow makes an origin that led follow, and folds what the store has. The store refuses its writes already. Calls that wait for them return,
// with kv.ErrFollows if their operations are in no log. Errors: those of kv.
func (p *Origin) Follow(ctx context.Context) error {
	if err := p.follow(); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	return p.Advance(ctx)
}

func (p *Origin) follow() error {
	defer p.locks.take(trimming | appending | folding | showing).unlock()
	if p.closed != nil && !errors.Is(p.closed, kv.ErrFollows) { // the role may change again while Lead runs
		return p.closed
	}
	p.closed = kv.ErrFollows
	p.own, p.writers = opening{drawn: p.own.drawn}, nil
	p.drawn.Store(0)
	p.trim, p.appended, p.dropsNames, p.clocks = trimState{}, map[log.Writer]*writerNames{}, false, madeClocks{}
	return nil
}

// stepFollowing does the postponed work of an origin that follows: on its index.
func (p *Partition) stepFollowing(ctx context.Context) (more bool, err error) {
	if more, err = p.stepIndex(ctx); err == nil && !more && p.index != nil {
		more, err = p.arrivals.step(ctx)
	}
	if err != nil {
		err = fmt.Errorf("index: %w", err)
	}
	return more, err
}

// meetOnce is the number of inputs that enter the index of the next network in one batch.
const meetOnce = 256

// step adds some inputs to the index whose derived records came from another machine. It reports whether it did.
func (a *arrivals) step(ctx context.Context) (more bool, err error) {
	p := a.p
	v := p.View()
	defer v.Close()
	defer p.locks.take(folding).unlock()
	if !a.some {
		return false, nil
	}
	all, lacking := roaring.New(), map[[32]byte]*roaring.Bitmap{}
	for _, s := range []*index.Space{&p.o.Index.Space, p.o.Index.Next} {
		if s == nil || !p.index.Has(s.Base) {
			continue
		}
		if lacking[s.Base], err = p.index.At(v.Reader).UnanalysedInputs(s.Base); err != nil {
			return false, err
		}
		all.Or(lacking[s.Base])
	}
	it, left := all.Iterator(), meetOnce
	var dots []log.Dot
	for it.AdvanceIfNeeded(a.next); it.HasNext() && left > 0; left-- {
		a.next = it.Next() + 1
		in, err := v.Input(a.next - 1)
		for base, some := range lacking {
			if err == nil && some.Contains(in.Ord) {
				if _, err = v.DerivedOfInput(base, &in); err == nil {
					dots = append(dots, in.Dot)
					break
				} else if errors.Is(err, catalog.ErrNotFound) {
					err = nil
				}
			}
		}
		if err != nil {
			return false, err
		}
	}
	if left > 0 {
		a.next, a.some = 0, false
	}
	if len(dots) == 0 {
		return false, ctx.Err()
	}
	return true, errors.Join(ctx.Err(), a.add(dots))
}

// prepareSwitch prepares the index for entries that switch the network. Stored inputs first enter the space of that network, if it lacks
// them and their derived records are stored. Records that come with the entries enter it in their batch. It returns [fold.ErrNewer] if the
// index has a space of the present network but none of the next one: the program does not know that network.
func (a *arrivals) prepareSwitch(ctx context.Context, base [32]byte) error {
	p := a.p
	v := p.View()
	defer v.Close()
	lacking, err := p.index.At(v.Reader).UnanalysedInputs(base)
	if errors.Is(err, index.ErrSpace) {
		h, err := v.Header()
		if err != nil || !p.index.Has(h.Base) { // such a new replica finds nothing until its origin switches to a known network
			return err
		}
		return fmt.Errorf("network %x: %w", base[:4], fold.ErrNewer)
	}
	if err != nil {
		return err
	}
	var dots []log.Dot
	for it := lacking.Iterator(); it.HasNext(); {
		in, err := v.Input(it.Next())
		if err != nil {
			return err
		}
		if dots = append(dots, in.Dot); len(dots) < meetOnce && it.HasNext() {
			continue
		}
		if err := errors.Join(ctx.Err(), p.o.Store.Room()); err != nil {
			return err
		}
		lock := p.locks.take(folding)
		err = a.add(dots)
		lock.unlock()
		if err != nil {
			return err
		}
		dots = dots[:0]
	}
	return nil
}

// add adds inputs to the spaces of the index that lack them, as far as the store has their derived records. The caller holds folding.
func (a *arrivals) add(dots []log.Dot) error {
	p := a.p
	if p.shut {
		return p.closed
	}
	p.tx.Reset(p.o.Store)
	inputs, err := existing(catalog.Read(p.tx, p.o.App), dots)
	if err != nil || p.index == nil {
		return err
	}
	return p.apply(change{analysed: inputs})
}

// network returns the base of the last NetworkSwitch in the entries; ok is false if they have none.
func network(entries []log.Entry) (base [32]byte, ok bool) {
	for i := range entries {
		if s, is := entries[i].Op.Body.(*log.NetworkSwitch); is {
			base, ok = s.Base, true
		}
	}
	return base, ok
}
