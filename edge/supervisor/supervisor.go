// Package supervisor runs a server as a separate process and starts it again when it hangs or dies.
//
//	supervisor ── the listening socket, file 3 ──▶ server
//	   ▲   ◀── READY=1 · WATCHDOG=1 … ──────────── │
//	   │                                           └ is silent for Timeout, or ends by itself:
//	   └ SIGTERM is passed on                        it is killed, and the next one has the same socket
//
// It uses the protocols of systemd (sd_notify(3), sd_listen_fds(3)). If systemd watches the server, there is no supervisor. Connections
// that were not accepted yet wait in the socket. Accepted connections are lost with the process; answers that were sent are not.
//
// A goroutine of the server cannot do this. Compiled code of a module that runs without deadlines cannot be interrupted, and the first
// garbage collection that begins meanwhile stops every goroutine until that code returns.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Options are the settings of [Run]. All are required.
type Options struct {
	Program        string   // path of the executable
	Args           []string // without the program's name
	Environ        []string
	Stdout, Stderr io.Writer
	Socket         Socket        // socket that the server listens on
	Timeout        time.Duration // silence after which the supervisor kills the server
	StartTimeout   time.Duration // the same before the server is ready
	Log            *slog.Logger
}

// Socket is a listener that the supervisor can pass to another process. *net.TCPListener implements it.
type Socket interface {
	net.Listener
	File() (*os.File, error)
}

var _ Socket = (*net.TCPListener)(nil)

// Pauses before a restart. They double as long as no server lives longer than longLife.
const (
	longLife   = time.Minute
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
)

// stopTime is the maximum time in which a server stops; it should take ten seconds.
const stopTime = 15 * time.Second

// errNoHeartbeat is the reason why a silent server was killed.
var errNoHeartbeat = errors.New("no heartbeat")

// Run keeps a server running until ctx ends, and then stops it. It also returns when a server ends without an error, or when
// the first server ends before it was ready.
func Run(ctx context.Context, o Options) error {
	runtime.LockOSThread() // the server dies with the thread that started it
	defer runtime.UnlockOSThread()
	pause := time.Duration(0)
	for n := 1; ; n++ {
		begun := system.Now()
		l := process{o: o}
		err := l.run(ctx)
		switch {
		case err == nil, ctx.Err() != nil, n == 1 && !l.ready:
			return err
		case system.Now().Sub(begun) > longLife:
			pause = 0
		}
		_ = system.Notify("STATUS=restarting") // the service manager receives READY=1 again, too
		o.Log.Error("restarting the server", "error", err, "lived", system.Now().Sub(begun).Round(time.Millisecond).String(), "pause", pause.String())
		system.Pause(ctx, pause)
		pause = min(max(2*pause, firstPause), lastPause)
	}
}

// process is one server, from its start to its end.
type process struct {
	o     Options
	ready bool
}

// run starts a server and waits for its end. It returns nil if the server ended without an error.
func (l *process) run(ctx context.Context) (err error) {
	notices, err := system.ListenNotices()
	if err != nil {
		return err
	}
	cmd, err := l.start(notices)
	if err != nil {
		return errors.Join(err, notices.Close())
	}
	texts, done := make(chan string), make(chan struct{})
	var hearing sync.WaitGroup
	hearing.Go(func() {
		for {
			text, err := notices.Next()
			if err != nil {
				return
			}
			select {
			case texts <- text:
			case <-done:
			}
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = l.watch(ctx, cmd.Process, texts, ended)
	close(done)
	err = errors.Join(err, notices.Close())
	hearing.Wait()
	return err
}

// start starts the server.
func (l *process) start(notices *system.Notices) (*exec.Cmd, error) {
	socket, err := l.o.Socket.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	cmd := exec.Command(l.o.Program, l.o.Args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = l.o.Stdout, l.o.Stderr, []*os.File{socket}
	cmd.Env = system.Supervise(l.o.Environ, notices, l.o.Timeout)
	cmd.SysProcAttr = system.ChildAttributes()
	return cmd, cmd.Start()
}

// ticks is the number of checks after which a silent server is killed. Checks are counted, not seconds: if the machine sleeps, or gives
// the supervisor no time, the server has none either.
const ticks = 8

// watch asks the server to stop when ctx ends, and kills it when it is silent or does not stop.
func (l *process) watch(ctx context.Context, p *os.Process, texts <-chan string, ended <-chan error) error {
	looks := make(chan struct{}, 1)
	looking, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	go system.Every(looking, l.o.Timeout/ticks, func(context.Context) {
		select {
		case looks <- struct{}{}:
		default:
		}
	})
	stop, stopping := ctx.Done(), time.Time{}
	silent, why := 0, error(nil)
	for {
		select {
		case text := <-texts:
			silent = 0
			l.onNotice(text)
		case <-looks:
			silent++
			switch {
			case why != nil:
			case !stopping.IsZero() && system.Now().Sub(stopping) > stopTime:
				why = fmt.Errorf("the server did not stop within %v", stopTime)
			case stopping.IsZero() && silent > l.startTimeout():
				why = fmt.Errorf("%w for %v", errNoHeartbeat, l.o.Timeout)
			}
			if why != nil {
				_ = p.Kill()
			}
		case <-stop:
			stop, stopping = nil, system.Now()
			_ = p.Signal(syscall.SIGTERM)
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("the server ended: %w", err)
			}
			if why != nil {
				err = why
			}
			return err
		}
	}
}

// onNotice handles a notice of the server. A notice also goes to the service manager above the supervisor.
func (l *process) onNotice(text string) {
	l.ready = l.ready || text == "READY=1"
	if text != "WATCHDOG=1" {
		_ = system.Notify(text) // fails if no service manager listens
	}
}

// startTimeout returns the number of checks for which the server may be silent.
func (l *process) startTimeout() int {
	if !l.ready {
		return int(ticks * l.o.StartTimeout / l.o.Timeout)
	}
	return ticks
}
