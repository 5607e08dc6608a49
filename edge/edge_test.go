package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web/process"
)

// TestSystemdUnits has systemd read the units of both programs, and every sandboxing option that they have.
func TestSystemdUnits(t *testing.T) {
	analyze := process.Need(t, "systemd-analyze")
	root, dir := testkit.Root(t), t.TempDir()
	var units []string
	for _, pattern := range []string{"origin/systemd/*", "edge/systemd/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: %d units, %v, want a service and its socket", pattern, len(found), err)
		}
		for _, unit := range found {
			text, err := os.ReadFile(unit)
			if err != nil {
				t.Fatal(err)
			}
			// Programs that are not installed here are a mistake to it.
			installed := strings.NewReplacer("/usr/local/bin/sightline-edge", os.Args[0], "/usr/local/bin/sightline", os.Args[0]).Replace(string(text))
			if installed == string(text) && filepath.Ext(unit) == ".service" {
				t.Errorf("%s starts nothing of ours", unit)
			}
			copied := filepath.Join(dir, filepath.Base(unit))
			if err := os.WriteFile(copied, []byte(installed), 0o600); err != nil {
				t.Fatal(err)
			}
			units = append(units, copied)
		}
	}
	out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// checkSocketActivation starts the edge as systemd does. The socket exists before the program. The program reports when it is ready,
// regularly that it works, and when it stops, and starts no supervisor.
func checkSocketActivation(t *testing.T, binary string) {
	activate := process.Need(t, "systemd-socket-activate")
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "activated")
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notices.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	cmd := exec.Command(activate, "--listen", address,
		"--setenv", "NOTIFY_SOCKET="+notices.LocalAddr().String(), "--setenv", "WATCHDOG_USEC=2000000", "--setenv", "CACHE_DIRECTORY",
		binary, "serve", "--data", data, "--listen", "0.0.0.0:1") // which the socket overrules
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()

	s := &server{base: "http://" + address}
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			break
		}
		if len(ended) > 0 {
			t.Fatalf("it ended: %v\n%s", <-ended, output.String())
		}
		system.Pause(t.Context(), time.Millisecond)
	}
	notice := func(want string) {
		t.Helper()
		b := make([]byte, 64)
		for {
			n, err := notices.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(b[:n]); got == want {
				return
			} else if got != "WATCHDOG=1" {
				t.Fatalf("the program says %q, want %q", got, want)
			}
		}
	}
	notice("READY=1")
	s.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("one", photo(t, photos(t)[0]))}})
	notice("WATCHDOG=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	notice("STOPPING=1")
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v\n%s", err, output.String())
	}
}
