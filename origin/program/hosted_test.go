package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
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

// TestPredictedPicturesAreDeletedWithApplication deletes two applications, one while the server runs and one without a server. The URL of
// the first one's predicted picture ends at once. Afterwards no file has a predicted picture of either.
func TestPredictedPicturesAreDeletedWithApplication(t *testing.T) {
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

// add adds inputs and waits until they are processed.
func (c *appClient) add(t testing.TB, base string, body []byte) {
	t.Helper()
	if code, out := callInputs(t, c.Client, "POST", base+"/v2/inputs", body); code != 200 {
		t.Fatalf("add: %d %+v", code, out)
	}
	if out := awaitSettled(t, c.Client, base); out.Counts.Errors != 0 || out.Counts.ToProcess != 0 {
		t.Fatalf("inputs: %+v", out.Counts)
	}
}

// source returns the URL and the SHA-256 of an input's picture.
func (c *appClient) source(t testing.TB, base, id string) (picture, hash string) {
	t.Helper()
	code, _, b := get(t, c.Client, base+"/v2/inputs/"+id+"/source")
	var answer struct {
		Source struct{ Picture, SHA256 string }
	}
	decode(t, string(b), &answer)
	if code != 200 || answer.Source.SHA256 == "" {
		t.Fatalf("source of %s: %d %s", id, code, b)
	}
	return answer.Source.Picture, answer.Source.SHA256
}

// addByURL adds the picture of a URL as input id, and returns the URL and the SHA-256 of the stored picture.
func (c *appClient) addByURL(t testing.TB, base, id, url string) (picture, hash string) {
	t.Helper()
	c.add(t, base, fmt.Appendf(nil, `{"inputs":[{"id":%q,"data":{"image":{"url":%q,"allow_duplicate_url":true}}}]}`, id, url))
	return c.source(t, base, id)
}

func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// TestHostedURLGivesOtherAppsTheServedBytes adds hosted pictures by their URLs: the picture of an input, a predicted one and a thumbnail.
// The application that owns a picture gets the original. Another one gets what the URL serves, and cannot read the original by its hash.
func TestHostedURLGivesOtherAppsTheServedBytes(t *testing.T) {
	photo := photoOf(t)
	original := hashOf(photo)
	for _, keepLocation := range []bool{false, true} {
		s := testSettings(t)
		s.KeepLocation, s.AllowPrivate = keepLocation, true
		srv, base := startOrigin(t, s)
		owner, stranger := newAppClient(t, srv), newAppClient(t, srv)
		owner.add(t, base, fmt.Appendf(nil, `{"inputs":[{"id":"a","data":{"image":{"base64":%q}}}]}`, base64.StdEncoding.EncodeToString(photo)))
		url, _ := owner.source(t, base, "a")
		code, answer := predictBy(t, owner.Client, base, generalID, byBase64(photo))
		if code != 200 {
			t.Fatalf("predict: %d", code)
		}
		public := askFor(t, http.DefaultClient, url, "").body
		if bytes.Equal(public, photo) != keepLocation {
			t.Fatalf("the URL serves the original: %v", !keepLocation)
		}
		for kind, url := range map[string]string{
			"input": url, "predicted": answer.Outputs[0].Input.Data.Image.URL, "query": url + "?q", "spelling": strings.Replace(url, "http://", "HTTP://", 1),
		} {
			own, hash := owner.addByURL(t, base, kind, url)
			if want := original; hash != want && kind != "spelling" {
				t.Errorf("%s: the owner gets %s, want the original %s", kind, hash, want)
			}
			if got := askFor(t, http.DefaultClient, own+"/"+original, ""); kind != "spelling" && !bytes.Equal(got.body, photo) {
				t.Errorf("%s: the owner's original: %d, %d bytes", kind, got.status, len(got.body))
			}
			copied, hash := stranger.addByURL(t, base, kind, url)
			if want := hashOf(public); hash != want {
				t.Errorf("%s: the stranger gets %s, want the served %s", kind, hash, want)
			}
			if keepLocation {
				continue
			}
			if got := askFor(t, http.DefaultClient, copied+"/"+original, ""); got.status != 404 {
				t.Errorf("%s: the original under the stranger's name: %d", kind, got.status)
			}
			if code, _, b := get(t, stranger.Client, base+"/v2/sync/blobs/"+original+"?app="+stranger.app); code != 404 || bytes.Contains(b, []byte(place)) {
				t.Errorf("%s: the original by its hash: %d, %d bytes", kind, code, len(b))
			}
		}
		_, hash := stranger.addByURL(t, base, "thumbnail", url+"/thumbnail")
		if want := hashOf(askFor(t, http.DefaultClient, url+"/thumbnail", "").body); hash != want {
			t.Errorf("thumbnail: the stranger gets %s, want the served %s", hash, want)
		}
		if _, hash := stranger.addByURL(t, base, "by hash", url+"/"+original); hash != original {
			t.Errorf("a stranger who knows the hash gets %s, want %s", hash, original)
		}
		stranger.wrong(t, base, url+"/"+hashOf(public)+"0")
		stranger.wrong(t, base, url+"/")
	}
}

// wrong checks that no picture is at a URL.
func (c *appClient) wrong(t testing.TB, base, url string) {
	t.Helper()
	if code, answer := predictBy(t, c.Client, base, generalID, byURL(url)); code == 200 || len(answer.Outputs) != 1 || answer.Outputs[0].Status.Code != 30002 {
		t.Errorf("%s: %d %+v, want a failed download", url, code, answer)
	}
}

// TestHostedVideoURLGivesOtherAppsTheServedBytes predicts a hosted video by its URL. The decoder gets the original for the application that
// owns the video, and what the URL serves for another one.
func TestHostedVideoURLGivesOtherAppsTheServedBytes(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	s := testSettings(t)
	s.VideoDecoder = fakeDecoder(t, `cat /proc/self/fd/3 >`+seen+`; printf '%s' '{"packets":[{"pts":0}],`+
		`"streams":[{"codec_name":"h264","width":4,"height":2,"pix_fmt":"yuv420p","time_base":"1/1"}]}'`, "")
	srv, base := startOrigin(t, s)
	owner, stranger := newAppClient(t, srv), newAppClient(t, srv)
	film := []byte(filmWithPlace)
	predict := func(c *appClient, data string) (url string, decoded []byte) {
		t.Helper()
		res, err := c.Post(base+"/v2/models/"+generalID+"/outputs", "application/json", strings.NewReader(`{"inputs":[{"data":{"video":{`+data+`}}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err = os.ReadFile(seen); err != nil {
			t.Fatalf("%d %s: %v", res.StatusCode, b, err)
		}
		if err := os.Remove(seen); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(string(b), api.HostedPath)
		return base + api.HostedPath + name[:min(len(name), 32)], decoded
	}
	url, decoded := predict(owner, fmt.Sprintf(`"base64":%q`, base64.StdEncoding.EncodeToString(film)))
	if !bytes.Equal(decoded, film) {
		t.Errorf("by base64: %q", decoded)
	}
	if _, decoded := predict(owner, fmt.Sprintf(`"url":%q`, url)); !bytes.Equal(decoded, film) {
		t.Errorf("by the owner's URL: %q, want the original", decoded)
	}
	if _, decoded := predict(stranger, fmt.Sprintf(`"url":%q`, url)); !bytes.Equal(decoded, askFor(t, http.DefaultClient, url, "").body) || bytes.Contains(decoded, []byte(place)) {
		t.Errorf("by a stranger: %q, want what the URL serves", decoded)
	}
}
