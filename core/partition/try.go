package partition

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Try returns what would become of bodies, here and now, if a replica submitted them, and submits
// nothing: what is refused to its face need not go to the origin, where another state may hold by then. Nothing is
// known of a replica without a site. Bodies are borrowed. Errors: ErrReplica and those of kv.
func (p *Partition) Try(by string, bodies []log.Body) (verdicts []fold.Verdict, err error) {
	if p.replica == nil {
		return nil, ErrReplica
	}
	site := p.Site()
	if site == 0 || len(bodies) == 0 {
		return nil, nil
	}
	p.appending.Lock()
	last := p.last
	p.appending.Unlock()
	entries := make([]log.Entry, len(bodies))
	for i, body := range bodies {
		dot := log.Dot{Site: site, Seq: last + 1 + uint64(i)}
		entries[i].Op = log.Op{Dot: dot, At: p.clock.Next(), By: by, Body: body}
	}
	v := p.View()
	verdicts, _, err = p.foldOwn(fold.NewPending(p.o.App, p.o.Rules), kv.NewOverlay(v.snapshot), entries)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, fmt.Errorf("try: %w", err)
	}
	return verdicts, nil
}
