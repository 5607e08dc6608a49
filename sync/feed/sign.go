package feed

import (
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// sign checks the callers that operations name in By, and corrects or refuses them.
//
//	pushing credential    permitted callers
//	a key or a token      itself, or none for operations of the program
//	an edge               a key of the application, a token, a session, none
//
// An edge pushes for all of its callers, so an unknown caller becomes none. An operation that an offline edge accepted is refused if its
// key had been deleted by then, or the generation of its token had ended. Earlier operations stay.
func (c *call) sign(m *wire.Push, ops []log.Op) error {
	if c.edge != nil {
		return c.countersign(m, ops)
	}
	for i := range ops {
		if op := &ops[i]; op.By != "" || !isResult(op.Body) {
			op.By = c.principal.By
		}
	}
	return nil
}

// isResult reports whether a body is the result of a download or a training, which no caller requested.
func isResult(body log.Body) bool {
	switch body.(type) {
	case *log.InputFetched, *log.VersionResult:
		return true
	}
	return false
}

// countersign is sign for an edge.
func (c *call) countersign(m *wire.Push, ops []log.Op) error {
	keys, err := c.f.o.Register.Keys(c.app)
	if err != nil {
		return err
	}
	known := map[string]bool{"": true, auth.ByToken: true, auth.BySession: true}
	for i := range keys {
		known[auth.ByKey(keys[i].Hash)] = true
	}
	if err := c.weigh(m, ops); err != nil {
		return err
	}
	deleted, err := c.f.o.Register.KeysDeleted(c.app)
	if err != nil {
		return err
	}
	for i := range ops {
		op := &ops[i]
		switch at, ok := deleted[op.By]; {
		case known[op.By]:
		case !ok:
			op.By = ""
		case issueTime(m.For, op).After(at):
			partition.Refuse(op, "scope: the key was deleted")
		}
	}
	return nil
}

// weigh refuses operations that were requested with a revoked token. An edge gains nothing by omitting or faking its Tokens, see
// [register.Tokens.WasInvalid].
func (c *call) weigh(m *wire.Push, ops []log.Op) error {
	if !slices.ContainsFunc(ops, func(op log.Op) bool { return op.By == auth.ByToken }) {
		return nil
	}
	tokens, err := c.f.o.Register.Tokens(c.app)
	if err != nil {
		return err
	}
	for i := range ops {
		op := &ops[i]
		if op.By != auth.ByToken {
			continue
		}
		t := tokensOf(m.Tokens, op)
		if tokens.WasInvalid(t.Client, t.Generation, issueTime(m.For, op)) {
			partition.Refuse(op, "scope: the token was revoked")
		}
	}
	return nil
}

// tokensOf returns the token with which an operation was requested, according to its push; zero: not in the push.
func tokensOf(tokens []wire.Tokens, op *log.Op) wire.Tokens {
	for i := range tokens {
		if t := &tokens[i]; t.First <= op.Dot.Seq && op.Dot.Seq <= t.Last {
			return *t
		}
	}
	return wire.Tokens{}
}

// issueTime returns the time at which an operation was made, according to its push. A run of operations has the time of its first one, so
// for later ones their own clocks count.
func issueTime(behalves []wire.Delegation, op *log.Op) time.Time {
	at := op.At.Time()
	for i := range behalves {
		if b := &behalves[i]; b.Subject == op.By && b.First <= op.Dot.Seq && op.Dot.Seq <= b.Last && b.Issued.Time().After(at) {
			return b.Issued.Time()
		}
	}
	return at
}
