package server

import (
	"context"
	"io"
	"log/slog"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/jobs"
)

// Options are a program's additions to the server. A value serves one run. A function that is nil adds nothing; Open is never nil. The
// server calls them in the order Flags, Parse, Watch, Accounts, Open, Mounts, FirstApp, Started.
type Options struct {
	// Flags defines flags of serve.
	Flags func(f *pflag.FlagSet)

	// Parse reads them, wherever they were set. The settings of the server are complete. Errors are mistakes of usage.
	Parse func(k *koanf.Koanf, s *Settings) error

	// Watch runs serve in another process, which it watches and starts again. It reports whether it has done so, and how that ended.
	Watch func(ctx context.Context, env *Env, s *Settings, log *slog.Logger) (done bool, err error)

	// Accounts sets options of accounts.
	Accounts func(o *account.Options) error

	// Open opens an engine over the folder, the tokens and the accounts of a node, which are open. The caller closes the engine.
	Open func(ctx context.Context, n *Node, u Use) (OpenedEngine, error)

	// Mounts returns the handlers besides /v2, its description and its tokens.
	Mounts func(s *Server) ([]httpd.Mount, error)

	// FirstApp reports whether a folder without an API key gets its first application.
	FirstApp func() bool

	// Started is called once the server answers. It writes what the person who started it needs to know.
	Started func(s *Server, w io.Writer) error

	// Status adds to the status of the process.
	Status func(s *control.Status)

	// Unhealthy returns why the process must be started again; nil: it works.
	Unhealthy func() error
}

// PictureFetcher is an engine whose inputs may have pictures that are not in the folder yet.
type PictureFetcher interface {
	// FetchPicture makes sure that a picture is stored. The error wraps api.ErrFetch if it cannot be had now.
	FetchPicture(ctx context.Context, h blob.Hash) error
}

// OpenedEngine is an open engine.
type OpenedEngine struct {
	Engine   Engine
	Register *register.Register // applications, keys, clients and edges of the engine
	Networks Networks
}

// Networks are the networks of an engine. It is safe for concurrent use.
type Networks interface {
	// Base is the newest network's hash, and Serves reports whether one serves applications.
	Base() [32]byte
	Serves(base [32]byte) bool

	// NewAnalyser makes an analyser of a network for one thread.
	NewAnalyser(base [32]byte, l raster.Limits) jobs.Analyser
}

// Engine answers /v2 over a data folder. It is safe for concurrent use.
type Engine interface {
	jobs.Service
	jobs.Engine

	// HostedPicture returns the picture behind a hosted name; the error is blob.ErrNotFound.
	HostedPicture(name string) (blob.Picture, error)

	// Close ends the engine once calls under way have ended.
	Close() error
}
