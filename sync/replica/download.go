package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits of downloads.
const (
	maxBlobBytes = 64 << 20
	maxEager     = 1024 // hashes that are queued in memory
	scanInputs   = 512  // inputs that one scan reads
	maxTries     = 3    // tries for one picture whose bytes are wrong
)

// download fetches pictures: first those that a reader waits for, and with wire.BlobsFull also those of all inputs, in the order of the
// inputs.
type download struct {
	needs  []blob.Hash // pictures that a reader waits for, oldest first
	eager  []blob.Hash // other pictures of inputs
	missed map[blob.Hash]bool
	scan   uint32 // ordinal of the next input to scan
	scans  bool   // there may be more inputs to scan

	now    blob.Hash // picture in transfer; zero: none
	needed bool      // a reader waits for it
	part   []byte    // bytes of it from an earlier request
	tries  int
}

// rescan schedules a scan of all inputs.
func (d *download) rescan() { d.scan, d.scans, d.missed = 0, true, nil }

// entries queues the pictures of new log entries.
func (d *download) entries(entries []log.Entry) {
	for i := range entries {
		h := partition.PictureOf(&entries[i].Op)
		switch {
		case h.IsZero() || d.scans && d.scan == 0:
		case len(d.eager) < maxEager:
			d.eager = append(d.eager, h)
		default:
			d.rescan()
		}
	}
}

// need queues a picture that a reader waits for, before pictures that no reader waits for.
func (m *Machine) need(h blob.Hash) error {
	if m.o.Blobs == nil || h.IsZero() {
		m.effects = append(m.effects, BlobReady{Blob: h, Err: blob.ErrNotFound})
		return nil
	}
	has, err := m.o.Blobs.Has(context.Background(), h)
	if err != nil {
		return err
	}
	reason := m.o.Store.Room()
	if m.session.active && m.session.drains {
		reason = blob.ErrNotFound
	}
	d := &m.load
	switch {
	case has:
		m.effects = append(m.effects, BlobReady{Blob: h})
	case reason != nil:
		m.effects = append(m.effects, BlobReady{Blob: h, Err: reason})
	case d.now == h:
		d.needed = true
	case !slices.Contains(d.needs, h):
		d.needs = append(d.needs, h)
	}
	return nil
}

// startDownload asks for the next picture, or for the rest of one.
func (m *Machine) startDownload(l *lane) error {
	d := &m.load
	if m.o.Blobs == nil {
		return nil
	}
	if d.now.IsZero() {
		if err := m.nextDownload(); err != nil || d.now.IsZero() {
			return err
		}
	}
	if err := m.o.Store.Room(); err != nil {
		return err
	}
	a := Ask{Method: "GET", Path: "/v2/sync/blobs/" + d.now.String()}
	if len(d.part) > 0 {
		a.Header = append(a.Header, api.Field{Name: "Range", Value: fmt.Sprintf("bytes=%d-", len(d.part))})
	}
	m.ask(l, a)
	return nil
}

// nextDownload chooses the next picture.
func (m *Machine) nextDownload() error {
	d := &m.load
	d.part, d.tries = nil, 0
	if len(d.needs) > 0 {
		d.now, d.needed, d.needs = d.needs[0], true, d.needs[1:]
		return nil
	}
	d.needed = false
	if m.o.Wants.Blobs != wire.BlobsFull {
		d.eager, d.scans = nil, false
		return nil
	}
	for looked := 0; len(d.eager) > 0 || d.scans; looked++ {
		if looked > maxEager { // continue in another step, because other lanes wait
			m.lane[laneDownload].next = m.at + time.Millisecond
			return nil
		}
		if len(d.eager) == 0 {
			if err := m.scanInputs(); err != nil {
				return err
			}
			continue
		}
		h := d.eager[0]
		d.eager = d.eager[1:]
		if d.missed[h] {
			continue
		}
		has, err := m.o.Blobs.Has(context.Background(), h)
		if err != nil {
			return err
		}
		if !has {
			d.now = h
			return nil
		}
	}
	return nil
}

// scanInputs queues the pictures of the next inputs.
func (m *Machine) scanInputs() error {
	d := &m.load
	n := 0
	err := catalog.Read(m.o.Store, m.o.App).Inputs(d.scan, func(in catalog.Input) bool {
		d.scan = in.Ord + 1
		if !in.Blob.IsZero() {
			d.eager = append(d.eager, in.Blob)
		}
		n++
		return n < scanInputs
	})
	if n < scanInputs {
		d.scans = false
	}
	return err
}

// storePart stores the part of a picture that arrived before the connection was lost.
func (m *Machine) storePart(l *lane) {
	d := &m.load
	switch from, ok := rangeFrom(l.header); {
	case l.status == 200:
		d.part = bytes.Clone(l.body)
	case l.status == 206 && ok && from == len(d.part):
		d.part = append(d.part, l.body...)
	}
	if len(d.part) > maxBlobBytes {
		d.part = nil
	}
}

// rangeFrom returns the offset of the first byte of a partial answer.
func rangeFrom(fields []api.Field) (from int, ok bool) {
	s, ok := strings.CutPrefix(strings.TrimSpace(header(fields, "Content-Range")), "bytes ")
	s, _, found := strings.Cut(s, "-")
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), ok && found && err == nil
}

// handleDownload stores a complete picture if its hash is right.
func (m *Machine) handleDownload(l *lane, status int, fields []api.Field, body []byte) error {
	d := &m.load
	if from, ok := rangeFrom(fields); status == 206 {
		if !ok || from != len(d.part) {
			d.part = nil
			return fmt.Errorf("%w: wrong part of the picture", errAnswer)
		}
		body = append(d.part, body...)
	}
	d.part = nil
	if len(body) > maxBlobBytes {
		m.notGot(l, fmt.Errorf("%w: picture of %d bytes", errAnswer, len(body)))
		return nil
	}
	_, err := m.o.Blobs.Put(context.Background(), bytes.NewReader(body), d.now)
	switch {
	case errors.Is(err, blob.ErrHash), errors.Is(err, blob.ErrTooLarge):
		if d.tries++; d.tries >= maxTries {
			m.notGot(l, err)
			return nil
		}
		return fmt.Errorf("%w: %w", errAnswer, err)
	case errors.Is(err, kv.ErrFull):
		m.endDownload(err)
		d.rescan()
		return err
	case err != nil:
		return err
	}
	l.succeeded()
	m.origin.gotBlobs++
	m.endDownload(nil)
	return nil
}

// endDownload ends the current download. err is nil if the picture was stored.
func (m *Machine) endDownload(err error) {
	d := &m.load
	if d.needed {
		m.effects = append(m.effects, BlobReady{Blob: d.now, Err: err})
	}
	d.now, d.part, d.needed = blob.Hash{}, nil, false
}

// notGot gives up the current picture until inputs are scanned again.
func (m *Machine) notGot(l *lane, err error) {
	d := &m.load
	if d.missed == nil {
		d.missed = map[blob.Hash]bool{}
	}
	d.missed[d.now] = true
	l.succeeded()
	m.endDownload(err)
}
