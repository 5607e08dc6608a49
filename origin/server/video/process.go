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
	"github.com/sightline-dev/sightline/origin/server/system"
)

// A session decodes one film, by one run of ffprobe and one of ffmpeg. The module's child serves both; a system's FFmpeg
// is a process each.
type session struct {
	d     *Decoder
	ctx   context.Context
	film  *os.File
	input string        // the film's name for FFmpeg
	spent time.Duration // processor time of processes that have ended
	left  time.Duration // that the host may still wait for output
	child *child        // the module's; nil: a system's FFmpeg, or not started
}

// start begins a session. The caller closes it.
func (d *Decoder) start(ctx context.Context, film *os.File) (*session, error) {
	s := &session{d: d, ctx: ctx, film: film, left: d.o.Time, input: "/" + moduleInput}
	if d.o.System != "" {
		s.input = system.OpenDescriptor(filmDescriptor)
		return s, nil
	}
	var err error
	s.child, err = s.startChild()
	return s, err
}

// close ends what is left of the session's processes, and waits for their end.
func (s *session) close() {
	if s.child != nil {
		s.child.close()
	}
}

// run runs ffprobe or ffmpeg. use reads what it writes; if use returns an error, the run is ended. The error is an
// *exitError for a run that fails by itself.
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

// process is a process that decodes. Its Read reads its standard output.
type process struct {
	s     *session
	cmd   *exec.Cmd
	out   *os.File
	log   tail
	ended chan struct{} // closed when the process has ended
	err   error         // of that
	stop  func() bool   // ends the watch of the session's context

	mu    sync.Mutex
	cause error // why it was killed
}

// launch starts a process, with the film as its descriptor 3. It has nothing else of ours, and its priority is lower.
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
	cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = []string{}, system.Attributes(), time.Second
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
		err = system.LimitProcess(cmd.Process, max(s.d.o.Time-s.spent, time.Second), memory)
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

// Read reads output, and kills a process that keeps the host waiting for too long.
func (p *process) Read(b []byte) (n int, err error) {
	begun := system.Now()
	timer := system.AfterFunc(p.s.left, func() { p.kill(errTime) })
	n, err = p.out.Read(b)
	timer.Stop()
	p.s.left = max(0, p.s.left-system.Now().Sub(begun))
	return n, err
}

// kill ends the process, for a cause if there is one.
func (p *process) kill(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
	}
	_ = p.cmd.Process.Kill() // or it has ended
}

// end waits for the process. used is the error of the output's reader. The error is the cause of a kill, what the reader
// says of the output, or how the process failed.
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

// outOfTime reports whether the system killed the process for the processor time that the session used. The system measures
// it less precisely than it reports it.
func (p *process) outOfTime() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGXCPU)
	return killed && p.s.spent >= p.s.d.o.Time*3/4
}

// tail is a writer that holds the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	all []byte
}

// maxTail is the number of bytes that a tail holds.
const maxTail = 4 << 10

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, b[max(0, len(b)-maxTail):]...)
	t.all = append(t.all[:0], t.all[max(0, len(t.all)-maxTail):]...)
	return len(b), nil
}

// String returns the held bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.all))
}
