package conformance

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/s3/s3test"
	"github.com/sightline-dev/sightline/web/process"
)

// TestOfficialJavaScriptClientAtAStandby runs the specs against a node of a cluster that forwards its calls to the primary.
func TestOfficialJavaScriptClientAtAStandby(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	store := s3test.New(t)
	install(t)
	binary, at := process.Build(t, process.Origin), clustertest.Addresses(t, 2)
	credentials := filepath.Join(t.TempDir(), "s3.ini")
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", store.AccessKey, store.Secret)
	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary, append([]string{"cluster"}, args...)...).Output()
		if err != nil {
			t.Fatalf("cluster %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	flags := []string{"--s3-credentials", credentials, "--allow-private-fetch", "--log", "info"}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	cluster("create", "--data", first, "--address", at[0].String(), "--s3", store.URL, "--s3-credentials", credentials)
	primary := process.ServeIn(t, binary, first, flags...)
	key := primary.Find(t, keyLine)
	_, id, secret := client(t, binary, primary)
	cluster("join", cluster("token", "--data", first), "--data", second, "--address", at[1].String())
	standby := process.ServeIn(t, binary, second, flags...)
	for follows := false; !follows; time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(standby.URL + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		follows = res.StatusCode == http.StatusOK
	}
	t.Run("key", func(t *testing.T) { run(t, standby.URL, []string{"--api-key", key, "--film", film(t)}) })
	t.Run("tokens", func(t *testing.T) { run(t, standby.URL, []string{"--client-id", id, "--client-secret", secret}) })
	t.Run("videos", func(t *testing.T) { predictVideos(t, standby.URL, key) })
}
