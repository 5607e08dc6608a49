package lent

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Tokens are issued and read by the host, whose keys sign them.
type Tokens struct{ From Imports }

var _ api.Tokens = Tokens{}

// once calls an import that must not be asked twice.
func once(call func(dst []byte) int64) ([]byte, error) {
	buf := make([]byte, abi.RoomOnce)
	switch n := call(buf); {
	case n < 0:
		return nil, abi.Errno(-n).Err()
	case n > abi.RoomOnce:
		return nil, abi.ErrHost
	default:
		return buf[:n], nil
	}
}

// Issue implements [api.Tokens].
func (t Tokens) Issue(c auth.Claims) (token string, life time.Duration, err error) {
	data, err := once(func(dst []byte) int64 { return t.From.TokenIssue(abi.MarshalClaims(c), dst) })
	if err != nil {
		return "", 0, err
	}
	return abi.ParseToken(data)
}

// Read implements [api.Tokens].
func (t Tokens) Read(token string) (auth.Claims, error) {
	data, err := fill(make([]byte, 256), func(dst []byte) int64 { return t.From.TokenRead(token, dst) })
	if err != nil {
		return auth.Claims{}, err
	}
	return abi.ParseClaims(data)
}

// Accounts are those of the host.
type Accounts struct{ From Imports }

var _ api.Accounts = Accounts{}

func (a Accounts) ask(q abi.AccountQuestion) (abi.AccountReply, error) {
	data, err := once(func(dst []byte) int64 { return a.From.Account(q.Marshal(), dst) })
	if err != nil {
		return abi.AccountReply{}, err
	}
	r, err := abi.ParseAccountReply(data)
	if err != nil {
		return r, err
	}
	return r, r.Err
}

// Login implements [api.Accounts].
func (a Accounts) Login(_ context.Context, email, password, remote string) (session, account string, err error) {
	r, err := a.ask(abi.AccountQuestion{What: abi.AccountLogin, Email: email, Password: password, Remote: remote})
	return r.Session, r.Account, err
}

// Session implements [api.Accounts].
func (a Accounts) Session(_ context.Context, session string) (account string, err error) {
	r, err := a.ask(abi.AccountQuestion{What: abi.AccountSession, Session: session})
	return r.Account, err
}

// Spend implements [api.Accounts].
func (a Accounts) Spend(_ context.Context, c api.Spent) (left int64, err error) {
	r, err := a.ask(abi.AccountQuestion{What: abi.AccountSpend, Spent: c})
	return r.Left, err
}
