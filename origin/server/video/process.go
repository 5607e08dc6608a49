package video

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// session decodes one film with one run of ffprobe and one of ffmpeg, or one stream of a picture with one run of a module. With a module, one
// child process executes all runs. With a system's FFmpeg, each run is a process.
type session struct {
	d      *Decoder
	ctx    context.Context
	module raster.Module
	film   *os.File      // or the stream
	input  string        // name of the film in FFmpeg's arguments
	spent  time.Duration // processor time of the processes that have ended
	limit  time.Duration // limit of the processor time
	left   time.Duration // remaining time for which the host waits for output
	child  *child        // child that runs the module; nil: a system's FFmpeg, or not started
}

// start begins a session with a limit of its time. The caller must close it.
func (d *Decoder) start(ctx context.Context, m raster.Module, film *os.File, limit time.Duration) (*session, error) {
	s := &session{d: d, ctx: ctx, module: m, film: film, limit: limit, left: limit, input: "/" + moduleInput}
	if d.o.System != "" && m == raster.FFmpeg {
		s.input = system.OpenDescriptor(filmDescriptor)
		return s, nil
	}
	var err error
	s.child, err = s.startChild()
	return s, err
}

// close kills the module's child if it still runs, and waits for its end.
func (s *session) close() {
	if s.child != nil {
		s.child.close()
	}
}

// run runs ffprobe or ffmpeg, and use reads the output. If use returns an error, run ends the program. If the program itself fails, the
// error is an *exitError.
func (s *session) run(program string, args []string, use func(out io.Reader) error) error {
	if s.child != nil {
		return s.child.run(append([]string{program}, args...), use)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(s.d.o.System), program), args...)
	if program == "ffmpeg" {
		cmd.Path = s.d.o.System
	}
	p, err := s.launch(cmd, film.MaxMemory)
	if err != nil {
		return err
	}
	err = use(p)
	if err != nil {
		p.kill(nil)
	}
	return p.end(err)
}

// process is a decoding process. Read reads its standard output.
type process struct {
	s     *session
	cmd   *exec.Cmd
	out   *os.File
	log   tail
	ended chan struct{} // closed when the process has ended
	err   error         // result of cmd.Wait; valid once ended is closed
	stop  func() bool   // stops watching the session's context

	mu    sync.Mutex
	cause error // reason for which kill was called first; nil: none
}

// launch starts a process with a lower priority. It inherits its standard streams and the film as descriptor 3, and no environment.
// memory is the limit of its private memory in bytes; 0: unlimited.
func (s *session) launch(cmd *exec.Cmd, memory uint64) (*process, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStart, err)
	}
	p := &process{s: s, cmd: cmd, out: out, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, &p.log, []*os.File{s.film}
	cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = []string{}, system.ChildAttributes(), time.Second
	started := make(chan error)
	go func() {
		// The process inherits the priority of this thread, and dies with it. The thread is never unlocked, so it ends here.
		runtime.LockOSThread()
		err := system.LowerPriority()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	err = <-started
	if err == nil {
		err = system.LimitProcess(cmd.Process, max(s.limit-s.spent, time.Second), memory)
		if err != nil {
			_ = cmd.Process.Kill()
			<-p.ended
		}
	}
	switch err = errors.Join(err, in.Close()); {
	case err == nil:
		p.stop = context.AfterFunc(s.ctx, func() { p.kill(s.ctx.Err()) })
		return p, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, exec.ErrNotFound):
		err = film.UnsupportedError("the decoder %s is missing", cmd.Path)
	default:
		err = fmt.Errorf("%w: %w", errStart, err)
	}
	_ = out.Close() // nothing was read
	return nil, err
}

// Read reads output. It kills the process once the session has no waiting time left.
func (p *process) Read(b []byte) (n int, err error) {
	begun := system.Now()
	timer := system.AfterFunc(p.s.left, func() { p.kill(errTime) })
	n, err = p.out.Read(b)
	timer.Stop()
	p.s.left = max(0, p.s.left-system.Now().Sub(begun))
	return n, err
}

// kill kills the process and records the first cause that is not nil.
func (p *process) kill(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
	}
	_ = p.cmd.Process.Kill() // fails if the process has ended
}

// end waits for the end of the process. used is the error of the output's reader. end returns the cause of a kill, the reader's error, or
// the failure of the process.
func (p *process) end(used error) error {
	timer := system.AfterFunc(p.s.left, func() { p.kill(errTime) })
	<-p.ended
	timer.Stop()
	p.stop()
	closed := p.out.Close()
	spent := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	p.s.spent += spent
	p.mu.Lock()
	defer p.mu.Unlock()
	var known *film.Fault
	switch {
	case p.cause != nil:
		return p.cause
	case errors.Is(used, errEnough), errors.As(used, &known):
		return used
	case p.outOfTime():
		return errTime
	case p.err != nil && !errors.Is(p.err, exec.ErrWaitDelay):
		text := p.log.String()
		return &exitError{strings.Contains(text, "Cannot allocate memory"), fmt.Sprintf("%v: %s", p.err, text)}
	}
	if used == nil {
		used = closed
	}
	return used
}

// outOfTime reports whether the system killed the process because the session used its processor time. The limit is less precise than the
// reported times, so 3/4 of it count as reached.
func (p *process) outOfTime() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGXCPU)
	return killed && p.s.spent >= p.s.limit*3/4
}

// tail is a writer that stores the last bytes written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	all []byte
}

// maxTail is the maximum number of bytes that a tail stores.
const maxTail = 4 << 10

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, b[max(0, len(b)-maxTail):]...)
	t.all = append(t.all[:0], t.all[max(0, len(t.all)-maxTail):]...)
	return len(b), nil
}

// String returns the stored bytes without surrounding white space.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.all))
}
