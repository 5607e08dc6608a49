package api

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/partition"
)

// Application is an application as requests meet it. Everything a request reads or writes
// is of the application that its credential belongs to.
type Application struct {
	ID           string // 32 hex digits
	Language     string // the default for names; fixed at creation
	DefaultModel string // what pages preselect; changes no answer
	Partition    *partition.Partition
}

// Applications says for which application a request speaks. The errors are package auth's.
type Applications interface {
	Authorize(authorization string) (*Application, auth.Principal, error)
	// Owner is the application's owner, for whom the host vouches.
	Owner(app string) (*Application, auth.Principal, error)
}

// Tokens issues access tokens and reads them. The host lends it, since signing keys are its own.
type Tokens interface {
	// Issue returns a token with claims, and how long it lives.
	Issue(c auth.Claims) (token string, life time.Duration, err error)
	// Read returns the claims of a token that was issued here and still lives. The errors are
	// auth.ErrToken and auth.ErrExpired.
	Read(token string) (auth.Claims, error)
}

// Accounts is what a host knows of the people whom applications belong to.
type Accounts interface {
	// Login opens a session. The errors are auth.ErrLogin and auth.ErrRate.
	Login(ctx context.Context, email, password, remote string) (session, account string, err error)
	// Session returns the account behind a session token. The error is auth.ErrSession.
	Session(ctx context.Context, session string) (account string, err error)
	// Spend counts one authenticated call. left is how many more the account may make; negative: any
	// number. The error is auth.ErrQuota, and then the call is refused and was not counted.
	Spend(ctx context.Context, c Spent) (left int64, err error)
}

// Spent is a call as it is counted.
type Spent struct {
	Account string // whose it is; empty: the operator's, which has no limit
	App     string
	By      string // start of the key's hash, or "token", "session"
	Route   string // method and path as in the route table: "GET /inputs/{input_id}"
}
