package feed

import (
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits limit the requests and answers of a feed. A zero field means the default, the last value in its comment.
type Limits struct {
	PushOps     uint64 // operations of one push, at most wire.MaxOps; 512
	PushBytes   uint64 // bytes of one push; 8 MiB
	OpsRate     uint64 // operations, or 4 KiB of them, a second of one site, four times as many of one application; 2,000
	FrameRate   uint64 // bytes of frames and chunks a second of one application; 64 MiB
	BlobBytes   uint64 // bytes of pictures a day that one application sends; 50 GB
	BlobSize    uint64 // bytes of one picture; 20,000,000
	Snapshots   uint64 // snapshots and digest trees an hour for one caller; 120
	Streams     uint64 // concurrent live streams and polls of one application; 2,000
	AllStreams  uint64 // concurrent live streams and polls of all applications; 20,000
	UploadBytes uint64 // bytes of unfinished uploads, counted in full size; one application can use a quarter; 256 MiB
	Uploads     uint64 // complete uploads of one application that no operation names yet; 100,000
	Sites       uint64 // concurrent leases of one application, without edges; 10,000

	Poll             time.Duration // maximum wait of a poll; 25 s
	Alive            time.Duration // time between keepalives; 15 s
	Stream           time.Duration // maximum duration of a stream; an hour
	PartialUploadTTL time.Duration // time after which an incomplete upload without new bytes is deleted; 10 minutes
	UploadTTL        time.Duration // time to push an operation that names an uploaded picture; an hour

	Pictures int // pictures analysed for one push; the rest wait for the next push; 32
}

func (l *Limits) defaults() {
	or := func(v *uint64, d uint64) {
		if *v == 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.PushOps, wire.MaxOps)
	or(&l.PushBytes, 8<<20)
	or(&l.OpsRate, 2000)
	or(&l.FrameRate, 64<<20)
	or(&l.BlobBytes, 50e9)
	or(&l.BlobSize, 20e6)
	or(&l.Snapshots, 120)
	or(&l.Streams, 2000)
	or(&l.AllStreams, 20_000)
	or(&l.UploadBytes, 256<<20)
	or(&l.Uploads, 100_000)
	or(&l.Sites, 10_000)
	orTime(&l.Poll, 25*time.Second)
	orTime(&l.Alive, 15*time.Second)
	orTime(&l.Stream, time.Hour)
	orTime(&l.PartialUploadTTL, 10*time.Minute)
	orTime(&l.UploadTTL, time.Hour)
	if l.Pictures == 0 {
		l.Pictures = 32
	}
}

// wireLimits returns the limits in the form of the protocol.
func (l *Limits) wireLimits() wire.Limits {
	return wire.Limits{
		PushOps: l.PushOps, PushBytes: l.PushBytes, OpsRate: l.OpsRate, FrameRate: l.FrameRate, BlobBytes: l.BlobBytes, BlobSize: l.BlobSize,
		Snapshots: l.Snapshots, Streams: l.Streams, PollMillis: uint64(l.Poll.Milliseconds()), AliveMillis: uint64(l.Alive.Milliseconds()),
	}
}

// meters enforce the quotas of replicas.
type meters struct {
	sites, apps meter // operations, by site and by application
	frames      meter // bytes, by application
	blobs       meter // bytes, by application
	snapshots   meter // snapshots and digest trees, by caller
	enrols      meter // enrolments and leases, by remote address or caller
}

func newMeters(l *Limits) meters {
	const day, hour = 24 * time.Hour, time.Hour
	return meters{
		sites:     meter{name: "OpsRate", amount: l.OpsRate, per: time.Second, burst: 10 * l.OpsRate},
		apps:      meter{name: "OpsRate", amount: 4 * l.OpsRate, per: time.Second, burst: 40 * l.OpsRate},
		frames:    meter{name: "FrameRate", amount: l.FrameRate, per: time.Second, burst: 16 * l.FrameRate},
		blobs:     meter{name: "BlobBytes", amount: l.BlobBytes, per: day, burst: l.BlobBytes},
		snapshots: meter{name: "Snapshots", amount: l.Snapshots, per: hour, burst: l.Snapshots},
		enrols:    meter{name: "Enrolments", amount: 60, per: hour, burst: 60},
	}
}

// meter limits each user to an amount in a time. A user's bucket fills steadily. One use may overdraw it, so that a use of any size is
// possible.
//
//	        ├────────── burst ─────────┤
//	──now───┬─────────────┬────────────┬──▶ t     refused while "full at" is beyond now + burst;
//	        │  amount/per │         full at       a use of n moves it n·per/amount to the right
//
// A full bucket needs no entry, so the meter forgets users with a full bucket.
type meter struct {
	name   string
	amount uint64
	per    time.Duration
	burst  uint64

	mu        sync.Mutex
	full      map[string]time.Time
	threshold int           // number of users above which those with a full bucket are dropped
	look      time.Time     // last time when they were dropped
	last      time.Time     // time of the last use, on the meter's own clock
	back      time.Duration // difference to the wall clock, after that was set back
}

// tick returns now on a clock that never runs backwards. If the wall clock is set back, full buckets must not become empty. The caller must
// hold mu.
func (m *meter) tick(now time.Time) time.Time {
	now = now.Add(m.back)
	if d := m.last.Sub(now); d > 0 {
		m.back, now = m.back+d, m.last
	}
	m.last = now
	return now
}

// A meter remembers minMetered users before it drops full buckets, and then twice as many as remained. At maxMetered all new users share
// one bucket.
const (
	minMetered = 10_000
	maxMetered = 200_000
)

// cost returns the time in which the bucket fills by n.
func (m *meter) cost(n uint64) time.Duration {
	return time.Duration(float64(n) / float64(m.amount) * float64(m.per))
}

// take uses n, or returns a refusal with the time until the next use is possible.
func (m *meter) take(user string, n uint64, now time.Time, unit string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = m.tick(now)
	if m.full == nil {
		m.full = map[string]time.Time{}
	}
	user = m.bucket(user, now)
	full := m.full[user]
	if full.Before(now) {
		full = now
	}
	if wait := full.Sub(now) - m.cost(m.burst); wait > 0 {
		return &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many %s: at most %d in %v", unit, m.amount, m.per),
			Limit: m.name, Value: m.amount, WaitMillis: uint64(wait.Milliseconds()) + 1,
		}
	}
	m.full[user] = full.Add(m.cost(n))
	return nil
}

// bucket returns the name of a user's bucket. The caller must hold mu.
func (m *meter) bucket(user string, now time.Time) string {
	if _, known := m.full[user]; known || len(m.full) < max(m.threshold, minMetered) {
		return user
	}
	if now.Sub(m.look) >= time.Second {
		for name, at := range m.full {
			if !at.After(now) {
				delete(m.full, name)
			}
		}
		m.look, m.threshold = now, min(2*len(m.full), maxMetered)
	}
	if len(m.full) >= maxMetered {
		return ""
	}
	return user
}

// counts contains the numbers of open streams, by application.
type counts struct {
	mu  sync.Mutex
	all uint64
	of  map[string]uint64
}

// enter counts a stream until the caller calls leave.
func (n *counts) enter(app string, l *Limits) (leave func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all >= l.AllStreams || n.of[app] >= l.Streams {
		return nil, &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many readers: at most %d at a time", l.Streams),
			Limit: "Streams", Value: l.Streams, WaitMillis: 5000,
		}
	}
	if n.of == nil {
		n.of = map[string]uint64{}
	}
	n.all++
	n.of[app]++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all--
		if n.of[app]--; n.of[app] == 0 {
			delete(n.of, app)
		}
	}, nil
}
