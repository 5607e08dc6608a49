package replica

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits of the records that can arrive before the entries that need them.
const (
	maxBeside  = 64 << 20 // bytes of objects
	maxDerived = 8 << 20  // bytes of derived records in memory; more are written before the entries
	maxObject  = 32 << 20
)

// idlePause is the minimum time between two polls if the first returned at once without entries.
const idlePause = time.Second

// maxDiverged is the number of consecutive failed pulls after which a run of another log makes the machine ask for a snapshot.
const maxDiverged = 3

// pull is one stream of changes.
type pull struct {
	in          wire.Reader
	attachments kv.Batch     // objects for the next entries
	records     kv.Batch     // derived records for the next entries
	object      *wire.Object // the received part of an incomplete object; nil: none
	moved       bool         // the cursor advanced on this stream
	caught      bool         // the origin reported that the log ends at our cursor
	fills       bool         // the stream fetches entries of a snapshot, see fill
	recorded    log.Epoch    // opening of the log in the session in which the last app record came; zero: none came
}

// reset forgets a stream. The origin sends its records again if they were not folded.
func (p *pull) reset() {
	*p = pull{caught: p.caught, recorded: p.recorded}
}

// stopPull cancels the stream.
func (m *Machine) stopPull() {
	m.cancel(&m.lane[lanePull])
	m.pull.reset()
}

// startPull asks for the entries after the cursor.
func (m *Machine) startPull(l *lane) error {
	if m.session.rebase && m.session.paused == "" {
		return m.startFill(l)
	}
	if m.session.paused != "" || m.o.Live == Once && m.settledLog() {
		return nil
	}
	m.pull.reset()
	c := m.p.Cursor()
	query := []string{"opening", hex.EncodeToString(m.session.opening[:]), "since", strconv.FormatUint(c.Seq, 10), "live", m.o.Live.String()}
	if c.Seq > 0 {
		query = append(query, "epoch", hex.EncodeToString(c.Epoch[:]), "chain", hex.EncodeToString(c.Chain[:]))
	}
	if m.o.AppRecords != nil {
		seq := uint64(0) // the control log of another opening may have other entries up to the same place
		if m.pull.recorded == m.session.opening {
			seq = m.o.AppRecords.Seq()
		}
		query = append(query, "register", strconv.FormatUint(seq, 10))
	}
	m.ask(l, Ask{Method: "GET", Path: "/v2/sync/changes", Stream: m.o.Live != Once}, append(query, "vectors", m.vectors())...)
	l.limit = m.at + quietLimit
	return nil
}

// vectors returns the query parameter for derived records.
func (m *Machine) vectors() string {
	if m.o.Wants.Vectors == wire.VectorsQ16 {
		return "q16"
	}
	return "none"
}

// settledLog reports whether nothing is left to pull: neither entries that the origin has announced, nor own operations that it
// accepted.
func (m *Machine) settledLog() bool {
	_, settled := m.p.Outbox()
	return m.pull.caught && settled >= m.push.accepted
}

// frames handles received bytes of a stream.
func (m *Machine) frames(l *lane, data []byte) error {
	if _, err := m.pull.in.Write(data); err != nil {
		return err
	}
	for id := l.id; l.id == id; {
		f, ok, err := m.pull.in.Next()
		if err != nil || !ok {
			return err
		}
		if err := m.frame(l, &f); err != nil {
			return err
		}
	}
	return nil
}

// frame handles one message of the stream.
func (m *Machine) frame(l *lane, f *wire.Frame) error {
	switch fills := m.pull.fills; f.Type {
	case wire.TypeDerived:
		return m.bufferDerived(f.Body)
	case wire.TypeObject:
		return m.object(f.Body)
	case wire.TypeAppRecord:
		return m.register(f.Body)
	case wire.TypeEntries:
		if fills {
			return m.fillEntries(l, f.Body)
		}
		return m.entries(l, f.Body)
	case wire.TypeCheckpoint:
		if fills {
			return m.fillCheckpoint(f.Body)
		}
		return m.checkpoint(l, f.Body)
	case wire.TypeKeepalive:
		_, err := wire.DecodeKeepalive(f.Body)
		if err == nil && m.pull.caught && m.origin.head == m.p.Cursor().Seq {
			m.origin.current, m.origin.streamedAt = m.wall, m.wall
		}
		return err
	case wire.TypeEnd:
		return m.streamEnd(l, f.Body)
	}
	if f.Type >= wire.Optional {
		return nil
	}
	return fmt.Errorf("%w: unexpected frame %v", errAnswer, f.Type)
}

// bufferDerived buffers records until the entries that need them arrive. If there are many, it writes them before: a switch of the network
// needs those of all inputs, and nothing reads them until then. Objects wait for their entries, since a cleanup deletes objects that no version
// names.
func (m *Machine) bufferDerived(body []byte) error {
	d, err := wire.DecodeDerived(body)
	if err != nil {
		return err
	}
	for i := range d.Records {
		r := &d.Records[i]
		if err := catalog.PutDerivedRecord(&m.pull.records, m.o.App, d.Base, r.Blob, r.Crop, r.Record); err != nil {
			return fmt.Errorf("%w: %w", errAnswer, err)
		}
	}
	if len(m.pull.records.Bytes()) <= maxDerived {
		return nil
	}
	if err := m.o.Store.Room(); err != nil {
		return err
	}
	records := m.pull.records
	m.pull.records = kv.Batch{}
	return m.pullNothing(partition.Run{Attach: func(b *kv.Batch) { b.Append(&records) }})
}

// pullNothing pulls a run without entries, which brings records or a stable place.
func (m *Machine) pullNothing(r partition.Run) error {
	c := m.p.Cursor()
	r.Epoch, r.From, r.To, r.Chain = c.Epoch, c.Seq, c.Seq, c.Chain
	_, err := m.p.Pull(context.Background(), r)
	return err
}

// object collects the pieces of an object, and stores the object when it is complete.
func (m *Machine) object(body []byte) error {
	o, err := wire.DecodeObject(body)
	if err != nil {
		return err
	}
	p := &m.pull
	if o.Offset == 0 {
		p.object = &wire.Object{Hash: o.Hash, Size: o.Size}
	}
	switch {
	case p.object == nil, o.Hash != p.object.Hash, o.Size != p.object.Size, o.Offset != uint64(len(p.object.Data)):
		return fmt.Errorf("%w: chunk of an object out of order", errAnswer)
	case o.Size > maxObject:
		return fmt.Errorf("%w: object of %d bytes", errAnswer, o.Size)
	case len(o.Data) == 0 && o.Size > 0:
		return fmt.Errorf("%w: empty chunk of an object", errAnswer)
	case uint64(len(p.attachments.Bytes()))+o.Size > maxBeside:
		return fmt.Errorf("%w: more than %d bytes of objects before the entries that need them", errAnswer, maxBeside)
	}
	p.object.Data = append(p.object.Data, o.Data...)
	data := p.object.Data
	if uint64(len(data)) < o.Size {
		return nil
	}
	p.object = nil
	if blob.Sum(data) != o.Hash {
		return fmt.Errorf("%w: object has the wrong hash", errAnswer)
	}
	catalog.PutObject(&p.attachments, m.o.App, data)
	return nil
}

// register stores the origin's app record. If it denies access, register purges the replica.
func (m *Machine) register(body []byte) error {
	r, err := wire.DecodeAppRecord(body)
	if err != nil {
		return err
	}
	if r.App != m.o.App.String() {
		return fmt.Errorf("%w: app record of another application", errAnswer)
	}
	if m.o.AppRecords == nil {
		return nil
	}
	why, err := m.o.AppRecords.Apply(r.Seq, r.Data)
	if err == nil {
		m.pull.recorded = m.session.opening
	}
	if err == nil && why != "" {
		m.purge(why, false)
	}
	return err
}

// entries folds a run of the log in one batch with its records. It skips a run that was already folded, and ends the stream at a gap.
func (m *Machine) entries(l *lane, body []byte) error {
	e, err := wire.DecodeEntriesFrame(body)
	if err != nil {
		return err
	}
	attachments, records := m.pull.attachments, m.pull.records
	m.pull.attachments, m.pull.records = kv.Batch{}, kv.Batch{}
	c := m.p.Cursor()
	switch {
	case e.To <= c.Seq:
		return nil
	case e.From != c.Seq:
		return fmt.Errorf("%w: entries start after %d, but the cursor is at %d", errAnswer, e.From, c.Seq)
	}
	run, err := runOf(&e)
	if err != nil {
		return err
	}
	m.origin.head = max(m.origin.head, e.To)
	run.Attach = func(b *kv.Batch) {
		b.Append(&records)
		b.Append(&attachments)
	}
	verdicts, err := m.p.Pull(context.Background(), run)
	if err == nil || errors.Is(err, kv.ErrFull) {
		m.origin.streamedAt = m.wall
	}
	switch {
	case errors.Is(err, partition.ErrChain):
		m.diverged(l, err)
		return nil
	case errors.Is(err, fold.ErrNewer): // the newer rules were activated during the session
		m.pause()
		return nil
	case errors.Is(err, partition.ErrCursor):
		return fmt.Errorf("%w: %w", errAnswer, err)
	case err != nil:
		return err
	}
	m.pull.moved, m.pull.caught = true, false
	l.succeeded()
	for i := range verdicts {
		if verdicts[i].Verdict.Code > fold.Superseded {
			m.origin.refused++
		}
	}
	m.load.entries(run.Entries)
	return nil
}

// runOf decodes a run of the protocol. It returns an error if the number of entries is wrong.
func runOf(e *wire.Entries) (r partition.Run, err error) {
	r.Frame = partition.Frame{Epoch: e.Epoch, From: e.From, To: e.To, Before: e.Before, Chain: e.Chain, Rows: e.Rows, Seal: e.Seal}
	if r.Entries, err = log.DecodeRows(e.Rows, e.From); err == nil && uint64(len(r.Entries)) != e.To-e.From {
		err = fmt.Errorf("%w: %d entries from %d to %d", errAnswer, len(r.Entries), e.From, e.To)
	}
	return r, err
}

// diverged handles a run of another log. The machine sends its cursor again. After maxDiverged failures it asks for a snapshot. Own
// operations stay.
func (m *Machine) diverged(l *lane, err error) {
	m.end()
	m.backOff(l, 0, err)
	m.rebase.force = m.rebase.force || l.fails >= maxDiverged
}

// checkpoint stores the end of the log and the last stable entry.
func (m *Machine) checkpoint(l *lane, body []byte) error {
	k, err := wire.DecodeCheckpoint(body)
	if err != nil {
		return err
	}
	c := m.p.Cursor()
	switch {
	case k.Opening != m.session.opening:
		m.end()
		return fmt.Errorf("%w: checkpoint of a different opening", errAnswer)
	case k.To != c.Seq || k.Head < k.To:
		return fmt.Errorf("%w: checkpoint at %d of %d, cursor %d", errAnswer, k.To, k.Head, c.Seq)
	}
	if k.Stable > c.Stable {
		if err := m.pullNothing(partition.Run{Stable: min(k.Stable, k.Head)}); err != nil {
			return err
		}
	}
	l.succeeded()
	m.origin.head, m.origin.streamedAt = k.Head, m.wall
	if m.pull.caught = k.To == k.Head; m.pull.caught {
		m.origin.current = m.wall
		m.checkEcho()
	}
	return nil
}

// streamEnd handles the origin's reason for the end of a stream.
func (m *Machine) streamEnd(l *lane, body []byte) error {
	e, err := wire.DecodeEnd(body)
	if err != nil {
		return err
	}
	if m.pull.fills && e.Why == wire.WhyDone && !m.pull.moved { // the origin has no more entries: install without them
		m.rebase.fill.at = m.rebase.fill.to
	}
	wait := wait(e.WaitMillis)
	switch e.Why {
	case wire.WhyGone:
		m.purge(e.Detail, false)
	case wire.WhyRebase, wire.WhyScope, wire.WhyExpired:
		m.end()
		m.lane[laneSession].next = max(m.lane[laneSession].next, m.at+wait)
	case wire.WhyShutdown, wire.WhyError:
		m.cancel(l)
		m.backOff(l, wait, fmt.Errorf("the origin ended the stream: %s", e.Detail))
	default:
		l.next = max(l.next, m.at+wait)
	}
	return nil
}

// handlePullEnd handles the end of an answer. If the answer ends inside a message, it was cut off.
func (m *Machine) handlePullEnd(l *lane, took time.Duration) error {
	idle, moved := m.pull.in.Idle(), m.pull.moved
	m.pull.reset()
	if !idle {
		return fmt.Errorf("%w: response ended inside a frame", errAnswer)
	}
	if !moved && took < idlePause {
		l.next = max(l.next, m.at+idlePause)
	}
	return nil
}
