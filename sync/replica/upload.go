package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits of uploads.
const (
	maxRequestHashes = 256     // maximum hashes of one request
	maxLook          = 1 << 12 // maximum operations in which it looks for these
	pieceBytes       = 1 << 20 // bytes of one upload part, so the maximum loss of an interruption
	maxKnown         = 1 << 14 // maximum hashes in known
)

// upload sends pictures and objects to the origin before the operations that name them:
//
//	outbox ─▶ ask which the origin has ─▶ the rest in parts, each from the offset that it has ─▶ operations
type upload struct {
	known         map[blob.Hash]bool // the origin has the blob, or cannot get it from us
	lost          map[blob.Hash]bool // blobs that the origin cannot get: it must refuse the operations that name them
	requestHashes []blob.Hash        // hashes in the current request
	queue         []wire.PartialBlob // blobs that the origin lacks, in the order of the outbox, with the number of bytes that it has of each
	data          []byte             // bytes of queue[0]; nil: not read yet
	sent          uint64             // end of the part in transfer
}

// wants reports whether an operation must wait for the upload of its picture or object.
func (u *upload) wants(op *log.Op) bool {
	h := requiredBlob(op)
	return !h.IsZero() && !u.known[h]
}

// lacks reports whether an operation names a blob that the origin cannot get.
func (u *upload) lacks(op *log.Op) bool { return u.lost[requiredBlob(op)] }

// requiredBlob returns the picture or object that the origin must have before it gets op; zero: none.
func requiredBlob(op *log.Op) blob.Hash {
	if b, ok := op.Body.(*log.VersionResult); ok {
		return b.Manifest
	}
	return partition.PictureOf(op)
}

// forget drops all knowledge about the origin's blobs, so that the replica asks again.
func (u *upload) forget() { *u = upload{} }

// again drops the queue, so that the replica asks the origin which bytes it has before it sends more: a part whose answer was lost may have
// arrived.
func (u *upload) again() { u.queue, u.data = nil, nil }

// startUpload sends the next part, or asks which blobs the origin lacks.
func (m *Machine) startUpload(l *lane) error {
	u := &m.upload
	for len(u.queue) > 0 {
		if u.data == nil {
			data, err := m.readLocalBlob(u.queue[0].Hash)
			if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
				m.markUnavailable(u.queue[0].Hash, err.Error())
				u.queue = u.queue[1:]
				continue
			}
			if err != nil {
				return err
			}
			u.data = data
		}
		m.sendChunk(l)
		return nil
	}
	return m.askHave(l)
}

// readLocalBlob returns the bytes of a picture or an object that is stored here.
func (m *Machine) readLocalBlob(h blob.Hash) ([]byte, error) {
	data, err := catalog.Read(m.o.Store, m.o.App).Object(h)
	switch {
	case !errors.Is(err, catalog.ErrNotFound):
		return data, err
	case m.o.Blobs == nil:
		return nil, blob.ErrNotFound
	}
	return m.o.Blobs.Get(context.Background(), h)
}

// has notes that operations need not wait for h.
func (m *Machine) has(h blob.Hash) {
	u := &m.upload
	if u.known == nil || len(u.known) >= maxKnown {
		u.known = map[blob.Hash]bool{}
	}
	u.known[h] = true
}

// markUnavailable notes that the origin will not get the blob h. The replica sends operations that name it as refused, so that each gets a
// verdict and the operations after it are sent.
func (m *Machine) markUnavailable(h blob.Hash, reason string) {
	m.lane[laneUpload].wrong = fmt.Sprintf("upload: %v: %s", h, reason)
	m.has(h)
	u := &m.upload
	if u.lost == nil {
		u.lost = map[blob.Hash]bool{}
	}
	u.lost[h] = true
}

// forgetLost forgets which blobs are lost, after operations were sent: a later one may name a blob that was stored here meanwhile.
func (u *upload) forgetLost() {
	for h := range u.lost {
		delete(u.known, h)
	}
	u.lost = nil
}

// sendChunk sends the next part of queue[0].
func (m *Machine) sendChunk(l *lane) {
	u := &m.upload
	size := uint64(len(u.data))
	from := min(u.queue[0].Size, size)
	if from == size {
		from = 0 // the origin has all bytes, but has not verified them
	}
	u.sent = min(from+pieceBytes, size)
	m.ask(l, Ask{
		Method: "PUT", Path: "/v2/sync/blobs/" + u.queue[0].Hash.String(), Body: u.data[from:u.sent],
		Header: []api.Field{
			{Name: "Content-Type", Value: "application/octet-stream"},
			{Name: "Content-Range", Value: contentRange(from, u.sent, size)},
		},
	})
}

// contentRange returns the header for the bytes from ≤ i < to of size.
func contentRange(from, to, size uint64) string {
	if size == 0 {
		return "bytes */0"
	}
	return fmt.Sprintf("bytes %d-%d/%d", from, to-1, size)
}

// askHave asks which of the next blobs the origin has, if an operation of the next request waits for one.
func (m *Machine) askHave(l *lane) error {
	u, ops := &m.upload, 0
	u.requestHashes = u.requestHashes[:0]
	err := m.waiting(func(op *log.Op) bool {
		if h := requiredBlob(op); u.wants(op) && !slices.Contains(u.requestHashes, h) {
			u.requestHashes = append(u.requestHashes, h)
		}
		n := len(u.requestHashes)
		ops++
		return n == 0 && ops < pushOps || n > 0 && n < maxRequestHashes && ops < maxLook
	})
	if err != nil || len(u.requestHashes) == 0 {
		return err
	}
	have := wire.HaveRequest{App: m.o.App.String(), Hashes: u.requestHashes}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/blobs/have", Body: have.Encode()})
	return nil
}

// handleUploadReply handles the answer to a part or to askHave.
func (m *Machine) handleUploadReply(l *lane, status int, body []byte) error {
	u := &m.upload
	if len(u.queue) == 0 {
		return m.handleHaveReply(l, body)
	}
	l.succeeded()
	if u.sent < uint64(len(u.data)) && status == 202 {
		u.queue[0].Size = u.sent
		return nil
	}
	if status == 202 {
		return fmt.Errorf("%w: a complete picture was accepted as a part", errAnswer)
	}
	m.has(u.queue[0].Hash)
	m.origin.sentBlobs++
	u.queue, u.data = u.queue[1:], nil
	m.lane[lanePush].succeeded()
	m.lane[laneBack].succeeded()
	return nil
}

// handleHaveReply queues the blobs that the origin lacks.
func (m *Machine) handleHaveReply(l *lane, body []byte) error {
	h, err := wire.DecodeHaveReply(body)
	if err != nil {
		return err
	}
	u := &m.upload
	begun := map[blob.Hash]uint64{}
	for _, x := range h.Partial {
		begun[x.Hash] = x.Size
	}
	for _, x := range u.requestHashes {
		if slices.Contains(h.Hashes, x) {
			m.has(x)
		} else {
			u.queue = append(u.queue, wire.PartialBlob{Hash: x, Size: begun[x]})
		}
	}
	u.requestHashes = nil
	l.succeeded()
	return nil
}

// uploadRefused makes the replica ask again which bytes the origin has: a part may have arrived out of order.
func (m *Machine) uploadRefused(r *wire.Refusal, status int) (done bool) {
	u := &m.upload
	if len(u.queue) == 0 {
		return false
	}
	h := u.queue[0].Hash
	u.again()
	if status == 413 { // the origin will never accept the blob: the operation must get a verdict
		m.lane[laneUpload].succeeded()
		m.markUnavailable(h, r.Detail)
		return true
	}
	return false
}
