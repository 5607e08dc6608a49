package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestSlowURLsDelayNoOtherApplication makes one application wait for slow URLs in more calls than the server works on at once. Meanwhile
// another application's calls with base64, with a URL and with an input by URL are answered, and the server is ready and alive. Above its
// share the application is refused, with status 429.
func TestSlowURLsDelayNoOtherApplication(t *testing.T) {
	picture := dots(t, 1, 16)
	release := make(chan struct{})
	pictureServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/picture" {
			_, _ = w.Write(picture)
			return
		}
		<-release
		http.NotFound(w, r)
	}))
	defer pictureServer.Close()
	s := testSettings(t)
	s.AllowPrivate, s.Workers = true, 2
	srv, base := startOrigin(t, s)
	app, err := control.CreateApp.Do(t.Context(), srv, register.NewApp{Name: "other", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	newKey, err := control.CreateKey.Do(t.Context(), srv, register.NewKey{App: app.App.ID, Scopes: []string{"All"}, Description: "other"})
	if err != nil {
		t.Fatal(err)
	}
	other := newKey.Key
	client := own(t)
	slow := func(n int) []byte { return byURL(slices.Repeat([]string{pictureServer.URL + "/slow"}, n)...) }
	ask := func(key, method, path string, body []byte) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Authorization", "Key "+key)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(text)
	}

	var attack sync.WaitGroup
	attacked := func(calls, urls int, waiting int64) {
		t.Helper()
		for range calls {
			attack.Go(func() {
				status, out := predictBy(t, client, base, generalID, slow(urls))
				for status == 503 { // more calls came at once than the server works on; waiting calls leave their places later
					status, out = predictBy(t, client, base, generalID, slow(urls))
				}
				if status != 400 || len(out.Outputs) != urls {
					t.Errorf("a call with %d slow URLs: %d, %+v with %d outputs, want 400", urls, status, out.Status, len(out.Outputs))
				}
			})
		}
		for srv.Pool.Waiting() != waiting {
			system.Pause(t.Context(), time.Millisecond)
		}
	}
	predict := "/v2/models/" + generalID + "/outputs"
	served := func(when string) {
		t.Helper()
		for _, path := range []string{"/readyz", "/healthz"} {
			if status, _, text := ask("", "GET", path, nil); status != 200 {
				t.Errorf("%s: %s answers %d, %s", when, path, status, text)
			}
		}
		for form, body := range map[string][]byte{"base64": byBase64(picture), "a URL": byURL(pictureServer.URL + "/picture")} {
			if status, _, text := ask(other, "POST", predict, body); status != 200 {
				t.Errorf("%s: another application's call with %s: %d, %.300s", when, form, status, text)
			}
		}
	}
	attacked(4, 128, 4*128)
	served("4 calls with 128 slow URLs wait")
	attacked(32, 8, 4*128+32*8)
	served("36 calls wait")

	attacked(2, 128, 4*128+32*8+2*128)
	code, header, text := ask("", "POST", predict, slow(1))
	var refused outputs
	if err := json.Unmarshal([]byte(text), &refused); err != nil {
		t.Error(err)
	}
	if code != 429 || refused.Status.Code != 11005 || header.Get("Retry-After") == "" || !strings.Contains(text, "downloads") {
		t.Errorf("a call above the share: %d, Retry-After %q, %s; want 429 and 11005", code, header.Get("Retry-After"), text)
	}
	served("the application has its share")

	inputs := func(key string, url string, n int) string {
		var all []cli.Object
		for i := range n {
			all = append(all, cli.Object{"id": fmt.Sprint(i), "data": cli.Object{"image": cli.Object{"url": fmt.Sprint(url, "?", i)}}})
		}
		body, _ := json.Marshal(cli.Object{"inputs": all})
		status, _, text := ask(key, "POST", "/v2/inputs", body)
		if status != 200 {
			t.Errorf("inputs by URL: %d, %.300s", status, text)
		}
		return text
	}
	inputs("", pictureServer.URL+"/slow", 100)
	inputs(other, pictureServer.URL+"/picture", 1)
	for !strings.Contains(text, `"code":30000`) {
		if _, _, text = ask(other, "GET", "/v2/inputs/0", nil); strings.Contains(text, `"code":30002`) {
			t.Fatalf("another application's input failed: %s", text)
		}
	}
	close(release)
	attack.Wait()
	if calls, pictures, _ := srv.Pool.Load(); calls != 0 || pictures != 0 || srv.Pool.Waiting() != 0 {
		t.Errorf("%d calls, %d pictures and %d places are left", calls, pictures, srv.Pool.Waiting())
	}
}
