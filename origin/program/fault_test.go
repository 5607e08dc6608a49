package program

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// failingWhere and failingPictures are environment variables with a file name. While that file exists, every sync of a server's store, or
// of its pictures, fails.
const (
	failingWhere    = "SIGHTLINE_TEST_SYNCS_FAIL_WHERE"
	failingPictures = "SIGHTLINE_TEST_PICTURE_SYNCS_FAIL_WHERE"
)

// faults returns the options that inject faults into a process that a test starts.
func faults() (o data.Options) {
	if trigger := os.Getenv(failingWhere); trigger != "" {
		o.StoreFS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
				return failsWhere(trigger)
			}
			return nil
		}))
	}
	if trigger := os.Getenv(failingPictures); trigger != "" {
		o.BlobFS = func(fsys blob.FS) blob.FS { return failingSyncs{fsys, trigger} }
	}
	return o
}

func failsWhere(trigger string) error {
	if _, err := os.Stat(trigger); err == nil {
		return syscall.EIO
	}
	return nil
}

// failingSyncs returns files whose syncs fail while the trigger file exists.
type failingSyncs struct {
	blob.FS
	trigger string
}

func (d failingSyncs) Create(name string) (blob.File, error) {
	f, err := d.FS.Create(name)
	return failingFile{f, d.trigger}, err
}

type failingFile struct {
	blob.File
	trigger string
}

func (f failingFile) Sync() error {
	if err := failsWhere(f.trigger); err != nil {
		return err
	}
	return f.File.Sync()
}

// adds sends a POST of one picture, and returns the HTTP status and the status code of its answer.
func adds(t testing.TB, client *http.Client, base, id string) (httpStatus, code int) {
	t.Helper()
	picture := base64.StdEncoding.EncodeToString(dots(t, 7, 16))
	body := fmt.Sprintf(`{"inputs":[{"id":%q,"data":{"image":{"base64":%q}}}]}`, id, picture)
	res, err := client.Post(base+"/v2/inputs", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, 0
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, 0
	}
	var answer struct{ Status cli.Status }
	decode(t, string(b), &answer)
	return res.StatusCode, answer.Status.Code
}

func statusOf(t testing.TB, client *http.Client, url string) int {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// TestFaultFullDisk fills a server's disk and frees it again. While it is full, writes get status 507 with the reason. Reads, searches and
// deletions work, the server is not ready, and a restarted server serves.
func TestFaultFullDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 40)
	s := testSettings(t)
	s.MinFree = 1 << 20
	s.Folder.Free = func() (int64, error) { return free.Load(), nil }
	srv, base := startOrigin(t, s)
	client := own(t)
	for _, id := range []string{"a", "b"} {
		if status, code := adds(t, client, base, id); status != 200 {
			t.Fatalf("with space: %d %d", status, code)
		}
	}
	free.Store(1 << 10)
	check := func(base string) {
		t.Helper()
		if status, code := adds(t, client, base, "c"); status != http.StatusInsufficientStorage || code != 39998 {
			t.Errorf("an add on a full disk: %d %d, want 507 39998", status, code)
		}
		if got := statusOf(t, client, base+"/readyz"); got != 503 {
			t.Errorf("readyz on a full disk: %d, want 503", got)
		}
		if got := statusOf(t, client, base+"/healthz"); got != 200 {
			t.Errorf("healthz on a full disk: %d, want 200", got)
		}
		if got := statusOf(t, client, base+"/v2/inputs/a"); got != 200 {
			t.Errorf("a read on a full disk: %d", got)
		}
		res, err := client.Post(base+"/v2/searches", "application/json", strings.NewReader(`{"query":{"ands":[]}}`))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("a search on a full disk: %v %v", res, err)
		}
		_ = res.Body.Close()
	}
	check(base)
	req, err := http.NewRequest("DELETE", base+"/v2/inputs/b", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("a delete on a full disk: %v %v", res, err)
	}
	_ = res.Body.Close()
	key := keyOf(strings.TrimPrefix(base, "http://"))
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	restarted, err := server.Start(t.Context(), s, discard)
	if err != nil {
		t.Fatalf("a start on a full disk: %v", err)
	}
	defer func() {
		if err := restarted.Stop(); err != nil {
			t.Error(err)
		}
	}()
	address := restarted.Listener.Addr().String()
	keys.Store(address, key)
	check("http://" + address)
	free.Store(1 << 40)
	if status, code := adds(t, client, "http://"+address, "c"); status != 200 {
		t.Errorf("with space again: %d %d", status, code)
	}
	if got := statusOf(t, client, "http://"+address+"/readyz"); got != 200 {
		t.Errorf("readyz with space again: %d", got)
	}
}

// TestFaultFailedSyncEndsTheServer makes the syncs of a server's store or of its pictures fail. The server does not acknowledge the call in
// progress, exits with code 1 and reports the reason. The next process has everything that was acknowledged.
func TestFaultFailedSyncEndsTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("two processes each")
	}
	t.Run("store", func(t *testing.T) { failedSync(t, failingWhere) })
	t.Run("pictures", func(t *testing.T) { failedSync(t, failingPictures) })
}

func failedSync(t *testing.T, failing string) {
	trigger := filepath.Join(t.TempDir(), "fail")
	t.Setenv(failing, trigger)
	p := startProcess(t)
	client := own(t)
	if status, code := adds(t, client, p.base, "good"); status != 200 {
		t.Fatalf("before: %d %d", status, code)
	}
	rewrite(t, trigger, "")
	if status, code := adds(t, client, p.base, "bad"); status == 200 {
		t.Errorf("a call whose sync failed is acknowledged: %d %d", status, code)
	}
	err := <-p.exited
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || len(p.lines("writing to the data folder failed")) != 1 {
		t.Errorf("the server ended with %v and said\n%s", err, strings.Join(p.lines(""), "\n"))
	}
	if err := os.Remove(trigger); err != nil {
		t.Fatal(err)
	}
	restarted := startOn(t, p.data)
	if got := statusOf(t, client, restarted.base+"/v2/inputs/good"); got != 200 {
		t.Errorf("what was acknowledged: %d", got)
	}
	if status, code := adds(t, client, restarted.base, "more"); status != 200 {
		t.Errorf("after the restart: %d %d", status, code)
	}
	if _, err := restarted.terminate(t); err != nil {
		t.Error(err)
	}
	if code, stdout, stderr := runCode(t, "doctor", "--data", p.data); code != 0 {
		t.Errorf("doctor: exit code %d\n%s%s", code, stdout, stderr)
	}
	if out := mustRun(t, "search", "--data", p.data, "--json"); bytes.Count([]byte(out), []byte("\n")) < 2 {
		t.Errorf("inputs: %s", out)
	}
}

// TestFaultFullExports exports from a server to a disk that accepts files of at most 1 KB. The export ends with an error and leaves neither
// a file nor pictures that an import would read. The server continues.
func TestFaultFullExports(t *testing.T) {
	if testing.Short() {
		t.Skip("four processes")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash, which has ulimit")
	}
	p := startProcess(t)
	client := own(t)
	res, err := client.Post(p.base+"/v2/inputs", "application/json", bytes.NewReader(byBase64(dots(t, 1, 4), dots(t, 2, 64), dots(t, 3, 64))))
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("add: %v, %v", res, err)
	}
	_ = res.Body.Close()
	dir := t.TempDir()
	for _, name := range []string{"export", "export.zip"} {
		to := filepath.Join(dir, name)
		cmd := exec.CommandContext(t.Context(), bash, "-c", `ulimit -f 1; exec "$0" "$@"`, os.Args[0], "export", to, "--data", p.data, "--quiet")
		cmd.Env = append(os.Environ(), asServer+"=1")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "is incomplete") {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				t.Errorf("%s: the export left %s", name, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		mustRun(t, "export", to, "--data", p.data, "--quiet")
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	if status, code := adds(t, client, p.base, "more"); status != 200 {
		t.Errorf("a write after the exports: %d %d", status, code)
	}
}
