package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Server is a running server: a node behind HTTP. Call Stop to end it.
type Server struct {
	*Node
	http     *httpd.Server
	secure   *tls.Config // nil: plain HTTP
	Listener net.Listener
	served   chan error
	closers  []io.Closer // resources of mounts, closed before the node

	stopOnce sync.Once
	stopErr  error
}

// drainTime is the time to drain. With the time to close, a stop stays below the ten seconds that supervisors wait.
const drainTime = 8 * time.Second

// Start opens everything and serves. If it fails, it closes everything.
func Start(ctx context.Context, s Settings, log *slog.Logger) (_ *Server, err error) {
	srv := &Server{served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, srv.close())
		}
	}()
	if srv.Listener = s.Listener; srv.Listener == nil {
		if srv.Listener, err = system.Listen(ctx, s.Listen); err != nil {
			return nil, err
		}
	}
	var name string
	if srv.secure, name, err = s.TLS.open(s.Data, log); err != nil {
		return nil, err
	}
	if s.PublicURL == "" {
		s.PublicURL = publicURL(srv.Listener.Addr(), srv.secure != nil, name)
	}
	if srv.Node, err = OpenNode(ctx, s, log, Use{Background: true}); err != nil {
		return nil, err
	}
	if err := srv.wire(); err != nil {
		return nil, err
	}
	srv.loops.Go(func() { srv.served <- srv.http.Serve(srv.Listener) })
	if c := s.Cluster; c != nil {
		srv.loops.Go(func() { _ = srv.http.ServeNodes(c.Calls()) }) // ends with the node
	}
	return srv, nil
}

// wire creates the HTTP server.
func (srv *Server) wire() error {
	memory := system.MemoryLimit()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(srv.gauges()...)
	if engine, ok := srv.Engine.(renewing); ok {
		registry.MustRegister(renewals(engine)...)
	}
	if c, ok := srv.Settings.Cluster.(interface{ Collectors() []prometheus.Collector }); ok {
		registry.MustRegister(c.Collectors()...)
	}
	token, err := openMetricsToken(srv.Settings.MetricsToken, system.Now, srv.Log)
	if err != nil {
		return err
	}
	mounts, err := srv.mounts()
	if err != nil {
		return err
	}
	var forward func(context.Context, *api.Request) (httpd.Forwarder, error)
	var leads func(context.Context, *api.Request) error
	if c := srv.Settings.Cluster; c != nil {
		forward, leads = c.Forward, c.Leads
	}
	srv.http, err = httpd.New(httpd.Options{
		Mounts:        mounts,
		Hosted:        srv.Files.Open,
		HostedRates:   srv.hostedRates(),
		MaxBody:       srv.Settings.MaxBody,
		BodyBudget:    max(2*srv.Settings.MaxBody, min(memory/4, 2<<30)),
		AnswerBudget:  8 * srv.Settings.MaxAnswer, // one answer may take half: the records and the text of two answers
		MaxConns:      srv.Settings.MaxConns,
		MaxConnsPerIP: srv.connsPerIP(),
		TLS:           srv.secure,
		HSTS:          strict(srv.Settings.PublicURL),
		BehindProxy:   srv.Settings.BehindProxy,
		Full:          srv.Pool.Full,
		Ready:         srv.ready,
		Forward:       forward,
		Leads:         leads,
		Activity:      srv.activity,
		Version:       Version,
		Module:        srv.module(),
		Metrics:       registry,
		OpenMetrics:   srv.Settings.OpenMetrics,
		MetricsToken:  token.current,
		Now:           system.Now,
		Random:        system.Random,
		Pause:         system.Pause,
		Log:           srv.Log,
	})
	return err
}

// openingTime is the maximum time after its start for which a server is not ready because it opens indexes. Until then, searches by
// similarity compare all inputs one by one.
const openingTime = 4 * time.Second

var errOpening = errors.New("the server opens its indexes")

// ready returns the reason why requests should go elsewhere, or nil.
func (srv *Server) ready() error {
	if !srv.stepped.Load() && system.Now().Sub(srv.begun) < openingTime {
		return errOpening
	}
	if err := srv.Folder.Ready(); err != nil || srv.Settings.Cluster == nil {
		return err
	}
	return srv.Settings.Cluster.Ready()
}

// module returns the SHA-256 of the WebAssembly module that answers, or "" if the core runs natively.
func (srv *Server) module() string {
	var s control.Status
	if f := srv.Settings.Options.Status; f != nil {
		f(&s)
	}
	if s.Module == nil {
		return ""
	}
	return s.Module.SHA256
}

// connsPerIP returns the maximum number of connections of one client: an eighth of MaxConns, at least 16. On loopback and behind a proxy it
// returns 0 (unlimited), because the proxy is one client for many users.
func (srv *Server) connsPerIP() int {
	if srv.Settings.BehindProxy || srv.listensOnLoopback() {
		return 0
	}
	return max(16, srv.Settings.MaxConns/8)
}

// listensOnLoopback reports whether only this machine can connect.
func (srv *Server) listensOnLoopback() bool {
	host, _, err := net.SplitHostPort(srv.Settings.Listen)
	return err == nil && system.IsLoopback(host)
}

// hostedRates returns the rates below /hosted/. On loopback without a proxy there are none, because every client is on this machine.
func (srv *Server) hostedRates() httpd.HostedRates {
	if !srv.Settings.BehindProxy && srv.listensOnLoopback() {
		return httpd.HostedRates{}
	}
	return srv.Settings.Hosted
}

func (srv *Server) gauges() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sightline", Name: name, Help: help}, value)
	}
	count := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "sightline", Name: name, Help: help}, value)
	}
	store := srv.Folder.Store
	return []prometheus.Collector{
		gauge("calls", "Calls in progress, without those that wait for downloads.", func() float64 { n, _, _ := srv.Pool.Load(); return float64(n) }),
		gauge("queued_calls", "Calls that wait for a place.", func() float64 { return float64(srv.Pool.Queued()) }),
		gauge("waiting", "Pictures of calls that wait for downloads.", func() float64 { return float64(srv.Pool.Waiting()) }),
		gauge("pictures", "Pictures that wait for their analysis or are being analysed.", func() float64 { _, n, _ := srv.Pool.Load(); return float64(n) }),
		gauge("hosted_names", "Hosted pictures.", func() float64 { return float64(srv.Hosted.Len()) }),
		gauge("hosted_damaged", "Records of hosted pictures that could not be read at the start.", func() float64 { return float64(srv.Hosted.CountDamaged()) }),
		gauge("store_disk_bytes", "Bytes of the store's files.", func() float64 { return float64(store.Metrics().DiskBytes) }),
		gauge("store_log_bytes", "Bytes of the store's logs, which are replayed at the start.", func() float64 { return float64(store.Metrics().LogBytes) }),
		gauge("store_read_amplification", "Number of tables that a read may have to search.", func() float64 { return float64(store.Metrics().ReadAmp) }),
		gauge("store_cache_bytes", "Bytes of the store's cached blocks.", func() float64 { return float64(store.Metrics().CacheBytes) }),
		count("store_cache_hits_total", "Blocks of the store that reads found in the cache.", func() float64 { return float64(store.Metrics().CacheHits) }),
		count("store_cache_misses_total", "Blocks of the store that reads did not find in the cache.", func() float64 { return float64(store.Metrics().CacheMisses) }),
		gauge("disk_free_bytes", "Free bytes of the data folder's disk.", func() float64 { n, _ := system.FreeBytes(srv.Folder.Dir); return float64(n) }),
		count("pictures_total", "Pictures analysed.", func() float64 { _, _, n := srv.Pool.Load(); return float64(n) }),
	}
}

// CloseWith registers a resource of a mount. The server closes it before the engine and the data folder.
func (srv *Server) CloseWith(c io.Closer) { srv.closers = append(srv.closers, c) }

// Stop drains and closes the server, once. It returns an error if accepted requests were cut off.
func (srv *Server) Stop() error {
	srv.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if c := srv.Settings.Cluster; c != nil {
			c.Leave(ctx)
		}
		srv.stopErr = errors.Join(srv.http.Drain(ctx), srv.close())
	})
	return srv.stopErr
}

// close closes everything that is open.
func (srv *Server) close() error {
	var errs []error
	if srv.Listener != nil {
		if err := srv.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, c := range srv.closers {
		errs = append(errs, c.Close())
	}
	if srv.Node != nil {
		errs = append(errs, srv.Node.Close())
	}
	return errors.Join(errs...)
}
