package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/token"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// node is an open data folder with all that works on it but the HTTP server: the engine, its
// pool and its background, and the control socket. A server is a node and HTTP; a command
// that is given a folder which nobody has open is a node for as long as it runs.
type node struct {
	settings Settings
	Log      *slog.Logger
	decoder  *video.Decoder
	folder   *data.Folder
	hosted   *blob.Hosted
	tokens   *token.Tokens
	accounts *account.Registry
	engine   Engine
	register *register.Register // the engine's: applications, keys, clients and edges
	pool     *jobs.Pool
	handler  *jobs.Handler
	control  *control.Server
	failed   chan error // the store's failed write, which ends the process
	works    bool       // in the background
	fresh    bool       // the folder was made by this start
	begun    time.Time

	quiet  sync.Mutex // held by a step of the engine, and by a backup, under which nothing may be deleted
	loops  sync.WaitGroup
	Begin  func(f func(context.Context)) // starts a loop
	cancel context.CancelFunc            // ends the loops
}

var _ control.Folder = (*node)(nil)

// openNode opens a data folder and starts its control socket and, with work, its background.
// What it has opened is closed when it fails.
func openNode(ctx context.Context, s Settings, log *slog.Logger, u use) (_ *node, err error) {
	if s.network.dial == nil {
		s.network = network{system.Resolve, system.Dial}
	}
	if s.workers == 0 {
		s.workers = system.Cores()
	}
	if s.bundles == nil {
		s.bundles = models.FS
	}
	n := &node{settings: s, Log: log, begun: system.Now(), failed: make(chan error, 1), cancel: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	options := s.folder
	options.MinFree, options.Log, options.Fatal = s.minFree, log, func(err error) { n.failed <- err }
	if n.folder, err = data.Open(s.Data, options); err != nil {
		return nil, err
	}
	n.hosted, err = blob.OpenHosted(blob.HostedOptions{
		FS: n.folder.Files, Blobs: n.folder.Blobs, Random: system.Random, Keep: n.keeps, Lazy: true,
	})
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	n.tokens, err = token.Open(token.Options{
		Issuer: strings.TrimRight(s.PublicURL, "/"), Life: s.tokenLife, FS: n.folder.Files, Now: system.Now, Random: system.Random, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err = n.openAccounts(); err != nil {
		return nil, err
	}
	if n.engine, n.register, err = s.options.Open(ctx, n.lent(u.work)); err != nil {
		return nil, err
	}
	if err := n.keepBundles(); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err = n.folder.CheckAfterPowerLoss(ctx, system.Boot(), n.keeps, log); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if u.work {
		apps, err := n.register.Apps()
		if err == nil {
			err = tellClocks(n.folder.Store, apps, system.Now(), log)
		}
		if err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	}
	if n.decoder, err = newDecoder(&n.settings, log); err != nil {
		return nil, err
	}
	n.startPool()
	return n, n.startLoops(ctx, u.work)
}

// lent is what the engine gets.
func (n *node) lent(serving bool) *Lent {
	s := &n.settings
	return &Lent{
		Folder: n.folder, Hosted: n.hosted, Tokens: n.tokens, Accounts: n.accounts, Bundles: s.bundles,
		PublicURL: s.PublicURL, PublicAppID: s.publicAppID, KeepPredicted: s.keepPredicted, MaxAnswer: s.maxAnswer,
		Rate: s.rate, OperatorRate: s.operator, Copies: s.copies, Audit: n.accounts.Audit, Serving: serving, Log: n.Log,
	}
}

// keepBundles keeps our network's bundles in the folder, for the day on which a program with
// another opens it, and drops those that serve no application any more.
func (n *node) keepBundles() error {
	base := n.engine.Base()
	if err := n.folder.KeepBundles(base, n.settings.bundles); err != nil {
		return err
	}
	return n.folder.DropBundles(n.engine.Serves)
}

// keeps reports whether a record needs a blob.
func (n *node) keeps(h blob.Hash) bool { return n.register == nil || n.register.Keeps(h) }

func (n *node) startPool() {
	memory := system.MemoryLimit()
	fetcher := fetch.New(fetch.Options{
		AllowPrivate: n.settings.allowPrivate, Ports: n.settings.fetchPorts,
		Resolve: n.settings.network.resolve, Dial: n.settings.network.dial,
	})
	n.pool = jobs.New(jobs.Options{
		NewAnalyser: n.engine.NewAnalyser,
		Base:        n.engine.Base(),
		Fetch:       func(ctx context.Context, url string) ([]byte, error) { return n.fetch(ctx, fetcher, url) },
		Blob:        n.picture,
		Here:        n.here(),
		Keeper:      n.hosted,
		Videos:      &videos{n.decoder, n, fetcher},
		Now:         system.Now,
		Spent:       system.ThreadTime,
		Log:         n.Log,
		Workers:     n.settings.workers,
		Fetches:     int(max(4, min(memory/16/fetch.DefaultMaxBytes, 64))),
		Downloads:   int(max(4, min(memory/8/fetch.DefaultMaxBytes, 64))),
	})
	n.handler = &jobs.Handler{Service: n.engine, Pool: n.pool, Timeout: callTime, Audit: n.auditCall}
}

// here returns a function that reports whether a picture is in the folder; nil: all are.
func (n *node) here() func(h blob.Hash) bool {
	if _, ok := n.engine.(Bringer); !ok {
		return nil
	}
	return func(h blob.Hash) bool {
		has, err := n.folder.Blobs.Has(context.Background(), h)
		return has || err != nil // its picture will have the error
	}
}

// picture gets a picture by its hash.
func (n *node) picture(ctx context.Context, h blob.Hash) ([]byte, error) {
	if b, ok := n.engine.(Bringer); ok {
		if err := b.Bring(ctx, h); err != nil {
			return nil, err
		}
	}
	return n.folder.Blobs.Get(ctx, h)
}

// fetch gets a picture by URL. One that we host ourselves is read from the blobs: the server
// would refuse to connect to itself.
func (n *node) fetch(ctx context.Context, fetcher *fetch.Fetcher, url string) ([]byte, error) {
	if name, ours := n.hostedName(url); ours {
		return n.hostedBytes(ctx, name)
	}
	return fetcher.Fetch(ctx, url)
}

// hostedName returns the name in the URL of a picture or video that we host.
func (n *node) hostedName(url string) (name string, ours bool) {
	return strings.CutPrefix(url, strings.TrimRight(n.settings.PublicURL, "/")+api.HostedPath)
}

// hostedBytes returns what we host under a name.
func (n *node) hostedBytes(ctx context.Context, name string) ([]byte, error) {
	p, err := n.engine.Hosted(name)
	if err != nil {
		return nil, err
	}
	return n.folder.Blobs.Get(ctx, p.Hash)
}

// startLoops starts what works beside the calls.
func (n *node) startLoops(ctx context.Context, work bool) error {
	listener, err := system.ListenUnix(ctx, n.folder.Dir, control.Socket)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	n.control = control.NewServer(n, operations.New)
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
	background := jobs.Background{Engine: &stepping{n.engine, &n.quiet}, Pool: n.pool, Now: system.Now, Pause: system.Pause, Log: n.Log}
	n.Begin(background.Run)
	n.Begin(n.tendAccounts)
	if renewing, ok := n.engine.(jobs.Renewing); ok {
		renewals := jobs.Renewals{Engine: renewing, Now: system.Now, Pause: system.Pause, Log: n.Log}
		n.Begin(renewals.Run)
	}
	return nil
}

// stepping is an engine whose steps hold a lock: they may delete.
type stepping struct {
	Engine
	quiet *sync.Mutex
}

// Step implements [jobs.Engine].
func (s *stepping) Step(ctx context.Context, now time.Time) (bool, error) {
	s.quiet.Lock()
	defer s.quiet.Unlock()
	return s.Engine.Step(ctx, now)
}

// close stops the loops and closes what is open, the last first.
func (n *node) close() error {
	var errs []error
	if n.control != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		errs = append(errs, ignoreDeadline(n.control.Close(ctx)))
		cancel()
	}
	n.cancel()
	n.loops.Wait()
	if n.engine != nil {
		errs = append(errs, n.engine.Close())
	}
	if n.accounts != nil {
		errs = append(errs, n.accounts.Close())
	}
	if n.folder != nil {
		errs = append(errs, n.folder.Close())
	}
	return errors.Join(errs...)
}

// ignoreDeadline forgives calls that were cut off.
func ignoreDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// Call implements [control.Folder].
func (n *node) Call(ctx context.Context, app string, r *api.Request) (api.Response, error) {
	if err := n.known(app); err != nil {
		return api.Response{}, err
	}
	r.App = app
	return n.handler.Serve(ctx, r), nil
}

// Picture implements [control.Folder].
func (n *node) Picture(ctx context.Context, name string) ([]byte, string, error) {
	p, err := n.engine.Hosted(name)
	if err != nil {
		return nil, "", err
	}
	b, err := n.folder.Blobs.Get(ctx, p.Hash)
	return b, p.ContentType, err
}

func checkpoint(_ context.Context, n *node, t control.Target) (control.Nothing, error) {
	return control.Nothing{}, n.folder.Store.Checkpoint(t.To)
}

func showStatus(_ context.Context, n *node, _ control.Nothing) (control.Status, error) {
	apps, err := n.register.Apps()
	calls, pictures, analysed := n.pool.Load()
	s := control.Status{
		Version: version, Since: n.begun, Apps: len(apps), Calls: calls, Pictures: pictures, Analysed: analysed,
		DiskBytes: int64(n.folder.Store.Metrics().DiskBytes),
	}
	if n.works {
		s.URL = n.settings.PublicURL
	}
	if full := n.folder.Ready(); full != nil {
		s.Refuses = full.Error()
	}
	free, e := system.Free(n.folder.Dir)
	s.FreeBytes = free
	if f := n.settings.options.Status; f != nil {
		f(&s)
	}
	return s, errors.Join(err, e)
}

// Backup implements [control.Folder].
func (n *node) Backup(ctx context.Context, to string, progress func(done, total control.Copied)) (control.Copied, error) {
	n.quiet.Lock()
	defer n.quiet.Unlock()
	return n.folder.Backup(ctx, to, progress)
}
