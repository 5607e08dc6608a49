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

// An application that becomes local only: from then on the feed sends nothing that it holds. The origin takes what its replicas
// have acknowledged, and then each forgets all: after the healing, within the rounds of I1. These are parts of I8 and I2.
// No disk of a replica is rolled back in such a run: the replica would have to pull before it pushes. A replica that is emptied does not
// give back what a restored origin lacks, so such runs do not check that.

// keepLocal makes the application local only.
func (g *origin) keepLocal() {
	if !g.up || g.isLocal() {
		return
	}
	g.runWithCuts(func() error {
		on := true
		_, err := g.engine.Register.ChangeApp(context.Background(), register.Caller{Account: "operator"}, g.world.app.String(), register.AppChange{LocalOnly: &on})
		return err
	})
	g.copied = nil // a backup from before shares the application again, and lacks what drained replicas had
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

// checkLocal holds an answer of a local-only application to I8.
func (g *origin) checkLocal(r *api.Request, resp *response) error {
	sends := func(what any) error { return fmt.Errorf("I8: %s sends %v of a local-only application", r.Path, what) }
	switch {
	case resp.stream:
		in := wire.Reader{}
		_, _ = in.Write(resp.body)
		for {
			f, ok, err := in.Next()
			if err != nil || !ok {
				return err
			}
			if slices.Contains([]wire.Type{wire.TypeDerived, wire.TypeObject, wire.TypeRegister, wire.TypeEntries}, f.Type) {
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

// checkPromises holds a replica that forgets all to I2: the origin has what the replica acknowledged.
func (r *party) checkPromises() error {
	for _, dot := range r.promised {
		if _, ok := r.world.oracle.at[dot]; !ok {
			return fmt.Errorf("I2: replica %d forgets operation %v, which the origin does not have", r.number, dot)
		}
	}
	return nil
}
