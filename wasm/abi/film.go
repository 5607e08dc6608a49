package abi

import (
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log/field"
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
	Output  []byte
	Video   api.Video
	Failure Failure
	Frames  int // decoded before the failure
}

func (f *Film) put(e *field.Encoder, number int) {
	if f.Output == nil && f.Video == (api.Video{}) && f.Failure == 0 && f.Frames == 0 {
		return
	}
	at := e.Open(number)
	e.Raw(1, f.Output)
	putVideo(e, 2, f.Video)
	e.Uint(3, uint64(f.Failure))
	e.Uint(4, uint64(f.Frames))
	e.Close(at)
}

func getFilm(d *field.Decoder) (f Film) {
	for d.Next() {
		switch d.Number {
		case 1:
			f.Output = d.Raw()
		case 2:
			f.Video = getVideo(d.Message())
		case 3:
			v := d.Uint()
			if v > uint64(FailedMemory) {
				d.Malformed("failure")
			}
			f.Failure = Failure(v)
		case 4:
			f.Frames = d.Int()
		}
	}
	return f
}

// FilmReply is the next command line for a video, with its limits.
type FilmReply struct {
	Args   []string       // the program's name first, ffprobe or ffmpeg
	Bytes  uint64         // of ffprobe: the most that it may write; of ffmpeg: of a frame
	Frames int            // of ffmpeg: as many count, and more are no error
	Planes *raster.Planes // of a frame, for the field of its job; without Pix
	Memory uint64         // bytes that a run may have
	Time   time.Duration  // of both runs
}

// Marshal returns the fields of the value.
func (r *FilmReply) Marshal() []byte {
	e := encoder(nil)
	for _, arg := range r.Args {
		e.Element(1, arg)
	}
	e.Uint(2, r.Bytes)
	e.Uint(3, uint64(r.Frames))
	putPlanes(e, 4, r.Planes)
	e.Uint(5, r.Memory)
	e.Uint(6, uint64(r.Time.Milliseconds()))
	return inner(e)
}

// ParseFilm reads the fields of a value.
func ParseFilm(value []byte) (FilmReply, error) {
	var r FilmReply
	d := field.Fields(value)
	for d.Next() {
		switch d.Number {
		case 1:
			r.Args = append(r.Args, d.Text())
		case 2:
			r.Bytes = d.Uint()
		case 3:
			r.Frames = d.Int()
		case 4:
			r.Planes = getPlanes(d.Message())
		case 5:
			r.Memory = d.Uint()
		case 6:
			r.Time = time.Duration(d.Uint()) * time.Millisecond
		}
	}
	return r, envelope("film", d)
}
