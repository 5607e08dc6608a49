package program

import (
	"bytes"
	"encoding/json"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

// inputs is an API answer with inputs, as clients read it.
type inputs struct {
	Status cli.Status
	Inputs []struct {
		ID     string
		Status cli.Status
		Data   struct{ Image struct{ URL string } }
	}
	Counts struct {
		Processed int
		ToProcess int `json:"to_process"`
		Errors    int
	}
}

func callInputs(t testing.TB, client *http.Client, method, url string, body []byte) (int, inputs) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out inputs
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatalf("%s %s = %d: %v", method, url, res.StatusCode, err)
	}
	return res.StatusCode, out
}

func get(t testing.TB, client *http.Client, url string) (int, string, []byte) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), b
}

// awaitSettled waits for at most 30 s until no input is pending, and returns the counts.
func awaitSettled(t testing.TB, client *http.Client, base string) inputs {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		_, out := callInputs(t, client, "GET", base+"/v2/inputs/status", nil)
		if out.Counts.ToProcess == 0 || time.Now().After(end) {
			return out
		}
	}
}

// TestInputsAreFetchedStoredAndDeleted adds pictures by URL and by base64, and later deletes them.
func TestInputsAreFetchedStoredAndDeleted(t *testing.T) {
	picture := sample(t, "09-sea-turtle.jpg")
	var requests atomic.Int64
	pictureServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/turtle":
			_, _ = w.Write(picture)
		case "/soon":
			if requests.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write(picture)
		default:
			http.NotFound(w, r)
		}
	}))
	defer pictureServer.Close()
	s := testSettings(t)
	s.AllowPrivate = true
	srv, base := startOrigin(t, s)
	client := own(t)

	code, added := callInputs(t, client, "POST", base+"/v2/inputs", byURL(pictureServer.URL+"/turtle", pictureServer.URL+"/soon", pictureServer.URL+"/gone"))
	if code != 200 || len(added.Inputs) != 3 || added.Inputs[2].Status.Code != 30001 {
		t.Fatalf("by URL: %d %+v", code, added)
	}
	code, sent := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(picture, dots(t, 1, 400)))
	if code != 200 || len(sent.Inputs) != 2 || sent.Inputs[0].Status.Code != 30000 {
		t.Fatalf("by base64: %d %+v", code, sent)
	}
	address := sent.Inputs[0].Data.Image.URL
	if code, kind, got := get(t, client, address); code != 200 || kind != "image/jpeg" || !bytes.Equal(got, picture) {
		t.Errorf("%s = %d, %d bytes of %s", address, code, len(got), kind)
	}
	code, kind, thumbnail := get(t, client, address+"/thumbnail")
	small, err := jpeg.Decode(bytes.NewReader(thumbnail))
	info, wrong := raster.Inspect(picture)
	if err != nil || wrong != nil {
		t.Fatalf("the thumbnail = %d of %s: %v, %v", code, kind, err, wrong)
	}
	if side, want := max(small.Bounds().Dx(), small.Bounds().Dy()), min(predict.ThumbnailSide, max(info.Width, info.Height)); code != 200 || kind != "image/jpeg" || side != want {
		t.Errorf("the thumbnail = %d of %s, %d pixels, want %d", code, kind, side, want)
	}
	if code, _, same := get(t, client, base+"/v2/inputs/"+sent.Inputs[0].ID+"/thumbnail"); code != 200 || !bytes.Equal(same, thumbnail) {
		t.Errorf("by its input = %d, %d bytes", code, len(same))
	}
	if code, _, _ := get(t, client, address[:strings.LastIndex(address, "/")]+"/0123456789abcdef0123456789abcdef/thumbnail"); code != 404 {
		t.Errorf("a thumbnail that is not there = %d", code)
	}
	if c := awaitSettled(t, client, base).Counts; c.Processed != 4 || c.Errors != 1 {
		t.Errorf("counts %+v, want 4 processed, 1 error", c)
	}

	if code, out := callInputs(t, client, "DELETE", base+"/v2/inputs", []byte(`{"delete_all":true}`)); code != 200 || out.Status.Code != 10000 {
		t.Fatalf("DELETE = %d %+v", code, out.Status)
	}
	if code, _, _ := get(t, client, address); code != 404 {
		t.Errorf("a deleted picture answers %d", code)
	}
	for end := time.Now().Add(30 * time.Second); blobsOf(t, srv) > 0; get(t, client, base+"/v2/inputs") {
		if time.Now().After(end) {
			t.Fatalf("%d blobs are left", blobsOf(t, srv))
		}
	}
}

func blobsOf(t testing.TB, srv *server.Server) int {
	t.Helper()
	n := 0
	if err := srv.Folder.Blobs.Each(t.Context(), blob.Hash{}, func(blob.Hash) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}
