package partition

import (
	"bytes"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Who asks for operations.
type Who struct {
	By    string // what they are signed with, see [log.Op]
	Token Token  // that was shown; zero: none was
}

// Token is of which client and generation an access token is. A replica that took one may not know yet that the
// generation is over, so it keeps with each operation of its own under which one it was asked for, until nobody
// can ask for the operation again.
//
//field:message
type Token struct {
	Client     string `wire:"1"`
	Generation uint64 `wire:"2"` // place in the control log where it begins
}

// tokenName begins the names of the notes that keep tokens; the operation's site and sequence follow, as numbers
// of 4 and 8 bytes.
const tokenName = "token/"

func tokenKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, tokenName, dot) }

// noteToken notes under which token operations of a replica are made.
func (p *Partition) noteToken(b *kv.Batch, ops []log.Op, t Token) {
	for i := range ops {
		b.Put(tokenKey(p.o.App, ops[i].Dot), encodeToken(nil, &t))
	}
}

// TokenOf is the token under which an operation of our own was made; zero where none was shown, and for
// operations that an earlier version has made, which noted none.
func (p *Partition) TokenOf(dot log.Dot) (Token, error) {
	data, err := p.o.Store.Get(tokenKey(p.o.App, dot))
	if isMissing(err) {
		return Token{}, nil
	}
	if err != nil {
		return Token{}, err
	}
	t, err := decodeToken(data)
	if err != nil {
		return Token{}, fmt.Errorf("token of operation %d of site %d: %w", dot.Seq, dot.Site, err)
	}
	return t, nil
}

// forgetTokens drops the notes on operations of a site up to one.
func (p *Partition) forgetTokens(tx *kv.Overlay, site log.Site, last uint64) error {
	var keys [][]byte
	err := tx.Scan(tokenKey(p.o.App, log.Dot{Site: site}), tokenKey(p.o.App, log.Dot{Site: site, Seq: last + 1}), func(key, _ []byte) bool {
		keys = append(keys, bytes.Clone(key))
		return true
	})
	for _, key := range keys {
		tx.Delete(key)
	}
	return err
}
