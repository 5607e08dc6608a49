// Package server is the common part of both programs: settings, TLS, the data folder with its engine and background work, HTTP, and the
// shutdown of all these.
//
//	serve ─▶ settings ─▶ lock ─▶ pictures ─▶ engine ─▶ pool ─▶ control socket ─▶ HTTP ─▶ SIGTERM ─▶ drain
//
// A [Node] is an open data folder. A [Server] is a node behind HTTP. [Options] holds the differences between the programs. This package and
// the packages below it know neither program. Package cli has their common commands.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/hosted"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/token"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// Node is an open data folder with everything that works on it except the HTTP server: the engine, its pool, its background work and the
// control socket. A server is a node behind HTTP. A command opens a node itself if no process has the folder open.
type Node struct {
	Settings Settings
	Log      *slog.Logger
	decoder  *video.Decoder
	Folder   *data.Folder
	Store    kv.Store // the folder's store, or the cluster's over it
	Hosted   *blob.HostedNames
	Tokens   *token.Tokens
	Accounts *account.Registry
	OpenedEngine
	Files   *hosted.Files // hosted pictures and videos
	Pool    *jobs.Pool
	Handler *jobs.Handler
	control *control.Server
	failed  chan error                                  // receives the error of a store write that failed for good, which ends the process
	left    chan error                                  // receives the reason why the node no longer follows its cluster
	works   bool                                        // background work is running
	leads   atomic.Bool                                 // the node of a cluster leads
	onLead  atomic.Pointer[func(context.Context)]       // what a node of a cluster does each time it leads; nil: nothing
	welcome atomic.Pointer[func(context.Context) error] // what a node of a cluster does when it leads first; nil: nothing, or it was done
	Fresh   bool                                        // this start created the folder
	begun   time.Time

	quiet   sync.Mutex  // held by a step of the engine, which may delete, and by a backup
	stepped atomic.Bool // the engine's first step, which opens the graphs of the indexes, has ended
	loops   sync.WaitGroup
	Begin   func(f func(context.Context)) // starts a loop, which must end when its context ends
	cancel  context.CancelFunc            // ends the loops
}

var _ control.Folder = (*Node)(nil)

// OpenNode opens a data folder and starts its control socket. If u.Background is set, it also starts the background work. If OpenNode
// fails, it closes everything.
func OpenNode(ctx context.Context, s Settings, log *slog.Logger, u Use) (_ *Node, err error) {
	if s.Network.Dial == nil {
		s.Network = Network{system.Resolve, system.Dial}
	}
	if s.Workers == 0 {
		s.Workers = system.Cores()
	}
	if s.Bundles == nil {
		s.Bundles = models.FS
	}
	n := &Node{Settings: s, Log: log, begun: system.Now(), failed: make(chan error, 1), left: make(chan error, 1), cancel: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	options := s.Folder
	options.MinFree, options.Cache, options.Log, options.Fatal = s.MinFree, s.StoreCache, log, func(err error) { n.failed <- err }
	if n.Folder, err = data.Open(s.Data, options); err != nil {
		return nil, err
	}
	if n.Store = n.Folder.Store; s.Cluster != nil {
		if err = n.joinCluster(); err != nil {
			return nil, err
		}
	}
	if err = n.openNames(); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err = n.openAccounts(); err != nil {
		return nil, err
	}
	if n.OpenedEngine, err = s.Options.Open(ctx, n, u); err != nil {
		return nil, err
	}
	if err := n.keepBundles(); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err = n.Folder.CheckAfterPowerLoss(ctx, system.BootID(), n.references, log); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if u.Background && s.Cluster == nil {
		apps, err := n.Register.Apps()
		if err == nil {
			err = logClocks(n.Folder.Store, apps, system.Now(), log)
		}
		if err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	}
	if n.decoder, err = newDecoder(&n.Settings, log); err != nil {
		return nil, err
	}
	n.startPool()
	return n, n.startLoops(ctx, u.Background)
}

// openNames opens the names of hosted pictures, and the signing keys of access tokens.
func (n *Node) openNames() error {
	hostedNames := blob.HostedOptions{
		FS: n.Folder.Files, Blobs: n.Folder.Blobs, Random: system.Random, References: n.references, AppDeleted: n.hasEnded, Lazy: true,
	}
	if aged, ok := n.Folder.Blobs.(interface {
		EachOld(ctx context.Context, from blob.Hash, yield func(blob.Hash) error) error
	}); ok {
		hostedNames.Delay, hostedNames.Each = deleteAfter, aged.EachOld
	}
	var err error
	n.Hosted, err = blob.OpenHosted(hostedNames)
	if err != nil {
		return err
	}
	s := &n.Settings
	n.Tokens, err = token.Open(token.Options{
		Issuer: strings.TrimRight(s.PublicURL, "/"), Life: s.TokenLife, FS: n.Folder.Files, Now: system.Now, Random: system.Random, Log: n.Log,
	})
	return err
}

// deleteAfter is the time for which a picture of a cluster stays that nothing references any longer: another node may have begun to add it.
const deleteAfter = 10 * time.Minute

// keepBundles stores this program's network bundles in the folder, in case a program with another network opens it later. It removes
// bundles that serve no application any longer.
func (n *Node) keepBundles() error {
	base := n.Networks.Base()
	if err := n.Folder.StoreBundles(base, n.Settings.Bundles); err != nil {
		return err
	}
	return n.Folder.DropBundles(n.Networks.Serves)
}

// references reports whether a record references the blob h.
func (n *Node) references(h blob.Hash) bool { return n.Register == nil || n.Register.References(h) }

// hasEnded reports whether an application was deleted.
func (n *Node) hasEnded(app blob.AppID) (bool, error) {
	if n.Register == nil {
		return false, nil
	}
	return n.Register.HostedAppDeleted(app)
}

func (n *Node) startPool() {
	n.Files = n.newFiles()
	memory := system.MemoryLimit()
	fetcher := fetch.New(fetch.Options{
		Policy:  fetch.Policy{AllowPrivate: n.Settings.AllowPrivate, Ports: n.Settings.FetchPorts},
		Resolve: n.Settings.Network.Resolve, Dial: n.Settings.Network.Dial,
	})
	n.Pool = jobs.New(jobs.Options{
		NewAnalyser: n.Networks.NewAnalyser,
		Base:        n.Networks.Base(),
		Fetch: func(ctx context.Context, app catalog.AppID, url string) ([]byte, error) {
			return n.fetch(ctx, fetcher, app, url)
		},
		Blob:          n.picture,
		HasPicture:    n.hasPicture(),
		Pinner:        n.Hosted,
		Videos:        &videos{n.decoder, n, fetcher},
		Now:           system.Now,
		ThreadTime:    system.ThreadTime,
		LowerPriority: n.lowerPriority,
		Log:           n.Log,
		Workers:       n.Settings.Workers,
		Fetches:       int(max(4, min(memory/16/fetch.MaxRawBytes, 64))),
		Downloads:     int(max(4, min(memory/8/fetch.MaxRawBytes, 64))),
	})
	n.Handler = &jobs.Handler{Service: n.Engine, Pool: n.Pool, Timeout: callTime, Audit: n.auditCall}
}

// lowerPriority lowers the priority of the calling thread. If that fails, the thread works with its normal priority.
func (n *Node) lowerPriority() {
	if err := system.LowerPriority(); err != nil {
		n.Log.Debug("cannot lower the priority of a thread", "error", err)
	}
}

// hasPicture returns a function that reports whether the folder stores a picture. It returns nil if the folder stores all pictures.
func (n *Node) hasPicture() func(h blob.Hash) bool {
	if _, ok := n.Engine.(PictureFetcher); !ok {
		return nil
	}
	return func(h blob.Hash) bool {
		has, err := n.Folder.Blobs.Has(context.Background(), h)
		return has || err != nil // reading the picture will return the error
	}
}

// picture returns the picture with the hash h. It first downloads a missing one.
func (n *Node) picture(ctx context.Context, h blob.Hash) ([]byte, error) {
	if b, ok := n.Engine.(PictureFetcher); ok {
		if err := b.FetchPicture(ctx, h); err != nil {
			return nil, err
		}
	}
	return n.Folder.Blobs.Get(ctx, h)
}

// startLoops starts the control socket and, with work, the background loops.
func (n *Node) startLoops(ctx context.Context, work bool) error {
	listener, err := system.ListenUnix(ctx, n.Folder.Dir, control.Socket)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	n.control = control.NewServer(n, operations.New, n.forwardControl())
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	n.Begin = func(f func(context.Context)) { n.loops.Go(func() { f(loops) }) }
	n.loops.Go(func() {
		if err := n.control.Serve(listener); err != nil {
			n.Log.Error("control socket failed", "error", err)
		}
	})
	if n.works = work; !work {
		return nil
	}
	if n.Settings.Cluster != nil {
		n.Begin(n.follow)
	}
	background := jobs.Background{Engine: &stepping{n.Engine, n}, Pool: n.Pool, Now: system.Now, Pause: system.Pause, Log: n.Log}
	n.Begin(background.Run)
	n.Begin(n.maintainAccounts)
	if renewing, ok := n.Engine.(jobs.Reembedder); ok {
		renewals := jobs.ReembedLogger{Engine: renewing, Now: system.Now, Pause: system.Pause, Log: n.Log}
		n.Begin(renewals.Run)
	}
	return nil
}

// stepping is an engine whose steps hold the node's lock quiet, because a step may delete pictures.
type stepping struct {
	Engine
	node *Node
}

// Step implements [jobs.Engine].
func (s *stepping) Step(ctx context.Context, now time.Time) (bool, error) {
	s.node.quiet.Lock()
	defer s.node.quiet.Unlock()
	defer s.node.stepped.Store(true)
	return s.Engine.Step(ctx, now)
}

// Close stops the loops and closes everything in reverse order of opening.
func (n *Node) Close() error {
	var errs []error
	if n.control != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := n.control.Close(ctx); !errors.Is(err, context.DeadlineExceeded) { // otherwise calls were cut off
			errs = append(errs, err)
		}
		cancel()
	}
	n.cancel()
	n.loops.Wait()
	if n.Files != nil {
		errs = append(errs, n.Files.Close())
	}
	if n.Engine != nil {
		errs = append(errs, n.Engine.Close())
	}
	if n.Accounts != nil {
		errs = append(errs, n.Accounts.Close())
	}
	if n.Folder != nil {
		errs = append(errs, n.Folder.Close())
	}
	return errors.Join(errs...)
}

// Call implements [control.Folder].
func (n *Node) Call(ctx context.Context, app string, r *api.Request) (api.Response, error) {
	if _, err := n.Register.App(app); err != nil {
		return api.Response{}, err
	}
	r.App = app
	return n.Handler.Serve(ctx, r), nil
}

// Picture implements [control.Folder].
func (n *Node) Picture(ctx context.Context, name string) ([]byte, string, error) {
	p, err := n.Engine.HostedPicture(name)
	if err != nil {
		return nil, "", err
	}
	b, err := n.picture(ctx, p.Hash)
	return b, p.ContentType, err
}

func checkpoint(_ context.Context, n *Node, t control.Target) (control.Nothing, error) {
	return control.Nothing{}, n.Folder.Store.Checkpoint(t.To)
}

func showStatus(_ context.Context, n *Node, _ control.Nothing) (control.Status, error) {
	apps, err := n.Register.Apps()
	calls, pictures, analysed := n.Pool.Load()
	s := control.Status{
		Version: Version, Since: n.begun, Apps: len(apps), Calls: calls, Pictures: pictures, Analysed: analysed,
		DiskBytes: int64(n.Folder.Store.Metrics().DiskBytes),
	}
	if n.works {
		s.URL = n.Settings.PublicURL
	}
	if full := n.Folder.Ready(); full != nil {
		s.Refuses = full.Error()
	}
	free, e := system.FreeBytes(n.Folder.Dir)
	s.FreeBytes = free
	if engine, ok := n.Engine.(renewing); ok {
		missing, failed := engine.MissingPictures()
		s.Missing, err = missing, errors.Join(err, failed)
	}
	if f := n.Settings.Options.Status; f != nil {
		f(&s)
	}
	return s, errors.Join(err, e)
}

// Backup implements [control.Folder].
func (n *Node) Backup(ctx context.Context, to string, progress func(done, total control.BackupStats)) (control.BackupStats, error) {
	n.quiet.Lock()
	defer n.quiet.Unlock()
	return n.Folder.Backup(ctx, to, progress)
}
