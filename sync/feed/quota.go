package feed

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits limit the requests and answers of a feed. A zero field means the default, the last value in its comment. The limits of an
// application count all its keys, edges and other replicas. An account has accountShare times the amount of one application for all its
// applications. An application of the operator counts as an account.
type Limits struct {
	PushOps     uint64 // operations of one push, at most wire.MaxOps; 512
	PushBytes   uint64 // bytes of one push; 8 MiB
	OpsRate     uint64 // operations, or 4 KiB of them, a second of one writer, four times as many of one application; 2,000
	FrameRate   uint64 // bytes of frames and chunks a second of one application; 64 MiB
	BlobBytes   uint64 // bytes of pictures a day that one application sends; 50 GB. See also Options.Storage
	BlobSize    uint64 // bytes of one picture; 64,000,000, of most kinds at most raster.SizeLimit
	Snapshots   uint64 // snapshots an hour of one application, and as many digests; 120
	Streams     uint64 // concurrent live streams and polls of one application; 2,000
	AllStreams  uint64 // concurrent live streams and polls of all applications, which accounts share; 20,000
	UploadBytes uint64 // received bytes of all unfinished uploads, which accounts share; 256 MiB
	Uploads     uint64 // complete uploads of one account that no operation names yet; 100,000

	PollTimeout       time.Duration // maximum wait of a poll; 25 s
	KeepaliveInterval time.Duration // time between keepalives; 15 s
	StreamTimeout     time.Duration // maximum duration of a stream; an hour
	PartialUploadTTL  time.Duration // time after which an incomplete upload without new bytes is deleted; 10 minutes
	UploadTTL         time.Duration // time to push an operation that names an uploaded picture; an hour

	Pictures int // pictures analysed for one push; the rest wait for the next push; 32
}

func (l *Limits) defaults() {
	l.PushOps = cmp.Or(l.PushOps, wire.MaxOps)
	l.PushBytes = cmp.Or(l.PushBytes, 8<<20)
	l.OpsRate = cmp.Or(l.OpsRate, 2000)
	l.FrameRate = cmp.Or(l.FrameRate, 64<<20)
	l.BlobBytes = cmp.Or(l.BlobBytes, 50e9)
	l.BlobSize = cmp.Or(l.BlobSize, 64e6)
	l.Snapshots = cmp.Or(l.Snapshots, 120)
	l.Streams = cmp.Or(l.Streams, 2000)
	l.AllStreams = cmp.Or(l.AllStreams, 20_000)
	l.UploadBytes = cmp.Or(l.UploadBytes, 256<<20)
	l.Uploads = cmp.Or(l.Uploads, 100_000)
	l.PollTimeout = cmp.Or(l.PollTimeout, 25*time.Second)
	l.KeepaliveInterval = cmp.Or(l.KeepaliveInterval, 15*time.Second)
	l.StreamTimeout = cmp.Or(l.StreamTimeout, time.Hour)
	l.PartialUploadTTL = cmp.Or(l.PartialUploadTTL, 10*time.Minute)
	l.UploadTTL = cmp.Or(l.UploadTTL, time.Hour)
	l.Pictures = cmp.Or(l.Pictures, 32)
}

// wireLimits returns the limits in the form of the protocol.
func (l *Limits) wireLimits() wire.Limits {
	return wire.Limits{
		PushOps: l.PushOps, PushBytes: l.PushBytes, OpsRate: l.OpsRate, FrameRate: l.FrameRate, BlobBytes: l.BlobBytes, BlobSize: l.BlobSize,
		Snapshots: l.Snapshots, Streams: l.Streams, PollMillis: uint64(l.PollTimeout.Milliseconds()), AliveMillis: uint64(l.KeepaliveInterval.Milliseconds()),
	}
}

// accountShare is the number by which the limits of an account exceed those of an application, so that a business with many applications
// and edges can work.
const accountShare = 4

// meters enforce the quotas of replicas.
type meters struct {
	each      meter // operations, by writer
	writers   meter // new writers, by application
	openings  meter // new writers, by credential
	ops       quota // operations
	frames    quota // bytes
	blobs     quota // bytes
	snapshots quota
	digests   quota
	reopens   quota // openings of all logs
	enrols    meter // enrolments, by remote address
}

func newMeters(l *Limits) *meters {
	const day, hour = 24 * time.Hour, time.Hour
	return &meters{
		each:      newMeter("OpsRate", l.OpsRate, time.Second, 10*l.OpsRate),
		ops:       newQuota("OpsRate", 4*l.OpsRate, time.Second, 40*l.OpsRate),
		frames:    newQuota("FrameRate", l.FrameRate, time.Second, 16*l.FrameRate),
		blobs:     newQuota("BlobBytes", l.BlobBytes, day, l.BlobBytes),
		snapshots: newQuota("Snapshots", l.Snapshots, hour, l.Snapshots),
		digests:   newQuota("Snapshots", l.Snapshots, hour, l.Snapshots),
		reopens:   newQuota("Reopens", 10, hour, 10),
		writers:   newMeter("Writers", 10_000, hour, 10_000),
		openings:  newMeter("Writers", 1_000, hour, 1_000),
		enrols:    newMeter("Enrolments", 60, hour, 60),
	}
}

// quota limits an application to an amount in a time, and its account to accountShare times that amount.
type quota struct{ apps, accounts meter }

func newQuota(name string, amount uint64, per time.Duration, burst uint64) quota {
	return quota{apps: newMeter(name, amount, per, burst), accounts: newMeter(name, accountShare*amount, per, accountShare*burst)}
}

// take uses n for the application of a call, or returns a refusal as [meter.take] does.
func (q *quota) take(c *call, n uint64, now time.Time, unit string) error {
	return q.takeScaled(c, n, n, now, unit)
}

// takeScaled is take for an account that has another limit: it uses n for the application and scaled for the account.
func (q *quota) takeScaled(c *call, n, scaled uint64, now time.Time, unit string) error {
	err := q.apps.take(c.app, 0, now, unit)
	if err == nil {
		err = q.accounts.take(c.account, scaled, now, unit)
	}
	if err == nil && n > 0 {
		err = q.apps.take(c.app, n, now, unit)
	}
	return err
}

// meter limits each user to an amount in a time, after a burst. One use may overdraw the amount, so that a use of any size is possible.
type meter struct {
	name    string
	amount  uint64
	per     time.Duration
	grain   float64 // amount that fills in at least a microsecond, so that the rounding of the limiter to nanoseconds does not matter
	limiter *auth.Limiter
}

// maxMetered is the number of users that a meter remembers. It forgets those first that have used nothing for the longest time.
const maxMetered = 200_000

func newMeter(name string, amount uint64, per time.Duration, burst uint64) meter {
	rate := float64(amount) / per.Seconds()
	grain := max(1, math.Ceil(rate*time.Microsecond.Seconds()))
	limiter := auth.NewLimiter(auth.Rate{PerSecond: rate / grain, Burst: int(float64(burst) / grain)}, maxMetered)
	return meter{name: name, amount: amount, per: per, grain: grain, limiter: limiter}
}

// take uses n, or returns a refusal with the time until the next use is possible.
func (m *meter) take(user string, n uint64, now time.Time, unit string) error {
	err := m.limiter.TakeN(auth.HashKey(user), int64(math.Ceil(float64(n)/m.grain)), now)
	if over, ok := errors.AsType[*auth.RateError](err); ok {
		return &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many %s: at most %d in %v", unit, m.amount, m.per),
			Limit: m.name, Value: m.amount, WaitMillis: uint64(over.Wait.Milliseconds()) + 1,
		}
	}
	return err
}

// counts contains the numbers of open streams. Accounts share the places of all streams.
type counts struct {
	all *shares.Shares // by account

	mu sync.Mutex
	of map[string]uint64 // by application
}

// leastStreams is the number of streams that an account may always open while there are places.
const leastStreams = 100

// enter counts a stream until the caller calls leave.
func (n *counts) enter(c *call) (leave func(), err error) {
	limit := c.f.o.Limits.Streams
	app, account := c.app, c.account
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of[app] >= limit || uint64(n.all.InUse(account)) >= accountShare*limit {
		return nil, &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many readers: at most %d of an application, and %d of an account, at a time", limit, accountShare*limit),
			Limit: "Streams", Value: limit, WaitMillis: busyWait,
		}
	}
	if !n.all.TryAcquire(account, 1) {
		return nil, busy("too many readers at once")
	}
	if n.of == nil {
		n.of = map[string]uint64{}
	}
	n.of[app]++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all.Release(account, 1)
		if n.of[app]--; n.of[app] == 0 {
			delete(n.of, app)
		}
	}, nil
}

// busyWait is the time in milliseconds after which a replica tries again if there is no place for it.
const busyWait = 5000

// busy returns the refusal of a call for which the origin has no place now.
func busy(detail string) error {
	return &wire.Refusal{Code: wire.RefusedBusy, Detail: detail, WaitMillis: busyWait}
}
