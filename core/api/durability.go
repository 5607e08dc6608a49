package api

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Headers of an answer to a call that has written.
const (
	// headerDurability says where what was written outlives a crash: "origin", in the application's own log,
	// or "local", in a copy that keeps it until the origin has it.
	headerDurability = "X-Sightline-Durability"
	// headerOperations names the operations that a call to a copy has made, as "site:first-last", so that they
	// can be found in its outbox. Where several calls write at once, some between may be another's.
	headerOperations = "X-Sightline-Operations"
)

// submit appends operations to the application's log and folds them. also adds what they need
// to the same batch; nil: nothing.
func (x *Call) submit(bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error) {
	verdicts, made, err := x.app.Partition.SubmitSpan(x.ctx, x.asks(), bodies, also)
	switch {
	case made == (partition.Span{}):
	case x.made == (partition.Span{}):
		x.made = made
	default:
		x.made.Last = made.Last
	}
	return verdicts, err
}

// asks is who asks in the words of a partition.
func (x *Call) asks() partition.Who {
	return partition.Who{By: x.who.By, Token: partition.Token{Client: x.who.Client, Generation: x.who.Generation}}
}

// durability are the headers of an answer to a call that has written.
func (x *Call) durability() []Field {
	switch {
	case x.made == (partition.Span{}) && !x.elsewhere:
		return nil
	case x.app == nil || !x.app.Partition.Copied():
		return []Field{{headerDurability, "origin"}}
	}
	return []Field{
		{headerDurability, "local"},
		{headerOperations, fmt.Sprintf("%d:%d-%d", x.made.Site, x.made.First, x.made.Last)},
	}
}
