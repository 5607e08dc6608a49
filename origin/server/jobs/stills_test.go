package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// jxlFile returns a JPEG XL file of package raster's testdata.
func jxlFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "jxl", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// EnterPicture has one place.
func (v *theater) EnterPicture(ctx context.Context, _ string) (func(), error) {
	v.mu.Lock()
	if v.place == nil {
		v.place = make(chan struct{}, 1)
	}
	place := v.place
	v.mu.Unlock()
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Picture takes frameTime for each run, and its outputs are white. An animation has three frames of a second.
func (v *theater) Picture(ctx context.Context, runs []raster.Run) (outputs [][]byte, err error) {
	for _, r := range runs {
		time.Sleep(v.frameTime) // virtual
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out := bytes.Repeat([]byte{255}, r.Bytes)
		if r.Format == "times" {
			clear(out)
			for i, n := range []uint32{3, 100, 100, 100} {
				binary.LittleEndian.PutUint32(out[4*i:], n)
			}
		}
		outputs = append(outputs, out)
	}
	return outputs, v.fails
}

// Animation gives frames of increasing brightness.
func (v *theater) Animation(ctx context.Context, s *raster.Still, w api.Video, use func(*raster.Animation, io.Reader) error) error {
	times, err := v.Picture(ctx, []raster.Run{s.Times()})
	if err != nil {
		return err
	}
	a, err := s.Animation(times[0])
	if err != nil {
		return err
	}
	var pixels []byte
	for i := range a.Frames() {
		pixels = append(pixels, bytes.Repeat([]byte{byte(10 * (i + 1)), byte(10 * (i + 1)), byte(10 * (i + 1)), 255}, a.Run().Bytes/4/a.Frames())...)
	}
	return use(a, bytes.NewReader(pixels))
}

// TestStills analyses pictures that a module decodes, as pictures and as videos.
func TestStills(t *testing.T) {
	still, animation := jxlFile(t, "rgba.jxl"), jxlFile(t, "anim.jxl")
	for name, tt := range map[string]struct {
		job  api.Job
		v    *theater
		want string // times and values, the value alone, or nothing
		err  error
	}{
		"picture":              {job: api.Job{Data: still}, want: "37"},
		"picture of a URL":     {job: api.Job{URL: "http://a.test/"}, want: "37"},
		"first frame":          {job: api.Job{Data: animation}, want: "20"},
		"picture as a video":   {job: api.Job{Data: still, Video: second}, want: "0:37"},
		"animation as a video": {job: api.Job{Data: animation, Video: second}, want: "0:10 1000:20 2000:30"},
		"too many frames":      {job: api.Job{Data: animation, Video: api.Video{SampleMS: 1000, MaxFrames: 2}}, err: raster.ErrTooLarge},
		"damaged":              {job: api.Job{Data: still}, v: &theater{fails: film.PictureError()}, err: raster.ErrCorrupt},
		"damaged animation":    {job: api.Job{Data: animation, Video: second}, v: &theater{fails: film.PictureError()}, err: raster.ErrCorrupt},
		"trouble":              {job: api.Job{Data: still}, v: &theater{fails: io.ErrUnexpectedEOF}, err: api.ErrInternal},
		"cut header":           {job: api.Job{Data: still[:3]}, err: raster.ErrCorrupt},
		"cut header, video":    {job: api.Job{Data: still[:3], Video: second}, err: raster.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			v := cmp.Or(tt.v, &theater{})
			v.t = t
			var g gauge
			o := options(&g, 0)
			o.Videos = v
			o.Fetch = func(context.Context, catalog.AppID, string) ([]byte, error) { return still, nil }
			results, err := New(o).Run(t.Context(), []api.Job{tt.job})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range results[0].Frames {
				got = append(got, fmt.Sprintf("%d:%v", f.TimeMS, f.Analysis.General[0]))
			}
			if g := results[0].Analysis.General; len(g) > 0 {
				got = append(got, fmt.Sprint(g[0]))
			}
			if strings.Join(got, " ") != tt.want || !errors.Is(results[0].Err, tt.err) {
				t.Errorf("%v, %v; want %s, %v", got, results[0].Err, tt.want, tt.err)
			}
			v.checkClosed()
		})
	}
}

// TestStillsBlockNoAnalyser decodes pictures one after the other, for a minute each. JPEGs and films are analysed meanwhile, and the call
// of such pictures has the time of a call with a video, also if they are downloaded or stored.
func TestStillsBlockNoAnalyser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		still := jxlFile(t, "rgba.jxl")
		v := &theater{t: t, frameTime: time.Minute}
		w := newWaitWorld(func(o *Options) {
			o.Workers, o.Videos = 1, v
			fetch, stored := o.Fetch, o.Blob
			o.Fetch = func(ctx context.Context, app catalog.AppID, url string) ([]byte, error) {
				if url == "http://still" {
					return still, nil
				}
				return fetch(ctx, app, url)
			}
			o.Blob = func(ctx context.Context, h blob.Hash) ([]byte, error) {
				if h == blob.Sum(still) {
					return still, nil
				}
				return stored(ctx, h)
			}
		})
		w.Timeout = 10 * time.Second
		w.plan["downloaded"], w.plan["stored"] = []api.Job{{URL: "http://still"}}, []api.Job{{Blob: blob.Sum(still)}}
		w.plan["stills"], w.plan["picture"] = []api.Job{{Data: still}, {Data: still}, {Data: still}}, blobs(1)
		if w.Pool.hasPriority(w.plan["stills"]) || !w.Pool.hasPriority(w.plan["picture"]) {
			t.Error("the wrong call goes first")
		}
		var calls sync.WaitGroup
		start := time.Now()
		calls.Go(func() {
			if got := w.call(t.Context(), "a", "stills"); got != 200 || time.Since(start) != 3*time.Minute {
				t.Errorf("three pictures: %d after %v, want 200 after 3m", got, time.Since(start))
			}
		})
		synctest.Wait()
		begun := time.Now()
		for range 5 {
			if got := w.call(t.Context(), "b", "picture"); got != 200 || time.Since(begun) > w.Timeout {
				t.Errorf("a picture beside them: %d after %v", got, time.Since(begun))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := w.Pool.RunBackgroundJob(ctx, &api.Job{Data: still}); !errors.Is(r.Err, api.ErrTimeout) {
			t.Errorf("a picture that waits for a place longer than its context: %v", r.Err)
		}
		calls.Wait()
		for _, name := range []string{"downloaded", "stored"} {
			start := time.Now()
			if got := w.call(t.Context(), "a", name); got != 200 || time.Since(start) != time.Minute {
				t.Errorf("a %s picture: %d after %v, want 200 after 1m", name, got, time.Since(start))
			}
		}
		v.checkClosed()
	})
}
