package call

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
)

// Application is an application as requests use it. A request reads and writes only data of the application of its credential.
type Application struct {
	ID           string // 32 hex digits
	Owner        string // id of the account that it belongs to; empty: the operator's
	Language     string // the default for names; fixed at creation
	DefaultModel string // what pages preselect; changes no answer
	Partition    *partition.Partition

	// Training returns the progress of the training of a version that runs here now, 0 to 1; false: none does. nil: unknown.
	Training func(v *catalog.Version) (share float64, underway bool)
}

// Caller returns whom the calls of the application are for: its account, or itself where the operator owns it. An account may have
// many applications, and they share what one caller may have.
func (a *Application) Caller() string { return cmp.Or(a.Owner, a.ID) }

// Applications is the register of applications, keys and clients. The error for a missing record is catalog.ErrNotFound.
type Applications interface {
	Open(app string) (*Application, error)
	App(app string) (catalog.App, error)
	Key(hash auth.Hash) (catalog.Key, error)
	Client(id string) (catalog.Client, error)

	// AppsOf lists the applications of an account, and Keys the keys of an application, in a fixed
	// order.
	AppsOf(account string) ([]catalog.App, error)
	Keys(app string) ([]catalog.Key, error)

	// CreateApp and CreateKey make one for an account, whose request came from a network. Errors of a request that cannot be wrap
	// ErrAccountRequest.
	CreateApp(ctx context.Context, account, remote string, a NewApp) (catalog.App, error)
	CreateKey(ctx context.Context, account, remote string, k NewKey) (key string, record catalog.Key, err error)
}

// NewApp is an application to be made.
type NewApp struct{ Name, Language string }

// NewKey is a key to be made.
type NewKey struct {
	App         string
	Scopes      []string // by name
	Description string
}

// ErrAccountRequest is returned for an application, or a key, that cannot be made.
var ErrAccountRequest = errors.New("malformed request")

// Tokens issues access tokens and reads them. The host implements it, since it has the signing keys.
type Tokens interface {
	// Issue returns a token with claims, and how long it lives.
	Issue(c auth.Claims) (token string, life time.Duration, err error)
	// Read returns the claims of a token that was issued here and still lives. The errors are
	// auth.ErrToken and auth.ErrExpired.
	Read(token string) (auth.Claims, error)
}

// Accounts has the host's accounts of people.
type Accounts interface {
	// Login opens a session. The errors are auth.ErrLogin and auth.ErrRate, preferably an *auth.RateError with the time to wait.
	Login(ctx context.Context, email, password, remote string) (session, account string, err error)
	// Session returns the account behind a session token. The error is auth.ErrSession.
	Session(ctx context.Context, session string) (account string, err error)
}

// Calls counts authenticated calls.
type Calls interface {
	// Spend counts one authenticated call. left is the number of calls that the account has left; negative: unlimited. The error is
	// auth.ErrQuota; then the call is refused and was not counted, and the text tells its caller what to do.
	Spend(ctx context.Context, c CountedCall) (left int64, err error)
}

// Storage limits what accounts store.
type Storage interface {
	// StorageLimits returns the limits of an account; the empty account is the operator's, which has none.
	StorageLimits(account string) (StorageLimits, error)
	// KeepPicture counts bytes of a picture that was sent to be predicted and is kept for life. It counts nothing
	// and returns false if the account's pictures of that kind would exceed its limit.
	KeepPicture(account string, bytes int64, life time.Duration) (fits bool, err error)
}

// StorageLimits limit what all applications of an account store together. A zero field is no limit.
type StorageLimits struct {
	Inputs int64
	Bytes  int64  // of pictures and records of inputs
	Advice string // how to get room, the end of a sentence: "delete inputs to make room"
}

// CountedCall is a call as it is counted.
type CountedCall struct {
	Account string // of the application; empty: the operator's, which has no limit
	App     string // empty: a call about the account itself
	By      string // start of the key's hash, or "token", "session"
	Route   string // method and path as in the route table: "GET /inputs/{input_id}"
}

// AppID is the application's id as records know it.
func (a *Application) AppID() catalog.AppID {
	id, _ := catalog.ParseAppID(a.ID) // it is one of ours
	return id
}

// ErrWhichApp is returned for a session token of an account that has not one application but
// none, or several, on a path that names none.
var ErrWhichApp = errors.New("application missing: use a path that starts with /v2/users/me/apps/{app_id}")

// Address has the parts of the long form of a path: everything of an application also stands
// after /v2/users/{user_id}/apps/{app_id}.
type Address struct {
	Long      bool
	User, App string
}

// Me is the user of a path who is the one that asks.
const Me = "me"

// Names reports whether a path leads to the application: a short one always does, a long one
// has to name it and its owner.
func (at Address) Names(app *Application) bool {
	return !at.Long || app != nil && at.App == app.ID && (at.User == Me || at.User == app.Owner && at.User != "")
}
