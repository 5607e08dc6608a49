package core_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
)

// fixture has the services of a test's engine: a clock that the test sets, and blobs that it can read.
type fixture struct {
	mu    sync.Mutex
	now   time.Time
	blobs *blob.Memory
	o     core.Options
	key   string // key of the application that open created
}

// open opens an engine and creates an application with a key.
func (l *fixture) open(t testing.TB) *core.Engine {
	t.Helper()
	e, err := core.Open(l.o)
	if err != nil {
		t.Fatal(err)
	}
	app, _, err := e.Register.CreateApp(context.Background(), register.Caller{}, register.NewApp{Name: "test", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	if l.key, _, err = e.Register.CreateKey(context.Background(), register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (l *fixture) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// lockedReader makes a source of bytes safe for concurrent use, like a host's.
type lockedReader struct {
	mu sync.Mutex
	c  apitest.Counter
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.c.Read(p)
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	l := &fixture{now: apitest.Start, blobs: blob.NewMemory(blob.Options{})}
	random := &lockedReader{}
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: l.blobs, Random: random})
	if err != nil {
		t.Fatal(err)
	}
	l.o = core.Options{Store: kvtest.OrLate(t, memkv.New()), Models: apitest.Tiny(t), Hosted: hosted, Clock: l.clock, Rand: random}
	return l
}

// work does the host's part of a call whose pictures were sent as base64.
func work(t testing.TB, l *fixture, call *api.Exchange) api.Response {
	analyser := l.o.Models.NewAnalyser(raster.Limits{})
	for !call.Done() {
		var results []api.Result
		for _, j := range call.Jobs() {
			var r api.Result
			picture, err := l.blobs.Get(context.Background(), j.Blob)
			if r.Err = err; err == nil {
				r.Analysis, r.Err = analyser.Analyse(picture, j.Crop, j.Want)
			}
			results = append(results, r)
		}
		call.Resume(results)
	}
	return call.Response()
}

// pictureCall returns a predict call of one picture of side×side black pixels.
func (l *fixture) pictureCall(t testing.TB, side int) *api.Request {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return &api.Request{
		Method: "POST", Path: "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", Authorization: "Key " + l.key,
		Body: fmt.Appendf(nil, `{"inputs":[{"data":{"image":{"base64":"%s"}}}],"model":{"output_info":{"output_config":{"max_concepts":1}}}}`,
			base64.StdEncoding.EncodeToString(b.Bytes())),
	}
}

func TestEngineSweepsPredictedPictures(t *testing.T) {
	l := newFixture(t)
	l.o.PredictedTTL = time.Hour
	e := l.open(t)
	ctx := context.Background()
	got := work(t, l, e.Begin(ctx, l.pictureCall(t, 4)))
	_, rest, _ := strings.Cut(string(got.Body), api.HostedPath)
	if got.Status != 200 || len(rest) < 32 || !strings.Contains(string(got.Body), `"name":"black"`) {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	picture, err := e.Register.HostedPicture(rest[:32])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Step(ctx, apitest.Start.Add(time.Hour-time.Second)); err != nil {
		t.Errorf("Step = %v", err)
	}
	if stored, err := l.blobs.Has(ctx, picture.Hash); !stored || err != nil {
		t.Errorf("a second early the blob is held: %v, %v", stored, err)
	}
	if _, err := e.Step(ctx, apitest.Start.Add(time.Hour+time.Minute)); err != nil {
		t.Errorf("Step = %v", err)
	}
	if _, err := e.Register.HostedPicture(rest[:32]); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Hosted = %v, want %v", err, blob.ErrNotFound)
	}
	if stored, err := l.blobs.Has(ctx, picture.Hash); stored || err != nil {
		t.Errorf("the blob is held: %v, %v", stored, err)
	}
}

func TestEngineClosed(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := context.Background()
	before := e.Begin(ctx, l.pictureCall(t, 4))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got := work(t, l, before); got.Status != 200 {
		t.Errorf("a call that was under way = %d %s", got.Status, got.Body)
	}
	call := e.Begin(ctx, l.pictureCall(t, 4))
	if got := call.Response(); !call.Done() || got.Status != 503 || !strings.Contains(string(got.Body), `"outputs":[]`) {
		t.Errorf("after Close: done %v, %d %s", call.Done(), got.Status, got.Body)
	}
	if _, err := e.Step(ctx, apitest.Start); !errors.Is(err, register.ErrClosed) {
		t.Errorf("Step after Close = %v, want %v", err, register.ErrClosed)
	}
	if got := e.Refuse(l.pictureCall(t, 4), api.ErrInternal); got.Status != 500 || string(got.Body) != `{"status":{"code":99009,"description":"Internal error"},"outputs":[]}` {
		t.Errorf("Refuse = %d %s", got.Status, got.Body)
	}
}

func TestOpenChecks(t *testing.T) {
	for name, change := range map[string]func(*core.Options){
		"no store":   func(o *core.Options) { o.Store = nil },
		"no models":  func(o *core.Options) { o.Models = nil },
		"no hosting": func(o *core.Options) { o.Hosted = nil },
		"no clock":   func(o *core.Options) { o.Clock = nil },
		"no random":  func(o *core.Options) { o.Rand = nil },
		"public URL": func(o *core.Options) { o.PublicURL = "here" },
	} {
		o := newFixture(t).o
		change(&o)
		if _, err := core.Open(o); !errors.Is(err, api.ErrOptions) {
			t.Errorf("%s: Open = %v, want %v", name, err, api.ErrOptions)
		}
	}
}

// TestEngineConcurrent checks that concurrent calls do not mix: each gets the answer for its own picture.
func TestEngineConcurrent(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	var wg sync.WaitGroup
	for side := 1; side <= 8; side++ {
		wg.Go(func() {
			for range 20 {
				r := l.pictureCall(t, side)
				r.Body = bytes.Replace(r.Body, []byte(`{"inputs":[{`), fmt.Appendf(nil, `{"inputs":[{"id":"side-%d",`, side), 1)
				call := e.Begin(context.Background(), r)
				clear(r.Body)
				got := work(t, l, call)
				if got.Status != 200 || !strings.Contains(string(got.Body), fmt.Sprintf(`"id":"side-%d"`, side)) {
					t.Errorf("side %d: %d %s", side, got.Status, got.Body)
				}
			}
		})
	}
	wg.Wait()
}
