package abi

import (
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// FilmName is the name of the video's file in FFmpeg's command lines.
const FilmName = "/in"

// Failure is the reason why a run of FFmpeg failed.
type Failure uint8

// The failures.
const (
	FailedProbe  Failure = 1 // ffprobe ended with an error
	FailedDecode Failure = 2 // ffmpeg ended with an error, or with fewer bytes than all frames have
	FailedTime   Failure = 3 // the host ended the run: both runs took FilmReply.Time
	FailedMemory Failure = 4 // the run ended with an error after it requested more than FilmReply.Memory
)

// Film is the state of the decoding of a video, for the next step.
type Film struct {
	Output  []byte    `wire:"1"`                  // first 4,096 bytes of the video, or the output of ffprobe
	Video   api.Video `wire:"2,opaque"`           // frames to analyse, as in the job
	Failure Failure   `wire:"3,max=FailedMemory"` // 1 ffprobe failed, 2 ffmpeg failed or ended early, 3 time limit, 4 memory limit
	Frames  int       `wire:"4"`                  // frames that were decoded before the failure
}

// FilmReply is the next command line for a video, with its limits. Only the first reply has Memory and Time, which apply to both runs.
//
//field:fields put get
//field:pages get
type FilmReply struct {
	Args   []string       `wire:"1"`        // ffprobe or ffmpeg, then its arguments
	Bytes  uint64         `wire:"2"`        // for ffprobe: maximum size of its output; for ffmpeg: size of a frame
	Frames int            `wire:"3"`        // for ffmpeg: maximum number of frames that the host uses; more are not an error
	Planes *raster.Planes `wire:"4,opaque"` // for ffmpeg: format of a frame, for the field of its job; without Pix
	Memory uint64         `wire:"5"`        // maximum memory of each run in bytes
	Time   time.Duration  `wire:"6,ms"`     // maximum time of both runs together, in milliseconds
}

// Marshal returns the encoded fields, the value of a reply.
func (r *FilmReply) Marshal() []byte { return inner(r, putFilmReply) }

// ParseFilm decodes the value of a reply.
func ParseFilm(value []byte) (FilmReply, error) { return fields("film", value, getFilmReply) }
