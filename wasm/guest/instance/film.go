package instance

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/film"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// filmOf returns the encoded first reply for a video whose file begins with head: the command line of ffprobe and the limits. The
// reply for an animated picture has no command line.
func filmOf(head []byte) ([]byte, error) {
	t, err := raster.InspectVideo(head)
	if err != nil {
		return nil, err
	}
	r := abi.FilmReply{Time: film.DefaultTimeout}
	if t.Kind&raster.Picture == 0 {
		r.Args = append([]string{"ffprobe"}, film.ProbeArgs(abi.FilmName)...)
		r.Bytes, r.Memory = film.MaxProbe, film.MaxMemory
	}
	return r.Marshal(), nil
}

// decodeCommand returns the encoded second reply for a video: the command line of ffmpeg. f has the output of ffprobe.
func decodeCommand(f *abi.Film) ([]byte, error) {
	p, err := film.ReadProbe(bytes.NewReader(f.Output))
	if err != nil {
		return nil, faultOr(err, film.ProbeError())
	}
	if f.Video.SampleMS < 1 {
		return nil, fmt.Errorf("%w: a film without a sample time", errEnvelope)
	}
	found, err := p.Check(f.Video)
	if err != nil {
		return nil, err
	}
	size, err := found.Size()
	if err != nil {
		return nil, err
	}
	args := append([]string{"ffmpeg"}, found.DecodeArgs(abi.FilmName, f.Video)...)
	return (&abi.FilmReply{Args: args, Bytes: uint64(size), Frames: found.Frames, Planes: &found.Planes}).Marshal(), nil
}

// filmError returns the error for a video whose decoding failed.
func filmError(f *abi.Film) error {
	switch f.Failure {
	case abi.FailedProbe:
		return film.ProbeError()
	case abi.FailedDecode:
		return film.DecodeError(f.Frames, f.Video)
	case abi.FailedTime:
		return film.TimeoutError(film.DefaultTimeout, f.Frames, f.Video)
	case abi.FailedMemory:
		return film.MemoryError()
	}
	return fmt.Errorf("%w: a film that did not fail", errEnvelope)
}

// faultOr returns the film.Fault in err, which has a message for the caller, or other if there is none.
func faultOr(err, other error) error {
	if known := (*film.Fault)(nil); errors.As(err, &known) {
		return known
	}
	return other
}
