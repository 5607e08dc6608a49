package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// smallModels are models with a few concepts that have names in every language, for tests without pictures.
type smallModels struct {
	models []*predict.Model
	names  *lang.Table
}

func (s *smallModels) Models() []*predict.Model { return s.models }
func (s *smallModels) General() *predict.Model  { return s.models[0] }
func (s *smallModels) Names() *lang.Table       { return s.names }
func (s *smallModels) Base() [32]byte           { return [32]byte{1} }

// Activations always fails.
func (s *smallModels) Activations(*predict.Model, *predict.Cells, []int) ([][]float32, error) {
	return nil, predict.ErrNetwork
}

func (s *smallModels) Model(id string) (*predict.Model, bool) {
	for _, m := range s.models {
		if m.ID == id {
			return m, true
		}
	}
	return nil, false
}

func newSmallModels(t testing.TB) *smallModels {
	t.Helper()
	concepts := []predict.Concept{{ID: "ai_dog", Name: "dog"}, {ID: "ai_dogsled", Name: "dogsled"}, {ID: "ai_cat", Name: "cat"}}
	files := map[string][]byte{}
	ids := make([]string, 0, len(concepts))
	for _, c := range concepts {
		ids = append(ids, c.ID)
	}
	for _, code := range lang.Codes() {
		var b strings.Builder
		for _, c := range concepts {
			fmt.Fprintf(&b, "%s\t%s-%s\n", c.ID, c.Name, code)
		}
		files[code] = []byte(b.String())
	}
	names, err := lang.Parse(files, ids)
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2016, 3, 9, 17, 11, 39, 608845000, time.UTC)
	model := func(id, name string, kind predict.Type, languages []string, concepts []predict.Concept) *predict.Model {
		return &predict.Model{
			ID: id, Name: name, Type: kind, TypeExt: string(kind), CreatedAt: day,
			VersionID: id + "v", VersionCreatedAt: day, Concepts: concepts, Languages: languages,
		}
	}
	return &smallModels{names: names, models: []*predict.Model{
		model("general", "general-v1.3", predict.TypeEmbed, lang.Codes(), concepts),
		model("color", "color", predict.TypeColor, []string{"en"}, []predict.Concept{{ID: "ai_white", Name: "White"}}),
		model("embed", "general-v1.3", predict.TypeEmbed, []string{"en"}, nil),
	}}
}

// counter is a source of bytes that are the same in every run and never repeat.
type counter struct{ n uint64 }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		if i%8 == 0 {
			c.n++
		}
		p[i] = byte(c.n >> (56 - 8*(i%8)))
	}
	return len(p), nil
}

var start = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)

func newHosted(t testing.TB) (*blob.HostedNames, blob.Blobs) {
	t.Helper()
	blobs := blob.NewMemory(blob.Options{})
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blobs, Random: &counter{n: 1 << 32}})
	if err != nil {
		t.Fatal(err)
	}
	return hosted, blobs
}

// fixedApp is the language of an application. It accepts every key, and every request gets a new, empty application.
type fixedApp string

// fixedID is the id of that application, and fixedKey is one of its keys.
const (
	fixedID  = "00000000000000000000000000000001"
	fixedKey = "Key 0123456789abcdef0123456789abcdef"
)

func (a fixedApp) Open(string) (*Application, error) {
	app := &Application{ID: fixedID, Language: string(a)}
	var err error
	app.Origin, err = partition.OpenOrigin(partition.Options{
		Store: memkv.New(), App: app.AppID(), Clock: func() time.Time { return start },
		Index: &index.Options{Space: index.Space{Base: [32]byte{1}, Concepts: []string{"ai_dog", "ai_dogsled", "ai_cat"}}},
	})
	if err == nil {
		app.Partition = app.Origin.Partition
	}
	return app, err
}

func (a fixedApp) App(string) (catalog.App, error) { return catalog.App{ID: fixedID}, nil }
func (a fixedApp) Key(h auth.Hash) (catalog.Key, error) {
	return catalog.Key{Hash: h, App: fixedID, Scopes: []string{"All"}}, nil
}

func (a fixedApp) Client(string) (catalog.Client, error) {
	return catalog.Client{}, catalog.ErrNotFound
}
func (a fixedApp) AppsOf(string) ([]catalog.App, error) { return nil, nil }
func (a fixedApp) Keys(string) ([]catalog.Key, error)   { return nil, nil }
func (a fixedApp) CreateApp(context.Context, string, string, NewApp) (catalog.App, error) {
	return catalog.App{}, ErrAccountRequest
}

func (a fixedApp) CreateKey(context.Context, string, string, NewKey) (string, catalog.Key, error) {
	return "", catalog.Key{}, ErrAccountRequest
}

// newService returns a service whose clock does not advance.
func newService(t testing.TB, models Models, o Options) (*Service, blob.Blobs) {
	t.Helper()
	hosted, blobs := newHosted(t)
	o.Models, o.Hosted, o.Rand = models, hosted, &counter{}
	if o.Clock == nil {
		o.Clock = func() time.Time { return start }
	}
	if o.Apps == nil {
		o.Apps = fixedApp(lang.English)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, blobs
}

// serve runs a request to its end. work does the host's jobs. A request without credentials gets a key.
func serve(t testing.TB, s *Service, r Request, work func(Job) Result) Response {
	t.Helper()
	if r.Authorization == "" {
		r.Authorization = fixedKey
	}
	call := s.Begin(context.Background(), &r)
	for rounds := 0; !call.Done(); rounds++ {
		if rounds == 10 {
			t.Fatalf("%s %s does not end", r.Method, r.Path)
		}
		var results []Result
		for _, job := range call.Jobs() {
			results = append(results, work(job))
		}
		call.Resume(results)
	}
	return call.Response()
}

// errorsByURL are errors of a host, by a word in the URL.
var errorsByURL = map[string]error{
	"missing": fmt.Errorf("%w: 404", ErrFetch),
	"heic":    fmt.Errorf("%w: HEIC: convert it to JPEG", raster.ErrUnsupported),
	"huge":    fmt.Errorf("%w: 65535 by 65535", raster.ErrTooLarge),
	"torn":    raster.ErrCorrupt,
	"slow":    raster.ErrExpired,
	"busy":    ErrBusy,
	"timeout": ErrTimeout,
	"broken":  errors.New("secret of the server"),
}

// fail returns the error that a job's URL names, or an empty result.
func fail(j Job) Result {
	for word, err := range errorsByURL {
		if strings.Contains(j.URL, word) {
			return Result{Err: err}
		}
	}
	return Result{Analysis: predict.Analysis{Has: j.Want}}
}

func smallService(t testing.TB) *Service {
	t.Helper()
	s, _ := newService(t, newSmallModels(t), Options{})
	return s
}
