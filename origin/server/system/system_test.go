package system

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestLockExcludesAnotherProcess starts this test again as a second process that uses the same folder.
func TestLockExcludesAnotherProcess(t *testing.T) {
	if dir := os.Getenv("SIGHTLINE_TEST_LOCK"); dir != "" {
		_, err := Lock(dir)
		if !errors.Is(err, ErrLocked) {
			t.Errorf("Lock in a second process = %v, want ErrLocked", err)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "made", "here")
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockExcludesAnotherProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "SIGHTLINE_TEST_LOCK="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestLockExcludesAnotherProcess") {
		t.Errorf("second process: %v\n%s", err, out)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock twice in one process = %v, want ErrLocked", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatalf("Lock after release: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestLockNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(file); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("Lock(a file) = %v, want an error that is not ErrLocked", err)
	}
}

func TestDialCallsControlAndDoesNotResolve(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := l.Addr().String()

	var addresses []string
	c, err := Dial(t.Context(), "tcp", want, func(_, address string) error {
		addresses = append(addresses, address)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if len(addresses) != 1 || addresses[0] != want {
		t.Errorf("control was asked about %q, want only %q", addresses, want)
	}

	refused := errors.New("refused")
	if _, err := Dial(t.Context(), "tcp", want, func(string, string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("Dial = %v, want control's error", err)
	}
	if _, err := Dial(t.Context(), "tcp", "localhost:80", nil); err == nil {
		t.Error("Dial resolved a name")
	}
}

func TestResolveGivesPlainIPv4(t *testing.T) {
	got, err := Resolve(t.Context(), "127.0.0.1")
	if err != nil || len(got) != 1 || got[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("Resolve(127.0.0.1) = %v, %v", got, err)
	}
}

func TestEveryStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			Every(ctx, time.Minute, func(context.Context) {
				if calls++; calls == 3 {
					cancel()
				}
			})
		}()
		start := Now()
		<-done
		if calls != 3 || Now().Sub(start) != 3*time.Minute {
			t.Errorf("Every called %d times in %v, want 3 in 3m", calls, Now().Sub(start))
		}
	})
}

func TestPauseEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		Pause(ctx, time.Hour)
		Pause(t.Context(), time.Minute)
		if d := Now().Sub(start); d != time.Minute+time.Second {
			t.Errorf("paused %v, want 1m1s", d)
		}
	})
}

func TestTerminatedEndsAtSignal(t *testing.T) {
	ctx, stop := CancelOnSignal(t.Context())
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}

func TestMemoryLimitIsPlausible(t *testing.T) {
	if n := MemoryLimit(); n < 64<<20 || n > 1<<50 {
		t.Errorf("MemoryLimit() = %d", n)
	}
	for in, want := range map[string]int64{
		"MemTotal:       24682752 kB\nMemFree: 1 kB\n": 24682752 << 10,
		"":                    1 << 62,
		"MemFree: 1 kB\n":     1 << 62,
		"MemTotal: many kB\n": 1 << 62,
	} {
		if got := memTotal(in); got != want {
			t.Errorf("memTotal(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestThreadTimeCountsWork(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := ThreadTime()
	n := 0
	for ThreadTime() < start+5*time.Millisecond {
		n++
	}
	if n == 0 {
		t.Error("five milliseconds passed without work")
	}
}

func TestRandomDiffers(t *testing.T) {
	var a, b [16]byte
	if _, err := io.ReadFull(Random, a[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(Random, b[:]); err != nil {
		t.Fatal(err)
	}
	if a == b {
		t.Errorf("two draws are equal: %x", a)
	}
	if Cores() < 1 {
		t.Errorf("Cores() = %d", Cores())
	}
}

// TestCores checks that reserved threads do not count as cores, because long work takes one thread of each core.
func TestCores(t *testing.T) {
	want := Cores()
	ReserveThreads(2)
	defer ReserveThreads(-2)
	if got := Cores(); got != want {
		t.Errorf("Cores() = %d after ReserveThreads(2), want %d", got, want)
	}
}
