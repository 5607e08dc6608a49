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

// Options are a program's additions to the server. A value serves one run. A nil function adds nothing. Open is required. The server calls
// the functions in the order Flags, Parse, Supervise, Cluster, Accounts, Open, Mounts, FirstApp, Started.
type Options struct {
	// Flags defines the program's flags of the command serve.
	Flags func(f *pflag.FlagSet)

	// Parse reads the program's settings from flags, environment and file. s is complete. An error is a usage error.
	Parse func(k *koanf.Koanf, s *Settings) error

	// Supervise runs serve in a child process, supervises it and restarts it. done reports whether Supervise did so, and err is its result.
	Supervise func(ctx context.Context, env *Env, s *Settings, log *slog.Logger) (done bool, err error)

	// Cluster connects the node with its cluster, and sets Cluster of s. It runs before each opening of the node, so it can copy the store of
	// another node first. nil: there are no clusters.
	Cluster func(ctx context.Context, env *Env, s *Settings, log *slog.Logger) error

	// Accounts sets options of accounts.
	Accounts func(o *account.Options) error

	// Open opens an engine over the folder, the tokens and the accounts of node n, which are already open. The caller closes the engine.
	Open func(ctx context.Context, n *Node, u Use) (OpenedEngine, error)

	// Mounts returns the program's handlers. The server itself adds /v2, its description and its tokens.
	Mounts func(s *Server) ([]httpd.Mount, error)

	// FirstApp reports whether the server creates a first application in a folder without an API key.
	FirstApp func() bool

	// Started is called once the server answers. It writes information for the person who started the server to w.
	Started func(s *Server, w io.Writer) error

	// Status adds the program's fields to the status of the process.
	Status func(s *control.Status)

	// Unhealthy returns the reason why the process must restart, or nil.
	Unhealthy func() error
}

// PictureFetcher is an engine that may lack pictures of its inputs and downloads them on request.
type PictureFetcher interface {
	// FetchPicture makes sure that a picture is stored. The error wraps api.ErrFetch if the picture is unavailable now.
	FetchPicture(ctx context.Context, h blob.Hash) error
}

// OpenedEngine is an open engine.
type OpenedEngine struct {
	Engine   Engine
	Register *register.Register // applications, keys, clients and edges of the engine
	Networks Networks
}

// Networks gives access to the networks of an engine. It is safe for concurrent use.
type Networks interface {
	// Base returns the hash of the newest network's base model. Serves reports whether the network base serves applications.
	Base() [32]byte
	Serves(base [32]byte) bool

	// NewAnalyser returns an analyser of the network base, for use by one thread.
	NewAnalyser(base [32]byte, l raster.Limits) jobs.Analyser
}

// Engine answers /v2 over a data folder. It is safe for concurrent use.
type Engine interface {
	jobs.Service
	jobs.Engine

	// HostedPicture returns the picture with a hosted name. The error wraps blob.ErrNotFound if the name is unknown.
	HostedPicture(name string) (blob.Picture, error)

	// Close waits for the calls in progress and closes the engine.
	Close() error
}
