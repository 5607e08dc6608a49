package command

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/origin/system"
)

func newServe(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the /v2 interface",
		Long: `Serve the /v2 interface over HTTPS, or over HTTP on this machine alone.

HTTPS takes certificate files, which are read again when they change, or names for which a
certificate is got by ACME. 'sightline certificate' makes files for development. Behind a
proxy that has TLS, --behind-proxy serves HTTP on any address; the proxy must overwrite or
extend X-Forwarded-For, whose last entry says who asks, pass Host on, and speak HTTP/1.1 (as
nginx does with 'proxy_http_version 1.1').

Every flag can also be set by a variable, such as SIGHTLINE_PUBLIC_URL for --public-url,
or in the file that --config names. A flag is stronger than a variable, and a variable
stronger than the file.

Beside /v2 the server answers /healthz, /readyz, /metrics and /version. SIGTERM and SIGINT
stop it: it takes no new connections, answers what it has accepted, and ends within ten
seconds.

Beside keys there are accounts, which people make on the pages. The first start prints a link
with which the first account is made, the operator's. Others sign up themselves, unless
--sign-up is closed; until the address of one is verified it has 100 calls. Mails with codes
and links go out through --smtp, and stand in the log without one. --demo signs whoever opens
the pages on this machine in.

A data folder belongs to one process at a time. The first start makes an application in it
and prints its key, once; 'sightline app' and 'sightline key' make more, while the server
runs or not. When the disk has less than --min-free left, writes are refused with HTTP
status 507 and reading goes on. When the disk fails to make a write durable the server ends
with exit code 1 and acknowledges nothing from then on: starting it again is safe.`,
		Example: `  sightline serve --data ./data
  sightline serve --listen 127.0.0.1:9000 --public-app-id main --log debug
  sightline serve --listen :443 --acme-domain sightline.example.org --acme-email me@example.org
  sightline serve --listen :8443 --tls-cert certificate.pem --tls-key key.pem
  SIGHTLINE_DATA=/var/lib/sightline sightline serve --config /etc/sightline.toml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings(cmd.Flags(), env.Environ)
			if err != nil {
				return err
			}
			if s.workers == 0 {
				s.workers = system.Cores()
			}
			system.SpareThreads(2) // for refusals and reads, while every core analyses
			log := newLog(env.Stderr, s)
			s.folder = env.Data
			srv, err := startServer(cmd.Context(), s, log)
			if err != nil {
				return err
			}
			if err := srv.welcome(cmd.Context(), env.Stdout); err != nil {
				return errors.Join(err, srv.stop())
			}
			if err := srv.tellSetup(env.Stdout); err != nil {
				return errors.Join(err, srv.stop())
			}
			srv.tellAudit()
			log.Info("serving", "address", srv.listener.Addr().String(), "data", s.data, "public-url", srv.settings.publicURL, "version", version)
			select {
			case <-cmd.Context().Done():
				log.Info("stopping")
			case err := <-srv.failed:
				// What was not acknowledged never will be, and what was is on the disk: the
				// process ends as it stands, and the next start reads what was kept.
				return fmt.Errorf("the data folder cannot be written any more: %w", err)
			case err := <-srv.served:
				log.Error("serving ended", "error", err)
				srv.served <- err
			}
			if err := srv.stop(); err != nil {
				return err
			}
			log.Info("stopped")
			return <-srv.served
		},
	}
	serveFlags(cmd.Flags())
	return cmd
}

// newLog makes the log: for eyes on a terminal, for machines elsewhere.
func newLog(w io.Writer, s settings) *slog.Logger {
	format := s.logFormat
	if format == "auto" {
		format = "json"
		if isTerminal(w) {
			format = "tint"
		}
	}
	switch format {
	case "tint":
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: s.logLevel, TimeFormat: "15:04:05.000"}))
	case "text":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.logLevel}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: s.logLevel}))
}
