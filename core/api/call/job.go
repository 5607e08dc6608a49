package call

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Job is the analysis of a picture or a video, for a call or for a stored input.
//
// With Wait it is a pause of a call that waits for the analysis of an input, and its only job. A host that lets no more calls wait returns
// ErrBusy, and one whose call takes too long ErrTimeout. The call then answers at once.
type Job struct {
	URL   string        `wire:"1"`                           // URL of the picture, or
	Data  []byte        `wire:"2,view"`                      // bytes of the picture, or
	Blob  blob.Hash     `wire:"3"`                           // blob with the picture, if URL and Data are empty
	Video Video         `wire:"8,opaque"`                    // frames to analyse of a video; zero: it is a picture
	Crop  raster.Crop   `wire:"4,func=Crop,type=bytes (32)"` // part of the upright picture; zero: all of it
	Want  predict.Want  `wire:"5"`                           // parts of the analysis
	Base  [32]byte      `wire:"6"`                           // network that analyses it, see predict.Set.Base; zero: the newest
	Keep  bool          `wire:"7"`                           // store and pin the picture after the analysis; see Result.Blob
	Wait  time.Duration `wire:"10,ms"`                       // pause of the call, which has no other job; the host may refuse it with an error

	// App is the application that needs the job; zero: none. A picture that this application hosts is fetched as it was stored, and every
	// other one as its URL serves it. An engine sets App. For the jobs of a guest, the host of the guest sets it.
	App catalog.AppID

	// Caller is the account of an application, or an application of the operator. Callers share the host's places
	// and turns. The host sets it for the jobs of a call.
	Caller string
}

// Result is the result of the [Job] at the same index.
//
// Err wraps the job's error: [ErrFetch] for every failure to get the bytes of a URL, [ErrAnswered] among them if the caller may know the
// reason, package raster's errors for a picture, [ErrBusy] or [ErrTimeout] if the host gives up on the whole call. Any other error is
// internal.
type Result struct {
	Analysis predict.Analysis `wire:"3,func=AnalysisBytes,type=bytes"` // of a picture
	Frames   []Frame          `wire:"8,opaque"`                        // of a video, by time, at least one
	Err      error
	Passing  bool `wire:"4"` // Err is ErrFetch, and the URL may respond later

	// The blob and the content type of a picture, if the job has Keep and no error. The blob is durable and pinned in blob.HostedNames.
	// The caller must unpin it.
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
	SampleMS  int `wire:"1"` // milliseconds between two frames; 0: the job is a picture
	MaxFrames int `wire:"2"` // maximum number of frames; a video with more is refused
}

// SampleInterval returns the time between two frames.
func (v Video) SampleInterval() time.Duration { return time.Duration(v.SampleMS) * time.Millisecond }

// Check returns an error that wraps raster.ErrTooLarge if a video has too many frames.
func (v Video) Check(frames int) error {
	if frames > v.MaxFrames {
		return Refusef(raster.ErrTooLarge, "%d frames: at most %d, take a larger sample_ms", frames, v.MaxFrames)
	}
	return nil
}

// Frame is the analysis of a video at one time.
type Frame struct {
	TimeMS   int64            `wire:"1"` // time since the first shown frame; a multiple of Video.SampleMS
	Analysis predict.Analysis `wire:"2,func=Seen,type=bytes"`
}

// AnalysePicture analyses the frames of a GIF, a WebP or another picture that a client sends as a video. The caller must not use the decoder
// meanwhile. Errors come from packages raster and predict.
func (v Video) AnalysePicture(a *predict.Analyser, d *raster.Decoder, picture []byte, w predict.Want) (seen []Frame, err error) {
	t, err := raster.InspectVideo(picture)
	if err != nil {
		return nil, err
	}
	if t.Kind&raster.Picture == 0 {
		return nil, fmt.Errorf("%s: %w: this host has no video decoder", t.Name, raster.ErrUnsupported)
	}
	frames, err := d.Frames(picture, v.SampleInterval())
	if err != nil {
		return nil, err
	}
	return v.AnalyseFrames(a, frames, w)
}

// AnalyseFrames does what AnalysePicture does for frames that the caller has opened.
func (v Video) AnalyseFrames(a *predict.Analyser, frames *raster.Frames, w predict.Want) (seen []Frame, err error) {
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
