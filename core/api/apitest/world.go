package apitest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Start is the time at which a transcript's clock stands still.
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

// World is what lies outside the service in a transcript: the pictures that addresses give,
// one analyser, blobs in memory.
//
//	http://pictures.test/NAME    a picture of Files, or one of these:
//	  red.png blue.png white.png black.png     8×8 of the colour
//	  half.png                                 upper half red, lower half blue
//	  torn.png heic.jpg huge.png text.html     not to be read
//	  busy slow timeout trouble                what goes wrong with a host
//	anything else                the fetch fails
type World struct {
	analyser *predict.Analyser
	blobs    blob.Blobs
	files    fs.FS
}

// NewServer is a service over the models, with the settings that transcripts know:
// public-app-id, default-language, public-url, max-bytes and max-members (of a body).
// files may be nil.
func NewServer(t testing.TB, set *predict.Set, files fs.FS, settings map[string]string) Server {
	t.Helper()
	blobs := blob.NewMemory(blob.Options{})
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blobs, Random: &Counter{n: 1 << 32}})
	if err != nil {
		t.Fatal(err)
	}
	var limits jsonio.Limits
	for name, limit := range map[string]*int{"max-bytes": &limits.Bytes, "max-members": &limits.Members} {
		if value, ok := settings[name]; ok {
			if *limit, err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	service, err := api.New(api.Options{
		Models: set, Hosted: hosted, Clock: func() time.Time { return Start }, Rand: &Counter{},
		PublicAppID: settings["public-app-id"], DefaultLanguage: settings["default-language"], PublicURL: settings["public-url"],
		JSON: limits,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := World{set.NewAnalyser(raster.Limits{}), blobs, files}
	return func(r api.Request) api.Response {
		call := service.Begin(context.Background(), &r)
		for !call.Done() {
			var results []api.Result
			for _, job := range call.Jobs() {
				results = append(results, w.Work(job))
			}
			call.Resume(results)
		}
		return call.Response()
	}
}

// Work does one job.
func (w *World) Work(j api.Job) api.Result {
	picture, err := w.bytes(j)
	if err != nil {
		return api.Result{Err: err}
	}
	a, err := w.analyser.Analyse(picture, j.Crop, j.Want)
	return api.Result{Analysis: a, Err: err}
}

func (w *World) bytes(j api.Job) ([]byte, error) {
	if j.URL == "" {
		return w.blobs.Get(context.Background(), j.Blob)
	}
	name, ok := strings.CutPrefix(j.URL, "http://pictures.test/")
	if !ok {
		return nil, fmt.Errorf("%w: no such host", api.ErrFetch)
	}
	if picture, ok := pictures[name]; ok {
		return picture, nil
	}
	switch name {
	case "busy":
		return nil, api.ErrBusy
	case "timeout":
		return nil, api.ErrTimeout
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
	return nil, fmt.Errorf("%w: 404", api.ErrFetch)
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
	p["torn.png"] = p["red.png"][:60]
	p["huge.png"] = bytes.Clone(p["red.png"])
	binary.BigEndian.PutUint32(p["huge.png"][16:], 65535)
	binary.BigEndian.PutUint32(p["huge.png"][20:], 65535)
	return p
}()

// plain is a picture of 8×8 with one colour in its upper and one in its lower half.
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
