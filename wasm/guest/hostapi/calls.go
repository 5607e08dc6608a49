package hostapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Tokens issues and reads tokens through the host, which has the keys that sign them.
type Tokens struct{ From Imports }

var _ api.Tokens = Tokens{}

// rooms is a pool of buffers of abi.OnceBufferBytes bytes. Every counted call and every read of the store needs one.
var rooms = sync.Pool{New: func() any { return new([abi.OnceBufferBytes]byte) }}

// once calls an import that must not be repeated because it has an effect. read gets the filled part of the buffer, and must not retain
// it.
func once(call func(dst []byte) int64, read func(data []byte) error) error {
	room := rooms.Get().(*[abi.OnceBufferBytes]byte)
	defer rooms.Put(room)
	switch n := call(room[:]); {
	case n < 0:
		return abi.Errno(-n).Err()
	case n > abi.OnceBufferBytes:
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

// Calls counts calls through the host, which knows the account of the application.
type Calls struct{ From Imports }

var _ api.Calls = Calls{}

// Spend implements [api.Calls]. It returns -1 as left, because the host does not report the number of remaining calls.
func (c Calls) Spend(context.Context, api.CountedCall) (left int64, err error) {
	var refused string
	err = once(c.From.Count, func(data []byte) error {
		refused = string(data)
		return nil
	})
	if err == nil && refused != "" {
		err = fmt.Errorf("%w: %s", auth.ErrQuota, refused)
	}
	return -1, err
}
