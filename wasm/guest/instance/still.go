package instance

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// still does a job with a picture that package raster does not decode. The first result has the runs of decoding modules that the host must
// do. An animation as a video needs a second run, whose size depends on the first one's output.
func still(analyser *predict.Analyser, s *raster.Still, j *abi.Job) (r abi.Result, err error) {
	if j.Failure != 0 {
		return r, stillError(j.Failure)
	}
	video := j.Video.SampleMS > 0
	if video && s.IsAnimation() {
		return animation(analyser, s, j)
	}
	if len(j.Outputs) == 0 {
		runs, err := s.Runs()
		r.Decoding = decodingOf(runs)
		return r, err
	}
	planes, err := s.Planes(j.Outputs)
	if err != nil {
		return r, err
	}
	r.Analysis, err = analyser.AnalysePlanes(planes, j.Crop, j.Want)
	if video {
		r.Frames, r.Analysis = []api.Frame{{Analysis: r.Analysis}}, predict.Analysis{}
	}
	return r, err
}

// animation does a job with an animation as a video.
func animation(analyser *predict.Analyser, s *raster.Still, j *abi.Job) (r abi.Result, err error) {
	if len(j.Outputs) == 0 {
		r.Decoding = decodingOf([]raster.Run{s.Times()})
		return r, nil
	}
	a, err := s.Animation(j.Outputs[0])
	if err != nil {
		return r, err
	}
	if err := j.Video.Check(a.Len(j.Video.SampleInterval())); err != nil {
		return r, err
	}
	if len(j.Outputs) == 1 {
		r.Decoding = decodingOf([]raster.Run{a.Run()})
		return r, nil
	}
	frames, err := raster.NewDecoder(raster.Limits{}).Animation(a, bytes.NewReader(j.Outputs[1]), j.Video.SampleInterval())
	if err == nil {
		r.Frames, err = j.Video.AnalyseFrames(analyser, frames, j.Want)
	}
	return r, err
}

// decodingOf returns the request for runs, with their limits.
func decodingOf(runs []raster.Run) abi.Decoding {
	d := abi.Decoding{Memory: film.MaxMemory, Time: film.PictureTimeout}
	for _, run := range runs {
		one := abi.Run{Module: abi.FFmpegModule, Input: run.Input, Bytes: uint64(run.Bytes)}
		if run.Module == raster.JPEGXL {
			one.Module, one.Args = abi.JPEGXLModule, []string{run.Format}
		} else {
			one.Args = append([]string{"ffmpeg"}, film.StreamArgs(abi.FilmName, run.Format)...)
		}
		d.Runs = append(d.Runs, one)
	}
	return d
}

// stillError returns the error for a picture whose decoding failed.
func stillError(f abi.Failure) error {
	switch f {
	case abi.FailedTime:
		return film.PictureTimeoutError(film.PictureTimeout)
	case abi.FailedMemory:
		return film.PictureMemoryError()
	}
	return film.PictureError()
}
