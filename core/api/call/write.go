package call

import (
	"fmt"
	"strings"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Headers of an answer to a call that has written.
const (
	// headerDurability has the place where a write is durable: "origin" means the application's log, "local" a replica that stores it
	// until the origin has it.
	headerDurability = "X-Sightline-Durability"
	// headerOperations has the operations that a call to a replica has written, as "writer:first-last", so that clients
	// can find them in the replica's outbox. If several calls write at once, some operations in between may belong to another call. If
	// the writer changed during the call, it has a part for each writer, with a comma between them.
	headerOperations = "X-Sightline-Operations"
)

// Submit appends operations to the application's log and returns the fold's verdict on each. also, if not nil, adds the data
// that they need to the same batch.
func (x *Call) Submit(also func(*kv.Batch), bodies ...log.Body) ([]fold.Verdict, error) {
	verdicts, span, err := x.App.Partition.SubmitSpan(x.Ctx, x.asks(), bodies, also)
	if n := len(x.submitted); n > 0 && x.submitted[n-1].Writer == span.Writer {
		x.submitted[n-1].Last = span.Last
	} else if span != (partition.Span{}) {
		x.submitted = append(x.submitted, span)
	}
	return verdicts, err
}

// asks returns the caller in the form that a partition takes.
func (x *Call) asks() partition.Caller {
	return partition.Caller{By: x.Principal.By, Token: partition.Token{Client: x.Principal.Client, Generation: x.Principal.Generation}}
}

// Done submits operations and answers with the status only.
func (x *Call) Done(bodies ...log.Body) error {
	if len(bodies) > 0 {
		if _, err := x.Submit(nil, bodies...); err != nil {
			return err
		}
	}
	return x.OK(func(*jsonio.Writer) {})
}

// Audit adds an action of the call to the answer, for the host's audit log, unless err is set. It returns err.
func (x *Call) Audit(action string, err error) error {
	if err == nil {
		x.Exchange.response.Did = AuditEvent{Action: action, App: x.App.ID, By: x.Principal.Maker}
	}
	return err
}

// durability returns the headers of an answer to a call that has written.
func (x *Call) durability() []Field {
	switch {
	case len(x.submitted) == 0 && !x.Elsewhere:
		return nil
	case x.App == nil || x.App.Replica == nil:
		return []Field{{headerDurability, "origin"}}
	}
	var operations strings.Builder
	for i, span := range x.submitted {
		if i > 0 {
			operations.WriteByte(',')
		}
		fmt.Fprintf(&operations, "%v:%d-%d", span.Writer, span.First, span.Last)
	}
	return []Field{{headerDurability, "local"}, {headerOperations, operations.String()}}
}
