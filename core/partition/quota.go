package partition

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Quota limits how much the operations of a partition store. The partition reserves the space of an operation before it appends it, so that
// concurrent writers cannot exceed a limit together.
//
//	Prepare ──▶ Reserve ──▶ log ──▶ fold ──▶ Settle: the reservation ends, the stored bytes count
//	               │          └ error ──▶ Cancel
//	               └ refused: a log.Refused is appended instead
type Quota interface {
	// Prepare counts the stored data if bodies need space. The caller holds no lock.
	Prepare(bodies []log.Body) error
	// Reserve reserves space for operations that are appended next. It returns the reason for refusing each of them; "": not refused. The
	// partition holds appending.
	Reserve(ops []log.Op) (refused []string, err error)
	// Cancel ends the reservations of operations that were not appended.
	Cancel(ops []log.Op)
	// Settle ends the reservations of entries, whose effect is o. It must return at once and not use the partition.
	Settle(entries []log.Entry, o fold.Outcome)
}

// QuotaRefused is the prefix of the verdict's detail if a [Quota] refuses an operation.
const QuotaRefused = "quota: "

// State calls read with the state. Nothing is folded meanwhile.
func (p *Partition) State(read func(catalog.Reader) error) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	return read(catalog.Read(p.o.Store, p.o.App))
}

// noQuota is the Quota of a partition without limits.
type noQuota struct{}

func (noQuota) Prepare([]log.Body) error           { return nil }
func (noQuota) Reserve([]log.Op) ([]string, error) { return nil, nil }
func (noQuota) Cancel([]log.Op)                    {}
func (noQuota) Settle([]log.Entry, fold.Outcome)   {}

func (p *Origin) prepareOps(ops []log.Op) error {
	bodies := make([]log.Body, len(ops))
	for i := range ops {
		bodies[i] = ops[i].Body
	}
	return p.o.Quota.Prepare(bodies)
}

// reserve reserves space for ops and replaces refused ones. A refused InputFetched ends its input with an error, and any other refused
// operation becomes a log.Refused. with has the records that ops need.
func (p *Origin) reserve(ops []log.Op, with *kv.Batch) error {
	refused, err := p.o.Quota.Reserve(ops)
	if err != nil {
		return err
	}
	for i, why := range refused {
		if why == "" {
			continue
		}
		if err := p.refuse(&ops[i], why, with); err != nil {
			p.o.Quota.Cancel(ops)
			return err
		}
	}
	return nil
}

// refuse replaces an operation's body. It records that the derived records of its picture may be unreferenced.
func (p *Origin) refuse(op *log.Op, why string, with *kv.Batch) error {
	b, fetched := op.Body.(*log.InputFetched)
	if !fetched {
		scheduleCleanup(with, p.o.App, op.Body)
		Refuse(op, QuotaRefused+why)
		return nil
	}
	in, err := catalog.Read(p.o.Store, p.o.App).InputByDot(b.Input)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	scheduleCleanup(with, p.o.App, &log.InputCreate{Blob: b.Blob, Crop: in.Crop})
	op.Body = &log.InputFetched{Input: b.Input, Code: catalog.InputOverQuota, Detail: why}
	return nil
}
