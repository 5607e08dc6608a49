package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/compress"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Prefix begins the paths of all calls.
const Prefix = "/v2/sync"

// Engine is the part of the origin's engine that a feed uses. *core.Engine implements it.
type Engine interface {
	Identify(ctx context.Context, r *api.Request) (auth.Principal, time.Time, error)
	Refuse(r *api.Request, err error) api.Response
	Origin(app string) (*partition.Origin, error)
	ServingBase(r catalog.Reader) (base [32]byte, err error)
	Reopen() error
	ReceivedOutcome(base [32]byte, r *api.Result) ingest.Outcome
}

// Pinner keeps pictures until a record claims them. *blob.HostedNames implements it.
type Pinner interface {
	Pin(ctx context.Context, data []byte) (blob.Hash, error)
	Unpin(ctx context.Context, h blob.Hash) error
}

var _ Pinner = (*blob.HostedNames)(nil)

// Options are the services of the host for a [Feed]. Fields without "nil means" or "zero means" are required.
type Options struct {
	Engine   Engine
	Register *register.Register // register of the engine
	Blobs    blob.Blobs         // store of the pictures
	Pinner   Pinner             // pins pictures that replicas upload
	Clock    func() time.Time

	// Part returns a reader of the bytes from ≤ i < to of a picture, for a caller. It checks these bytes and reads no others. nil means that
	// a part is read from the beginning of its picture.
	Part func(ctx context.Context, r *api.Request, caller string, h blob.Hash, from, to int64) (io.ReadCloser, error)

	// Run analyses the pictures of inputs that replicas created. nil means that the origin derives nothing from them.
	Run func(ctx context.Context, jobs []api.Job) ([]api.Result, error)

	// Wait returns when moved delivers a value, d has passed or ctx has ended. nil means that no answer waits: a poll and a stream end at
	// the end of the log.
	Wait func(ctx context.Context, moved <-chan struct{}, d time.Duration)

	// Stable returns the last entry of an application's log that replicas need not keep for a restore from a backup. nil means the last
	// entry of the log.
	Stable func(app string, head uint64) uint64

	// Calls stores the total number of calls that an edge has answered for an application. It returns the time until which the account has
	// no calls left; zero: it has some. nil means that calls have no limit.
	Calls func(app, edge string, count uint64) (over time.Time, err error)

	// Spend counts up to n calls of the account of an application, for a push by a caller. by is the signature of the caller's operations. It
	// returns the number of calls that it counted. If none are left, it returns auth.ErrQuota. For n = 0 it only checks that. If n is negative,
	// it returns -n calls that it counted for nothing. nil means that pushes do not count.
	Spend func(app, by string, n int64) (spent int64, err error)

	// Storage returns the number of bytes that the account of an application may store; 0: no limit. All applications of the account
	// together may send at most as many bytes of pictures and operations a day. nil means that storage has no limit.
	Storage func(app string) (bytes int64, err error)

	// Contact gets the contact of a device of an application. An empty name, position 0 and no time of keys: not known. nil means that
	// nobody remembers contacts.
	Contact func(app string, d api.Device)

	Log    *slog.Logger // gets internal errors; nil means no log
	Limits Limits
}

// Feed answers the calls of the sync protocol. It is safe for concurrent use.
type Feed struct {
	o       Options
	meters  *meters
	streams counts
	uploads uploads
	exports exports
	digests digests
	proofs  proofs
	secrets secrets
}

// New returns a feed. If a required option is missing, it returns api.ErrOptions.
func New(o Options) (*Feed, error) {
	if o.Engine == nil || o.Register == nil || o.Blobs == nil || o.Pinner == nil || o.Clock == nil {
		return nil, fmt.Errorf("%w: Engine, Register, Blobs, Pinner and Clock are required", api.ErrOptions)
	}
	if o.Stable == nil {
		o.Stable = func(_ string, head uint64) uint64 { return head }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Limits.defaults()
	f := &Feed{o: o, meters: newMeters(&o.Limits)}
	f.uploads = newUploads(&f.o)
	f.streams.all = shares.New(int64(o.Limits.AllStreams), leastStreams)
	f.exports.places = shares.New(maxExports, leastExports)
	f.digests = digests{places: shares.New(maxDigests, leastDigests), newest: map[string]wire.Digest{}}
	return f, nil
}

// Step releases resources that nobody uses any longer: expired uploads, unread snapshots, networks of edges, and everything of deleted
// applications. The host calls it every few seconds.
func (f *Feed) Step(ctx context.Context) error {
	now := f.o.Clock()
	f.proofs.sweep(now)
	f.digests.sweep(f.isDeleted)
	failed := f.exports.dropIf(func(x *export) bool { return x.isOld(now) || f.isDeleted(x.group.app) })
	return errors.Join(failed, f.uploads.sweep(ctx, now, f.isDeleted))
}

// isDeleted reports whether an application was deleted. After an error of the register it is not.
func (f *Feed) isDeleted(app string) bool {
	deleted, err := f.o.Register.AppDeleted(app)
	return err == nil && deleted
}

// Close closes the snapshots that are open for readers. The caller must ensure that no call is in progress.
func (f *Feed) Close() error { return f.exports.dropIf(func(*export) bool { return true }) }

// route is one call. Its path is the part after Prefix. A path that ends in a slash is followed by a hash.
type route struct {
	method, path string
	handle       func(*call) (api.Response, error)
	access       access
	version      version
}

// version reports whether a call must name the version of the protocol.
type version int

const (
	anyVersion  version = iota
	thisVersion         // the header Sync-Protocol has it, since replicas of version 1 would misunderstand an answer or lose what they send
)

// protocolHeader has the version of the protocol of a request.
const protocolHeader = "Sync-Protocol"

// access names the direction in which a call moves data.
type access int

const (
	sends    access = iota // to a replica: refused for an application that is local only
	receives               // from a replica
)

var routes = []route{
	{"POST", "/session", (*call).session, sends, anyVersion},
	{"GET", "/changes", (*call).changes, sends, thisVersion},
	{"POST", "/push", (*call).push, receives, thisVersion},
	{"POST", "/back", (*call).back, receives, thisVersion},
	{"GET", "/snapshot", (*call).snapshot, sends, thisVersion},
	{"GET", "/snapshot/", (*call).chunk, sends, thisVersion},
	{"GET", "/digest", (*call).digest, sends, thisVersion},
	{"POST", "/dates", (*call).dates, sends, anyVersion},
	{"POST", "/blobs/have", (*call).have, receives, anyVersion},
	{"GET", "/blobs/", (*call).blob, sends, anyVersion},
	{"PUT", "/blobs/", (*call).upload, receives, anyVersion},
	{"GET", "/keys", (*call).register, sends, anyVersion},
	{"POST", "/enrol", (*call).enrol, sends, anyVersion},
}

// Serve answers one call. The host passes a HEAD as a GET.
func (f *Feed) Serve(ctx context.Context, r *api.Request) api.Response {
	c := &call{f: f, ctx: ctx, r: r, now: f.o.Clock()}
	if r.Method == "OPTIONS" {
		return preflight()
	}
	res, err := c.serve()
	if err != nil {
		return c.refuse(err)
	}
	res.Header = append(res.Header, allowOrigin, c.clock())
	if c.packs(&res) {
		res.Body = compress.Bytes(res.Body)
		res.Header = append(res.Header, packing...)
	}
	return res
}

var packing = []api.Field{{Name: "Content-Encoding", Value: compress.Encoding}, {Name: "Vary", Value: "Accept-Encoding, Authorization"}}

// packs reports whether an answer is compressed: messages and snapshot chunks are, pictures never.
func (c *call) packs(res *api.Response) bool {
	return len(res.Body) >= compress.MinBytes && res.Status == 200 && (res.ContentType == wire.ContentType || c.state) &&
		api.AcceptsEncoding(c.header("Accept-Encoding"), compress.Encoding)
}

// clock returns the header with the origin's time in milliseconds since 1970.
func (c *call) clock() api.Field {
	return api.Field{Name: "Sync-Now", Value: strconv.FormatInt(c.now.UnixMilli(), 10)}
}

// Refuse returns the answer to a request that the host rejects.
func (f *Feed) Refuse(r *api.Request, err error) api.Response { return f.o.Engine.Refuse(r, err) }

// call is one call in progress.
type call struct {
	f     *Feed
	ctx   context.Context
	r     *api.Request
	now   time.Time
	query query
	hash  blob.Hash // hash at the end of the path
	state bool      // the answer is a snapshot chunk
	keeps bool      // a browser may store the answer: it is a picture, or an object below the path of pictures
	does  access

	client
}

// serve finds the route and calls its handler.
func (c *call) serve() (api.Response, error) {
	path, ok := strings.CutPrefix(strings.TrimRight(c.r.Path, "/"), Prefix)
	if !ok {
		return api.Response{}, unknown("no such resource")
	}
	var other []string // methods of the path
	for i := range routes {
		rt := &routes[i]
		if !c.matches(rt.path, path) {
			continue
		}
		if rt.method != c.r.Method {
			other = append(other, rt.method)
			continue
		}
		var err error
		if c.query, err = parseQuery(c.r.Query); err != nil {
			return api.Response{}, err
		}
		c.does = rt.access
		if rt.version == thisVersion && c.header(protocolHeader) != strconv.Itoa(wire.Protocol) {
			return api.Response{}, &wire.Refusal{
				Code: wire.RefusedProtocol, Min: wire.Oldest, Max: wire.Protocol,
				Detail: fmt.Sprintf("version %d of the protocol is needed: update this program", wire.Protocol),
			}
		}
		res, err := rt.handle(c)
		if err == nil && c.app != "" && rt.path != "/session" { // the answer may contain data written after the setting was changed
			err = c.refuseLocalOnly(c.app)
		}
		if err != nil {
			return api.Response{}, err
		}
		return res, nil
	}
	if other != nil {
		return api.Response{}, &api.MethodError{Allowed: append(other, "OPTIONS")}
	}
	return api.Response{}, unknown("no such resource")
}

// matches reports whether path matches the route want, and stores the hash at its end.
func (c *call) matches(want, path string) bool {
	if !strings.HasSuffix(want, "/") {
		return path == want
	}
	text, ok := strings.CutPrefix(path, want)
	if !ok {
		return false
	}
	h, err := blob.ParseHash(text)
	c.hash = h
	return err == nil
}

var allowOrigin = api.Field{Name: "Access-Control-Allow-Origin", Value: "*"}

// preflight returns the answer to OPTIONS, which browsers send without credentials.
func preflight() api.Response {
	return api.Response{Status: 204, Header: []api.Field{
		allowOrigin,
		{Name: "Access-Control-Allow-Methods", Value: "GET, HEAD, POST, PUT, OPTIONS"},
		{Name: "Access-Control-Allow-Headers", Value: "authorization, content-type, accept, range, content-range, sync-protocol"},
		{Name: "Access-Control-Max-Age", Value: "86400"},
	}}
}

// message returns an answer with a message of the protocol.
func message(body []byte) api.Response {
	return api.Response{Status: 200, ContentType: wire.ContentType, Body: body}
}

// refuse returns the answer to a failed call: a Refusal if the caller accepts that content type, otherwise the API's error form.
func (c *call) refuse(err error) api.Response {
	var r *wire.Refusal
	if !errors.As(err, &r) {
		c.logFailure(err)
		res := c.f.o.Engine.Refuse(c.r, err)
		res.Header = append(res.Header, c.clock())
		return res
	}
	res := api.Response{Status: r.Status(), Header: []api.Field{allowOrigin, exposed, c.clock()}}
	if r.WaitMillis > 0 {
		res.Header = append(res.Header, api.Field{Name: "Retry-After", Value: fmt.Sprint((r.WaitMillis + 999) / 1000)})
	}
	if c.header("Accept") == wire.ContentType || c.header("Content-Type") == wire.ContentType {
		res.ContentType, res.Body = wire.ContentType, r.Encode()
		return res
	}
	plain := c.f.o.Engine.Refuse(c.r, inWords(r))
	res.ContentType, res.Body = plain.ContentType, plain.Body
	return res
}

var exposed = api.Field{Name: "Access-Control-Expose-Headers", Value: "Retry-After, Sync-Now, Content-Range"}

// logFailure logs an internal error, unless the engine has logged it or the caller has cancelled.
func (c *call) logFailure(err error) {
	if !errors.Is(err, api.ErrInternal) && !errors.Is(err, context.Canceled) {
		c.f.o.Log.Debug("sync", "path", c.r.Path, "app", c.app, "error", err)
	}
}

// inWords converts a refusal to an error of the API.
func inWords(r *wire.Refusal) error {
	kind := api.ErrSync
	switch r.Code {
	case wire.RefusedWriter, wire.RefusedScope:
		kind = auth.ErrInsufficient
	case wire.RefusedLimit:
		kind = jsonio.ErrTooLong
	case wire.RefusedQuota:
		kind = auth.ErrRate
	case wire.RefusedBusy:
		kind = api.ErrBusy
	case wire.RefusedGone, wire.RefusedUnknown:
		kind = api.ErrPath
	}
	return fmt.Errorf("%w: %w", kind, r)
}

// header returns a header of the request.
func (c *call) header(name string) string {
	if c.r.Header == nil {
		return ""
	}
	return c.r.Header(name)
}
