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
	of log.Chain // chain of the log at the snapshot; zero: not begun
	to uint64    // entry of the snapshot
	at uint64    // last entry that is kept or need not be kept
}

// waits reports whether the installation must wait for entries.
func (f *fill) waits() bool { return f.at < f.to }

// stable returns the last entry of the snapshot that the replica need not keep.
func (m *Machine) stable(x *wire.Manifest) uint64 {
	return min(max(x.Stable, m.session.stable), x.Seq)
}

// startFill asks for the next entries.
func (m *Machine) startFill(l *lane) error {
	if r := &m.rebase; r.manifest == nil || r.handedOver || !r.fill.waits() {
		return nil
	}
	if err := m.o.Store.Room(); err != nil {
		return err
	}
	m.pull.reset()
	m.pull.fills = true
	m.ask(l, Ask{Method: "GET", Path: "/v2/sync/changes"},
		"opening", hex.EncodeToString(m.session.opening[:]), "since", strconv.FormatUint(m.rebase.fill.at, 10), "live", Once.String(), "only", "entries",
	)
	l.limit = m.at + quietLimit
	return nil
}

// fillCheckpoint ends the session if the log has lost the snapshot.
func (m *Machine) fillCheckpoint(body []byte) error {
	k, err := wire.DecodeCheckpoint(body)
	if to := m.rebase.fill.to; err == nil && k.Head < to {
		err = m.setBack(k.Head, to)
	}
	return err
}

// fillEntries keeps entries.
func (m *Machine) fillEntries(l *lane, body []byte) error {
	e, err := wire.DecodeEntriesFrame(body)
	if err != nil {
		return err
	}
	f := &m.rebase.fill
	switch {
	case e.To <= f.at:
		return nil
	case e.From < f.at:
		return fmt.Errorf("%w: entries start after %d instead of %d", errAnswer, e.From, f.at)
	}
	r, err := runOf(&e)
	if err != nil {
		return err
	}
	err = m.p.Keep(&r.Frame)
	switch {
	case errors.Is(err, partition.ErrChain) || isOriginFault(err):
		return fmt.Errorf("%w: %w", errAnswer, err)
	case err != nil:
		return err
	}
	f.at = e.To
	m.pull.moved = true
	l.succeeded()
	return nil
}
