package program

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// appClient is a client with the key of one application.
type appClient struct {
	*http.Client
	app, key string
}

// RoundTrip implements [http.RoundTripper].
func (c *appClient) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Key "+c.key)
	return http.DefaultTransport.RoundTrip(r)
}

// newAppClient creates an application and returns a client with its key.
func newAppClient(t testing.TB, srv *server.Server) *appClient {
	t.Helper()
	app, err := control.CreateApp.Do(t.Context(), srv, register.NewApp{Name: "an application", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := control.CreateKey.Do(t.Context(), srv, register.NewKey{App: app.App.ID, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &appClient{app: app.App.ID, key: key.Key}
	c.Client = &http.Client{Transport: c}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return c
}

// TestPredictedPicturesEndWithTheirApplication deletes two applications, one while the server runs and one without a server. The URL of the
// first one's predicted picture ends at once. Afterwards no file has a predicted picture of either.
func TestPredictedPicturesEndWithTheirApplication(t *testing.T) {
	const marker = "zebrafinch"
	s := testSettings(t)
	srv, err := server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + srv.Listener.Addr().String()
	predicted := func(c *appClient, of string) string {
		t.Helper()
		picture := append(slices.Clone(sample(t, "01-canal-in-venice.jpg")), marker+of...)
		code, answer := predictBy(t, c.Client, base, generalID, byBase64(picture))
		if code != 200 || len(answer.Outputs) != 1 {
			t.Fatalf("predict: %d %+v", code, answer.Status)
		}
		url := answer.Outputs[0].Input.Data.Image.URL
		if got := askFor(t, http.DefaultClient, url, ""); got.status != 200 {
			t.Fatalf("the predicted picture: %d", got.status)
		}
		return url
	}
	deleted, stays := newAppClient(t, srv), newAppClient(t, srv)
	gone, other := predicted(deleted, "gone"), predicted(stays, "other")
	if _, err := control.DeleteApp.Do(t.Context(), srv, control.ID{ID: deleted.app}); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]int{gone: 404, other: 200} {
		if got := askFor(t, http.DefaultClient, url, ""); got.status != want {
			t.Errorf("a predicted picture after the deletion of the first application: %d, want %d", got.status, want)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "app", "delete", stays.app, "--yes", "--data", s.Data)
	_, goneName, _ := strings.Cut(gone, api.HostedPath)
	_, otherName, _ := strings.Cut(other, api.HostedPath)
	err = filepath.WalkDir(s.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(marker)) || d.Name() == goneName || d.Name() == otherName {
			t.Errorf("%s is left of a deleted application", strings.TrimPrefix(path, s.Data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
