package jobs

import (
	"context"
	"io"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Pictures decodes pictures that package raster does not decode: HEIC, AVIF and JPEG XL; see [video.Decoder].
type Pictures interface {
	Picture(ctx context.Context, runs []raster.Run) ([][]byte, error)
	Animation(ctx context.Context, s *raster.Still, v api.Video, use func(a *raster.Animation, frames io.Reader) error) error
}

// isLong reports whether a job has a video, or a picture that takes seconds to decode.
func isLong(j api.Job) bool { return j.Video.SampleMS > 0 || raster.NeedsModule(j.Data) }

// picture analyses a picture. If package raster does not decode it, another process does.
func (p *Pool) picture(ctx context.Context, l lane, picture []byte, job *api.Job) api.Result {
	if job.Want.NeedsPixels() && raster.NeedsModule(picture) {
		return p.still(ctx, l, picture, job)
	}
	return p.inTurn(ctx, l, picture, job)
}

// still decodes a picture in another process and analyses it. No analyser waits for the decoder. The place of the decoder is returned after
// the analysis, so that decoded pictures do not fill the memory. A call of such pictures does not go first.
func (p *Pool) still(ctx context.Context, l lane, picture []byte, job *api.Job) api.Result {
	s, err := raster.ReadStill(picture, raster.Limits{})
	if err != nil {
		return api.Result{Err: err}
	}
	removeLimit(ctx)
	leave, err := p.o.Videos.EnterPicture(ctx, job.Caller)
	if err != nil {
		return api.Result{Err: gaveUp(ctx)}
	}
	defer leave()
	return p.decodeStill(ctx, max(l, bulk), s, job)
}

func (p *Pool) decodeStill(ctx context.Context, l lane, s *raster.Still, job *api.Job) api.Result {
	planes, err := s.Decode(func(runs []raster.Run) ([][]byte, error) { return p.o.Videos.Picture(ctx, runs) })
	if err != nil {
		return api.Result{Err: p.decodeError(ctx, err)}
	}
	return p.analyse(ctx, l, job, func(_ *worker, a Analyser) (predict.Analysis, error) {
		return a.AnalysePlanes(planes, job.Crop, job.Want)
	})
}

// decodedAnimation analyses the visible picture of an animation that another process decodes, at each sample time. A still picture is
// visible at 0 only.
func (p *Pool) decodedAnimation(ctx context.Context, job *api.Job, picture []byte) (seen []api.Frame, err error) {
	s, err := raster.ReadStill(picture, raster.Limits{})
	if err != nil {
		return nil, err
	}
	if !s.IsAnimation() {
		if err := job.Video.Check(1); err != nil {
			return nil, err
		}
		r := p.decodeStill(ctx, films, s, job)
		return []api.Frame{{Analysis: r.Analysis}}, r.Err
	}
	var failed error // error of the analysis
	err = p.o.Videos.Animation(ctx, s, job.Video, func(a *raster.Animation, pixels io.Reader) error {
		seen, failed = p.animation(ctx, job, func(d *raster.Decoder) (*raster.Frames, error) {
			return d.Animation(a, pixels, job.Video.SampleInterval())
		})
		return failed
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, p.decodeError(ctx, err)
	}
	return seen, nil
}
