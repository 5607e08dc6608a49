package partition

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Caller identifies the caller that requests operations.
type Caller struct {
	By    string // key or account that requests the operations, see [log.Op]
	Token Token  // access token of the request; zero: none
}

// Token has the client and the generation of an access token. A replica that accepts a token may not know yet that the generation has
// ended. So it stores the Token of each local operation until the operation is stable.
//
//field:message
type Token struct {
	Client     string `wire:"1"`
	Generation uint64 `wire:"2"` // entry of the control log at which the generation begins
}

// tokenName is the prefix of the names of stored tokens; the operation's dot follows.
const tokenName = "token/"

func tokenKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, tokenName, dot) }

// TokenOf returns the token of an operation in the outbox. It is zero for an operation without a token, and for operations of earlier
// program versions, which stored none.
func (p *Replica) TokenOf(dot log.Dot) (Token, error) {
	data, err := kv.Find(p.o.Store, tokenKey(p.o.App, dot))
	if err != nil || data == nil {
		return Token{}, err
	}
	t, err := decodeToken(data)
	if err != nil {
		return Token{}, fmt.Errorf("token of operation %d of writer %v: %w", dot.Seq, dot.Writer, err)
	}
	return t, nil
}
