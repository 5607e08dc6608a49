package abi

import (
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// FilmName is the file that FFmpeg's command lines name.
const FilmName = "/in"

// Failure is how a run of FFmpeg failed.
type Failure uint8

// The failures.
const (
	FailedProbe  Failure = 1 // ffprobe ended with an error
	FailedDecode Failure = 2 // ffmpeg ended with an error, or with fewer bytes than all frames have
	FailedTime   Failure = 3 // the host ended it: it took FilmReply.Time
	FailedMemory Failure = 4 // it ended with an error after it asked for more than FilmReply.Memory
)

// Film is a step in the decoding of a video.
type Film struct {
	Output  []byte    `wire:"1"`                  // what was read of the video, or what ffprobe wrote
	Video   api.Video `wire:"2,opaque"`           // as in the job
	Failure Failure   `wire:"3,max=FailedMemory"` // 1 ffprobe ended with an error, 2 ffmpeg did, 3 time is up, 4 memory
	Frames  int       `wire:"4"`                  // frames that were decoded before the failure
}

// FilmReply is the next command line for a video, with its limits.
//
//field:fields put get
//field:pages get
type FilmReply struct {
	Args   []string       `wire:"1"`        // the program's name first, ffprobe or ffmpeg
	Bytes  uint64         `wire:"2"`        // of ffprobe: maximum size of its output; of ffmpeg: size of a frame
	Frames int            `wire:"3"`        // of ffmpeg: maximum number of frames that are used; more are not an error
	Planes *raster.Planes `wire:"4,opaque"` // of a frame, for the field of its job; without Pix
	Memory uint64         `wire:"5"`        // maximum memory of a run in bytes
	Time   time.Duration  `wire:"6,ms"`     // milliseconds of both runs
}

// Marshal returns the fields of the value.
func (r *FilmReply) Marshal() []byte { return inner(r, putFilmReply) }

// ParseFilm reads the fields of a value.
func ParseFilm(value []byte) (FilmReply, error) { return fields("film", value, getFilmReply) }
