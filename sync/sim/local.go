package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/wire"
)

// In a run with Options.LocalOnly, the application becomes local only. From then on the feed must send none of its data. The origin accepts
// the operations that replicas have acknowledged. Then each replica deletes all of its data, at the latest in the rounds of the healing.
// This checks parts of I8 and I2.
//
// Such a run rolls back no disk of a replica, since the replica would have to pull before it pushes. A replica that has deleted its data
// cannot return what a restored origin lacks, so such runs do not check that.

// keepLocal makes the application local only, unless it already is.
func (g *origin) keepLocal() {
	if !g.up || g.isLocal() {
		return
	}
	g.runWithCuts(func() error {
		on := true
		_, err := g.engine.Register.ChangeApp(context.Background(), register.Caller{Account: "operator"}, g.world.app.String(), register.AppChange{LocalOnly: &on})
		return err
	})
	g.copied = nil // an earlier backup would share the application again, and lack the operations of replicas that deleted their data
	g.answerPolls()
}

// isLocal reports whether the application is local only.
func (g *origin) isLocal() bool {
	if !g.world.o.LocalOnly || g.engine == nil {
		return false
	}
	a, err := g.engine.Register.App(g.world.app.String())
	return err == nil && a.LocalOnly
}

// checkLocal checks I8 for an answer: it has no data of the local-only application.
func (g *origin) checkLocal(r *api.Request, resp *response) error {
	sends := func(content any) error {
		return fmt.Errorf("I8: %s sends %v of a local-only application", r.Path, content)
	}
	switch {
	case resp.stream:
		in := wire.Reader{}
		_, _ = in.Write(resp.body)
		for {
			f, ok, err := in.Next()
			if err != nil || !ok {
				return err
			}
			if slices.Contains([]wire.Type{wire.TypeDerived, wire.TypeObject, wire.TypeAppRecord, wire.TypeEntries}, f.Type) {
				return sends(f.Type)
			}
		}
	case resp.status != 200:
		return nil
	case strings.HasSuffix(r.Path, "/session"):
		o, err := wire.DecodeSessionReply(resp.body)
		if err != nil {
			return err
		}
		for _, grant := range o.Grants {
			if grant.Do != wire.DoRefused || grant.Head != 0 {
				return sends(fmt.Sprintf("the grant %+v", grant))
			}
		}
	case r.Method == "GET" && !strings.HasSuffix(r.Path, "/keys"):
		return sends("an answer")
	}
	return nil
}

// checkPromises checks I2 for a replica that deletes its data: the log has all operations that the replica acknowledged.
func (r *party) checkPromises() error {
	for _, dot := range r.promised {
		if _, ok := r.world.oracle.at[dot]; !ok {
			return fmt.Errorf("I2: replica %d forgets operation %v, which the origin does not have", r.number, dot)
		}
	}
	return nil
}
