package command

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/jobs"
	"github.com/sightline-dev/sightline/origin/server/token"
)

// Program is what one program does in its own way, beside what all of them do: sightline's is
// [NewOrigin]. A value serves one run.
//
//	               Flags ─▶ Parse ─▶ Open ─▶ Mounts ─▶ Tell
//	sightline        accounts, mails     core, natively          /v2, /console, pages       the first account's link
//	sightline-edge   the module          core, in its module     /v2, what browsers run     the module
//
// Everything else is the same: the data folder, its applications and keys, TLS, the HTTP server
// and its drain, the control socket, copies and checks.
type Program interface {
	// Describe says in the help what the program and its serve command are.
	Describe(root, serve *cobra.Command)

	// Commands are those that no other program has.
	Commands(env *Env) []*cobra.Command

	// Flags defines serve's own flags.
	Flags(f *pflag.FlagSet)

	// Parse reads them, wherever they were set. listen is the server's address, and behindProxy
	// whether a proxy stands before it. Errors are mistakes of usage.
	Parse(k *koanf.Koanf, listen string, behindProxy bool) error

	// Keep runs serve in a process that it watches over, if the program wants that: kept is
	// true where it has done so, and err is how it ended.
	Keep(ctx context.Context, env *Env, s Served) (kept bool, err error)

	// Accounts adds the settings of people.
	Accounts(o *account.Options) error

	// Open opens the engine, which the caller closes, and its register.
	Open(ctx context.Context, l *Lent) (Engine, *register.Register, error)

	// Mounts are what the server answers besides /v2, what describes that and its tokens.
	Mounts(s *Server) ([]httpd.Mount, error)

	// Run does what the program does while it serves, until ctx ends.
	Run(ctx context.Context, s *Server)

	// Status adds to what the operator is told of the process.
	Status(s *control.Status)

	// Stuck says what keeps the program from working, for which it has to be started anew; nil: it
	// works.
	Stuck() error

	// Alone reports whether the folder's applications are its own, so that a new one gets its first.
	Alone() bool

	// Tell says to whoever started the server what they need to know.
	Tell(s *Server, w io.Writer) error
}

// Served is where a server listens.
type Served struct {
	Listen   string       // address and port
	Listener net.Listener // there, inherited; nil: nobody listens yet
	Data     string       // data folder
	Log      *slog.Logger
}

// Lent is what an engine is opened over: a data folder and the settings that concern engines.
type Lent struct {
	Folder   *data.Folder
	Hosted   *blob.Hosted
	Tokens   *token.Tokens
	Accounts *account.Registry
	Bundles  fs.FS // of the newest network; those of older ones are in the folder

	PublicURL, PublicAppID string
	KeepPredicted          time.Duration
	MaxAnswer              int64 // bytes of an answer's body
	Rate, OperatorRate     auth.Rate
	Copies                 func(app string) (api.Standing, bool)                         // see core.Options; nil: nobody keeps copies here
	Audit                  func(by register.Who, a register.Action, target string) error // see register.Options
	Serving                bool                                                          // false: for one command on the folder
	Log                    *slog.Logger
}

// Bringer is an engine whose inputs may have pictures that are not in the folder yet.
type Bringer interface {
	// Bring sees to it that a picture is there. The error wraps api.ErrFetch where it cannot be had now.
	Bring(ctx context.Context, h blob.Hash) error
}

// Engine answers /v2 over a data folder. It is safe for concurrent use.
type Engine interface {
	jobs.Service
	jobs.Engine

	// Hosted returns the picture behind a hosted name; the error is blob.ErrNotFound.
	Hosted(name string) (blob.Picture, error)

	// Base is the newest network's hash, and Serves reports whether one serves applications.
	Base() [32]byte
	Serves(base [32]byte) bool

	// NewAnalyser makes an analyser of a network for one thread.
	NewAnalyser(base [32]byte, l raster.Limits) jobs.Analyser

	// Close ends the engine once calls under way have ended.
	Close() error
}

// called puts a program's name in the place of sightline's in the help of a command and of all below.
func called(name string, cmd *cobra.Command) {
	r := strings.NewReplacer("'sightline ", "'"+name+" ", "  sightline ", "  "+name+" ", " | sightline ", " | "+name+" ", "=/var/lib/sightline sightline ", "=/var/lib/"+name+" "+name+" ")
	cmd.Long, cmd.Example = r.Replace(cmd.Long), r.Replace(cmd.Example)
	for _, below := range cmd.Commands() {
		called(name, below)
	}
}
