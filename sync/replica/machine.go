package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// errAnswer is the error for an answer that violates the protocol. The lane asks the origin again later.
var errAnswer = errors.New("invalid response from the origin")

// Partition is the part of the application's replica that the machine uses.
type Partition interface {
	Cursor() partition.Cursor
	Rules() uint32
	Outbox() (last, settled uint64)
	Pending(after uint64, yield func(at uint64, op log.Op) bool) error
	LocalOps(after uint64, yield func(at uint64, op log.Op) bool) error
	Secret(w log.Writer) []byte
	TokenOf(dot log.Dot) (partition.Token, error)
	Kept() []log.Mark
	KeptFrom(have uint64, chain log.Chain) (uint64, error)
	KeptAfter(from uint64, yield func(n uint64, f partition.Frame) bool) error
	Pull(ctx context.Context, r partition.Run) ([]partition.OpVerdict, error)
	Keep(f *partition.Frame) error
	Rebase(ctx context.Context, s partition.Snapshot) error
	Disown(from log.Dot) error
	ReadConfirmed(do func(r kv.Reader) error) error
	Shut(why error)
}

var _ Partition = (*partition.Replica)(nil)

// Blobs is the part of the picture store that the machine uses. [blob.Blobs] implements it.
type Blobs interface {
	Put(ctx context.Context, r io.Reader, want blob.Hash) (blob.Hash, error)
	Get(ctx context.Context, h blob.Hash) ([]byte, error)
	Has(ctx context.Context, h blob.Hash) (bool, error)
}

// AppRecords stores the origin's app record of the application: its record, keys and client.
type AppRecords interface {
	// Seq returns the entry of the control log up to which the stored app record goes; 0: none is stored.
	Seq() uint64

	// Apply stores an app record in one batch. If it is not newer, Apply changes nothing. reason explains why the replica no longer has
	// access to the application, or empty. For an invalid app record the error wraps wire.ErrFormat; other errors are the store's.
	Apply(seq uint64, data []byte) (reason string, err error)
}

// Live is the way in which the machine learns of new entries.
type Live int

// The values of Live.
const (
	Stream Live = iota // on a connection that stays open
	Poll               // by requests that the origin answers when there are new entries
	Once               // not at all: it pulls until it has the whole log and its operations are confirmed
)

// String returns the value's name in a request: "stream", "poll" or "0".
func (l Live) String() string { return [...]string{"stream", "poll", "0"}[l] }

// Options are the settings and services of a machine. Fields without "nil:", "0:" or "empty:" in their comment are required.
type Options struct {
	App             catalog.AppID
	Partition       Partition
	Store           kv.Store   // store of the partition; also has the machine's notes and the chunks of a snapshot in transfer
	Blobs           Blobs      // nil: pictures are neither sent nor fetched
	AppRecords      AppRecords // nil: the machine ignores app records
	Wants           wire.Wants
	Live            Live
	Name            string        // name of this replica, for people; empty: none
	Rand            io.Reader     // source of the jitter in pauses
	Audit           time.Duration // interval of audits against the origin's state; 0: an hour; below 0: never
	NativeSnapshots bool          // the host can install a large snapshot itself while the store is empty: see Ask.Place, InstallSnapshot
}

// The lanes, in the order in which advance starts them.
const (
	laneSession = iota
	laneRebase
	laneAhead
	lanePull
	laneUpload
	laneBack
	lanePush
	laneAudit
	laneDates
	laneDownload
	lanes
)

var laneNames = [lanes]string{"session", "rebase", "ahead", "pull", "upload", "back", "push", "audit", "dates", "download"}

// Machine is one replica's side of the protocol. It is not safe for concurrent use.
type Machine struct {
	o    Options
	p    Partition
	note persistedState

	running  bool // between Begin and Stop
	online   bool
	storeErr error // failure of the store, after which Step only returns it

	wall    time.Time     // time of the last step
	at      time.Duration // time since New that never runs backwards
	ids     uint64        // id of the last request
	lane    [lanes]lane
	effects []Effect

	session session
	back    back
	pull    pull
	push    push
	upload  upload
	rebase  rebase
	audit   audit
	dates   dates
	load    download
	origin  originState
	durable durableCursor
}

// New returns a machine, which waits for Begin. Errors: [api.ErrOptions] and the store's.
func New(o Options) (*Machine, error) {
	if o.App == catalog.Control || o.Partition == nil || o.Store == nil || o.Rand == nil {
		return nil, fmt.Errorf("%w: App, Partition, Store and Rand", api.ErrOptions)
	}
	if o.Audit == 0 {
		o.Audit = time.Hour
	}
	m := &Machine{o: o, p: o.Partition, online: true}
	for i := range m.lane {
		m.lane[i].name = laneNames[i]
	}
	if err := m.readNote(); err != nil {
		return nil, fmt.Errorf("replica: %w", err)
	}
	m.load.rescan()
	m.audit.due = o.Audit
	return m, nil
}

// Step handles an event at time now and returns the effects. now may jump: timeouts and pauses then end sooner, or as late as the host's
// Wake. An error is the store's. After it, the caller must not use the machine or its partition any more.
func (m *Machine) Step(now time.Time, e Event) ([]Effect, error) {
	if m.storeErr != nil {
		return nil, m.storeErr
	}
	m.tick(now)
	m.effects = nil
	before := m.brief()
	err := m.take(e)
	if err == nil {
		err = m.advance()
	}
	if err == nil {
		err = m.syncStore()
	}
	if err != nil {
		m.storeErr = fmt.Errorf("replica: %w", err)
		return nil, m.storeErr
	}
	if m.brief() != before {
		m.effects = append(m.effects, StatusChange{})
	}
	m.timer()
	return m.effects, nil
}

// tick advances the machine's monotonic time.
func (m *Machine) tick(now time.Time) {
	if d := now.Sub(m.wall); d > 0 && !m.wall.IsZero() {
		m.at += d
	}
	m.wall = now
}

// take handles an event.
func (m *Machine) take(e Event) error {
	switch e := e.(type) {
	case Begin:
		m.running = !m.origin.purged
		m.refresh()
	case Stop:
		m.running = false
		m.cancelAll()
	case Offline:
		m.online = false
		m.cancelAll()
	case Online:
		m.online = true
		m.refresh()
	case BlobWanted:
		return m.need(e.Blob)
	case Answer:
		return m.answer(&e)
	}
	return nil
}

// refresh ends the pauses of all lanes.
func (m *Machine) refresh() {
	for i := range m.lane {
		m.lane[i].succeeded()
	}
}

// cancelAll cancels all requests and ends the session.
func (m *Machine) cancelAll() {
	for i := range m.lane {
		m.cancel(&m.lane[i])
	}
	m.end()
}

// cancel cancels the lane's request.
func (m *Machine) cancel(l *lane) {
	if l.id != 0 {
		m.effects = append(m.effects, Cancel{ID: l.id})
		l.endRequest()
	}
}

// advance cancels timed out requests and starts all requests that can start now.
func (m *Machine) advance() error {
	if !m.running || !m.online {
		return nil
	}
	for i := range m.lane {
		l := &m.lane[i]
		if l.id != 0 && m.at >= l.limit {
			m.effects = append(m.effects, Cancel{ID: l.id})
			m.lost(i, l, errors.New("request timed out"))
		}
		if !l.idle(m.at) {
			continue
		}
		err := m.start(i, l)
		if err == nil && m.isIdle(i) {
			l.wrong, l.over = "", ""
		}
		if err := m.wrong(l, err); err != nil {
			return err
		}
	}
	return nil
}

// isIdle reports whether the lane is free to ask but has no request to make, so that its last problem is over.
func (m *Machine) isIdle(i int) bool {
	l := &m.lane[i]
	blocked := !m.session.active || m.session.rebase || m.returning() || i == laneUpload && len(m.upload.lost) > 0
	return l.wrong != "" && l.id == 0 && !blocked && m.o.Store.Room() == nil
}

// start makes the lane's next request, if there is one.
func (m *Machine) start(i int, l *lane) error {
	if m.returning() && i != laneUpload && i != laneBack {
		return nil
	}
	if !m.returning() && i != laneSession && (!m.session.active || m.session.drains && i != laneUpload && i != lanePush) {
		return nil
	}
	switch i {
	case laneSession:
		return m.startSession(l)
	case laneRebase:
		return m.startRebase(l)
	case laneAhead:
		return m.startAhead()
	case lanePull:
		return m.startPull(l)
	case laneUpload:
		return m.startUpload(l)
	case laneBack:
		return m.startBack(l)
	case lanePush:
		return m.startPush(l)
	case laneAudit:
		return m.startAudit(l)
	case laneDates:
		return m.startDates(l)
	}
	return m.startDownload(l)
}

// ask makes a request about the application on the lane. query alternates names and values.
func (m *Machine) ask(l *lane, a Ask, query ...string) {
	m.ids++
	l.id, l.since, l.limit = m.ids, m.at, m.at+answerLimit
	a.ID = l.id
	if l != &m.lane[laneSession] { // its body names the application
		a.Query = "app=" + m.o.App.String()
	}
	for i := 0; i < len(query); i += 2 {
		a.Query += "&" + query[i] + "=" + url.QueryEscape(query[i+1])
	}
	a.Header = append(a.Header, api.Field{Name: "Accept", Value: wire.ContentType}, api.Field{Name: "Sync-Protocol", Value: strconv.Itoa(wire.Protocol)})
	if a.Body != nil && a.Method == "POST" {
		a.Header = append(a.Header, api.Field{Name: "Content-Type", Value: wire.ContentType})
	}
	m.effects = append(m.effects, a)
}

// timer asks the host for a Wake when the next timeout or pause ends.
func (m *Machine) timer() {
	if !m.running || !m.online {
		return
	}
	var due time.Duration
	soonest := func(at time.Duration) {
		if at > m.at && (due == 0 || at < due) {
			due = at
		}
	}
	for i := range m.lane {
		if l := &m.lane[i]; l.id != 0 {
			soonest(l.limit)
		} else {
			soonest(l.next)
		}
	}
	if m.session.active {
		soonest(m.session.renew)
	}
	if m.o.Audit > 0 {
		soonest(m.audit.due)
	}
	if m.pull.caught && m.durable.cursor != m.p.Cursor() {
		soonest(m.durable.next)
	}
	if due != 0 {
		m.effects = append(m.effects, WakeAt{At: m.wall.Add(due - m.at)})
	}
}
