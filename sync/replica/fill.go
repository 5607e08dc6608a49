package replica

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// fill fetches the entries of a snapshot that may not be stable. The partition keeps them before the snapshot is installed, so that the
// replica can give all it shows back to an origin that was restored from a backup. It uses lanePull, which is idle until then.
type fill struct {
	epoch    log.Epoch // epoch of the log; zero: not begun
	of       log.Chain // chain of the log at the snapshot
	to       uint64    // entry of the snapshot
	at       uint64    // last entry that is kept or need not be kept
	stable   uint64
	chain    log.Chain // chain of the log at that entry, after the first run; zero: the next run has it
	diverged bool      // the origin's log did not continue from there
}

// fills reports whether the installation must wait for entries.
func (m *Machine) fills() (bool, error) {
	f, x := &m.rebase.fill, m.rebase.manifest
	if fresh := f.epoch != x.Epoch; fresh || f.of != log.Chain(x.Chain) {
		k, sealed, err := m.p.LastStored()
		if err != nil {
			return false, err
		}
		if m.pull.fills { // the answer may end before the entries of this snapshot
			m.cancel(&m.lane[lanePull])
			m.pull.reset()
		}
		*f = fill{epoch: x.Epoch, of: x.Chain, stable: m.stable(x)}
		f.at = f.stable
		chain := k.Before
		if k.Op.Body != nil {
			chain = k.Before.Next(log.Encode(nil, &k.Op))
		}
		// Entries that were kept for another snapshot may come from a log whose disk was rolled back since.
		if fresh && sealed && m.p.StoredEpoch() == x.Epoch && k.At.Seq >= f.at && (k.At.Seq < x.Seq || k.At.Seq == x.Seq && chain == f.of) {
			f.at = k.At.Seq
		}
	}
	f.to = x.Seq
	return f.at < f.to, nil
}

// stable returns the last entry of the snapshot that the replica need not keep.
func (m *Machine) stable(x *wire.Manifest) uint64 {
	return min(max(x.Stable, m.session.stable), x.Seq)
}

// startFill asks for the next entries.
func (m *Machine) startFill(l *lane) error {
	if m.rebase.manifest == nil || m.rebase.handedOver {
		return nil
	}
	if err := m.o.Store.Room(); err != nil {
		return err
	}
	if fills, err := m.fills(); !fills {
		return err
	}
	m.pull.reset()
	m.pull.fills = true
	m.ask(l, Ask{Method: "GET", Path: "/v2/sync/changes"}, m.where(
		"epoch", hex.EncodeToString(m.session.epoch[:]), "since", strconv.FormatUint(m.rebase.fill.at, 10), "live", Once.String(), "only", "entries",
	)...)
	l.limit = m.at + quietLimit
	return nil
}

// fillFrame handles one message of the stream.
func (m *Machine) fillFrame(l *lane, f *wire.Frame) error {
	switch f.Type {
	case wire.TypeEntries:
		return m.fillEntries(l, f.Body)
	case wire.TypeEnd:
		e, err := wire.DecodeEnd(f.Body)
		x := &m.rebase.fill
		switch {
		case err != nil:
			return err
		case e.Why == wire.WhyRebase && !x.diverged: // the next session finds another epoch
			x.diverged = true
		case e.Why == wire.WhyRebase, e.Why == wire.WhyDone && !m.pull.moved: // the origin has no more entries: install without them
			x.at, x.chain = x.to, log.Chain{}
		}
		return m.streamEnd(l, f.Body)
	case wire.TypeCheckpoint, wire.TypeKeepalive:
		return nil
	}
	if f.Type >= wire.Optional {
		return nil
	}
	return fmt.Errorf("%w: unexpected frame %v", errAnswer, f.Type)
}

// fillEntries keeps entries. Only the first run of an answer has the chain before its entries.
func (m *Machine) fillEntries(l *lane, body []byte) error {
	e, err := wire.DecodeEntriesFrame(body)
	if err != nil {
		return err
	}
	f := &m.rebase.fill
	before := e.Before
	if before == (log.Chain{}) && e.From == f.at {
		before = f.chain
	}
	switch {
	case e.Epoch != m.session.epoch || e.Epoch != f.epoch:
		m.end()
		return fmt.Errorf("%w: entries have a different epoch", errAnswer)
	case e.To <= f.at:
		return nil
	case e.From < f.at, before == (log.Chain{}):
		return fmt.Errorf("%w: entries start after %d instead of %d", errAnswer, e.From, f.at)
	}
	r, err := runOf(&e)
	if err != nil {
		return err
	}
	r.Stable = f.stable
	err = m.p.StoreEntries(&r, before, f.to)
	switch {
	case errors.Is(err, partition.ErrChain) || isOriginFault(err):
		return fmt.Errorf("%w: %w", errAnswer, err)
	case err != nil:
		return err
	}
	f.at, f.chain = e.To, e.Chain
	m.pull.moved = true
	l.succeeded()
	return nil
}
