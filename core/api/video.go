package api

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// The range of Video.SampleMS.
const (
	MinSampleMS = 100
	MaxSampleMS = 600_000
)

// Video selects frames of a video.
type Video struct {
	SampleMS  int `wire:"1"` // milliseconds from one frame to the next; 0: the job is a picture
	MaxFrames int `wire:"2"` // a video that gives more is refused
}

// Sample returns the time from one frame to the next.
func (v Video) Sample() time.Duration { return time.Duration(v.SampleMS) * time.Millisecond }

// Check returns an error that wraps raster.ErrTooLarge for a video that gives too many frames.
func (v Video) Check(frames int) error {
	if frames > v.MaxFrames {
		return refusef(raster.ErrTooLarge, "%d frames: at most %d, take a larger sample_ms", frames, v.MaxFrames)
	}
	return nil
}

// Frame has the analysis of a video at one time.
type Frame struct {
	TimeMS   int64            `wire:"1"` // after the first shown frame; a multiple of Video.SampleMS
	Analysis predict.Analysis `wire:"2,func=Seen,type=bytes"`
}

// Animate analyses the frames of a GIF, a WebP or another picture that is sent as a video. The decoder is used for nothing else
// meanwhile. Errors are those of package raster and predict.
func (v Video) Animate(a *predict.Analyser, d *raster.Decoder, picture []byte, w predict.Want) (seen []Frame, err error) {
	t, err := raster.InspectVideo(picture)
	if err != nil {
		return nil, err
	}
	if t.Kind&raster.Picture == 0 {
		return nil, fmt.Errorf("%s: %w: this host has no video decoder", t.Name, raster.ErrUnsupported)
	}
	frames, err := d.Frames(picture, v.Sample())
	if err != nil {
		return nil, err
	}
	if err := v.Check(frames.Len()); err != nil {
		return nil, err
	}
	for {
		at, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return seen, nil
		}
		if err != nil {
			return nil, err
		}
		analysis, err := a.AnalyseFrame(frames, w)
		if err != nil {
			return nil, err
		}
		seen = append(seen, Frame{at.Milliseconds(), analysis})
	}
}
