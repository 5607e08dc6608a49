package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host"
)

// engine runs the module's instances and the register of applications. The register runs
// natively. All instances read it, and none writes it.
type engine struct {
	Register *register.Register
	node     *Node
	dir      *system.Folder
	store    kv.Store
	base     [32]byte
	log      *slog.Logger

	replicas *replicaSet // applications of the origin; nil: the edge is standalone

	fleet   func() (*host.Fleet, error) // opens the fleet at the first call
	started atomic.Pointer[host.Fleet]  // nil before the first call of fleet
}

var (
	_ server.Engine         = (*engine)(nil)
	_ server.PictureFetcher = (*engine)(nil)
)

// open opens the register of a data folder. It opens the fleet only if it is going to serve: commands that
// manage applications and keys do not need the module.
func (n *Node) open(ctx context.Context, on *server.Node, u server.Use) (_ *engine, err error) {
	tables, err := predict.LoadTables(on.Settings.Bundles)
	if err != nil {
		return nil, err
	}
	e := &engine{node: n, store: on.Folder.Store, base: tables.Base(), log: on.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.dir, err = system.OpenFolder(on.Folder.Dir); err != nil {
		return nil, err
	}
	e.Register, err = register.Open(register.Options{
		Store: on.Folder.Store, Models: tables, Hosted: on.Hosted, Clock: system.Now, Rand: system.Random, Detach: e.detach, Audit: on.Accounts.Audit,
	})
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	id, err := n.identify(e.dir)
	if err != nil {
		return nil, err
	}
	if id != nil {
		if e.replicas, err = newReplicaSet(e, id, on); err != nil {
			return nil, err
		}
		on.Tokens.TrustPeer(e.replicas)
		if err := register.PurgeDeleted(ctx, on.Folder.Store); err != nil {
			return nil, err
		}
	}
	e.fleet = sync.OnceValues(func() (*host.Fleet, error) { return e.start(context.WithoutCancel(ctx), on, tables) })
	if u.Background {
		_, err = e.fleet()
	}
	return e, err
}

// start opens the fleet.
func (e *engine) start(ctx context.Context, on *server.Node, tables *predict.Set) (*host.Fleet, error) {
	rt, err := e.node.load(ctx, places{on.Settings.Cache, on.Settings.Data}, on.Log, e.node.showCompiling(on.Log))
	if err != nil {
		return nil, err
	}
	services := host.Services{
		Store: on.Folder.Store, Hosted: on.Hosted, Bundles: on.Settings.Bundles,
		Older:  func(base [32]byte) (fs.FS, error) { return on.Folder.Bundles(base) },
		Tokens: on.Tokens, Clock: system.Now, Rand: system.Random, Log: on.Log,
	}
	o := host.FleetOptions{
		Runtime: rt,
		Settings: abi.Settings{
			PublicURL: strings.TrimRight(on.Settings.PublicURL, "/"), PublicAppID: on.Settings.PublicAppID, KeepPredicted: on.Settings.PredictedTTL,
			MaxAnswer: uint64(on.Settings.MaxAnswer),
		},
		Rate: on.Settings.Rate, OperatorRate: on.Settings.OperatorRate,
		Models:         tables,
		CollectOrphans: e.Register.ScheduleCollect,
	}
	if e.replicas != nil {
		services.Blobs, services.AppRecords = on.Folder.Blobs, e.replicas
		services.Count = e.replicas.count
		o.Replica, o.OnWrite, o.Admit, o.UnknownCredential = e.replicas.replica, e.replicas.wrote, e.replicas.admit, e.replicas.learn
	}
	o.Services = services
	f, err := host.NewFleet(o)
	if err != nil {
		return nil, errors.Join(err, rt.Close(ctx))
	}
	e.started.Store(f)
	return f, nil
}

// detach ends everything that serves a deleted application.
func (e *engine) detach(app string) {
	if f := e.started.Load(); f != nil {
		f.Detach(app)
	}
}

// HostedPicture implements [server.Engine]. The picture may not be stored here.
func (e *engine) HostedPicture(name string) (blob.Picture, error) {
	return e.Register.HostedPicture(name)
}

// FetchPicture implements [server.PictureFetcher]. It downloads a picture of the origin that is not stored here.
func (e *engine) FetchPicture(ctx context.Context, h blob.Hash) error {
	if e.replicas == nil {
		return nil
	}
	err := e.replicas.have(ctx, h)
	if errors.Is(err, blob.ErrNotFound) {
		err = fmt.Errorf("%w: %w", api.ErrFetch, err)
	}
	return err
}

// Begin implements [jobs.Service].
func (e *engine) Begin(ctx context.Context, r *api.Request) *api.Exchange {
	f, err := e.fleet()
	if err != nil {
		e.log.Error("cannot start the module", "error", err)
		return api.RespondWith(e.Refuse(r, api.ErrInternal))
	}
	return f.Begin(ctx, markPageRequest(r))
}

// Caller implements [jobs.Service].
func (e *engine) Caller(ctx context.Context, r *api.Request) (string, error) {
	f, err := e.fleet()
	if err != nil {
		e.log.Error("module", "error", err)
		return "", api.ErrInternal
	}
	return f.Caller(ctx, r)
}

// refuser answers requests that need no module.
var refuser api.Service

// Refuse implements [jobs.Service].
func (e *engine) Refuse(r *api.Request, err error) api.Response { return refuser.Refuse(r, err) }

// Take implements [jobs.Engine].
func (e *engine) Take(now time.Time, n int) ([]core.Task, error) {
	f, err := e.fleet()
	if err != nil {
		return nil, err
	}
	return f.Take(now, n)
}

// Done implements [jobs.Engine].
func (e *engine) Done(ctx context.Context, t core.Task, r core.Result) error {
	f, err := e.fleet()
	if err != nil {
		return err
	}
	return f.Done(ctx, t, r)
}

// Step implements [jobs.Engine]. The register cleans up the shared data, and the instances their own data.
func (e *engine) Step(ctx context.Context, now time.Time) (more bool, err error) {
	tidying, err := e.Register.Step(ctx, now)
	if err != nil {
		return false, err
	}
	f, err := e.fleet()
	if err != nil {
		return false, err
	}
	more, err = f.Step(ctx, now)
	return more || tidying, err
}

// Base implements [server.Networks].
func (e *engine) Base() [32]byte { return e.base }

// Serves implements [server.Networks]. If it cannot read the state of an application, it returns true, so that no bundle is deleted.
func (e *engine) Serves(base [32]byte) bool {
	if base == e.base {
		return true
	}
	ids, err := e.Register.IDs()
	return err != nil || slices.ContainsFunc(ids, func(id string) bool {
		app, err := catalog.ParseAppID(id)
		if err != nil {
			return true
		}
		h, err := catalog.Read(e.store, app).Header()
		return err != nil || h.Base == base
	})
}

// NewAnalyser implements [server.Networks].
func (e *engine) NewAnalyser(base [32]byte, l raster.Limits) jobs.Analyser {
	return &analyser{e: e, base: base, limits: l}
}

// analyser is an analyser of the fleet, created for its first picture.
type analyser struct {
	e      *engine
	base   [32]byte
	limits raster.Limits
	of     *predict.Analyser
}

// Analyse implements [jobs.Analyser].
func (a *analyser) Analyse(picture []byte, c raster.Crop, w predict.Want) (predict.Analysis, error) {
	return a.with(func(of *predict.Analyser) (predict.Analysis, error) { return of.Analyse(picture, c, w) })
}

// AnalysePlanes implements [jobs.Analyser].
func (a *analyser) AnalysePlanes(p raster.Planes, c raster.Crop, w predict.Want) (predict.Analysis, error) {
	return a.with(func(of *predict.Analyser) (predict.Analysis, error) { return of.AnalysePlanes(p, c, w) })
}

// AnalyseFrame implements [jobs.Analyser].
func (a *analyser) AnalyseFrame(f *raster.Frames, w predict.Want) (predict.Analysis, error) {
	return a.with(func(of *predict.Analyser) (predict.Analysis, error) { return of.AnalyseFrame(f, w) })
}

// with creates the analyser for its first picture and calls analyse with it.
func (a *analyser) with(analyse func(*predict.Analyser) (predict.Analysis, error)) (predict.Analysis, error) {
	if a.of == nil {
		f, err := a.e.fleet()
		if err == nil {
			a.of, err = f.NewAnalyser(a.base, a.limits)
		}
		if err != nil {
			return predict.Analysis{}, fmt.Errorf("%w: %w", api.ErrInternal, err)
		}
	}
	return analyse(a.of)
}

// Close implements [server.Engine].
func (e *engine) Close() error {
	var errs []error
	if f := e.started.Load(); f != nil {
		errs = append(errs, f.Close())
	}
	if e.replicas != nil {
		errs = append(errs, e.replicas.writeCalls())
	}
	if e.Register != nil {
		errs = append(errs, e.Register.Close())
	}
	if e.dir != nil {
		errs = append(errs, e.dir.Close())
	}
	return errors.Join(errs...)
}

// oldest returns the time for which the longest current call of the module has been running.
func (e *engine) oldest() time.Duration {
	if f := e.started.Load(); f != nil {
		return f.Runtime().Oldest()
	}
	return 0
}

// status returns the status of the module for the operator, or nil if the module was not used yet.
func (e *engine) status() *control.Module {
	f := e.started.Load()
	if f == nil {
		return nil
	}
	rt := f.Runtime()
	return &control.Module{
		SHA256: fmt.Sprintf("%x", rt.Hash()), Compiled: rt.WasCompiled(),
		Instances: rt.Instances(), Bytes: f.Bytes(),
	}
}
