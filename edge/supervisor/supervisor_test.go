package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// asServer makes the test binary run as a server. Its value lists the behaviour of each successive process.
const asServer = "SIGHTLINE_TEST_LIVES"

func TestMain(m *testing.M) {
	if lives := os.Getenv(asServer); lives != "" {
		if err := serve(os.Args[1], strings.Split(lives, ",")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/signal.loop"))
}

// serve is one process of the server. The number of earlier processes, which the folder stores, selects its behaviour. It answers each
// connection with its process ID.
func serve(dir string, lives []string) error {
	n, err := nth(filepath.Join(dir, "lives"))
	if err != nil {
		return err
	}
	kind := lives[min(n, len(lives)-1)]
	if kind == "stillborn" {
		return errors.New("stillborn")
	}
	l, err := system.InheritedListener()
	if err != nil || l == nil {
		return fmt.Errorf("no socket: %w", err)
	}
	within, err := system.WatchdogInterval()
	if err != nil || within <= 0 {
		return fmt.Errorf("nobody watches: %v, %w", within, err)
	}
	ctx, stop := system.CancelOnSignal(context.Background())
	defer stop()
	if err := system.Notify("READY=1"); err != nil {
		return err
	}
	go answer(l)
	if kind == "dies" {
		return errors.New("dies")
	}
	for ; ; system.Pause(ctx, within/8) {
		select {
		case <-ctx.Done():
			return os.WriteFile(filepath.Join(dir, "ended"), nil, 0o600)
		default:
		}
		if kind != "silent" {
			if err := system.Notify("WATCHDOG=1"); err != nil {
				return err
			}
		}
	}
}

func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintf(c, "%d\n", os.Getpid())
		_ = c.Close()
	}
}

// nth returns the number of earlier processes from a file, and adds one to it.
func nth(file string) (n int, err error) {
	if b, err := os.ReadFile(file); err == nil {
		n, _ = strconv.Atoi(string(b))
	}
	return n, os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600)
}

// runningSupervisor is a running supervisor.
type runningSupervisor struct {
	dir, address string
	log          *lines
	stop         context.CancelFunc
	ended        chan error
}

// lines is a log. A test can wait for its lines.
type lines struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

// wait waits until the log contains a text n times.
func (l *lines) wait(t *testing.T, holding string, n int) {
	t.Helper()
	for {
		l.mu.Lock()
		text, changed := l.text.String(), l.changed
		l.mu.Unlock()
		if strings.Count(text, holding) >= n {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("no %q in\n%s", holding, text)
		}
	}
}

func keep(t *testing.T, lives string, within time.Duration) *runningSupervisor {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	k := &runningSupervisor{dir: t.TempDir(), address: l.Addr().String(), log: &lines{changed: make(chan struct{})}, stop: stop, ended: make(chan error, 1)}
	go func() {
		k.ended <- Run(ctx, Options{
			Program: os.Args[0], Args: []string{k.dir}, Environ: append(os.Environ(), asServer+"="+lives),
			Stdout: k.log, Stderr: k.log, Socket: l.(Socket), Timeout: within, StartTimeout: 20 * time.Second,
			Log: slog.New(slog.NewTextHandler(k.log, nil)),
		})
		_ = l.Close()
	}()
	return k
}

// ask returns the process ID of the process that answers.
func (k *runningSupervisor) ask(t *testing.T) int {
	t.Helper()
	for {
		c, err := net.Dial("tcp", k.address)
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		_ = c.Close()
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
			continue // the process that accepted the connection is dead
		}
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
}

func (k *runningSupervisor) is(name string) bool {
	_, err := os.Stat(filepath.Join(k.dir, name))
	return err == nil
}

// TestHungServerIsReplaced: the first server sends no heartbeat and is killed. The second one answers connections over the same socket.
func TestHungServerIsReplaced(t *testing.T) {
	k := keep(t, "silent,well", 400*time.Millisecond)
	first := k.ask(t)
	k.log.wait(t, "no heartbeat for 400ms", 1)
	if second := k.ask(t); second == first {
		t.Errorf("process %d answers still", first)
	}
	k.stop()
	if err := <-k.ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if !k.is("ended") {
		t.Error("the server was not stopped, but killed")
	}
}

// TestKilledServerIsReplaced kills a working server, and its successor exits by itself.
func TestKilledServerIsReplaced(t *testing.T) {
	k := keep(t, "well,dies,well", 5*time.Second)
	first := k.ask(t)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	k.log.wait(t, "signal: killed", 1)
	k.log.wait(t, "exit status 1", 1)
	if third := k.ask(t); third == first {
		t.Errorf("process %d answers still", first)
	}
	k.stop()
	if err := <-k.ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// TestFailedStartIsNotRetried starts a server that fails before it is ready. The supervisor does not retry, because that would not help.
func TestFailedStartIsNotRetried(t *testing.T) {
	k := keep(t, "stillborn", 5*time.Second)
	if err := <-k.ended; err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("Run = %v, want the server's end", err)
	}
	k.stop()
}
