// Package film has the rules for decoding a film, or the stream of a picture, by FFmpeg: the command lines, the limits, and the errors for
// callers. It starts no program: a server runs FFmpeg in another process, and a page runs it in a worker.
//
//	raster.Run ──▶ StreamArgs ──▶ ffmpeg ──▶ planes of a picture's tiles
//	ProbeArgs ──▶ ffprobe ──JSON──▶ ReadProbe, Check ──▶ Film, DecodeArgs ──▶ ffmpeg ──▶ planes of Film.Frames frames
package film

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// DefaultTimeout is the default time limit for decoding a film.
const DefaultTimeout = 900 * time.Second

// MaxMemory is FFmpeg's memory limit in bytes.
const MaxMemory = 512 << 20

// Fault is an error with a plain text for the caller, of one of package raster's kinds. A video's item has the status of a
// picture with that error, plus 1,000: 31101, 31105 or 31300.
type Fault struct {
	kind error
	text string
}

// Error implements error.
func (f *Fault) Error() string { return f.text }

// Unwrap returns the kind.
func (f *Fault) Unwrap() error { return f.kind }

// UnsupportedError returns a fault of the kind raster.ErrUnsupported.
func UnsupportedError(format string, args ...any) error {
	return &Fault{raster.ErrUnsupported, fmt.Sprintf(format, args...)}
}

// tooLargeError returns a fault of the kind raster.ErrTooLarge.
func tooLargeError(format string, args ...any) error {
	return &Fault{raster.ErrTooLarge, fmt.Sprintf(format, args...)}
}

// corruptError returns a fault of the kind raster.ErrCorrupt.
func corruptError(format string, args ...any) error {
	return &Fault{raster.ErrCorrupt, fmt.Sprintf(format, args...)}
}

// ProbeError returns the fault of a film that ffprobe failed to read.
func ProbeError() error { return corruptError("video damaged: its index is missing or cannot be read") }

// DecodeError returns the fault of a film that ffmpeg failed to decode after the given number of frames.
func DecodeError(frames int, w api.Video) error {
	if frames == 0 {
		return corruptError("video damaged from its beginning")
	}
	return corruptError("video damaged after %s", far(frames, w))
}

// TimeoutError returns the fault of a film that took longer to decode than limit. frames is the number of frames decoded by then.
func TimeoutError(limit time.Duration, frames int, w api.Video) error {
	return tooLargeError("video takes more than %v to decode: %s of it was decoded", limit, far(frames, w))
}

// MemoryError returns the fault of a film for which FFmpeg asked for more than MaxMemory.
func MemoryError() error {
	return tooLargeError("video takes more than %d MB of memory to decode", MaxMemory>>20)
}

// PictureTimeout is the time limit for decoding a picture.
const PictureTimeout = 30 * time.Second

// PictureError returns the fault of a picture that a decoder failed to decode.
func PictureError() error { return corruptError("picture damaged: it cannot be decoded") }

// PictureTimeoutError returns the fault of a picture that took longer to decode than limit.
func PictureTimeoutError(limit time.Duration) error {
	return tooLargeError("picture takes more than %v to decode", limit)
}

// PictureMemoryError returns the fault of a picture for which a decoder asked for more than MaxMemory.
func PictureMemoryError() error {
	return tooLargeError("picture takes more than %d MB of memory to decode", MaxMemory>>20)
}

// far returns the time of the last of the given number of frames, as text.
func far(frames int, w api.Video) string {
	if frames == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%g s", float64(int64(frames-1)*int64(w.SampleMS))/1000)
}
