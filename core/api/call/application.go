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

// Application is an application as calls use it. A call reads and writes only data of the application of its credential.
type Application struct {
	ID           string // 32 hex digits
	Owner        string // id of the owner's account; empty if the operator owns it
	Language     string // default language of names; fixed at creation
	DefaultModel string // model that pages preselect; changes no answer
	Partition    *partition.Partition
	Origin       *partition.Origin  // nil at a replica
	Replica      *partition.Replica // nil at an origin

	// Training returns the progress, 0 to 1, of a version's training at this host. underway is false if none runs. nil: unknown.
	Training func(v *catalog.Version) (share float64, underway bool)
}

// Caller returns the identity for limits of the application's calls: the owner's account, or the application itself if the operator
// owns it. An account may have many applications, which share the limits of one caller.
func (a *Application) Caller() string { return cmp.Or(a.Owner, a.ID) }

// Applications has the records of applications, keys and clients. The error for a missing record is catalog.ErrNotFound.
type Applications interface {
	Open(app string) (*Application, error)
	App(app string) (catalog.App, error)
	Key(hash auth.Hash) (catalog.Key, error)
	Client(id string) (catalog.Client, error)

	// AppsOf lists the applications of an account, and Keys the keys of an application. Each has a fixed
	// order.
	AppsOf(account string) ([]catalog.App, error)
	Keys(app string) ([]catalog.Key, error)

	// CreateApp and CreateKey create one for an account. remote is the network address of the request. Errors of an invalid request
	// wrap ErrAccountRequest. An error that wraps kv.ErrFollows means that nothing was written.
	CreateApp(ctx context.Context, account, remote string, a NewApp) (catalog.App, error)
	CreateKey(ctx context.Context, account, remote string, k NewKey) (key string, record catalog.Key, err error)
}

// NewApp is a request to create an application.
type NewApp struct{ Name, Language string }

// NewKey is a request to create a key.
type NewKey struct {
	App         string
	Scopes      []string // by name
	Description string
}

// ErrAccountRequest is returned for an invalid request to create an application or a key.
var ErrAccountRequest = errors.New("malformed request")

// Tokens issues access tokens and reads them. The host implements it, since it has the signing keys.
type Tokens interface {
	// Issue returns a token with claims, and the time for which it is valid.
	Issue(c auth.Claims) (token string, life time.Duration, err error)
	// Read returns the claims of a token that this host issued and that has not expired. The errors are
	// auth.ErrToken and auth.ErrExpired.
	Read(token string) (auth.Claims, error)
}

// Accounts has the user accounts of the host.
type Accounts interface {
	// Login opens a session. The errors are auth.ErrLogin and auth.ErrRate, preferably an *auth.RateError with the time to wait.
	Login(ctx context.Context, email, password, remote string) (session, account string, err error)
	// Session returns the account behind a session token. The error is auth.ErrSession.
	Session(ctx context.Context, session string) (account string, err error)
	// CheckSession returns auth.ErrSession unless the session with an id is open. The id is in the claims of a page's token.
	CheckSession(ctx context.Context, id string) error
}

// Calls counts authenticated calls.
type Calls interface {
	// Spend counts one authenticated call. left is the number of calls that the account has left; negative: unlimited. If the account has
	// none left, Spend counts nothing and returns auth.ErrQuota. Its text explains to the caller what to do.
	Spend(ctx context.Context, c CountedCall) (left int64, err error)
}

// Storage limits what accounts store.
type Storage interface {
	// StorageLimits returns the limits of an account. The empty account is the operator, who has no limits.
	StorageLimits(account string) (StorageLimits, error)
	// CountPicture counts the bytes of a picture that was sent to be predicted and is stored for the time life. If the
	// account's pictures of that kind would exceed its limit, it counts nothing and returns false.
	CountPicture(account string, bytes int64, life time.Duration) (fits bool, err error)
}

// StorageLimits limit the sum over all applications of an account. Zero means no limit.
type StorageLimits struct {
	Inputs int64
	Bytes  int64  // of pictures and of records of inputs
	Advice string // advice how to get room, the end of a sentence: "delete inputs to make room"
}

// CountedCall is one call that counts against an account's quota.
type CountedCall struct {
	Account string // owner of the application; empty for the operator, who has no limit
	App     string // empty if the call concerns the account itself
	By      string // start of the key's hash, or "token", "session"
	Route   string // method and path as in the route table: "GET /inputs/{input_id}"
}

// AppID returns the application's id as records have it.
func (a *Application) AppID() catalog.AppID {
	id, _ := catalog.ParseAppID(a.ID) // the id is valid
	return id
}

// ErrWhichApp is returned for a session token on a path without an application if the account
// has several applications or none.
var ErrWhichApp = errors.New("application missing: use a path that starts with /v2/users/me/apps/{app_id}")

// Address is the part of a long path that names an application. Every path of an application also exists
// below /v2/users/{user_id}/apps/{app_id}.
type Address struct {
	Long      bool
	User, App string
}

// Me is the user id in a path that means the caller's account.
const Me = "me"

// Matches reports whether a path belongs to the application. A short path always does. A long path
// must name the application and its owner.
func (at Address) Matches(app *Application) bool {
	return !at.Long || app != nil && at.App == app.ID && (at.User == Me || at.User == app.Owner && at.User != "")
}
