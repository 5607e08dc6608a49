// Package node is the part of sightline-edge that differs from an origin: it answers /v2 from the module, under wazero, over a data
// folder like an origin's.
//
//	               server (settings, TLS, HTTP, drain, control socket; shared with the origin)
//	                  │
//	request ──▶ httpd ──▶ engine ──▶ host.Fleet ──▶ one writer an application: the module
//	                        │           └─────────▶ analysers, natively
//	                        └──▶ register.Register, natively: applications, keys
//
// The module is in the program. The user's cache folder, or else the data folder, has its compiled code:
//
//	DIR/compiled/       the compiled module, sealed with the key
//	DIR/compiled.key    the key, which only this user has
//
// There are no accounts here: they belong to the origin, and an edge works without it. Its pages ask for a key. In a folder that came
// from an origin, keys that accounts made stay valid.
package node

//go:generate go run ../../core/log/field/gen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/edge/supervisor"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Name is the name of the program.
const Name = "sightline-edge"

// Node is the program. It serves one run.
type Node struct {
	callTime time.Duration // time limit of one module call
	memory   int64         // memory limit of one instance, in bytes
	origin   string        // URL; empty: the origin in the data folder, or none
	token    string        // enrolment token; empty: the edge is already enrolled
	pictures wire.Blobs    // when the edge downloads pictures of the origin
	demo     bool          // a person who opens the pages on this machine needs no key
	screen   io.Writer     // standard error of serve; nil for other commands

	engine atomic.Pointer[engine] // nil if no engine is open
}

// New returns the program sightline-edge.
func New() cli.Program {
	n := newNode()
	return cli.Program{
		Name:  Name,
		Short: "Serve the /v2 API on an edge",
		Long: `sightline-edge serves the /v2 API from the same WebAssembly module that runs in browsers. It works
standalone, with its own applications and keys, or as a replica of an origin (--origin).`,
		Serve: `With --origin the edge replicates the applications that the origin assigns to it, and creates no
application or API key. The first start also needs --token. To get a token, run the command
"edge create NAME" at the origin.

The module is built into the program. It runs in one instance per application, each limited to
--instance-memory. A module call longer than --call-timeout restarts the process on the same socket.`,
		Commands: func(env *server.Env) []*cobra.Command { return []*cobra.Command{n.newPrecompile(env)} },
		Server: server.Options{
			Flags: n.flags, Parse: n.parse, Supervise: n.watch, Accounts: closeSignUp, Open: n.openEngine, Mounts: n.mounts,
			FirstApp: n.standalone, Started: n.startReplicas, Status: n.status, Unhealthy: n.unhealthy,
		},
	}
}

func newNode() *Node { return &Node{callTime: defaultCallTime, memory: defaultMemory} }

// Default limits of a call and of an instance.
const (
	defaultCallTime = 30 * time.Second
	defaultMemory   = 1 << 30
)

// flags defines the flags of serve.
func (n *Node) flags(f *pflag.FlagSet) {
	f.Duration("call-timeout", defaultCallTime, "time limit of one module call")
	f.String("instance-memory", "1GB", "memory limit of one instance, a `size` such as 1GB; at most 4GB")
	f.String("origin", "", "`URL` of the origin to replicate from, such as https://sightline.example.org")
	f.String("token", "", "enrolment `token` that the origin printed when the edge was created there; needed once")
	f.Bool("demo", false, "demo mode, loopback only: open the pages without a key")
	f.String("pictures", "lazy", "when to download pictures from the origin: `lazy|full`; lazy means on demand, full means all in advance")
}

// parse reads the flags of serve.
func (n *Node) parse(k *koanf.Koanf, s *server.Settings) (err error) {
	if n.demo, err = server.ParseDemo(k, s); err != nil {
		return err
	}
	if n.callTime, err = time.ParseDuration(k.String("call-timeout")); err != nil || n.callTime < time.Second {
		return server.Usagef("call-timeout: %q is not a duration of at least 1s, such as 30s", k.String("call-timeout"))
	}
	if n.memory, err = server.ParseSize(k.String("instance-memory")); err != nil || n.memory < 64<<20 || n.memory > 4<<30 {
		return server.Usagef("instance-memory: %q is not a size from 64MB to 4GB", k.String("instance-memory"))
	}
	return n.parseJoin(k)
}

// parseJoin reads the flags of an edge that joins an origin.
func (n *Node) parseJoin(k *koanf.Koanf) (err error) {
	var known bool
	if n.pictures, known = map[string]wire.Blobs{"lazy": wire.BlobsLazy, "full": wire.BlobsFull}[k.String("pictures")]; !known {
		return server.Usagef("pictures: %q is not lazy or full", k.String("pictures"))
	}
	n.token = k.String("token")
	if k.String("origin") == "" {
		if n.token != "" {
			return server.Usagef("token: --origin is required: the server that issued the token")
		}
		return nil
	}
	if n.origin, err = synclink.ParseAddress(k.String("origin")); err != nil {
		return server.Usagef("origin: %w", err)
	}
	return nil
}

// closeSignUp disables sign-up. A folder that came from an origin may have accounts.
func closeSignUp(o *account.Options) error {
	o.Closed = true
	return nil
}

// startTime is the maximum time until a server is ready: it reads the store's log and may compile the module.
const startTime = 10 * time.Minute

// watch runs serve under a supervisor, unless systemd watches it.
func (n *Node) watch(ctx context.Context, env *server.Env, s *server.Settings, log *slog.Logger) (bool, error) {
	n.screen = env.Stderr
	if watched, err := system.WatchdogInterval(); err != nil || watched > 0 {
		return err != nil, err
	}
	l := s.Listener
	if l == nil {
		var err error
		if l, err = listen(ctx, s, log); err != nil {
			return true, err
		}
	}
	defer l.Close()
	socket, ok := l.(supervisor.Socket)
	if !ok {
		return true, fmt.Errorf("%s: the socket cannot be passed to another process", l.Addr())
	}
	program, err := system.Executable()
	if err != nil {
		return true, err
	}
	err = supervisor.Run(ctx, supervisor.Options{
		Program: program, Args: env.Args, Environ: env.Environ(), Stdout: env.Stdout, Stderr: env.Stderr,
		Socket: socket, Timeout: n.callTime + graceTime, StartTimeout: startTime, Log: log,
	})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return true, server.ExitError(exit.ExitCode()) // of the supervised process
	}
	return true, err
}

// A server whose supervisor is killed is killed with it. Until the server has ended, it holds the data folder and the address.
const (
	endTime = 10 * time.Second // maximum wait for its end
	endLook = 50 * time.Millisecond
)

// listen waits until the folder's previous server has ended, and opens a listener.
func listen(ctx context.Context, s *server.Settings, log *slog.Logger) (net.Listener, error) {
	for look := range endTime / endLook {
		release, err := system.Lock(s.Data)
		if err == nil {
			if err := release(); err != nil {
				return nil, err
			}
		}
		if !errors.Is(err, system.ErrLocked) || ctx.Err() != nil {
			break
		}
		if look == 0 {
			log.Warn("waiting for another server to release the data folder", "data", s.Data, "limit", endTime.String())
		}
		system.Pause(ctx, endLook)
	}
	return system.Listen(ctx, s.Listen)
}

// graceTime is the time after a call's limit for which the supervisor waits: the process reports the hang itself if it can.
const graceTime = 10 * time.Second

// replicas returns the applications of the origin, or nil if the edge is standalone or no engine is open.
func (n *Node) replicas() *replicaSet {
	if e := n.engine.Load(); e != nil {
		return e.replicas
	}
	return nil
}

// openEngine opens the engine of a data folder.
func (n *Node) openEngine(ctx context.Context, on *server.Node, u server.Use) (server.OpenedEngine, error) {
	e, err := n.open(ctx, on, u)
	if err != nil {
		return server.OpenedEngine{}, err
	}
	n.engine.Store(e)
	return server.OpenedEngine{Engine: e, Register: e.Register, Networks: e}, nil
}

// startReplicas starts the synchronization of the replicas with the origin.
func (n *Node) startReplicas(s *server.Server, _ io.Writer) error {
	if c := n.replicas(); c != nil {
		s.Begin(c.run)
	}
	return nil
}

// standalone reports whether the edge has no origin, but its own applications.
func (n *Node) standalone() bool { return n.replicas() == nil }

// unhealthy returns an error if a module call has exceeded its time limit.
func (n *Node) unhealthy() error {
	if e := n.engine.Load(); e != nil && e.oldest() > n.callTime {
		return fmt.Errorf("a module call exceeded %v; the process must restart. No acknowledged write is lost", n.callTime)
	}
	return nil
}

// status adds the module and the replicas to the status of the process.
func (n *Node) status(s *control.Status) {
	s.Program = Name
	if e := n.engine.Load(); e != nil {
		s.Module = e.status()
	}
	if c := n.replicas(); c != nil {
		s.Replicas = c.status()
	}
}
