package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// mp4 is a film for [theater]: the first bytes of an MP4 file.
var mp4 = []byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")

// theater decodes every film to the same number of frames. Each frame takes some time.
type theater struct {
	t         *testing.T
	frames    int
	frameTime time.Duration
	fails     error // error after the frames; nil if the film ends there
	full      error // error of Enter
	disk      error // error of writes to a file

	mu     sync.Mutex
	place  chan struct{} // for one picture
	inside int           // films that are being decoded
	files  []*os.File    // files of all films
}

func (v *theater) Fetch(_ context.Context, _ catalog.AppID, url string, to io.Writer) error {
	if strings.HasSuffix(url, "/large") {
		return fmt.Errorf("video of more than 80 bytes: %w", raster.ErrTooLarge)
	}
	if strings.HasSuffix(url, "/gone") {
		return errors.New("404")
	}
	_, err := to.Write(mp4)
	return err
}

func (v *theater) Spool(write func(io.Writer) error) (*os.File, error) {
	f, err := os.Create(filepath.Join(v.t.TempDir(), "film"))
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.files = append(v.files, f)
	v.mu.Unlock()
	var to io.Writer = f
	if v.disk != nil {
		to = fullDisk{v.disk}
	}
	if err := write(to); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fullDisk is a writer whose writes fail.
type fullDisk struct{ err error }

func (d fullDisk) Write([]byte) (int, error) { return 0, d.err }

func (v *theater) Enter(ctx context.Context, _ string) (func(), error) {
	if v.full != nil {
		return nil, v.full
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inside++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.inside--
	}, ctx.Err()
}

func (v *theater) Frames(ctx context.Context, _ *os.File, w api.Video) iter.Seq2[video.Frame, error] {
	return func(yield func(video.Frame, error) bool) {
		for i := range v.frames {
			time.Sleep(v.frameTime) // virtual
			if ctx.Err() != nil {
				yield(video.Frame{}, ctx.Err())
				return
			}
			if !yield(video.Frame{Index: i, TimeMS: int64(i * w.SampleMS), Planes: raster.Planes{Width: i + 1}}, nil) {
				return
			}
		}
		if v.fails != nil {
			yield(video.Frame{}, v.fails)
		}
	}
}

// checkClosed fails the test if a film is still being decoded, or a film's file is open.
func (v *theater) checkClosed() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inside != 0 {
		v.t.Errorf("%d films are still decoded", v.inside)
	}
	for _, f := range v.files {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			v.t.Errorf("the file of a film was left open: %v", err)
		}
	}
}

func (v *theater) pool(g *gauge, duration time.Duration) *Pool {
	o := options(g, duration)
	o.Videos = v
	return New(o)
}

var second = api.Video{SampleMS: 1000, MaxFrames: 600}

// TestVideos analyses videos of each kind. The frames are in order with their times, and the errors are those of the API.
func TestVideos(t *testing.T) {
	animation := gif.GIF{Delay: []int{120, 120, 120}}
	for _, gray := range []uint8{10, 20, 30} {
		animation.Image = append(animation.Image, image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.Gray{gray}}))
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &animation); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		job  api.Job
		v    *theater
		want string // times and values, or the error
		err  error
	}{
		"film":            {job: api.Job{Data: mp4, Video: second}, v: &theater{frames: 3}, want: "0:1 1000:2 2000:3"},
		"film of a URL":   {job: api.Job{URL: "http://a.test/", Video: second}, v: &theater{frames: 1}, want: "0:1"},
		"GIF":             {job: api.Job{Data: b.Bytes(), Video: second}, want: "0:10 1000:10 2000:20"},
		"GIF, other step": {job: api.Job{Data: b.Bytes(), Video: api.Video{SampleMS: 1500, MaxFrames: 2}}, want: "0:10 1500:20"},
		"still picture":   {job: api.Job{Data: portrait(t), Video: second}, want: "0:200"},
		"too many frames": {job: api.Job{Data: b.Bytes(), Video: api.Video{SampleMS: 1000, MaxFrames: 2}}, err: raster.ErrTooLarge},
		"damaged GIF":     {job: api.Job{Data: b.Bytes()[:b.Len()-30], Video: second}, err: raster.ErrCorrupt},
		"no video":        {job: api.Job{Data: []byte("<html>"), Video: second}, err: raster.ErrUnsupported},
		"damaged film":    {job: api.Job{Data: mp4, Video: second}, v: &theater{frames: 2, fails: raster.ErrCorrupt}, err: raster.ErrCorrupt},
		"trouble":         {job: api.Job{Data: mp4, Video: second}, v: &theater{frames: 2, fails: io.ErrUnexpectedEOF}, err: api.ErrInternal},
		"large download":  {job: api.Job{URL: "http://a.test/large", Video: second}, err: raster.ErrTooLarge},
		"gone":            {job: api.Job{URL: "http://a.test/gone", Video: second}, err: api.ErrFetch},
		"full disk":       {job: api.Job{Data: mp4, Video: second}, v: &theater{disk: syscall.ENOSPC}, err: api.ErrInternal},
		"full disk, URL":  {job: api.Job{URL: "http://a.test/", Video: second}, v: &theater{disk: syscall.ENOSPC}, err: api.ErrInternal},
		"full":            {job: api.Job{Data: mp4, Video: second}, v: &theater{full: video.ErrBusy}, err: api.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			v := cmp.Or(tt.v, &theater{})
			v.t = t
			var g gauge
			results, err := v.pool(&g, 0).Run(t.Context(), []api.Job{tt.job})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range results[0].Frames {
				got = append(got, fmt.Sprintf("%d:%v", f.TimeMS, f.Analysis.General[0]))
			}
			if strings.Join(got, " ") != tt.want || !errors.Is(results[0].Err, tt.err) {
				t.Errorf("frames %v, %v; want %s, %v", got, results[0].Err, tt.want, tt.err)
			}
			v.checkClosed()
		})
	}
}

// portrait returns a GIF with one frame.
func portrait(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.Gray{200}})
	if err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{img}, Delay: []int{0}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPicturesOvertakeVideos analyses four videos and at the same time pictures. A picture waits for at most the frame in progress, even if
// decoding frames takes no time.
func TestPicturesOvertakeVideos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const duration = 100 * time.Millisecond
		v := &theater{t: t, frames: 50}
		var g gauge
		p := v.pool(&g, duration)
		var calls sync.WaitGroup
		calls.Go(func() {
			results, err := p.Run(t.Context(), slices.Repeat([]api.Job{{Data: mp4, Video: second, Caller: "films"}}, 4))
			if err != nil || len(results[3].Frames) != 50 {
				t.Errorf("the videos: %v, %d frames", err, len(results[3].Frames))
			}
		})
		for range 20 {
			time.Sleep(130 * time.Millisecond) // virtual
			since := time.Now()
			if _, err := p.Run(t.Context(), []api.Job{{Data: []byte("x"), Caller: "pictures"}}); err != nil {
				t.Error(err)
			}
			if took := time.Since(since); took > 2*duration {
				t.Errorf("a picture took %v beside videos, want at most %v", took, 2*duration)
			}
		}
		calls.Wait()
		v.checkClosed()
	})
}

// TestVideosEndWithTheirCaller cancels a call while its video is decoded. The call ends at once, and no file or decoding is left.
func TestVideosEndWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &theater{t: t, frames: 600, frameTime: time.Second}
		var g gauge
		p := v.pool(&g, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
		defer cancel()
		since := time.Now()
		if _, err := p.Run(ctx, []api.Job{{Data: mp4, Video: second}}); !errors.Is(err, api.ErrTimeout) {
			t.Errorf("the call: %v, want %v", err, api.ErrTimeout)
		}
		if took := time.Since(since); took > 7*time.Second {
			t.Errorf("the call ended after %v", took)
		}
		v.checkClosed()
	})
}

// TestCallsWithVideosHaveMoreTime runs a call with a video and one without for longer than a call without a video may last. It also makes
// the client of a video leave.
func TestCallsWithVideosHaveMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &theater{t: t, frames: 100, frameTime: time.Second}
		w := newWaitWorld(func(o *Options) {
			o.Videos = v
			o.Fetch = func(ctx context.Context, _ catalog.AppID, _ string) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		w.Timeout = 10 * time.Second
		w.plan["film"], w.plan["picture"] = []api.Job{{Data: mp4, Video: second}}, []api.Job{{URL: "http://never.test/"}}
		if got := w.call(t.Context(), "a", "film"); got != 200 {
			t.Errorf("a video of 100 s: %d, want 200", got)
		}
		since := time.Now()
		if got := w.call(t.Context(), "a", "picture"); got != 503 || time.Since(since) != w.Timeout {
			t.Errorf("a picture: %d after %v, want 503 after %v", got, time.Since(since), w.Timeout)
		}
		since = time.Now()
		r := &api.Request{Method: "POST", Path: "/v2/models/m/outputs", Body: []byte("film"), Watch: func(ctx context.Context) (context.Context, func()) {
			return context.WithTimeout(ctx, 3*time.Second)
		}}
		if w.Serve(t.Context(), r); time.Since(since) > 4*time.Second {
			t.Errorf("the call of a client that left after 3 s ended after %v", time.Since(since))
		}
		v.checkClosed()
	})
}
