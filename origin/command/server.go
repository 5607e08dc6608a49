package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/fetch"
	"github.com/sightline-dev/sightline/origin/httpd"
	"github.com/sightline-dev/sightline/origin/jobs"
	"github.com/sightline-dev/sightline/origin/system"
)

// server is a running origin: everything that serve opens, to be stopped once.
type server struct {
	settings settings
	log      *slog.Logger
	unlock   func() error
	folder   *system.Folder
	blobs    *blob.Folder
	hosted   *blob.Hosted
	engine   *core.Engine
	pool     *jobs.Pool
	http     *httpd.Server
	listener net.Listener

	loops  sync.WaitGroup
	cancel context.CancelFunc // of the loops
	served chan error

	stopOnce sync.Once
	stopErr  error
}

// Times of a stop: together below the ten seconds that supervisors wait.
const drainTime = 8 * time.Second

// startServer opens everything and serves. What it has opened is closed when it fails.
func startServer(ctx context.Context, s settings, log *slog.Logger) (_ *server, err error) {
	if s.network.dial == nil {
		s.network = network{system.Resolve, system.Dial}
	}
	srv := &server{settings: s, log: log, served: make(chan error, 1), cancel: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, srv.close())
		}
	}()
	if srv.unlock, err = system.Lock(s.data); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if srv.folder, err = system.OpenFolder(s.data); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lazy := srv.folder.Lazy()
	if srv.blobs, err = blob.OpenFolder(lazy, blob.Options{}); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err = checkAfterPowerLoss(ctx, srv.folder, srv.blobs, system.Boot(), log); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	srv.hosted, err = blob.OpenHosted(blob.HostedOptions{FS: lazy, Blobs: srv.blobs, Random: system.Random})
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		return nil, err
	}
	if srv.listener, err = system.Listen(ctx, s.listen); err != nil {
		return nil, err
	}
	if srv.settings.publicURL == "" {
		srv.settings.publicURL = "http://" + srv.listener.Addr().String()
	}
	srv.engine, err = core.Open(core.Options{
		Models: set, Hosted: srv.hosted, Clock: system.Now, Rand: system.Random,
		PublicURL: srv.settings.publicURL, PublicAppID: s.publicAppID, DefaultLanguage: s.language, KeepPredicted: s.keepPredicted,
	})
	if err != nil {
		return nil, err
	}
	if err := srv.wire(set); err != nil {
		return nil, err
	}
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	srv.cancel = cancel
	srv.loops.Go(func() { srv.sweep(loops) })
	srv.loops.Go(func() { srv.served <- srv.http.Serve(srv.listener) })
	return srv, nil
}

// wire makes the pool and the HTTP server.
func (srv *server) wire(set *predict.Set) error {
	memory := system.MemoryLimit()
	workers := srv.settings.workers
	if workers == 0 {
		workers = system.Cores()
	}
	fetcher := fetch.New(fetch.Options{
		AllowPrivate: srv.settings.allowPrivate, Ports: srv.settings.fetchPorts,
		Resolve: srv.settings.network.resolve, Dial: srv.settings.network.dial,
	})
	srv.pool = jobs.New(jobs.Options{
		NewAnalyser: func(l raster.Limits) jobs.Analyser { return set.NewAnalyser(l) },
		Fetch:       func(ctx context.Context, url string) ([]byte, error) { return srv.fetch(ctx, fetcher, url) },
		Blob:        srv.blobs.Get,
		Now:         system.Now,
		Spent:       system.ThreadTime,
		Log:         srv.log,
		Workers:     workers,
		Fetches:     int(max(4, min(memory/8/fetch.DefaultMaxBytes, 64))),
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(srv.gauges()...)
	var err error
	srv.http, err = httpd.New(httpd.Options{
		Mounts:     []httpd.Mount{{Prefix: "", Handler: &jobs.Handler{Service: srv.engine, Pool: srv.pool}}},
		Hosted:     hosted{srv.engine, srv.blobs},
		MaxBody:    srv.settings.maxBody,
		BodyBudget: max(2*srv.settings.maxBody, min(memory/4, 2<<30)),
		MaxConns:   srv.settings.maxConns,
		Full:       srv.pool.Full,
		Version:    version,
		Metrics:    registry,
		Gather:     registry,
		Now:        system.Now,
		Random:     system.Random,
		Pause:      system.Pause,
		Log:        srv.log,
	})
	return err
}

func (srv *server) gauges() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Name: name, Help: help}, value)
	}
	return []prometheus.Collector{
		gauge("calls", "Calls under way.", func() float64 { n, _, _ := srv.pool.Load(); return float64(n) }),
		gauge("pictures", "Pictures fetched, waiting or analysed now.", func() float64 { _, n, _ := srv.pool.Load(); return float64(n) }),
		gauge("hosted_names", "Hosted pictures.", func() float64 { return float64(srv.hosted.Len()) }),
		gauge("hosted_damaged", "Records of hosted pictures that could not be read at the start.", func() float64 { return float64(srv.hosted.Damaged()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "sightline", Name: "pictures_total", Help: "Pictures analysed."},
			func() float64 { _, _, n := srv.pool.Load(); return float64(n) }),
	}
}

// fetch gets a picture by URL. One that we host ourselves is read from the blobs: the server
// would refuse to connect to itself.
func (srv *server) fetch(ctx context.Context, fetcher *fetch.Fetcher, url string) ([]byte, error) {
	name, ours := strings.CutPrefix(url, strings.TrimRight(srv.settings.publicURL, "/")+api.HostedPath)
	if !ours {
		return fetcher.Fetch(ctx, url)
	}
	p, err := srv.engine.Hosted(name)
	if err != nil {
		return nil, err
	}
	return srv.blobs.Get(ctx, p.Hash)
}

// sweep removes what has expired, once a minute, and first of all the blobs that a crash
// may have left without a name.
func (srv *server) sweep(ctx context.Context) {
	if n, err := srv.hosted.Collect(ctx); err != nil {
		srv.log.Error("collect", "error", err)
	} else if n > 0 {
		srv.log.Info("collect", "blobs", n)
	}
	system.Every(ctx, time.Minute, func(ctx context.Context) {
		n, err := srv.engine.Step(ctx, system.Now())
		if err != nil && ctx.Err() == nil {
			srv.log.Error("sweep", "error", err)
		}
		if n > 0 {
			srv.log.Info("sweep", "expired", n)
		}
	})
}

// stop drains and closes, once. It returns an error when accepted requests had to be cut off.
func (srv *server) stop() error {
	srv.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		srv.stopErr = errors.Join(srv.http.Drain(ctx), srv.close())
	})
	return srv.stopErr
}

// close closes what is open, the last first.
func (srv *server) close() error {
	var errs []error
	srv.cancel()
	if srv.listener != nil {
		if err := srv.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	srv.loops.Wait()
	if srv.engine != nil {
		errs = append(errs, srv.engine.Close())
	}
	if srv.folder != nil {
		errs = append(errs, srv.folder.Close())
	}
	if srv.unlock != nil {
		errs = append(errs, srv.unlock())
	}
	return errors.Join(errs...)
}

// hosted gives the HTTP server the engine's hosted pictures.
type hosted struct {
	engine *core.Engine
	blobs  *blob.Folder
}

// Open implements httpd.Hosted.
func (h hosted) Open(ctx context.Context, name string) (httpd.Picture, error) {
	p, err := h.engine.Hosted(name)
	if err != nil {
		return httpd.Picture{}, err
	}
	size, err := h.blobs.Len(ctx, p.Hash)
	if err != nil {
		return httpd.Picture{}, err
	}
	body, err := h.blobs.Open(ctx, p.Hash)
	if err != nil {
		return httpd.Picture{}, err
	}
	return httpd.Picture{ContentType: p.ContentType, Size: size, Expires: p.Expires, Body: body}, nil
}
