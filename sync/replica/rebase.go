package replica

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// MaxChunkBytes is the maximum size of one chunk of a snapshot, in bytes.
const MaxChunkBytes = maxObject

// rebase is the download of a snapshot. The store has the chunks by hash, so that an interrupted download continues with the missing
// chunks, even after a restart.
//
//	manifest ─▶ chunks and objects, two at a time, each by its hash ─▶ replace the state, under the outbox
//	         └▶ entries in the snapshot, which the partition keeps ([fill]) ──┘
//
// A replica that has never pulled writes chunks of derived records to their final keys at once. While it processes one chunk, laneAhead
// asks the origin for the next one.
type rebase struct {
	force      bool // download a snapshot even if the origin could continue from our cursor
	manifest   *wire.Manifest
	parts      []wire.Chunk // parts of the manifest: chunks, then objects
	received   []bool       // by part: it arrived, and its hash was checked since the machine was created
	placed     []bool       // by part: a chunk whose derived records are under their final keys
	next       int          // index of the first part that may be missing
	swept      bool         // the store has no chunks of an earlier snapshot
	handedOver bool         // the host was asked to install the snapshot
	fill       fill

	requested [lanes]blob.Hash // requests of laneRebase and laneAhead; zero: the manifest

	body  []byte   // buffer for the next part
	batch kv.Batch // reused batch for the next part
}

// forget drops the manifest, so that it is requested again.
func (r *rebase) forget() {
	r.manifest, r.parts, r.received, r.placed, r.next = nil, nil, nil, nil, 0
}

// startRebase asks for the next part, or installs the snapshot when all have arrived.
func (m *Machine) startRebase(l *lane) error {
	r := &m.rebase
	if m.session.paused != "" || r.handedOver {
		return nil // the received parts serve a newer version, or the host
	}
	if !m.session.rebase {
		return m.sweep()
	}
	if err := m.o.Store.Room(); err != nil {
		return err
	}
	if r.manifest == nil {
		least, err := m.least()
		if err != nil {
			return err
		}
		m.ask(l, Ask{Method: "GET", Path: "/v2/sync/snapshot"},
			"vectors", m.vectors(), "opening", hex.EncodeToString(m.session.opening[:]), "least", strconv.FormatUint(least, 10))
		r.requested[laneRebase] = blob.Hash{}
		return nil
	}
	if requested, err := m.askPart(laneRebase, laneAhead); requested || err != nil || r.next < len(r.parts) {
		return err
	}
	if r.fill.waits() {
		return nil
	}
	if offered, err := m.offerSnapshot(); offered || err != nil {
		return err
	}
	return m.takeSnapshot(l)
}

// least returns the entry that a snapshot must have. An earlier state would lack entries that the replica has shown.
func (m *Machine) least() (uint64, error) {
	if m.session.lacks { // the log has taken them back
		return m.origin.head, nil
	}
	shown, err := m.place()
	return shown.Seq, err
}

// startAhead asks for the part after the one that laneRebase requested.
func (m *Machine) startAhead() error {
	if !m.session.rebase || m.rebase.manifest == nil || m.lane[laneRebase].id == 0 {
		return nil
	}
	err := m.o.Store.Room()
	if err == nil {
		_, err = m.askPart(laneAhead, laneRebase)
	}
	return err
}

// askPart makes a lane ask for the first missing part that the lane other has not requested. It reports whether there was one.
func (m *Machine) askPart(lane, other int) (requested bool, err error) {
	r := &m.rebase
	for i := r.next; i < len(r.parts); i++ {
		h := r.parts[i].Hash
		if m.lane[other].id != 0 && r.requested[other] == h {
			continue
		}
		has, err := m.hasPart(i)
		if err != nil {
			return false, err
		}
		if !has {
			l := &m.lane[lane]
			place := m.o.NativeSnapshots && i < len(r.manifest.Chunks)
			if place {
				if place, err = m.places(); err != nil {
					return false, err
				}
			}
			m.ask(l, Ask{Method: "GET", Path: "/v2/sync/snapshot/" + h.String(), Place: place})
			l.body, r.body = slices.Grow(r.body[:0], int(r.parts[i].Size)), nil
			r.requested[lane] = h
			return true, nil
		}
	}
	return false, nil
}

// hasPart reports whether part i arrived.
func (m *Machine) hasPart(i int) (bool, error) {
	r := &m.rebase
	if r.received[i] {
		return true, nil
	}
	h := r.parts[i].Hash
	if i < len(r.manifest.Chunks) {
		places, err := m.places()
		if places && err == nil {
			if _, err = m.o.Store.Get(partition.PlacedKey(m.o.App, h)); err == nil {
				r.placed[i] = true
				r.markReceived(i)
				return true, nil
			}
		}
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return false, err
		}
	}
	data, err := m.staged(h)
	if errors.Is(err, blob.ErrNotFound) || err == nil && blob.Sum(data) != h { // damaged
		return false, nil
	}
	if err == nil {
		r.markReceived(i)
	}
	return err == nil, err
}

// markReceived notes that part i arrived.
func (r *rebase) markReceived(i int) {
	r.received[i] = true
	for r.next < len(r.received) && r.received[r.next] {
		r.next++
	}
}

// places reports whether derived records are written to their final keys at once. That is safe while the replica is empty.
func (m *Machine) places() (bool, error) {
	if m.p.Cursor() != (partition.Cursor{}) {
		return false, nil
	}
	return blank(m.o.Store, m.o.App)
}

// blank reports whether an application has no inputs, including pending ones.
func blank(store kv.Store, app catalog.AppID) (empty bool, err error) {
	empty = true
	err = catalog.Read(store, app).Inputs(0, func(catalog.Input) bool {
		empty = false
		return false
	})
	return empty, err
}

// chunkNote is the prefix of the names of the stored parts of snapshots; the hash of a part follows.
const chunkNote = "sync/chunk/"

func (m *Machine) stageKey(h blob.Hash) []byte {
	return append(m.o.App.LocalKey(chunkNote), h[:]...)
}

// staged returns a part that arrived.
func (m *Machine) staged(h blob.Hash) ([]byte, error) {
	data, err := m.o.Store.Get(m.stageKey(h))
	if errors.Is(err, kv.ErrNotFound) {
		err = blob.ErrNotFound
	}
	return data, err
}

// sweep removes the stored parts of snapshots.
func (m *Machine) sweep() error {
	if m.rebase.swept {
		return nil
	}
	var b kv.Batch
	kv.DeletePrefix(&b, m.o.App.LocalKey(chunkNote))
	partition.DeletePlacedKeys(&b, m.o.App)
	if m.p.Cursor() == (partition.Cursor{}) { // the inputs of placed derived records may never arrive
		catalog.ScheduleDerivedCleanup(&b, m.o.App)
	}
	if err := m.o.Store.Apply(&b); err != nil {
		return err
	}
	m.rebase.swept = true
	return nil
}

// gotSnapshot handles the manifest or a part. The host may have computed the part's hash, or stored the part by Place. gotSnapshot ignores
// answers for a snapshot that was abandoned meanwhile.
func (m *Machine) gotSnapshot(lane int, body []byte, a *Answer) error {
	r, l := &m.rebase, &m.lane[lane]
	hash := r.requested[lane]
	if hash.IsZero() {
		return m.gotManifest(l, body)
	}
	i := slices.IndexFunc(r.parts, func(c wire.Chunk) bool { return c.Hash == hash })
	if i < 0 {
		return nil
	}
	part, sum := r.parts[i], a.Sum
	if a.Placed {
		r.swept = false
		has, err := m.hasPart(i)
		if err == nil && !(has && r.placed[i]) {
			err = fmt.Errorf("%w: the host did not store a snapshot chunk", errAnswer)
		}
		if err == nil {
			l.succeeded()
		}
		return err
	}
	if sum == (blob.Hash{}) {
		sum = blob.Sum(body)
	}
	if uint64(len(body)) != part.Size || sum != part.Hash {
		return fmt.Errorf("%w: snapshot chunk has the wrong hash", errAnswer)
	}
	r.body = body[:0]
	r.batch.Reset()
	places, err := m.places()
	if err != nil {
		return err
	}
	placed := places && i < len(r.manifest.Chunks) && partition.PlaceChunk(&r.batch, m.o.App, part.Hash, body)
	if !placed {
		r.batch.Put(m.stageKey(part.Hash), body)
	}
	r.swept = false
	if err := m.o.Store.Apply(&r.batch); err != nil {
		return err
	}
	r.placed[i] = placed
	r.markReceived(i)
	l.succeeded()
	return nil
}

// gotManifest checks the manifest and starts the download of its parts.
func (m *Machine) gotManifest(l *lane, body []byte) error {
	r := &m.rebase
	f, err := wire.DecodeManifest(body)
	if err != nil {
		return err
	}
	least, err := m.least()
	switch {
	case err != nil:
		return err
	case f.App != m.o.App.String():
		return fmt.Errorf("%w: snapshot of another application", errAnswer)
	case f.Fold > m.p.Rules(): // the newer rules were activated during the session
		m.pause()
		m.session.rebase = false
		return nil
	case f.Seq < least:
		return m.setBack(f.Seq, least)
	}
	for _, c := range slices.Concat(f.Chunks, f.Objects) {
		if c.Size > MaxChunkBytes {
			return fmt.Errorf("%w: snapshot chunk of %d bytes is too large", errAnswer, c.Size)
		}
	}
	r.begin(&f)
	if r.fill.of != f.Chain {
		if m.pull.fills { // the answer may end before the entries of this snapshot
			m.stopPull()
		}
		r.fill = fill{of: f.Chain, to: f.Seq, at: m.stable(&f)}
	}
	l.succeeded()
	return nil
}

// begin sets up the download of the parts in f.
func (r *rebase) begin(f *wire.Manifest) {
	r.forget()
	r.manifest, r.parts = f, slices.Concat(f.Chunks, f.Objects)
	r.received, r.placed = make([]bool, len(r.parts)), make([]bool, len(r.parts))
}

// takeSnapshot replaces the confirmed state by the snapshot. The outbox stays, and pending operations are folded again on top.
func (m *Machine) takeSnapshot(l *lane) error {
	r := &m.rebase
	err := m.adopt(context.Background())
	*r = rebase{force: r.force}
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil // a part was damaged meanwhile: it is requested again
	case isOriginFault(err):
		return errors.Join(m.sweep(), fmt.Errorf("%w: %w", errAnswer, err))
	case err != nil:
		return err
	}
	m.origin.rebases++
	m.session.rebase, m.session.lacks, r.force = false, false, false
	m.back = back{}
	m.stopPull()
	m.pull.caught = false
	m.push.accepted = 0
	m.lane[lanePull].succeeded()
	m.load.rescan()
	if err := m.forgetDates(); err != nil {
		return err
	}
	l.succeeded()
	m.lane[laneAhead].succeeded()
	return m.sweep()
}

// adopt installs the snapshot in the partition, and stores its objects.
func (m *Machine) adopt(ctx context.Context) error {
	r := &m.rebase
	f := r.manifest
	s := partition.Snapshot{
		Epoch: f.Epoch, Seq: f.Seq, Lacked: m.session.lacks, Chain: f.Chain, Stable: m.stable(f), Fold: f.Fold, Digest: f.Digest,
		Read:   func(i int) ([]byte, error) { return m.staged(f.Chunks[i].Hash) },
		Placed: func(i int) bool { return r.placed[i] },
	}
	for _, c := range f.Chunks {
		s.Chunks = append(s.Chunks, partition.Chunk(c))
	}
	objects := r.parts[len(f.Chunks):]
	err := m.putObjects(objects)
	if err == nil {
		err = m.p.Rebase(ctx, s)
	}
	if err == nil { // a cleanup may have removed them meanwhile
		err = m.putObjects(objects)
	}
	return err
}

// putObjects stores the objects of the snapshot that the catalog lacks.
func (m *Machine) putObjects(list []wire.Chunk) error {
	var b kv.Batch
	for _, o := range list {
		if _, err := catalog.Read(m.o.Store, m.o.App).Object(o.Hash); err == nil {
			continue
		}
		data, err := m.staged(o.Hash)
		if err != nil {
			return err
		}
		catalog.PutObject(&b, m.o.App, data)
	}
	if b.Len() == 0 {
		return nil
	}
	return m.o.Store.Apply(&b)
}

// isOriginFault reports whether err is caused by the state that the origin sent.
func isOriginFault(err error) bool {
	return errors.Is(err, partition.ErrChunk) || errors.Is(err, catalog.ErrOrder) || errors.Is(err, field.ErrFormat) ||
		errors.Is(err, kv.ErrCorrupt) || errors.Is(err, kv.ErrNewer)
}

// snapshotRefused continues with the newest snapshot if the origin no longer has this one. Parts that both contain are not requested again.
func (m *Machine) snapshotRefused(status int) (done bool) {
	if status != 404 && status != 410 || m.rebase.manifest == nil { // without a manifest the origin has no snapshot yet: retry later
		return false
	}
	m.rebase.forget()
	m.backOff(&m.lane[laneRebase], 0, errors.New("the snapshot has expired; downloading the newest"))
	return true
}
