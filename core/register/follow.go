package register

import (
	"context"

	"github.com/sightline-dev/sightline/core/log"
)

// Follows reports whether another machine writes.
func (r *Register) Follows() bool { return r.follows.Load() }

// Advance takes in the changes of the register that another machine has committed, and detaches deleted applications. The caller calls it
// after each batch of that machine that touches the register. Errors: those of partition.Origin.Advance.
func (r *Register) Advance(ctx context.Context) error {
	if err := r.partition.Advance(ctx); err != nil {
		return err
	}
	r.relist()
	r.watchers.notify()
	purges, err := r.Reader().Purges()
	for i := range purges {
		r.detach(purges[i].App.String())
	}
	return err
}

// Lead makes a register that followed write. It returns the opening of all logs, which the caller passes to the partitions that are open. The next
// Steps look for applications that another machine has deleted by half. Errors: those of the random source and of partition.Origin.Lead.
func (r *Register) Lead() (log.Epoch, error) {
	e, err := r.draw()
	if err == nil {
		err = r.partition.Lead(e)
	}
	if err != nil {
		return log.Epoch{}, err
	}
	r.opening.Store(&e)
	r.follows.Store(false)
	r.tidy.purge.Store(true)
	return e, nil
}

// Follow makes a register that led follow. Errors: those of partition.Origin.Follow.
func (r *Register) Follow(ctx context.Context) error {
	r.follows.Store(true)
	err := r.partition.Follow(ctx)
	r.relist()
	return err
}
