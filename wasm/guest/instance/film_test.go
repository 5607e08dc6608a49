package instance_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// TestFrame: an instance analyses a frame of a video by its planes, with the same result as an analyser.
func TestFrame(t *testing.T) {
	bundles := apitest.TinyBundles(t)
	h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}})
	g := open(t, h, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	set, err := predict.Load(bundles)
	if err != nil {
		t.Fatal(err)
	}
	planes := raster.Planes{Width: 40, Height: 30, SubX: 1, SubY: 1, Depth: 10, Matrix: raster.BT709, Full: true, Rotation: 6}
	size, err := planes.Size()
	if err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, size)
	for i := range pix {
		pix[i] = byte(i*i>>3) & 3 // values of up to 10 bits
	}
	want := predict.WantConcepts | predict.WantColors | predict.WantThumb
	analyse := func(pix []byte) abi.Result {
		t.Helper()
		r, err := abi.ParseResult(g.Analyse(abi.AppendFrame(nil, &abi.Job{Job: api.Job{Data: pix, Want: want}, Planes: &planes})))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	got := analyse(pix)
	planes.Pix = pix
	direct, err := set.NewAnalyser(raster.Limits{}).AnalysePlanes(planes, raster.Crop{}, want)
	if err != nil || got.Err != nil || !reflect.DeepEqual(got.Analysis, direct) || got.Analysis.Has != want {
		t.Errorf("%+v, %v, %v, want %+v", got.Analysis, got.Err, err, direct)
	}
	if r := analyse(pix[1:]); !errors.Is(r.Err, raster.ErrCorrupt) {
		t.Errorf("a frame without its first byte: %v, want %v", r.Err, raster.ErrCorrupt)
	}
}

// TestFilm asks an analyser for the steps to decode a video.
func TestFilm(t *testing.T) {
	h := newHost(hostcalls.Services{Bundles: apitest.TinyBundles(t), Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}})
	g := open(t, h, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	ask := func(query string, f abi.Film) (abi.FilmReply, error) {
		t.Helper()
		q := abi.Query{What: query, Film: f}
		value, guestErr, err := abi.ParseReply(g.Ask(q.Marshal()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := abi.ParseFilm(value)
		if err != nil {
			t.Fatal(err)
		}
		return r, guestErr
	}
	webm := []byte("\x1a\x45\xdf\xa3")
	second := api.Video{SampleMS: 1000, MaxFrames: 12}
	if r, err := ask(abi.AskFilm, abi.Film{Output: apitest.Picture("red.png")}); err != nil || len(r.Args) > 0 || r.Time != 15*time.Minute {
		t.Errorf("a picture: %+v, %v", r, err)
	}
	if r, err := ask(abi.AskFilm, abi.Film{Output: webm}); err != nil || r.Args[0] != "ffprobe" || r.Args[len(r.Args)-1] != abi.FilmName ||
		r.Bytes != 8<<20 || r.Memory != 512<<20 || r.Time != 15*time.Minute {
		t.Errorf("a film: %+v, %v", r, err)
	}
	probe := func(width int, last string) []byte {
		return fmt.Appendf(nil, `{"packets":[{"pts":0,"flags":"K_"},{"pts":%s,"flags":"__"}],"streams":[{"codec_name":"h264","width":%d,
			"height":240,"pix_fmt":"yuv420p","color_space":"bt709","time_base":"1/1000"}]}`, last, width)
	}
	r, err := ask(abi.AskFilmProbed, abi.Film{Output: probe(320, "11999"), Video: second})
	planes := raster.Planes{Width: 320, Height: 240, SubX: 1, SubY: 1, Depth: 8, Matrix: raster.BT709, Rotation: 1}
	if err != nil || r.Args[0] != "ffmpeg" || !slices.Contains(r.Args, abi.FilmName) || r.Frames != 12 || r.Bytes != 320*240*3/2 || !reflect.DeepEqual(r.Planes, &planes) {
		t.Errorf("what ffprobe says: %+v, %v", r, err)
	}
	for name, tt := range map[string]struct {
		query string
		film  abi.Film
		kind  error
		text  string
	}{
		"no film":      {abi.AskFilm, abi.Film{Output: []byte("text")}, raster.ErrUnsupported, "unknown file type: video format not supported: send MP4, MOV, 3GP, WebM, MKV, AVI, WMV or GIF"},
		"other film":   {abi.AskFilm, abi.Film{Output: []byte("OggS")}, raster.ErrUnsupported, "Ogg: video format not supported: convert it to MP4"},
		"no answer":    {abi.AskFilmProbed, abi.Film{Video: second}, raster.ErrCorrupt, "video damaged: its index is missing or cannot be read"},
		"long answer":  {abi.AskFilmProbed, abi.Film{Output: bytes.Repeat([]byte(" "), 8<<20), Video: second}, raster.ErrTooLarge, "video with a description of more than 8 MB"},
		"many frames":  {abi.AskFilmProbed, abi.Film{Output: probe(320, "12000"), Video: second}, raster.ErrTooLarge, "13 frames: at most 12, take a larger sample_ms"},
		"large frames": {abi.AskFilmProbed, abi.Film{Output: probe(9000, "1"), Video: second}, raster.ErrTooLarge, "video of 9000 × 240: at most 8.9 megapixels, and 8192 pixels a side"},
		"no index":     {abi.AskFilmFailed, abi.Film{Failure: abi.FailedProbe, Video: second}, raster.ErrCorrupt, "video damaged: its index is missing or cannot be read"},
		"no frame":     {abi.AskFilmFailed, abi.Film{Failure: abi.FailedDecode, Video: second}, raster.ErrCorrupt, "video damaged from its beginning"},
		"three frames": {abi.AskFilmFailed, abi.Film{Failure: abi.FailedDecode, Frames: 3, Video: api.Video{SampleMS: 250}}, raster.ErrCorrupt, "video damaged after 0.5 s"},
		"late":         {abi.AskFilmFailed, abi.Film{Failure: abi.FailedTime, Frames: 3, Video: second}, raster.ErrTooLarge, "video takes more than 15m0s to decode: 2 s of it was decoded"},
		"late at once": {abi.AskFilmFailed, abi.Film{Failure: abi.FailedTime, Video: second}, raster.ErrTooLarge, "video takes more than 15m0s to decode: nothing of it was decoded"},
		"memory":       {abi.AskFilmFailed, abi.Film{Failure: abi.FailedMemory, Video: second}, raster.ErrTooLarge, "video takes more than 512 MB of memory to decode"},
		"no failure":   {abi.AskFilmFailed, abi.Film{Video: second}, field.ErrFormat, ""},
		"no time":      {abi.AskFilmProbed, abi.Film{Output: probe(320, "1")}, field.ErrFormat, ""},
	} {
		if _, err := ask(tt.query, tt.film); !errors.Is(err, tt.kind) || tt.text != "" && err.Error() != tt.text {
			t.Errorf("%s: %v, want %v: %s", name, err, tt.kind, tt.text)
		}
	}
}
