package instance_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// stills analyses pictures whose decoders the test replaces.
type stills struct {
	testing.TB
	analyse func(j abi.Job) abi.Result
}

func newStills(t *testing.T) *stills {
	h := newHost(hostcalls.Services{Bundles: apitest.TinyBundles(t), Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}})
	g := open(t, h, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	return &stills{t, func(j abi.Job) abi.Result {
		r, err := abi.ParseResult(g.Analyse(abi.AppendFrame(nil, &j)))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}}
}

// job returns a job with a test picture of package raster.
func (s *stills) job(name string) abi.Job {
	data, err := os.ReadFile(filepath.Join(testkit.Root(s), "core", "predict", "raster", name))
	if err != nil {
		s.Fatal(err)
	}
	return abi.Job{Job: api.Job{Data: data, Keep: true, Want: predict.WantConcepts | predict.WantThumb}}
}

// decode appends outputs of the right sizes to a job, for the runs of its result.
func (s *stills) decode(j *abi.Job, r *abi.Result) {
	for _, run := range r.Decoding.Runs {
		j.Outputs = append(j.Outputs, make([]byte, run.Bytes))
	}
}

// TestStills: an instance names the runs of decoding modules for a picture, and analyses their outputs.
func TestStills(t *testing.T) {
	s := newStills(t)
	for name, want := range map[string]struct{ module, kind string }{
		"heif/testdata/plain.heic": {abi.FFmpegModule, "image/heic"}, "heif/testdata/alpha.avif": {abi.FFmpegModule, "image/avif"},
		"testdata/jxl/rgba.jxl": {abi.JPEGXLModule, "image/jxl"},
	} {
		j := s.job(name)
		r := s.analyse(j)
		d := r.Decoding
		if r.Err != nil || len(d.Runs) == 0 || r.ContentType != "" || r.Analysis.Has != 0 || d.Time != 30*time.Second || d.Memory != 512<<20 {
			t.Fatalf("%s: %+v, %v", name, d, r.Err)
		}
		for _, run := range d.Runs {
			if run.Module != want.module || len(run.Args) == 0 || len(run.Input) == 0 || run.Bytes == 0 {
				t.Errorf("%s: run of %s %v with %d bytes for %d", name, run.Module, run.Args, len(run.Input), run.Bytes)
			}
		}
		if want.module == abi.FFmpegModule && !slices.Contains(d.Runs[0].Args, abi.FilmName) {
			t.Errorf("%s: the arguments %v lack the name of the input", name, d.Runs[0].Args)
		}
		s.decode(&j, &r)
		if r := s.analyse(j); r.Err != nil || len(r.Decoding.Runs) > 0 || r.Analysis.Has != j.Want || r.ContentType != want.kind {
			t.Errorf("%s, decoded: %v, parts %b of %s", name, r.Err, r.Analysis.Has, r.ContentType)
		}
		j.Outputs[0] = j.Outputs[0][1:]
		if r := s.analyse(j); !errors.Is(r.Err, raster.ErrCorrupt) {
			t.Errorf("%s, an output without its first byte: %v, want %v", name, r.Err, raster.ErrCorrupt)
		}
		for failure, want := range map[abi.Failure]error{
			abi.FailedDecode: raster.ErrCorrupt, abi.FailedTime: raster.ErrTooLarge, abi.FailedMemory: raster.ErrTooLarge,
		} {
			if r := s.analyse(abi.Job{Job: j.Job, Failure: failure}); !errors.Is(r.Err, want) || r.Err.Error() == "" {
				t.Errorf("%s, failure %d: %v, want %v", name, failure, r.Err, want)
			}
		}
	}
}

// TestStillsAsVideos: an animation as a video takes a run for the times of its frames and one for their pixels. Another picture has one frame.
func TestStillsAsVideos(t *testing.T) {
	s := newStills(t)
	j := s.job("testdata/jxl/anim.jxl")
	j.Video, j.Keep = api.Video{SampleMS: 100, MaxFrames: 50}, false
	times := s.analyse(j)
	if times.Err != nil || len(times.Decoding.Runs) != 1 || !reflect.DeepEqual(times.Decoding.Runs[0].Args, []string{"times"}) {
		t.Fatalf("%+v, %v", times.Decoding, times.Err)
	}
	s.decode(&j, &times)
	for i, v := range []uint32{2, 10, 10} {
		binary.LittleEndian.PutUint32(j.Outputs[0][4*i:], v)
	}
	pixels := s.analyse(j)
	if pixels.Err != nil || len(pixels.Decoding.Runs) != 1 || !reflect.DeepEqual(pixels.Decoding.Runs[0].Args, []string{"frames"}) {
		t.Fatalf("%+v, %v", pixels.Decoding, pixels.Err)
	}
	s.decode(&j, &pixels)
	if r := s.analyse(j); r.Err != nil || len(r.Frames) < 2 || len(r.Decoding.Runs) > 0 {
		t.Errorf("%d frames, %v", len(r.Frames), r.Err)
	}
	j = s.job("heif/testdata/plain.heic")
	j.Video, j.Keep = api.Video{SampleMS: 100, MaxFrames: 50}, false
	r := s.analyse(j)
	s.decode(&j, &r)
	if r := s.analyse(j); r.Err != nil || len(r.Frames) != 1 || r.Frames[0].Analysis.Has != j.Want {
		t.Errorf("a still picture: %d frames, %v", len(r.Frames), r.Err)
	}
}
