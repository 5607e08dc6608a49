package call

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// Models is the part of the public models that the service uses. *predict.Set implements it.
type Models interface {
	Models() []*predict.Model // in the order in which they are listed
	Model(id string) (*predict.Model, bool)
	General() *predict.Model
	Names() *lang.Table
	Base() [32]byte // identifies the source of embeddings and of the general model's values

	// Activations returns the contribution of each cell of a picture to concepts of one of the models.
	Activations(m *predict.Model, c *predict.Cells, places []int) ([][]float32, error)
}

var _ Models = (*predict.Set)(nil)

// Options are the settings of a service.
type Options struct {
	Models   Models           // required
	Older    []Models         // models of older networks that still serve applications
	Hosted   Hosting          // stores pictures that clients send as base64; required
	Apps     Applications     // required
	Tokens   Tokens           // nil: there are no tokens
	Accounts Accounts         // nil: there are no accounts
	Calls    Calls            // nil: calls are not counted
	Storage  Storage          // nil: storage has no limits
	Clock    func() time.Time // required
	Rand     io.Reader        // source of ids; required

	// SyncStatus returns the sync status of an application that is a replica. It returns false for one that is not synchronized. May be nil.
	SyncStatus func(app string) (SyncStatus, bool)

	// Devices returns the edges of an application, and the replicas that have contacted this origin. May be nil.
	Devices func(app string) ([]Device, error)

	Thumbnails bool // replicas create missing thumbnails of pictures that the host has or gets

	PublicURL    string        // start of the URLs of hosted pictures; empty: "http://127.0.0.1:8080"
	PublicAppID  string        // app_id of public models and concepts; empty: by the client, see Call.PublicAppID; NullAppID: null
	PredictedTTL time.Duration // life of a picture that was sent to be predicted; 0: 24 h
	JSON         jsonio.Limits // limits of a request's body
	MaxAnswer    int64         // maximum bytes of an answer's body; 0: DefaultMaxAnswer

	Rate         auth.Rate // limit of each key, token or session of an account; zero: 10 per second, 100 at once; PerSecond < 0: none
	OperatorRate auth.Rate // the same limit for keys of the operator; zero: none
	AccountRate  auth.Rate // limit of all calls of an account, besides Rate; zero or PerSecond < 0: none
}

// Hosting stores pictures at URLs that nobody can guess. *blob.HostedNames implements it.
type Hosting interface {
	// Add stores a picture of an application and gives it a name until expires, or until the application is deleted.
	Add(ctx context.Context, app blob.AppID, data []byte, contentType string, expires time.Time) (name string, h blob.Hash, err error)
	// Unpin removes the pin of a Result with a Blob.
	Unpin(ctx context.Context, h blob.Hash) error
}

var _ Hosting = (*blob.HostedNames)(nil)

// Host has the options, networks, heads and limiters that all calls of a service share. It is safe for concurrent use if its options are.
type Host struct {
	Options
	networks map[[32]byte]*Network // by base
	Heads    heads                 // heads of custom models
	// Renditions are JPEGs of stored pictures, for pages whose browser cannot draw the pictures.
	Renditions *recent[RenditionKey, []byte]
	Limiters   limiters
	pictures   sync.Pool // *[]byte: buffers of decoded pictures
}

// RenditionKey names the rendition of a picture in an application.
type RenditionKey struct {
	App     catalog.AppID
	Picture blob.Hash
}

// maxRenditionBytes is the approximate maximum size of the cached renditions. A rendition has about 1 MB, and browsers store it, too.
const maxRenditionBytes = 16 << 20

// limiters limit the rates of callers.
type limiters struct {
	Account, Operator *auth.Limiter // by Principal.Bucket
	Owner             *auth.Limiter // by account
	Page              *auth.Limiter // by Principal.Bucket, for reads by our pages
	PageOwner         *auth.Limiter // by account, for reads by our pages
	Client, Guess     *auth.Limiter // POST /v2/token, by client id: with the correct secret, with a wrong one
	Remote            *auth.Limiter // POST /v2/token, by Request.Remote
}

// pageRate is the rate at which a page may read what it shows: several screens of pictures at once.
var pageRate = auth.Rate{PerSecond: 100, Burst: 1000}

// ownerPageRate is the rate at which all pages of an account may read, if the account has a rate.
var ownerPageRate = auth.Rate{PerSecond: 4 * pageRate.PerSecond, Burst: 4 * pageRate.Burst}

// Rates of requests for tokens, which clients renew every few minutes. Wrong secrets are counted separately, so that a caller who knows
// only a client's id cannot lock its owner out.
var (
	clientRate = auth.Rate{PerSecond: 1, Burst: 60}
	guessRate  = auth.Rate{PerSecond: 0.2, Burst: 10}
	remoteRate = auth.Rate{PerSecond: 5, Burst: 100}
)

// maxLimited is the number of callers that each limiter remembers.
const maxLimited = 10_000

func newLimiters(o *Options) limiters {
	if o.Rate.PerSecond == 0 {
		o.Rate.PerSecond = 10
	}
	if o.Rate.Burst == 0 {
		o.Rate.Burst = 100
	}
	if o.OperatorRate.Burst == 0 {
		o.OperatorRate.Burst = 100
	}
	ownerPages := ownerPageRate
	if o.AccountRate.PerSecond <= 0 {
		ownerPages = auth.Rate{}
	}
	limiter := func(r auth.Rate) *auth.Limiter { return auth.NewLimiter(r, maxLimited) }
	return limiters{
		Account: limiter(o.Rate), Operator: limiter(o.OperatorRate), Owner: limiter(o.AccountRate), Page: limiter(pageRate), PageOwner: limiter(ownerPages),
		Client: limiter(clientRate), Guess: limiter(guessRate), Remote: limiter(remoteRate),
	}
}

// NewHost checks the options and fills in defaults. It returns [ErrOptions] for missing and malformed options.
func NewHost(o Options) (*Host, error) {
	if o.PublicURL == "" {
		o.PublicURL = "http://127.0.0.1:8080"
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	if o.PredictedTTL == 0 {
		o.PredictedTTL = 24 * time.Hour
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	u, err := url.Parse(o.PublicURL)
	switch {
	case o.Models == nil || o.Hosted == nil || o.Apps == nil || o.Clock == nil || o.Rand == nil:
		return nil, fmt.Errorf("%w: Models, Hosted, Apps, Clock and Rand are required", ErrOptions)
	case o.Models.General() == nil:
		return nil, fmt.Errorf("%w: no general model", ErrOptions)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%w: invalid public URL %q", ErrOptions, o.PublicURL)
	case o.MaxAnswer < MinMaxAnswer:
		return nil, fmt.Errorf("%w: MaxAnswer is %d, the minimum is %d", ErrOptions, o.MaxAnswer, MinMaxAnswer)
	case o.PredictedTTL < 0:
		return nil, fmt.Errorf("%w: KeepPredicted is negative: %v", ErrOptions, o.PredictedTTL)
	}
	h := &Host{
		networks: map[[32]byte]*Network{}, Limiters: newLimiters(&o),
		Heads: heads{newRecent[blob.Hash, *LoadedHead](maxHeadBytes)}, Renditions: newRecent[RenditionKey, []byte](maxRenditionBytes),
	}
	h.Options = o
	for _, m := range append(o.Older[:len(o.Older):len(o.Older)], o.Models) {
		h.networks[m.Base()] = newNetwork(m)
	}
	return h, nil
}
