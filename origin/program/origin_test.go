package program

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web"
)

const (
	generalID = "aaa03c23b3724a16a56b629203edc62c"
	colorID   = "eeed0b6733a644cea07cf4c60f87ebb7"
	embedID   = "bbb5f41425b8468d9b7a554ff10f8581"
)

// testSettings returns the settings of a test server on a free loopback port.
func testSettings(t testing.TB) server.Settings {
	return server.Settings{
		Listen: "127.0.0.1:0", Data: t.TempDir(), Language: "en", PredictedTTL: 24 * time.Hour,
		MaxBody: 96 << 20, MaxAnswer: 16 << 20, MaxConns: 2048, LogFormat: "text", Options: New().Server,
	}
}

// startOrigin serves until the test ends and returns the server and its address.
func startOrigin(t testing.TB, s server.Settings) (*server.Server, string) {
	t.Helper()
	srv, err := server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	var output strings.Builder
	if err := srv.CreateFirstApp(t.Context(), &output, "sightline"); err != nil {
		t.Fatal(err)
	}
	address := srv.Listener.Addr().String()
	if key := printedKey(output.String()); key != "" {
		keys.Store(address, key)
	} else {
		apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
		if err != nil {
			t.Fatal(err)
		}
		newKey, err := control.CreateKey.Do(t.Context(), srv, register.NewKey{App: apps[0].ID, Scopes: []string{"All"}, Description: "of a test"})
		if err != nil {
			t.Fatal(err)
		}
		keys.Store(address, newKey.Key)
	}
	return srv, "http://" + address
}

// printedKey returns the key from the output of a first start.
func printedKey(text string) string {
	_, rest, _ := strings.Cut(text, "\n    key     ")
	key, _, _ := strings.Cut(rest, "\n")
	return key
}

// sample returns a photo of the demonstration.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(web.Samples(), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dots returns a small PNG with random-looking pixels.
func dots(t testing.TB, seed uint64, side int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		seed = seed*6364136223846793005 + 1442695040888963407
		img.Pix[i] = byte(seed >> 56)
	}
	for x := range side {
		img.Set(x, 0, color.White)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func byBase64(pictures ...[]byte) []byte {
	var inputs []cli.Object
	for _, p := range pictures {
		inputs = append(inputs, cli.Object{"data": cli.Object{"image": cli.Object{"base64": base64.StdEncoding.EncodeToString(p)}}})
	}
	b, _ := json.Marshal(cli.Object{"inputs": inputs})
	return b
}

func byURL(urls ...string) []byte {
	var inputs []cli.Object
	for _, u := range urls {
		inputs = append(inputs, cli.Object{"data": cli.Object{"image": cli.Object{"url": u}}})
	}
	b, _ := json.Marshal(cli.Object{"inputs": inputs})
	return b
}

// outputs is the answer to a predict call, as clients read it.
type outputs struct {
	Status  cli.Status
	Outputs []struct {
		Status cli.Status
		Input  struct {
			Data struct{ Image struct{ URL string } }
		}
		Data struct {
			Concepts []struct {
				ID, Name string
				Value    float64
			}
			Colors     []cli.Object
			Embeddings []cli.Object
		}
	}
}

func predictBy(t testing.TB, client *http.Client, base, model string, body []byte) (int, outputs) {
	t.Helper()
	res, err := client.Post(base+"/v2/models/"+model+"/outputs", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out outputs
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%d %.200q: %v", res.StatusCode, b, err)
	}
	return res.StatusCode, out
}

// own returns a client whose idle connections close at the end of the test.
func own(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: keyTransport{transport}, Timeout: time.Minute}
}

func TestPredictByBase64ByURLAndHosted(t *testing.T) {
	picture := sample(t, "09-sea-turtle.jpg")
	pictureServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/turtle" {
			_, _ = w.Write(picture)
			return
		}
		http.NotFound(w, r)
	}))
	defer pictureServer.Close()
	s := testSettings(t)
	s.AllowPrivate = true
	srv, base := startOrigin(t, s)
	client := own(t)

	code, sent := predictBy(t, client, base, generalID, byBase64(picture))
	if code != 200 || len(sent.Outputs) != 1 || sent.Status.Description != "Ok" {
		t.Fatalf("by base64: %d %+v", code, sent.Status)
	}
	hostedURL := sent.Outputs[0].Input.Data.Image.URL
	if !strings.HasPrefix(hostedURL, base+"/hosted/") {
		t.Fatalf("hosted at %q, want a name below %s/hosted/", hostedURL, base)
	}
	res, err := client.Get(hostedURL)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || !bytes.Equal(got, picture) || res.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("the hosted copy: %d bytes of %s, %v; want %d of image/jpeg", len(got), res.Header.Get("Content-Type"), err, len(picture))
	}

	code, fetched := predictBy(t, client, base, generalID, byURL(pictureServer.URL+"/turtle", hostedURL, pictureServer.URL+"/nothing", base+"/hosted/none"))
	if code != 207 || len(fetched.Outputs) != 4 {
		t.Fatalf("by URL: %d %+v", code, fetched.Status)
	}
	for i, want := range []int{10000, 10000, 30002, 30002} {
		if got := fetched.Outputs[i].Status.Code; got != want {
			t.Errorf("output %d has status %d, want %d", i, got, want)
		}
	}
	for i := range 2 {
		a, b := fmt.Sprint(sent.Outputs[0].Data.Concepts), fmt.Sprint(fetched.Outputs[i].Data.Concepts)
		if a != b {
			t.Errorf("by URL %d: %s, by base64: %s", i, b, a)
		}
	}
	if names := fmt.Sprint(sent.Outputs[0].Data.Concepts[:5]); !strings.Contains(names, "turtle") && !strings.Contains(names, "animal") {
		t.Errorf("the sea turtle is %s", names)
	}

	if _, colors := predictBy(t, client, base, colorID, byBase64(picture)); len(colors.Outputs) != 1 || len(colors.Outputs[0].Data.Colors) == 0 {
		t.Error("the colour model gives no colours")
	}
	if _, e := predictBy(t, client, base, embedID, byBase64(picture)); len(e.Outputs) != 1 || len(e.Outputs[0].Data.Embeddings) != 1 {
		t.Error("the embed model gives no embedding")
	}
	if _, _, done := srv.Pool.Load(); done != 5 {
		t.Errorf("%d pictures were analysed, want 5", done)
	}
}

func TestPrivateAddressIsRefusedByDefault(t *testing.T) {
	var hits atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer inside.Close()
	_, base := startOrigin(t, testSettings(t))
	code, out := predictBy(t, own(t), base, generalID, byURL(inside.URL+"/p.jpg"))
	if code != 400 || out.Status.Code != 10020 || out.Outputs[0].Status.Code != 30002 || hits.Load() != 0 {
		t.Errorf("a private address: %d, %+v, %d hits; want 400, 30002 and none", code, out.Status, hits.Load())
	}
}

func TestManyInputsAndManyCallers(t *testing.T) {
	_, base := startOrigin(t, testSettings(t))
	client := own(t)
	names := []string{"09-sea-turtle.jpg", "35-slice-of-pizza.jpg", "04-old-camera.jpg", "26-green-roadster.jpg"}
	var one []string
	for _, name := range names {
		_, out := predictBy(t, client, base, generalID, byBase64(sample(t, name)))
		one = append(one, fmt.Sprint(out.Outputs[0].Data.Concepts))
	}
	var many [][]byte
	for i := range 128 {
		many = append(many, sample(t, names[i%len(names)]))
	}
	code, out := predictBy(t, client, base, generalID, byBase64(many...))
	if code != 200 || len(out.Outputs) != 128 {
		t.Fatalf("128 inputs: %d %+v, %d outputs", code, out.Status, len(out.Outputs))
	}
	for i := range out.Outputs {
		if got := fmt.Sprint(out.Outputs[i].Data.Concepts); got != one[i%len(names)] {
			t.Errorf("output %d of 128 = %s, alone %s", i, got, one[i%len(names)])
		}
	}
	if code, out := predictBy(t, client, base, generalID, byURL(make([]string, 129)...)); code != 400 || out.Status.Code != 40001 {
		t.Errorf("129 inputs: %d %d, want 400 40001", code, out.Status.Code)
	}
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := range 4 {
				n := (caller + i) % len(names)
				_, out := predictBy(t, client, base, generalID, byBase64(sample(t, names[n])))
				if len(out.Outputs) != 1 || fmt.Sprint(out.Outputs[0].Data.Concepts) != one[n] {
					t.Errorf("caller %d gets another's answer", caller)
				}
			}
		})
	}
	wg.Wait()
}

func TestFolderBelongsToOneServer(t *testing.T) {
	s := testSettings(t)
	srv, base := startOrigin(t, s)
	if second, err := server.Start(t.Context(), s, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second server on the folder: %v, want that it is in use", err)
		if err == nil {
			_ = second.Stop()
		}
	}
	_, out := predictBy(t, own(t), base, generalID, byBase64(dots(t, 1, 32)))
	name := strings.TrimPrefix(out.Outputs[0].Input.Data.Image.URL, base)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	srv2, base2 := startOrigin(t, s)
	res, err := own(t).Get(base2 + name)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 || srv2.Hosted.Len() != 1 {
		t.Errorf("after a restart the hosted copy answers %d", res.StatusCode)
	}
}

func TestHostedCopiesExpire(t *testing.T) {
	s := testSettings(t)
	s.PredictedTTL = time.Millisecond
	srv, base := startOrigin(t, s)
	_, out := predictBy(t, own(t), base, generalID, byBase64(dots(t, 2, 32)))
	if len(out.Outputs) != 1 || out.Outputs[0].Status.Code != 10000 {
		t.Fatalf("predict: %+v", out)
	}
	for start := system.Now(); system.Now().Sub(start) < 2*time.Millisecond; {
		continue // the clock must pass the end of the hosted copy's short life
	}
	res, err := own(t).Get(out.Outputs[0].Input.Data.Image.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 404 {
		t.Errorf("an expired copy answers %d, want 404", res.StatusCode)
	}
	if n, err := srv.Hosted.Sweep(t.Context(), system.Now()); n != 1 || err != nil || srv.Hosted.Len() != 0 {
		t.Errorf("Sweep = %d, %v; %d names left; want 1 swept", n, err, srv.Hosted.Len())
	}
}

func TestServeCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log, out safeBuffer
	done := make(chan int)
	data := filepath.Join(t.TempDir(), "data")
	go func() {
		done <- cli.Run(ctx, New(), server.Env{
			Args:   []string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "text"},
			Stdout: &out, Stderr: &log, Environ: func() []string { return []string{"SIGHTLINE_PUBLIC_APP_ID=main", "OTHER=1"} },
		})
	}()
	address := ""
	for address == "" {
		select {
		case code := <-done:
			t.Fatalf("serve ended with %d:\n%s", code, log.String())
		default:
		}
		if _, rest, ok := strings.Cut(log.String(), "address="); ok {
			address, _, _ = strings.Cut(rest, " ")
		}
	}
	keys.Store(address, printedKey(out.String()))
	res, err := own(t).Get("http://" + address + "/v2/models/" + generalID)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if !strings.Contains(string(b), `"app_id":"main"`) {
		t.Errorf("the model is %s, want app_id main from the environment", b)
	}
	cancel()
	if code := <-done; code != 0 || !strings.Contains(log.String(), "msg=stopped") {
		t.Errorf("serve ended with %d:\n%s", code, log.String())
	}
}

// safeBuffer is a buffer that is safe for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
