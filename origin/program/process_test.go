package program

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// asServer is the environment variable that makes the test binary run main in a separate process.
const asServer = "SIGHTLINE_TEST_AS_PROGRAM"

// lastStatus is the environment variable with the name of the file in which such a process stores its /proc status at its end. The peak
// memory that the system reports for an ended child includes its parent's peak, because the child starts as a copy of the parent.
const lastStatus = "SIGHTLINE_TEST_LAST_STATUS"

// TestMain fails if a goroutine is left after all servers have stopped. It ignores the two goroutines of the library, which end later or
// never, and the one of os/signal.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == video.Command {
		os.Exit(cli.Run(context.Background(), New(), server.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ}))
	}
	if os.Getenv(asServer) != "" {
		ctx, stop := system.CancelOnSignal(context.Background())
		system.IgnoreBrokenPipes()
		code := cli.Run(ctx, New(), server.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ, Data: faults()})
		stop()
		if file := os.Getenv(lastStatus); file != "" {
			status, err := os.ReadFile("/proc/self/status")
			if err := errors.Join(err, os.WriteFile(file, status, 0o600)); err != nil {
				panic(err)
			}
		}
		os.Exit(code)
	}
	// The processes of tests keep compiled modules in their data folders, not in the folder of the user who runs the tests.
	if err := os.Setenv("CACHE_DIRECTORY", os.DevNull); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("os/signal.loop"))
}

// process is a server in a separate process, so that a test can check its memory and its exit.
type process struct {
	cmd    *exec.Cmd
	base   string
	data   string
	mu     sync.Mutex
	log    []string
	exited chan error
}

// launch starts p.cmd, collects its standard error in the log, and kills it at the end of the test if it still runs.
func (p *process) launch(t testing.TB) {
	t.Helper()
	p.exited = make(chan error, 1)
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
		}
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	})
}

// startProcess starts "sightline serve" on a free port and waits until it serves.
func startProcess(t testing.TB, args ...string) *process {
	t.Helper()
	return startOn(t, t.TempDir(), args...)
}

// startOn is like startProcess, with a data folder that may have been used before.
func startOn(t testing.TB, data string, args ...string) *process {
	t.Helper()
	p := &process{data: data}
	address := freeAddress(t)
	p.base = "http://" + address
	p.cmd = exec.Command(os.Args[0], append([]string{"serve", "--listen", address, "--data", data, "--log-format", "text"}, args...)...)
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	var out safeBuffer
	p.cmd.Stdout = &out
	p.launch(t)
	for start := time.Now(); ; system.Pause(t.Context(), 5*time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			if key := cmp.Or(printedKey(out.String()), keyOf(data)); key != "" { // the server prints it at the folder's first start
				keys.Store(address, key)
				keys.Store(data, key)
				return p
			}
		}
		if len(p.exited) > 0 || time.Since(start) > 2*time.Minute {
			t.Fatalf("the server does not serve: %v\n%s", err, strings.Join(p.lines(""), "\n"))
		}
	}
}

// freeAddress returns a loopback address with an unused port.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// lines returns the lines of the log that contain a text.
func (p *process) lines(holding string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, line := range p.log {
		if strings.Contains(line, holding) {
			out = append(out, line)
		}
	}
	return out
}

// terminate sends SIGTERM, and returns the time until the process ended and its exit error.
func (p *process) terminate(t testing.TB) (time.Duration, error) {
	t.Helper()
	start := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := <-p.exited
	return time.Since(start), err
}

// memory returns the current and the peak resident memory in bytes.
func (p *process) memory(t testing.TB) (now, peak int64) {
	t.Helper()
	return memoryIn(t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
}

// memoryIn reads the current and the peak resident memory in bytes from a /proc status file.
func memoryIn(t testing.TB, status string) (now, peak int64) {
	t.Helper()
	b, err := os.ReadFile(status)
	if err != nil {
		t.Skipf("no memory figures on this system: %v", err)
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(b), name+":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			return 0
		}
		kB, _ := strconv.ParseInt(f[0], 10, 64)
		return kB << 10
	}
	return field("VmRSS"), field("VmHWM")
}

// latencies collects response times.
type latencies struct {
	mu sync.Mutex
	d  []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d = append(l.d, d)
}

// p returns a percentile, or 0 without response times.
func (l *latencies) p(percent int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l.d))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func (l *latencies) n() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.d)
}
