package apitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif/exiftest"
	"github.com/sightline-dev/sightline/core/register"
)

// Start is the time of a transcript's clock until a step moves it.
var Start = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)

// Counter is a source of bytes that is the same in each run and never repeats.
type Counter struct{ n uint64 }

// Read fills p.
func (c *Counter) Read(p []byte) (int, error) {
	for i := range p {
		if i%8 == 0 {
			c.n++
		}
		p[i] = byte(c.n >> (56 - 8*(i%8)))
	}
	return len(p), nil
}

// Source is a source of bytes that a test can replace between two calls, so that bytes drawn for one
// application do not change those that another gets.
type Source struct{ *Counter }

// NewCounter returns a Counter that starts after n.
func NewCounter(n uint64) *Counter { return &Counter{n} }

// World is an engine on a store in memory, with one application and a key to it, and their environment: pictures at URLs, one
// analyser, blobs in memory, and a clock that the test moves.
//
//	http://pictures.test/NAME    a picture of Files, or one of these:
//	  red.png blue.png white.png black.png     8×8 of the colour
//	  half.png                                 upper half red, lower half blue
//	  torn.png heic.jpg huge.png text.html     unreadable
//	  busy slow timeout trouble                errors of a host
//	  full                                     the store accepts no data
//	  twice.png                                red, at the third request
//	  down.png                                 fails with an error that may pass
//	  missing.png                              the server answers 404
//	anything else                the fetch fails, and the caller gets no reason
type World struct {
	Engine   *core.Engine
	App      string // id of the application
	Key      string // to App
	Client   register.Client
	Accounts *Accounts
	Tokens   *Tokens
	Store    kv.Store
	Blobs    *blob.Memory
	Hosted   *blob.HostedNames
	Now      time.Time
	IDs      Source // source of ids and secrets
	Names    Source // source of the names of pictures that were sent to be predicted

	// Devices are the devices that the host of an origin knows; nil: none.
	Devices func(app string) ([]api.Device, error)

	Opened func(Guest)                 // called for each opened guest; may be nil
	Pause  func(d time.Duration) error // pauses a call that waits for an input; nil: no call waits

	openGuest OpenGuest
	guest     Guest // nil before the first request, and if Engine answers
	options   core.Options
	analysers map[[32]byte]*predict.Analyser // by base
	files     fs.FS
	fetches   map[string]int // number of fetches by URL
}

// Guest is an engine that uses a world's services, for example in a module. Its methods are those of [core.Engine] and of the analysers.
type Guest interface {
	Begin(ctx context.Context, r *api.Request) *api.Exchange
	Take(now time.Time, n int) ([]core.Task, error)
	Done(ctx context.Context, t core.Task, r core.Result) error
	Step(ctx context.Context, now time.Time) (more bool, err error)
	Analyse(media []byte, j *api.Job) api.Result
	Close() error
}

// OpenGuest opens a guest for the application app. o has the services of a native engine.
type OpenGuest func(t testing.TB, o core.Options, app string) Guest

// NewServer returns the world of a transcript. settings may have public-app-id, default-language, public-url, max-answer, and max-bytes
// and max-members of a body. It may also have: owner of the application (the operator, anna or bert), scopes of the key (All), rate of
// keys of accounts ("per second, at once"), and calls that are left to the owner. files may be nil.
func NewServer(t testing.TB, set *predict.Set, files fs.FS, settings map[string]string) Server {
	t.Helper()
	w := NewWorld(t, memkv.New(), set, files, settings)
	t.Cleanup(func() { w.CheckForms(t) })
	return func(r api.Request) api.Response { return w.Serve(t, r) }
}

// NewWorld makes a world on an empty store.
func NewWorld(t testing.TB, store kv.Store, set *predict.Set, files fs.FS, settings map[string]string) *World {
	t.Helper()
	return NewGuestWorld(t, store, set, files, settings, nil)
}

// NewGuestWorld returns a world whose Engine creates an application and a key. A guest that openGuest opens answers requests and
// analyses pictures, with the same random bytes as an engine here. If openGuest is nil, Engine does.
func NewGuestWorld(t testing.TB, store kv.Store, set *predict.Set, files fs.FS, settings map[string]string, openGuest OpenGuest) *World {
	t.Helper()
	w := &World{
		openGuest: openGuest,
		Store:     store, Blobs: blob.NewMemory(blob.Options{}), Now: Start,
		analysers: map[[32]byte]*predict.Analyser{}, files: files, fetches: map[string]int{},
		IDs: Source{&Counter{}},
	}
	var limits jsonio.Limits
	var err error
	for name, limit := range map[string]*int{"max-bytes": &limits.Bytes, "max-members": &limits.Members} {
		if value, ok := settings[name]; ok {
			if *limit, err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Accounts, w.Tokens = &Accounts{Calls: map[string]int64{}}, &Tokens{now: func() time.Time { return w.Now }}
	w.options = core.Options{
		Models: set, Clock: func() time.Time { return w.Now }, Rand: &w.IDs,
		Tokens: w.Tokens, Accounts: w.Accounts, Calls: w.Accounts,
		Storage: w.Accounts, PictureSize: func(h blob.Hash) (int64, error) { return w.Blobs.Len(context.Background(), h) },
		Devices: func(app string) ([]api.Device, error) {
			if w.Devices == nil {
				return nil, nil
			}
			return w.Devices(app)
		},
		PublicAppID: settings["public-app-id"], PublicURL: settings["public-url"],
		JSON: limits, Rate: auth.Rate{PerSecond: -1},
	}
	for name, rate := range map[string]*auth.Rate{"rate": &w.options.Rate, "account-rate": &w.options.AccountRate} {
		if value, ok := settings[name]; ok {
			if _, err := fmt.Sscanf(value, "%g,%d", &rate.PerSecond, &rate.Burst); err != nil {
				t.Fatal(err)
			}
		}
	}
	if maxAnswer, ok := settings["max-answer"]; ok {
		if w.options.MaxAnswer, err = strconv.ParseInt(maxAnswer, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if calls, ok := settings["calls"]; ok {
		if w.Accounts.Calls[settings["owner"]], err = strconv.ParseInt(calls, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	w.Open(t, store)
	n := w.NewTenant(t, settings["owner"], cmp.Or(settings["default-language"], lang.English))
	w.App, w.Key, w.Client = n.App, n.Key, n.Client
	if scopes, ok := settings["scopes"]; ok {
		w.Key = w.NewKey(t, n, auth.SetOf(strings.Split(scopes, ",")))
	}
	return w
}

// Open opens the engine on a store, as after a restart of the program: it loses the memory of the previous engine.
func (w *World) Open(t testing.TB, store kv.Store) {
	t.Helper()
	w.closeGuest(t)
	var err error
	w.Store, w.options.Store = store, store
	w.Names.Counter = &Counter{n: 1 << 32}
	w.Hosted, err = blob.OpenHosted(blob.HostedOptions{
		Blobs: w.Blobs, Random: &w.Names,
		References: func(h blob.Hash) bool { return w.Engine.Register.References(h) },
		AppDeleted: func(app blob.AppID) (bool, error) { return w.Engine.Register.HostedAppDeleted(app) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.options.Hosted = w.Hosted
	if w.Engine, err = core.Open(w.options); err != nil {
		t.Fatal(err)
	}
}

// Separate lets an engine for the application alone answer, which is opened as a guest is. Both then draw the same random bytes for the log.
func (w *World) Separate() {
	w.openGuest = func(t testing.TB, o core.Options, app string) Guest {
		t.Helper()
		o.App = app
		e, err := core.Open(o)
		if err == nil {
			_, err = e.Partition(app)
		}
		if err != nil {
			t.Fatal(err)
		}
		return separate{here{e, w}}
	}
}

// separate is an engine that ends as by a crash, like an instance of a module.
type separate struct{ here }

// Close implements [Guest].
func (separate) Close() error { return nil }

// server returns the guest that answers: Engine, or the guest of w.openGuest. The first request opens the latter, as an engine here opens
// an application.
func (w *World) server(t testing.TB) Guest {
	if w.openGuest == nil {
		return here{w.Engine, w} // a fuzz target's F takes no Helper
	}
	t.Helper()
	if w.guest == nil {
		if err := w.Engine.Close(); err != nil { // it wrote what the guest reads
			t.Fatal(err)
		}
		w.guest = w.openGuest(t, w.options, w.App)
		if w.Opened != nil {
			w.Opened(w.guest)
		}
		t.Cleanup(func() { w.closeGuest(t) })
	}
	return w.guest
}

func (w *World) closeGuest(t testing.TB) {
	t.Helper()
	if w.guest == nil {
		return
	}
	if err := w.guest.Close(); err != nil {
		t.Error(err)
	}
	w.guest = nil
}

// here is the engine of this process as a Guest.
type here struct {
	*core.Engine
	w *World
}

// Analyse implements [Guest].
func (h here) Analyse(media []byte, j *api.Job) (r api.Result) {
	a := h.w.analyser(j.Base)
	if j.Video.SampleMS > 0 {
		r.Frames, r.Err = j.Video.AnalysePicture(a, raster.NewDecoder(raster.Limits{}), media, j.Want)
	} else {
		r.Analysis, r.Err = a.Analyse(media, j.Crop, j.Want)
	}
	return r
}

// ReopenStandalone reopens the engine as a host without accounts and tokens does.
func (w *World) ReopenStandalone(t testing.TB) {
	t.Helper()
	w.options.Tokens, w.options.Accounts, w.options.Calls = nil, nil, nil
	w.Open(t, w.Store)
}

// ReopenAsEdge reopens the engine as an edge does: it reads tokens, and has no accounts.
func (w *World) ReopenAsEdge(t testing.TB) {
	t.Helper()
	w.options.Accounts = nil
	w.Open(t, w.Store)
}

// ReopenWithNetwork reopens the engine with the network next, as a new version of the program does. The engine can still read old's
// bundles.
func (w *World) ReopenWithNetwork(t testing.TB, next, old *predict.Set) {
	t.Helper()
	w.options.Models = next
	w.options.Older = func(base [32]byte) (*predict.Set, error) {
		if base != old.Base() {
			return nil, fs.ErrNotExist
		}
		return old, nil
	}
	w.Open(t, w.Store)
}

// analyser returns the analyser of the network with a base.
func (w *World) analyser(base [32]byte) *predict.Analyser {
	a, ok := w.analysers[base]
	if !ok {
		a = w.Engine.Models(base).NewAnalyser(raster.Limits{})
		w.analysers[base] = a
	}
	return a
}

// Serve answers a request. It adds the key to a request without a credential. For "Authorization: none" it sends no credential, and for
// "Authorization: client" the client's id and secret. A request with the method STEP moves the clock by the duration in its path, and
// then runs background work until none is left.
func (w *World) Serve(t testing.TB, r api.Request) api.Response {
	switch {
	case r.Method == "STEP":
		d, err := time.ParseDuration(r.Path)
		if err != nil {
			t.Fatal(err)
		}
		w.Step(t, d)
		return api.Response{}
	case r.Authorization == "" && r.Session == "":
		r.Authorization = "Key " + w.Key
	case r.Authorization == "client":
		r.Authorization = Basic(w.Client)
	case r.Authorization == "none":
		r.Authorization = ""
	}
	call := w.server(t).Begin(context.Background(), &r)
	for !call.Done() {
		var results []api.Result
		for _, job := range call.Jobs() {
			results = append(results, w.work(w.server(t), job))
		}
		call.Resume(results)
	}
	return call.Response()
}

// Step moves the clock and runs background work until none is left.
func (w *World) Step(t testing.TB, d time.Duration) {
	t.Helper()
	w.Now = w.Now.Add(d)
	for range 10_000 {
		if !w.Round(t) {
			return
		}
	}
	t.Fatal("the background does not come to an end")
}

// Round runs at most one task and one step. It reports whether there was work.
func (w *World) Round(t testing.TB) bool {
	t.Helper()
	ctx := context.Background()
	server := w.server(t)
	tasks, err := server.Take(w.Now, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if err := server.Done(ctx, task, w.do(server, task)); err != nil {
			t.Fatal(err)
		}
	}
	more, err := server.Step(ctx, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	return more || len(tasks) > 0
}

// RunTask runs one background task.
func (w *World) RunTask(task core.Task) core.Result { return w.do(here{w.Engine, w}, task) }

func (w *World) do(server Guest, task core.Task) core.Result {
	var r core.Result
	if task.Picture != nil {
		r.Picture = w.work(server, *task.Picture)
	}
	for task.Training != nil && !task.Training.Step() {
	}
	return r
}

// RunJob runs one job.
func (w *World) RunJob(j api.Job) api.Result { return w.work(here{w.Engine, w}, j) }

func (w *World) work(server Guest, j api.Job) api.Result {
	if j.Wait > 0 {
		if w.Pause == nil {
			return api.Result{Err: api.ErrBusy}
		}
		return api.Result{Err: w.Pause(j.Wait)}
	}
	picture, err := w.bytes(j)
	if err != nil {
		return api.Result{Err: err, Passing: strings.HasSuffix(j.URL, "/down.png") || strings.HasSuffix(j.URL, "/twice.png")}
	}
	r := server.Analyse(picture, &j)
	if r.Err == nil && j.Keep {
		var t raster.FileType
		if t, r.Err = raster.InspectPicture(picture); r.Err == nil {
			r.ContentType = t.MediaType
			r.Blob, r.Err = w.Hosted.Pin(context.Background(), picture)
		}
	}
	return r
}

func (w *World) bytes(j api.Job) ([]byte, error) {
	if j.Data != nil {
		return j.Data, nil
	}
	if j.URL == "" {
		return w.Blobs.Get(context.Background(), j.Blob)
	}
	name, ok := strings.CutPrefix(j.URL, "http://pictures.test/")
	if !ok {
		return nil, fmt.Errorf("%w: no such host", api.ErrFetch)
	}
	if w.fetches[name]++; name == "twice.png" && w.fetches[name] > 2 {
		name = "red.png"
	}
	name, _, _ = strings.Cut(name, "?") // a query distinguishes URLs of one picture
	if picture, ok := pictures[name]; ok {
		return picture, nil
	}
	switch name {
	case "missing.png":
		return nil, api.DownloadError("its server answered with HTTP status 404")
	case "busy":
		return nil, api.ErrBusy
	case "timeout":
		return nil, api.ErrTimeout
	case "full":
		return nil, kv.ErrFull
	case "slow":
		return nil, raster.ErrExpired
	case "trouble":
		return nil, blob.ErrCorrupt
	}
	if w.files != nil {
		if picture, err := fs.ReadFile(w.files, name); err == nil {
			return picture, nil
		}
	}
	return nil, fmt.Errorf("%w: no such name", api.ErrFetch)
}

var pictures = func() map[string][]byte {
	red, blue := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 0, 255, 255}
	p := map[string][]byte{
		"red.png":   plain(red, red),
		"blue.png":  plain(blue, blue),
		"half.png":  plain(red, blue),
		"white.png": plain(color.White, color.White),
		"black.png": plain(color.Black, color.Black),
		"text.html": []byte("<!doctype html><title>no picture</title>"),
		"heic.jpg":  []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"),
	}
	p["film.mp4"] = []byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")
	p["film.gif"] = film(red, blue, red)
	p["torn.gif"] = p["film.gif"][:len(p["film.gif"])-30]
	p["torn.png"] = p["red.png"][:60]
	p["dated.png"] = exiftest.PNG(p["red.png"], exiftest.Chunk("eXIf", exiftest.EXIF(binary.BigEndian, exiftest.Tags{
		Original: "2019:07:21 23:06:38", OriginalOffset: "-09:00", Place: []float64{47.5, -12.25},
	})))
	p["day.png"] = exiftest.PNG(p["blue.png"], exiftest.Chunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"),
		exiftest.XMP("photoshop:DateCreated", "1935-05-04")...)))
	p["undated.png"] = exiftest.PNG(p["half.png"], exiftest.Chunk("eXIf", exiftest.EXIF(binary.LittleEndian, exiftest.Tags{Original: "0000:00:00 00:00:00"})))
	for _, photo := range exiftest.Photos() {
		p["photos/"+photo.Name] = photo.File
	}
	p["huge.png"] = bytes.Clone(p["red.png"])
	binary.BigEndian.PutUint32(p["huge.png"][16:], 65535)
	binary.BigEndian.PutUint32(p["huge.png"][20:], 65535)
	return p
}()

// film returns a GIF of 8×8 pixels that shows each colour for 1.2 seconds.
func film(colors ...color.Color) []byte {
	var g gif.GIF
	for _, c := range colors {
		g.Image = append(g.Image, image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{c}))
		g.Delay = append(g.Delay, 120)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		panic(err) // into memory
	}
	return b.Bytes()
}

// plain returns a PNG of 8×8 pixels with one colour in its upper half and one in its lower half.
func plain(upper, lower color.Color) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		c := upper
		if i >= 32 {
			c = lower
		}
		img.Set(i%8, i/8, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // into memory
	}
	return b.Bytes()
}

// Picture returns the picture with a name in World's URLs.
func Picture(name string) []byte { return bytes.Clone(pictures[name]) }

// CheckForms checks that the form of operations that replicas may push allows every operation in the logs of the world's applications.
func (w *World) CheckForms(t testing.TB) {
	t.Helper()
	apps, err := w.Engine.Register.Apps()
	for _, app := range apps {
		p, failed := w.Engine.Partition(app.ID)
		if err = errors.Join(err, failed); err != nil {
			break
		}
		err = errors.Join(err, p.Log().Read(1, func(e log.Entry) bool {
			if why := form.Check(e.Op.Body); why != "" {
				t.Errorf("entry %d of %s, %T %+v: %s", e.Seq, app.ID, e.Op.Body, e.Op.Body, why)
			}
			return true
		}))
	}
	if err != nil {
		t.Error(err)
	}
}

// Input reads an input's record.
func (w *World) Input(id string) (catalog.Input, error) {
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		return catalog.Input{}, err
	}
	return catalog.Read(w.Store, app).InputByID(id)
}
