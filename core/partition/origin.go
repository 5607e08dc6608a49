package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Origin is a partition with its own log, which replicas follow.
type Origin struct {
	*Partition
	sealKey []byte    // nil: the log has no key
	trim    trimState // guarded by trimming

	// Fields that appending guards.
	appended   map[log.Writer]*writerNames // names of other writers in the log, once this process has appended some
	dropsNames bool                        // a horizon was appended since appended was last empty
	clocks     madeClocks
}

// OpenOrigin opens a partition with its own log, and folds the entries that the state lacks. If the program knows newer rules of the fold than
// those in force, OpenOrigin puts them in force in the log. Errors: ErrKind for the store of a replica, fold.ErrNewer and those of kv.
func OpenOrigin(o Options) (*Origin, error) {
	o.Retention.defaults()
	p := &Origin{Partition: newPartition(o), appended: map[log.Writer]*writerNames{}}
	p.side = p
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("partition %v: %w", o.App, err)
	}
	return p, nil
}

func (p *Origin) open() error {
	if p.o.Follow {
		p.closed = kv.ErrFollows
	}
	if _, err := readPlace(p.o.Store, p.o.App); err == nil {
		return fmt.Errorf("the store belongs to a replica: %w", ErrKind)
	} else if !isMissing(err) {
		return err
	}
	h, err := p.readHeader()
	if err == nil {
		p.writers, err = readWriters(p.o.Store, p.o.App, 0)
	}
	if err == nil {
		p.log, err = log.Open(p.o.Store, log.Options{Prefix: p.o.App.LogPrefix(), Epoch: p.o.Epoch, Durable: h.Seq, Follow: p.o.Follow})
	}
	if err == nil && p.log.Head() < p.seq {
		err = fmt.Errorf("state of entry %d, but the log ends at %d: %w", p.seq, p.log.Head(), kv.ErrCorrupt)
	}
	if err == nil {
		err = p.openSeal()
	}
	if err == nil {
		err = p.openIndex()
	}
	if err == nil {
		err = p.foldRest()
	}
	if err != nil || p.o.Follow {
		return err
	}
	return p.begin()
}

// begin writes what a log gets when its origin begins to write.
func (p *Origin) begin() error {
	err := p.rule()
	var h catalog.Header
	if err == nil {
		h, err = p.Header()
	}
	if err != nil || h.Fold < fold.RulesOfNames && p.o.App != catalog.Control { // the next opening deletes the old records
		return err
	}
	return p.dropOld()
}

// rule puts the newest known rules in force in a log that others pull. If the store is full, the previous rules stay in force.
func (p *Origin) rule() error {
	h, err := p.Header()
	if err != nil || max(h.Fold, fold.FirstVersion) == p.o.Rules || p.o.App == catalog.Control {
		return err
	}
	_, err = p.Submit(context.Background(), "", []log.Body{&log.Rules{Version: p.o.Rules}}, nil)
	if errors.Is(err, kv.ErrFull) {
		return nil
	}
	return err
}

// foldRun implements [side].
func (p *Origin) foldRun(entries []log.Entry) error {
	p.tx.Reset(p.o.Store)
	verdicts, out, err := foldEntries(p.fold, p.clock, p.tx, entries)
	if err != nil {
		return err
	}
	analysed, err := findIndexable(p.index, p.tx, p.o.App, entries, out)
	if err != nil {
		return err
	}
	seq := p.fold.Seq()
	if err := p.apply(change{indexed: out, analysed: analysed, watched: out, moved: func() {
		p.seq, p.at = seq, seq
		p.o.Quota.Settle(entries, out)
	}}); err != nil {
		return err
	}
	p.fillTickets(entries[0].Seq, verdicts)
	return nil
}

// maxOrigins is the number of its last writers of which an origin has records.
const maxOrigins = 16

// note implements [side]. An origin shows the secret of its writer to nobody, so it does not store it.
func (p *Origin) note(b *kv.Batch, ops []log.Op, _ Token, first uint64) error {
	if p.own.seq == 0 {
		if w := p.outboxWriters(); len(w) >= maxOrigins {
			b.Delete(writerKey(p.o.App, w[len(w)-maxOrigins].writer))
		}
		b.Put(writerKey(p.o.App, p.own.writer), encodeWriterRecord(nil, &writerRecord{first: first}))
	}
	p.noteHorizons(ops)
	return p.reserve(ops, b)
}

func (p *Origin) room(int) error                   { return nil }
func (p *Origin) tidies() (bool, error)            { return true, nil }
func (p *Origin) owns(log.Writer) bool             { return true }
func (p *Origin) madeName(log.Dot) (string, error) { return "", nil }
func (p *Origin) madeBy(w log.Writer) bool         { return w.IsOrigin() || p.outboxWriters().index(w) >= 0 }

// Redact changes operations of the log, starting at entry from, in one batch: see [log.Store.Redact].
func (p *Origin) Redact(from uint64, edit func(log.Body) bool) error {
	defer p.locks.take(appending | folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	return p.log.Redact(from, edit)
}
