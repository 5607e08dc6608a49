package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/feed"
)

// engine is the part of the origin's engine that a feed uses: the real register of applications and edges, and the only
// application of the simulation.
type engine struct {
	Register *register.Register
	origin   *origin
}

var _ feed.Engine = (*engine)(nil)

// open opens the register on the origin's store, and creates the engine and the feed.
func (g *origin) open() error {
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: g.blobs, Random: g.random})
	if err != nil {
		return err
	}
	control, err := register.Open(register.Options{
		Store: g.wire, Models: &predict.Set{}, Hosted: hosted, Clock: g.clock.now, Rand: g.random,
	})
	if err != nil {
		return err
	}
	g.engine = &engine{Register: control, origin: g}
	g.feed, err = feed.New(feed.Options{
		Engine: g.engine, Register: control, Blobs: g.blobs, Pinner: hosted, Clock: g.clock.now, Run: analyse,
		Stable: func(_ string, head uint64) uint64 { return min(g.stable, head) },
		Limits: feed.Limits{Pictures: 3, Snapshots: 1 << 20, PushOps: 1 + uint64(g.world.rng.IntN(20))},
	})
	return err
}

// analyse returns a result with only the picture's hash for each job. ReceivedOutcome adds the derived record.
func analyse(_ context.Context, jobs []api.Job) ([]api.Result, error) {
	out := make([]api.Result, len(jobs))
	for i := range jobs {
		out[i].Blob = jobs[i].Blob
	}
	return out, nil
}

// ReceivedOutcome implements [feed.Engine].
func (e *engine) ReceivedOutcome(_ [32]byte, r *api.Result) ingest.Outcome {
	x, ok := derivedOf[r.Blob]
	if !ok {
		return ingest.Outcome{Code: 30002, Detail: "no picture"}
	}
	return ingest.Outcome{Code: catalog.InputReady, Blob: r.Blob, ContentType: "image/png", Derived: &x}
}

// ServingBase implements [feed.Engine].
func (e *engine) ServingBase(catalog.Reader) ([32]byte, error) { return base, nil }

// Reopen implements [feed.Engine].
func (e *engine) Reopen() error {
	opening, err := e.Register.Reopen()
	if err == nil {
		e.origin.part.SetOpening(opening)
	}
	return err
}

// Origin implements [feed.Engine].
func (e *engine) Origin(app string) (*partition.Origin, error) {
	if app != e.origin.world.app.String() || e.origin.part == nil || e.origin.world.deleted {
		return nil, register.ErrApplication
	}
	return e.origin.part, nil
}

// Identify implements [feed.Engine]. It accepts every key as a key of the application with all scopes.
func (e *engine) Identify(_ context.Context, r *api.Request) (auth.Principal, time.Time, error) {
	by, ok := strings.CutPrefix(r.Authorization, "Key ")
	if !ok {
		return auth.Principal{}, time.Time{}, auth.ErrToken
	}
	return auth.Principal{App: e.origin.world.app.String(), By: by, Scopes: auth.All}, time.Time{}, nil
}

// errOrigin is an error of the origin that no simulated fault explains.
var errOrigin = errors.New("origin is in trouble")

// Refuse implements [feed.Engine].
func (e *engine) Refuse(r *api.Request, err error) api.Response {
	status := 500
	if errors.Is(err, auth.ErrToken) {
		status = 401
	} else if isFull(err, e.origin.space) {
		status = 507
	} else if !errors.Is(err, register.ErrApplication) {
		e.origin.world.fail(fmt.Errorf("%w: %s %s: %w", errOrigin, r.Method, r.Path, err))
	}
	return api.Response{Status: status}
}

// random returns a source of random bytes, which the state of rng determines.
func random(rng *rand.Rand) *rand.ChaCha8 {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rng.Uint32())
	}
	return rand.NewChaCha8(seed)
}
