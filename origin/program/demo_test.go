package program

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// TestSamples fills the folder of a demonstration once, also if an earlier start was interrupted. It does not restore deleted inputs.
func TestSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("42 pictures are analysed")
	}
	srv, _ := startOrigin(t, testSettings(t))
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	to := cli.LocalSession(srv.Node, apps[0].ID)
	count := func(path string) (n int) {
		t.Helper()
		var answer struct {
			Counts inputCounts
			Models []struct {
				App     string                      `json:"app_id"`
				Version struct{ Status cli.Status } `json:"model_version"`
			}
		}
		if err := cli.SendRequest(t.Context(), to, "GET", path, nil, &answer); err != nil {
			t.Fatal(err)
		}
		for _, m := range answer.Models {
			if m.App == apps[0].ID {
				if m.Version.Status.Code == untrained {
					t.Errorf("a model that was not asked to learn")
				}
				n++
			}
		}
		return n + answer.Counts.Processed + answer.Counts.ToProcess + answer.Counts.Errors
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	must(fillDemo(t.Context(), srv.Node))
	if n := count("/v2/inputs/status"); n != 0 {
		t.Fatalf("%d inputs in a folder that is no demonstration's", n)
	}
	must(markDemo(srv.Node))
	must(cli.SendRequest(t.Context(), to, "POST", "/v2/concepts", cli.Object{"concepts": []cli.Object{{"id": "bird", "name": "Bird"}}}, nil)) // interrupted here
	must(fillDemo(t.Context(), srv.Node))
	if n, models := count("/v2/inputs/status"), count("/v2/models"); n != 42 || models != len(taught) {
		t.Fatalf("%d inputs and %d models, want 42 and %d", n, models, len(taught))
	}
	must(cli.SendRequest(t.Context(), to, "DELETE", "/v2/inputs", cli.Object{"delete_all": true}, nil))
	must(fillDemo(t.Context(), srv.Node))
	if n := count("/v2/inputs/status"); n != 0 {
		t.Errorf("%d inputs came back after they were deleted", n)
	}
}

// TestDemo stops the origin of a demonstration, starts it again, and ends all processes.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("three starts of a server")
	}
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(os.Args[0], "demo", "--edges", "0", "--listen", "127.0.0.1:0", "--data", data)
	cmd.Env = append(os.Environ(), asServer+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var trouble safeBuffer
	cmd.Stderr = &trouble
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	lines := bufio.NewScanner(out)
	hear := func(start string) string {
		t.Helper()
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), start); ok {
				return rest
			}
		}
		t.Fatalf("nothing begins with %q\n%s", start, trouble.String())
		return ""
	}
	base := hear("Sightline: ")
	status := func() int {
		res, err := http.Get(base + "/v2/models")
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for _, want := range []struct {
		line   string
		status int
	}{{"The origin is stopped.", 0}, {"The origin is running.", 401}} {
		if _, err := io.WriteString(in, "x\no\n"); err != nil {
			t.Fatal(err)
		}
		hear(want.line)
		if got := status(); got != want.status {
			t.Errorf("%s HTTP status %d, want %d", want.line, got, want.status)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || trouble.String() != "" {
		t.Errorf("%v\n%s", err, trouble.String())
	}
	if status() != 0 {
		t.Error("the origin goes on without the demonstration")
	}
}
