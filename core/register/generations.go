package register

import (
	"cmp"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/log"
)

// Tokens has the times at which generations of an application's access tokens began. Each generation ended the previous one.
type Tokens struct {
	generations []generation  // in their order
	maxStale    time.Duration // time for which an edge may accept writes with invalid tokens, before it learns of their end
}

// generation is a generation of an application's tokens.
type generation struct {
	client string
	seq    uint64 // entry of the control log where it begins
	began  time.Time
}

// Tokens returns the generations of an application's tokens. Errors: ErrNotOrigin and the store's.
func (r *Register) Tokens(app string) (t Tokens, err error) {
	o, unlock, err := r.lockRevocations()
	if err != nil {
		return t, err
	}
	defer unlock()
	record, err := r.Reader().App(app)
	if t.maxStale = time.Duration(record.MaxStale) * time.Second; t.maxStale == 0 {
		t.maxStale = DefaultMaxStale
	}
	t.generations = slices.Clone(o.generations[app])
	return t, err
}

// WasInvalid reports whether a token was invalid when an edge made an operation with it at a time, although the edge did not know.
// client and seq identify the token's generation. If seq is zero or client and seq are impossible, the token counts as one
// of the previous generation, for as long as an edge may have accepted writes with it.
func (t *Tokens) WasInvalid(client string, seq uint64, at time.Time) bool {
	n := len(t.generations)
	if n == 0 {
		return false
	}
	switch last := &t.generations[n-1]; {
	case seq != 0 && seq < last.seq:
		next, _ := slices.BinarySearchFunc(t.generations, seq+1, func(g generation, seq uint64) int { return cmp.Compare(g.seq, seq) })
		return at.After(t.generations[next].began)
	case seq == last.seq && client == last.client:
		return false
	}
	return slices.ContainsFunc(t.generations[1:], func(g generation) bool {
		return at.After(g.began) && !at.After(g.began.Add(t.maxStale))
	})
}

// began reads an operation of the control log with which a generation of tokens may begin.
func (o *revocations) began(e *log.Entry) {
	var app, client string
	switch b := e.Op.Body.(type) {
	case *log.ClientSet:
		if of, ok := o.clients[b.ID]; ok && of != b.App {
			return // the client belongs to another application
		}
		o.clients[b.ID] = b.App
		app, client = b.App, b.ID
	case *log.TokensRevoke:
		all := o.generations[b.App]
		if len(all) == 0 {
			return
		}
		app, client = b.App, all[len(all)-1].client
	default:
		return
	}
	o.generations[app] = append(o.generations[app], generation{client, e.Seq, e.Op.At.Time()})
}
