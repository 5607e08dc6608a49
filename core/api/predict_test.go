package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// answer is the parsed answer of a predict call.
type answer struct {
	Status  struct{ Code int }
	Outputs []struct {
		ID     string
		Status struct {
			Code                 int
			Description, Details string
		}
		CreatedAt string `json:"created_at"`
		Model     struct{ ID string }
		Input     struct {
			ID   string
			Data struct {
				Image *struct {
					URL  string
					Crop []float64
				}
			}
		}
		Data json.RawMessage
	}
}

// colors returns the same analysis for every picture.
func colors(j Job) Result {
	if r := fail(j); r.Err != nil {
		return r
	}
	share := func(name, hex string, value float32) predict.ColorShare {
		return predict.ColorShare{W3C: predict.Color{ID: "ai_" + strings.ToLower(name), Name: name, Hex: hex}, RawHex: hex, Value: value}
	}
	return Result{Analysis: predict.Analysis{
		Has:    predict.WantColors,
		Colors: []predict.ColorShare{share("White", "#ffffff", 0.75), share("Black", "#000000", 0.25)},
	}}
}

func predictOn(t testing.TB, s *Service, model, body string) (Response, answer) {
	t.Helper()
	got := serve(t, s, Request{Method: "POST", Path: "/v2/models/" + model + "/outputs", Body: []byte(body)}, colors)
	var a answer
	if err := json.Unmarshal(got.Body, &a); err != nil {
		t.Fatalf("%s: %v", got.Body, err)
	}
	if a.Outputs == nil {
		t.Fatalf("%s: no outputs", got.Body)
	}
	return got, a
}

// inputsOf returns a request body with one input per URL.
func inputsOf(urls ...string) string {
	inputs := make([]string, 0, len(urls))
	for _, u := range urls {
		inputs = append(inputs, fmt.Sprintf(`{"data":{"image":{"url":%q}}}`, u))
	}
	return `{"inputs":[` + strings.Join(inputs, ",") + `]}`
}

func TestInputCount(t *testing.T) {
	s := smallService(t)
	for n, want := range map[int]int{0: 40001, 1: 10000, 128: 10000, 129: 40001, 1000: 40001} {
		got, a := predictOn(t, s, "color", inputsOf(slices.Repeat([]string{"http://a/b.jpg"}, n)...))
		if a.Status.Code != want || want == 10000 && len(a.Outputs) != n || want != 10000 && (got.Status != 400 || len(a.Outputs) != 0) {
			t.Errorf("%d inputs = %d, %d with %d outputs; want %d", n, got.Status, a.Status.Code, len(a.Outputs), want)
		}
	}
}

func TestItemStatuses(t *testing.T) {
	s := smallService(t)
	tests := []struct {
		image string
		code  int
	}{
		{`{"url":"http://a/b.jpg"}`, 10000},
		{`{"url":"  HTTPS://a/b.jpg\n"}`, 10000},
		{`{"url":"http://a/b.jpg","base64":null,"crop":null,"allow_duplicate_url":true}`, 10000},
		{`{"url":"http://a/b.jpg","base64":""}`, 10000},
		{`{"url":"","base64":"\n"}`, 30104},
		{`{"url":"http://a/missing"}`, 30002},
		{`{"url":"http://a/heic"}`, 30101},
		{`{"url":"http://a/huge"}`, 30105},
		{`{"url":"http://a/torn"}`, 30300},
		{`{"url":"http://a/slow"}`, 30300},
		{`{"url":null}`, 30104},
		{`{"url":""}`, 30104},
		{`{"url":7}`, 30104},
		{`{}`, 30104},
		{`null`, 30104},
		{`[]`, 30104},
		{`[1]`, 30104},
		{`"http://a/b.jpg"`, 30104},
		{`{"url":"http://a/b.jpg","base64":"QUJD"}`, 30104},
		{`{"url":"ftp://a/b.jpg"}`, 30106},
		{`{"url":"file:///etc/passwd"}`, 30106},
		{`{"url":"b.jpg"}`, 30106},
		{`{"url":"http://"}`, 30106},
		{`{"url":"http://a\u0000b/"}`, 30106},
		{`{"url":"http://a/` + strings.Repeat("b", call.MaxURLBytes) + `"}`, 30106},
		{`{"base64":""}`, 30104},
		{`{"base64":"*"}`, 30104},
		{`{"base64":17}`, 30104},
		{`{"base64":"QUJD"}`, 30101},
		{`{"base64":"` + strings.Repeat("A", 27_000_000) + `"}`, 30105},
		{`{"url":"http://a/b","crop":[0,0,1,1]}`, 10000},
		{`{"url":"http://a/b","crop":[0.25,0.5,0.75,1.0]}`, 10000},
		{`{"url":"http://a/b","crop":[]}`, 10000},
		{`{"url":"http://a/b","crop":[0.5,0,0.5,1]}`, 30104},
		{`{"url":"http://a/b","crop":[0,0.6,1,0.5]}`, 30104},
		{`{"url":"http://a/b","crop":[0,0,1]}`, 30104},
		{`{"url":"http://a/b","crop":[0,0,1,1,1]}`, 30104},
		{`{"url":"http://a/b","crop":[-0.1,0,1,1]}`, 30104},
		{`{"url":"http://a/b","crop":[0,0,1,1.1]}`, 30104},
		{`{"url":"http://a/b","crop":[0,0,1,"1"]}`, 30104},
		{`{"url":"http://a/b","crop":[0,0,1,1e999]}`, 30104},
		{`{"url":"http://a/b","crop":{"top":1}}`, 30104},
		{`{"url":"http://a/b","crop":0.5}`, 30104},
	}
	for _, tt := range tests {
		name := tt.image[:min(len(tt.image), 60)]
		t.Run(name, func(t *testing.T) {
			got, a := predictOn(t, s, "color", `{"inputs":[{"id":"mine","data":{"image":`+tt.image+`}}]}`)
			wantHTTP, wantCode := 200, 10000
			if tt.code != 10000 {
				wantHTTP, wantCode = 400, 10020
			}
			if got.Status != wantHTTP || a.Status.Code != wantCode || len(a.Outputs) != 1 || a.Outputs[0].Status.Code != tt.code {
				t.Fatalf("%d %.300s, want %d with %d", got.Status, got.Body, wantHTTP, tt.code)
			}
			o := a.Outputs[0]
			if o.Input.ID != "mine" || o.Input.Data.Image == nil || o.Model.ID != "color" || len(o.ID) != 32 || o.CreatedAt != "2026-11-21T18:00:00.000000Z" {
				t.Errorf("output %+v", o)
			}
			if failed := string(o.Data) == "{}"; failed != (tt.code != 10000) || failed != (o.Status.Details != "") {
				t.Errorf("data %s, details %q", o.Data, o.Status.Details)
			}
		})
	}
}

// TestInputShapes checks that an invalid element fails without failing the other elements.
func TestInputShapes(t *testing.T) {
	s := smallService(t)
	body := `{"inputs":[null,{},[],7,"x",{"data":7},{"id":7},{"id":"` + strings.Repeat("x", 129) + `"},{"id":"a\u0007"},
		{"id":"","data":{"image":{"url":"http://a/b"}}},{"id":"狗/dog?","data":{"image":{"url":"http://a/b"},"concepts":[{"id":"x"}],"metadata":{"a":1}}}]}`
	got, a := predictOn(t, s, "color", body)
	if got.Status != 207 || a.Status.Code != 10010 {
		t.Fatalf("%d %s, want 207 and 10010", got.Status, got.Body)
	}
	for i, o := range a.Outputs {
		want := 30104
		if i >= 9 {
			want = 10000
		}
		if o.Status.Code != want || o.Input.ID == "" {
			t.Errorf("input %d: %d, id %q; want %d", i, o.Status.Code, o.Input.ID, want)
		}
	}
	if id := a.Outputs[10].Input.ID; id != "狗/dog?" {
		t.Errorf("id %q is not echoed", id)
	}
	for _, body := range []string{`{"inputs":7}`, `{"inputs":{"data":{}}}`, `{"inputs":"x"}`} {
		if got, a := predictOn(t, s, "color", body); got.Status != 400 || a.Status.Code != 40001 {
			t.Errorf("%s = %d %s", body, got.Status, got.Body)
		}
	}
}

// TestInternalErrorFailsTheCall checks that an internal error of the host fails the whole call, not a single input.
func TestInternalErrorFailsTheCall(t *testing.T) {
	s := smallService(t)
	for word, want := range map[string]int{"busy": 503, "timeout": 504, "broken": 500} {
		got, a := predictOn(t, s, "color", inputsOf("http://a/b", "http://a/"+word, "http://a/missing"))
		if got.Status != want || len(a.Outputs) != 0 || strings.Contains(string(got.Body), "secret") {
			t.Errorf("%s = %d %s, want %d", word, got.Status, got.Body, want)
		}
	}
	r := Request{Method: "POST", Path: "/v2/models/color/outputs", Authorization: fixedKey, Body: []byte(inputsOf("http://a/b", "http://a/c"))}
	for name, results := range map[string][]Result{
		"no results":          nil,
		"too few":             {colors(Job{})},
		"without what wanted": {colors(Job{}), {Analysis: predict.Analysis{Has: predict.WantConcepts}}},
	} {
		call := s.Begin(context.Background(), &r)
		call.Resume(results)
		if got := call.Response(); !call.Done() || got.Status != 500 {
			t.Errorf("%s: done %v, %d %s", name, call.Done(), got.Status, got.Body)
		}
		call.Resume(nil)
		if got := call.Response(); got.Status != 500 {
			t.Errorf("%s: a second Resume changes the answer to %d", name, got.Status)
		}
	}
}

// TestEndedContextTimesOut checks that a call whose context has ended is answered with a timeout.
func TestEndedContextTimesOut(t *testing.T) {
	s := smallService(t)
	r := Request{Method: "POST", Path: "/v2/models/color/outputs", Authorization: fixedKey, Body: []byte(inputsOf("http://a/b"))}
	for _, err := range []error{context.Canceled, fmt.Errorf("secret: %w", context.DeadlineExceeded)} {
		call := s.Begin(context.Background(), &r)
		call.Resume([]Result{{Err: err}})
		if got := call.Response(); got.Status != 504 || strings.Contains(string(got.Body), "secret") {
			t.Errorf("%v: %d %s", err, got.Status, got.Body)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	text := base64.StdEncoding.EncodeToString(onePixel(t))
	r.Body = []byte(`{"inputs":[{"data":{"image":{"base64":"` + text + `"}}}]}`)
	if call := s.Begin(ctx, &r); !call.Done() || call.Response().Status != 504 {
		t.Errorf("done %v, %d %s", call.Done(), call.Response().Status, call.Response().Body)
	}
}

// TestFetchErrorHidesCause checks that the details of a failed fetch do not reveal its cause.
func TestFetchErrorHidesCause(t *testing.T) {
	s := smallService(t)
	call := s.Begin(context.Background(), &Request{Method: "POST", Path: "/v2/models/color/outputs", Authorization: fixedKey, Body: []byte(inputsOf("http://a/1", "http://a/2"))})
	call.Resume([]Result{
		{Err: fmt.Errorf("%w: dial 10.0.0.1:80: refused", ErrFetch)},
		{Err: fmt.Errorf("no such host: %w", ErrFetch)},
	})
	body := string(call.Response().Body)
	if n := strings.Count(body, `"details":"`+ErrFetch.Error()+`"`); n != 2 || strings.Contains(body, "10.0.0.1") {
		t.Errorf("%s", body)
	}
}

func onePixel(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBase64IsHosted(t *testing.T) {
	now := start
	s, blobs := newService(t, newSmallModels(t), Options{Clock: func() time.Time { return now }, PublicURL: "https://pictures.example/base/"})
	picture := onePixel(t)
	text := base64.StdEncoding.EncodeToString(picture)
	body := []byte(`{"inputs":[{"id":"a","data":{"image":{"base64":"` + text + `","crop":[0,0,0.5,1]}}},{"data":{"image":{"url":"http://a/b"}}}]}`)
	call := s.Begin(context.Background(), &Request{Method: "POST", Path: "/v2/models/color/outputs", Authorization: fixedKey, Body: body})
	clear(body) // Begin may not use the body after it returns
	jobs := slices.Clone(call.Jobs())
	if len(jobs) != 2 || jobs[0].URL != "" || jobs[0].Blob != blob.Sum(picture) || jobs[0].Crop != (raster.Crop{Bottom: 0.5, Right: 1}) || jobs[1].URL != "http://a/b" {
		t.Fatalf("jobs %+v", jobs)
	}
	if got, err := blobs.Get(context.Background(), jobs[0].Blob); err != nil || !bytes.Equal(got, picture) {
		t.Fatalf("blob = %x, %v", got, err)
	}
	call.Resume([]Result{colors(jobs[0]), colors(jobs[1])})
	var a answer
	if err := json.Unmarshal(call.Response().Body, &a); err != nil {
		t.Fatal(err)
	}
	address := a.Outputs[0].Input.Data.Image.URL
	name, ok := strings.CutPrefix(address, "https://pictures.example/base"+HostedPath)
	if !ok || len(name) != 32 || strings.Contains(string(call.Response().Body), text) {
		t.Fatalf("hosted at %q", address)
	}
	if crop := a.Outputs[0].Input.Data.Image.Crop; !slices.Equal(crop, []float64{0, 0, 0.5, 1}) {
		t.Errorf("crop %v is echoed", crop)
	}
	gallery := PublicPictures{Names: s.host.Hosted.(*blob.HostedNames), Clock: s.host.Clock}
	p, err := gallery.Picture(name)
	if err != nil || p.ContentType != "image/png" || p.Hash != jobs[0].Blob {
		t.Errorf("Hosted = %+v, %v", p, err)
	}
	now = start.Add(24*time.Hour - 1)
	if _, err := gallery.Picture(name); err != nil {
		t.Errorf("just before its day is over: %v", err)
	}
	now = start.Add(24 * time.Hour)
	if _, err := gallery.Picture(name); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("after a day: %v, want %v", err, blob.ErrNotFound)
	}
}

// brokenHosting fails to store any picture, like a full disk.
type brokenHosting struct{ Hosting }

func (brokenHosting) Add(context.Context, blob.AppID, []byte, string, time.Time) (string, blob.Hash, error) {
	return "", blob.Hash{}, errors.New("disk full")
}

func TestHostingFails(t *testing.T) {
	s, err := New(Options{Models: newSmallModels(t), Hosted: brokenHosting{}, Apps: fixedApp("en"), Clock: func() time.Time { return start }, Rand: &counter{}})
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(onePixel(t))
	got, _ := predictOn(t, s, "color", `{"inputs":[{"data":{"image":{"base64":"`+text+`"}}}]}`)
	if got.Status != 500 || strings.Contains(string(got.Body), "disk") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

func TestEmbedding(t *testing.T) {
	s := smallService(t)
	e := predict.Embedding{Scale: 1.0 / 32767}
	e.Q[0] = 32767
	body := inputsOf("http://a/b")
	got := serve(t, s, Request{Method: "POST", Path: "/v2/models/embed/outputs", Body: []byte(body)}, func(j Job) Result {
		if j.Want != predict.WantConcepts {
			t.Errorf("wants %v", j.Want)
		}
		return Result{Analysis: predict.Analysis{Has: j.Want, Embedding: e}}
	})
	want := `"data":{"embeddings":[{"vector":[1` + strings.Repeat(",0", predict.Dim-1) + `],"num_dimensions":256}]}`
	if !strings.Contains(string(got.Body), want) {
		t.Errorf("%s, want %s", got.Body, want)
	}
}
