package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// NewServe returns the command serve. more is the program's part of the help.
func NewServe(env *Env, more string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the /v2 API",
		Long: `Serves the /v2 API over HTTPS, or over plain HTTP on this machine only.

For HTTPS, give certificate files (reloaded when they change) or domain names to get
certificates for by ACME. '{prog} certificate' creates files for development. Behind a TLS
proxy use --behind-proxy, which serves plain HTTP on any address. The proxy must set or extend
X-Forwarded-For, pass Host on and use HTTP/1.1 (in nginx: 'proxy_http_version 1.1'). The server
takes the last entry of X-Forwarded-For as the client.

Every flag can also be set by an environment variable, such as SIGHTLINE_PUBLIC_URL for
--public-url, or in the --config file. Flags override variables; variables override the file.

The server also answers /healthz and /readyz. It answers /metrics and /version to clients on this
machine and to those with the token of --metrics-token. SIGTERM and SIGINT stop it: it accepts no
new connections, answers the requests it has accepted, and exits within ten seconds.

` + more + `

Only one process can use a data folder. The first start creates an application and prints its
API key, which is not shown again. '{prog} app' and '{prog} key' create more, also
while the server runs. If the disk has less than --min-free-space left, writes are refused with HTTP
status 507; reads still work. If a disk write fails, the server exits with code 1 without
acknowledging the write. It is safe to restart it.`,
		Example: `  {prog} serve --data ./data
  {prog} serve --listen 127.0.0.1:9000 --public-app-id main --log debug
  {prog} serve --listen :443 --acme-domain sightline.example.org --acme-email me@example.org
  {prog} serve --listen :8443 --tls-cert certificate.pem --tls-key key.pem
  SIGHTLINE_DATA=/var/lib/{prog} {prog} serve --config /etc/sightline.toml`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd, env) },
	}
	Flags(cmd.Flags(), &env.Options)
	return cmd
}

// runServe serves until the process is asked to stop or the server fails.
func runServe(cmd *cobra.Command, env *Env) error {
	system.IgnoreHangups()
	ctx := cmd.Context()
	inherited, err := system.InheritedListener()
	if err != nil {
		return err
	}
	if inherited != nil { // the supervising process listens and has the address
		if err := cmd.Flags().Set("listen", inherited.Addr().String()); err != nil {
			return err
		}
	}
	s, err := LoadSettings(cmd.Flags(), env.Environ, &env.Options)
	if err != nil {
		return err
	}
	s.Listener, s.Folder = inherited, env.Data
	log := newLog(env.Stderr, s)
	if watch := env.Options.Supervise; watch != nil {
		if done, err := watch(ctx, env, &s, log); done {
			return err
		}
	}
	if s.Workers == 0 {
		s.Workers = system.Cores()
	}
	system.ReserveThreads(2) // for refusals and reads while every core analyses
	for {
		err := serve(ctx, cmd, env, &s, log)
		if !errors.Is(err, ErrReopen) || ctx.Err() != nil {
			if c, ok := s.Cluster.(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
			return err
		}
		log.Info("opening the node again", "reason", err)
	}
}

// serve opens the server and serves. ErrReopen: the caller must call serve again.
func serve(ctx context.Context, cmd *cobra.Command, env *Env, s *Settings, log *slog.Logger) error {
	if join := env.Options.Cluster; join != nil {
		if err := join(ctx, env, s, log); err != nil {
			return err
		}
	}
	srv, err := Start(ctx, *s, log)
	if err != nil {
		return err
	}
	if s.Listener == nil {
		s.Listen = srv.Listener.Addr().String() // if the node is opened again
	}
	welcome := func(ctx context.Context) error {
		if first := env.Options.FirstApp; first != nil && first() {
			if err := srv.CreateFirstApp(ctx, env.Stdout, cmd.Root().Name()); err != nil {
				return err
			}
		}
		if started := env.Options.Started; started != nil {
			return started(srv, env.Stdout)
		}
		return nil
	}
	if s.Cluster != nil {
		srv.welcome.Store(&welcome)
		if srv.leads.Load() { // otherwise Lead does it
			srv.Begin(srv.startLeading)
		}
	} else if err := welcome(ctx); err != nil {
		if ctx.Err() != nil {
			err = nil // the process was asked to stop during the start
		}
		return errors.Join(err, srv.Stop())
	}
	srv.LogAudit()
	log.Info("serving", "address", srv.Listener.Addr().String(), "data", s.Data, "public-url", srv.Settings.PublicURL, "version", Version)
	return srv.await(ctx)
}

// await reports the state of the server to the supervisor until ctx ends or the server fails.
func (srv *Server) await(ctx context.Context) error {
	stuck := make(chan error, 1)
	srv.Begin(func(ctx context.Context) { srv.report(ctx, stuck) })
	srv.Begin(srv.prepareVideos)
	select {
	case <-ctx.Done():
		srv.Log.Info("stopping")
	case err := <-srv.failed:
		// Unacknowledged writes are lost, and acknowledged ones are on the disk: the process ends without closing anything, and the next
		// start reads the disk.
		return fmt.Errorf("writing to the data folder failed: %w", err)
	case err := <-srv.left:
		srv.Log.Info("stopping", "reason", err)
		return errors.Join(err, srv.Stop())
	case err := <-stuck:
		return err // also without closing anything: closing could hang
	case err := <-srv.served:
		srv.Log.Error("serving failed", "error", err)
		srv.served <- err
	}
	srv.notify("STOPPING=1")
	if err := srv.Stop(); err != nil {
		return err
	}
	srv.Log.Info("stopped")
	return <-srv.served
}

// reportEvery is the time between two checks whether the program is stuck. A supervisor may ask for a shorter time.
const reportEvery = time.Second

// report notifies the supervisor that the server is ready, and then regularly that it works. If the program is stuck, report sends the
// reason to stuck and stops notifying.
func (srv *Server) report(ctx context.Context, stuck chan<- error) {
	srv.notify("READY=1")
	within, err := system.WatchdogInterval()
	if err != nil {
		srv.Log.Error("cannot read the watchdog settings of the supervisor", "error", err)
	}
	every := reportEvery
	if within > 0 {
		every = min(every, within/4)
	}
	system.Every(ctx, every, func(context.Context) {
		if f := srv.Settings.Options.Unhealthy; f != nil {
			if err := f(); err != nil {
				select {
				case stuck <- err:
				default: // already reported
				}
				return
			}
		}
		if within > 0 {
			srv.notify("WATCHDOG=1")
		}
	})
}

// notify sends the server's state to the supervisor.
func (srv *Server) notify(state string) {
	if err := system.Notify(state); err != nil {
		srv.Log.Error("cannot notify the supervisor", "state", state, "error", err)
	}
}

// newLog returns the log: coloured text on a terminal, JSON elsewhere, unless the settings choose a format.
func newLog(w io.Writer, s Settings) *slog.Logger {
	format := s.LogFormat
	if format == "auto" {
		format = "json"
		if IsTerminal(w) {
			format = "tint"
		}
	}
	switch format {
	case "tint":
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: s.LogLevel, ReplaceAttr: cleanAttr, TimeFormat: "15:04:05.000"}))
	case "text":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.LogLevel, ReplaceAttr: cleanAttr}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: s.LogLevel, ReplaceAttr: cleanAttr}))
}
