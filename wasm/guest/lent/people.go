package lent

import (
	"context"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Tokens are issued and read by the host, whose keys sign them.
type Tokens struct{ From Imports }

var _ api.Tokens = Tokens{}

// rooms are buffers of abi.RoomOnce bytes: every call that is counted needs one.
var rooms = sync.Pool{New: func() any { return new([abi.RoomOnce]byte) }}

// once calls an import that must not be asked twice. read borrows what it filled.
func once(call func(dst []byte) int64, read func(data []byte) error) error {
	room := rooms.Get().(*[abi.RoomOnce]byte)
	defer rooms.Put(room)
	switch n := call(room[:]); {
	case n < 0:
		return abi.Errno(-n).Err()
	case n > abi.RoomOnce:
		return abi.ErrHost
	default:
		return read(room[:n])
	}
}

// Issue implements [api.Tokens].
func (t Tokens) Issue(c auth.Claims) (token string, life time.Duration, err error) {
	err = once(func(dst []byte) int64 { return t.From.TokenIssue(abi.MarshalClaims(c), dst) }, func(data []byte) (err error) {
		token, life, err = abi.ParseToken(data)
		return err
	})
	return token, life, err
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

func (a Accounts) ask(q abi.AccountQuestion) (r abi.AccountReply, err error) {
	err = once(func(dst []byte) int64 { return a.From.Account(q.Marshal(), dst) }, func(data []byte) (err error) {
		r, err = abi.ParseAccountReply(data)
		return err
	})
	if err == nil {
		err = r.Err
	}
	return r, err
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
