package call

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Job is a picture, or a video, that a call, or an input in the background, wants analysed.
type Job struct {
	URL   string       `wire:"1"`                           // fetch the picture from here, or
	Data  []byte       `wire:"2,view"`                      // this is the picture, or
	Blob  blob.Hash    `wire:"3"`                           // read it from the blobs, when there is neither
	Video Video        `wire:"8,opaque"`                    // these frames of a video are wanted; zero: it is a picture
	Crop  raster.Crop  `wire:"4,func=Crop,type=bytes (32)"` // part of the upright picture; zero: all of it
	Want  predict.Want `wire:"5"`                           // parts of the analysis
	Base  [32]byte     `wire:"6"`                           // names the network that analyses it, see predict.Set.Base; zero: the newest
	Keep  bool         `wire:"7"`                           // hold the picture in the blobs once it has been analysed; see Result.Blob

	// Caller has the job done: the account of an application, or an application of the operator. Callers share the host's places
	// and turns. The host sets it for the jobs of a call.
	Caller string
}

// Result is the result of the [Job] at the same index.
//
// Err wraps its error: [ErrFetch] for every failure to get the bytes of a URL, package raster's errors for a picture, [ErrBusy] or
// [ErrTimeout] when the host gives up on the whole call. Any other error is an internal one.
type Result struct {
	Analysis predict.Analysis `wire:"3,func=AnalysisBytes,type=bytes"` // of a picture
	Frames   []Frame          `wire:"8,opaque"`                        // of a video, by time, at least one
	Err      error
	Passing  bool `wire:"4"` // Err is ErrFetch, and the address may answer the next time

	// For a job with Keep and without an error: the picture's blob, which is durable and has a hold of blob.HostedNames, and its content
	// type. The caller that takes the result releases it.
	Blob        blob.Hash `wire:"5"`
	ContentType string    `wire:"6"`
}

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
		return Refusef(raster.ErrTooLarge, "%d frames: at most %d, take a larger sample_ms", frames, v.MaxFrames)
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
