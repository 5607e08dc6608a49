package call

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Route describes the endpoint of a call.
type Route struct {
	Method string
	Path   string // after /v2, with its ids in braces
	List   string // member with the list in every answer, errors included; empty: none
	Need   auth.Need
}

// Call is one request on its way to its response.
type Call struct {
	Host      *Host
	Ctx       context.Context
	Route     *Route // nil for an unknown path
	IDs       map[string]string
	App       *Application   // application of the credential; nil if Route needs none
	Principal auth.Principal // authenticated caller
	Until     time.Time      // expiry of the credential; zero if it does not expire or the host does not report it
	Net       *Network       // network that serves App
	Query     string
	doc       jsonio.Doc
	views     []*partition.View // open views
	Body      Object
	Now       time.Time // time at which the call began

	Exchange              Exchange
	At                    Address          // application in a long path
	Authorization, Remote string           // as the client sent them
	Known                 string           // see Request.Known
	Header                []Field          // header lines of the answer in addition to those of every answer
	notices               []notice         // notices of the answer
	submitted             []partition.Span // operations that the call has submitted so far, one span for each writer
	Elsewhere             bool             // the call has submitted operations outside the application

	Scratch []byte // buffer of one decoded picture, reused for the next

	Earliest map[uint32]string // ids of the earliest inputs with a picture, by ordinal

	namesItself bool     // the request names the client's library, see Request.Client
	extras      []string // words of show, see AsksFor

	chosen     bool   // the answer is a page of a list
	Loaded     int    // bytes of the records that the answer shows
	blanks     []byte // buffer of Blank
	memory     Memory // see Request.Memory; may be nil
	unreserved bool   // the host has no memory for the answer
	Brief      bool   // the answer shows ids and statuses only
}

// NewCall returns the call of a request. It does not read the body.
func NewCall(ctx context.Context, h *Host, r *Request) *Call {
	return &Call{
		Host: h, Ctx: ctx, Query: r.Query, Authorization: r.Authorization, Remote: r.Remote, Known: r.Known,
		namesItself: r.Client != "", memory: r.Memory, Now: h.Clock(),
	}
}

// Prepare finds the network that serves the application, and parses the body and the words of show.
func (x *Call) Prepare(body []byte) error {
	err := x.findNetwork()
	if err == nil {
		err = x.parseBody(body)
	}
	if err == nil {
		err = x.readShow()
	}
	return err
}

// parseBody parses the body, for every content type. An absent body is an empty object. parseBody does not parse the body of a token
// request, because clients send arbitrary bodies there.
func (x *Call) parseBody(body []byte) error {
	if len(body) == 0 || x.Route.Method == "GET" || x.Route.Need.Credential == auth.OfClient {
		return nil
	}
	if err := x.doc.Parse(body, x.Host.JSON); err != nil {
		return err
	}
	var err error
	if x.Body, err = AsObject(x.doc.Root(), ""); err != nil {
		return &fault{jsonio.ErrSyntax, "The request body must be a JSON object."}
	}
	return nil
}

// Release returns the buffers of a call. The body belongs to the host again, so data that is used later must be a copy.
func (x *Call) Release() {
	x.doc.Reset()
	x.Body = Object{}
	if c := cap(x.Scratch); 0 < c && c <= maxKeptPicture {
		buf := x.Scratch[:0]
		x.Host.pictures.Put(&buf)
	}
	x.Scratch = nil
	x.closeViews()
}

// maxKeptPicture is the maximum size in bytes of a picture buffer that is kept for another call.
const maxKeptPicture = 1 << 20

// BorrowBuffer takes a buffer for decoded pictures from the host. A call decodes its pictures one after the other.
func (x *Call) BorrowBuffer() {
	if buf, ok := x.Host.pictures.Get().(*[]byte); ok {
		x.Scratch = *buf
	}
}

func (x *Call) findNetwork() error {
	if x.App == nil || x.App.Partition == nil {
		x.Net = x.Host.Network([32]byte{})
		return nil
	}
	h, err := x.App.Partition.Header()
	x.Net = x.Host.Network(h.Base)
	return err
}

// Shows reports whether the answer shows the data that a scope covers.
func (x *Call) Shows(scope auth.Set) bool { return x.Route.Need.Shows(x.Principal.Scopes, scope) }

// View returns the application's data at this moment. It stays open until the call ends or waits for jobs.
func (x *Call) View() *partition.View {
	v := x.App.Partition.View()
	x.views = append(x.views, v)
	return v
}

func (x *Call) closeViews() {
	for _, v := range x.views {
		_ = v.Close()
	}
	x.views = nil
}

// NewID returns a new id of 32 lower-case hex digits.
func (x *Call) NewID() (string, error) { return log.NewID(x.Host.Rand) }

// NewIDs returns n new ids.
func (x *Call) NewIDs(n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		var err error
		if ids[i], err = x.NewID(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Ask gives jobs to the network that serves the application, and calls finish with their results. Without jobs it calls finish at
// once. If finish returns an error, that is the call's answer. finish may call Ask again.
func (x *Call) Ask(jobs []Job, finish func([]Result) error) error {
	if len(jobs) == 0 {
		return finish(nil)
	}
	var app catalog.AppID
	if x.App != nil {
		app = x.App.AppID()
	}
	for i := range jobs {
		jobs[i].Base, jobs[i].App = x.Net.Base, app
	}
	x.Exchange.jobs = jobs
	x.Exchange.resume = func(results []Result) Response {
		defer x.closeViews()
		if err := finish(results); err != nil {
			x.End(err)
		}
		return x.Exchange.response
	}
	return nil
}
