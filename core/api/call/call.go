package call

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Route describes the endpoint of a call.
type Route struct {
	Method string
	Path   string // after /v2, with its ids in braces
	List   string // the list that is in every answer, errors included; empty: none
	Need   auth.Need
}

// Call is one request on its way to its response.
type Call struct {
	Host      *Host
	Ctx       context.Context
	Route     *Route // nil for an unknown path
	IDs       map[string]string
	App       *Application   // whose credential the request has; nil where the need asks for none
	Principal auth.Principal // whose credential it is
	Until     time.Time      // when the credential ends; zero: it does not, or nobody says
	Net       *Network       // that serves app
	Query     string
	doc       jsonio.Doc
	views     []*partition.View // that are open
	Body      Object
	Now       time.Time // when the call began

	Exchange              Exchange
	At                    Address        // what the path names, in its long form
	Authorization, Remote string         // as they came
	Header                []Field        // of the answer, besides those of every answer
	submitted             partition.Span // operations that the call has made so far
	Elsewhere             bool           // it has made some that are not the application's

	Scratch []byte // one decoded picture, until the next

	Earliest map[uint32]string // ids of the earliest inputs with a file, by ordinal

	chosen     bool   // the answer is a page of a list
	Loaded     int    // bytes of the records that the answer shows
	blanks     []byte // see Blank
	memory     Memory // see Request.Memory; may be nil
	unreserved bool   // the host has no memory for the answer
	Brief      bool   // the answer shows ids and statuses alone
}

// NewCall is the call of a request, whose body is read later.
func NewCall(ctx context.Context, h *Host, r *Request) *Call {
	return &Call{Host: h, Ctx: ctx, Query: r.Query, Authorization: r.Authorization, Remote: r.Remote, memory: r.Memory, Now: h.Clock()}
}

// Prepare finds the network that serves the request's application now, and reads the body, whatever its content type says. An absent body
// is an empty object. Clients that ask for tokens send anything.
func (x *Call) Prepare(body []byte) error {
	if err := x.findNetwork(); err != nil || len(body) == 0 || x.Route.Method == "GET" || x.Route.Need.Asks == auth.OfClient {
		return err
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

// Release ends what a call borrows. The body is the host's again; what outlives it has been copied.
func (x *Call) Release() {
	x.doc.Reset()
	x.Body = Object{}
	if c := cap(x.Scratch); 0 < c && c <= maxKeptPicture {
		kept := x.Scratch[:0]
		x.Host.pictures.Put(&kept)
	}
	x.Scratch = nil
	x.closeViews()
}

// maxKeptPicture is the largest memory for a decoded picture that is kept for another call.
const maxKeptPicture = 1 << 20

// Borrow takes memory for decoded pictures, of which a call needs one after the other.
func (x *Call) Borrow() {
	if kept, ok := x.Host.pictures.Get().(*[]byte); ok {
		x.Scratch = *kept
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

// Shows reports whether the answer shows what a scope covers.
func (x *Call) Shows(scope auth.Set) bool { return x.Route.Need.Shows(x.Principal.Scopes, scope) }

// View is the application's data at this moment. It is open until the call is done or waits for jobs.
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

// NewID makes an id of 32 lower-case hex digits.
func (x *Call) NewID() (string, error) { return log.NewID(x.Host.Rand) }

// NewIDs makes n ids.
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

// Ask has jobs done by the network that serves the application, and then calls finish, whose error is the call's answer: at once if there
// are no jobs. finish may ask again.
func (x *Call) Ask(jobs []Job, finish func([]Result) error) error {
	if len(jobs) == 0 {
		return finish(nil)
	}
	for i := range jobs {
		jobs[i].Base = x.Net.Base
	}
	x.Exchange.jobs = jobs
	x.Exchange.resume = func(results []Result) Response {
		defer x.closeViews()
		if err := finish(results); err != nil {
			x.Fail(err)
		}
		return x.Exchange.response
	}
	return nil
}
