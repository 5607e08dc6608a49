package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// Videos downloads and decodes videos.
type Videos interface {
	// Fetch writes the video at a URL to to, for an application. Its errors are those of Options.Fetch.
	Fetch(ctx context.Context, app catalog.AppID, url string, to io.Writer) error
	// Spool creates a file without a name and calls write with it.
	Spool(write func(to io.Writer) error) (*os.File, error)
	// Enter waits until another video may be decoded. leave returns the place.
	Enter(ctx context.Context, caller string) (leave func(), err error)
	// Frames decodes a video; see [video.Decoder].
	Frames(ctx context.Context, film *os.File, v api.Video) iter.Seq2[video.Frame, error]
	// EnterPicture waits until another picture may be decoded. leave returns the place.
	EnterPicture(ctx context.Context, caller string) (leave func(), err error)
	Pictures
}

// video analyses the frames of one video, one at a time as they are decoded. Waiting pictures go first.
func (p *Pool) video(ctx context.Context, job *api.Job, far bool) api.Result {
	film, passing, err := p.film(ctx, job, far)
	if err != nil {
		return api.Result{Err: err, Passing: passing}
	}
	defer film.Close() // only closes: the file has no name and was only read
	leave, err := p.o.Videos.Enter(ctx, job.Caller)
	if err != nil {
		return api.Result{Err: cmp.Or(gaveUp(ctx), fmt.Errorf("%w: %w", api.ErrBusy, err))}
	}
	defer leave()
	var frames []api.Frame
	animation, err := animationOf(film)
	switch {
	case err != nil:
	case raster.NeedsModule(animation):
		frames, err = p.decodedAnimation(ctx, job, animation)
	case animation != nil:
		frames, err = p.animation(ctx, job, func(d *raster.Decoder) (*raster.Frames, error) {
			return d.Frames(animation, job.Video.SampleInterval())
		})
	default:
		frames, err = p.analyseFrames(ctx, job, film)
	}
	return api.Result{Frames: frames, Err: err}
}

// film returns a job's video as a file. A download occupies its place in memory only until it is complete.
func (p *Pool) film(ctx context.Context, job *api.Job, far bool) (film *os.File, passing bool, err error) {
	leave, err := p.room(ctx, films, job, far)
	if err != nil {
		return nil, false, gaveUp(ctx)
	}
	defer leave()
	var failed error // error of getting the bytes
	film, err = p.o.Videos.Spool(func(to io.Writer) error {
		if job.URL != "" && job.Data == nil {
			disk := storing{to: to}
			err := p.o.Videos.Fetch(ctx, job.App, job.URL, &disk)
			if disk.err != nil {
				return disk.err // writing failed, not the download
			}
			passing, failed = p.downloadError(ctx, job.URL, err)
			return failed
		}
		var data []byte
		if data, passing, failed = p.bytes(ctx, job); failed != nil {
			return failed
		}
		_, err := to.Write(data)
		return err
	})
	switch {
	case failed != nil:
		return nil, passing, failed
	case err != nil:
		p.o.Log.Error("cannot store video", "error", err)
		return nil, false, fmt.Errorf("%w: store video: %w", api.ErrInternal, err)
	}
	return film, false, nil
}

// storing is a writer that stores its last error.
type storing struct {
	to  io.Writer
	err error
}

// Write implements [io.Writer].
func (s *storing) Write(b []byte) (n int, err error) {
	n, s.err = s.to.Write(b)
	return n, s.err
}

// animationOf returns the bytes of a film that is a picture or an animation: a GIF, a WebP or another one. It returns nil for other videos,
// and an error for a file that is not a video.
func animationOf(film *os.File) ([]byte, error) {
	head := make([]byte, 4096)
	n, err := film.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: read video: %w", api.ErrInternal, err)
	}
	t, err := raster.InspectVideo(head[:n])
	if err != nil || t.Kind&raster.Picture == 0 {
		return nil, err
	}
	info, err := film.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: read video: %w", api.ErrInternal, err)
	}
	if limit := (raster.Limits{}).WithDefaults().Bytes; info.Size() > limit {
		return nil, fmt.Errorf("%s of %d bytes: %w: at most %d", t.Name, info.Size(), raster.ErrTooLarge, limit)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(io.NewSectionReader(film, 0, info.Size())); err != nil {
		return nil, fmt.Errorf("%w: read video: %w", api.ErrInternal, err)
	}
	return b.Bytes(), nil
}

// animation analyses the visible picture of an animation at each sample time.
func (p *Pool) animation(ctx context.Context, job *api.Job, open func(*raster.Decoder) (*raster.Frames, error)) (seen []api.Frame, err error) {
	var current *worker // analyses the current frame
	decoder := raster.NewDecoder(raster.Limits{Expired: func() bool { return current != nil && current.limits.Expired() }})
	frames, err := open(decoder)
	if err != nil {
		return nil, err
	}
	if err := job.Video.Check(frames.Len()); err != nil {
		return nil, err
	}
	for {
		var at time.Duration
		r := p.analyse(ctx, films, job, func(w *worker, a Analyser) (predict.Analysis, error) {
			current = w
			var err error
			if at, err = frames.Next(); err != nil {
				return predict.Analysis{}, err
			}
			return a.AnalyseFrame(frames, job.Want)
		})
		switch {
		case errors.Is(r.Err, io.EOF):
			return seen, nil
		case r.Err != nil:
			return nil, r.Err
		}
		seen = append(seen, api.Frame{TimeMS: at.Milliseconds(), Analysis: r.Analysis})
	}
}

// analyseFrames analyses frames while another process decodes them.
func (p *Pool) analyseFrames(ctx context.Context, job *api.Job, film *os.File) (seen []api.Frame, err error) {
	for f, err := range p.o.Videos.Frames(ctx, film, job.Video) {
		if err != nil {
			return nil, p.decodeError(ctx, err)
		}
		r := p.analyse(ctx, films, job, func(_ *worker, a Analyser) (predict.Analysis, error) {
			return a.AnalysePlanes(f.Planes, raster.Crop{}, job.Want)
		})
		if r.Err != nil {
			return nil, r.Err
		}
		seen = append(seen, api.Frame{TimeMS: f.TimeMS, Analysis: r.Analysis})
	}
	return seen, nil
}

// decodeError returns the API's error for a video or picture that cannot be decoded.
func (p *Pool) decodeError(ctx context.Context, err error) error {
	for _, known := range []error{raster.ErrUnsupported, raster.ErrTooLarge, raster.ErrCorrupt} {
		if errors.Is(err, known) {
			return err
		}
	}
	if ctx.Err() != nil {
		return gaveUp(ctx)
	}
	p.o.Log.Error("cannot decode", "error", err)
	return fmt.Errorf("%w: decode: %w", api.ErrInternal, err)
}
