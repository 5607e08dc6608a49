// Package film has the rules for decoding a film by FFmpeg: the two command lines, the limits, and the errors for callers. It starts
// no program: a server runs FFmpeg in another process, and a page runs it in a worker.
//
//	ProbeArgs ──▶ ffprobe ──JSON──▶ ReadProbe, Check ──▶ Film, DecodeArgs ──▶ ffmpeg ──▶ planes of Film.Frames frames
package film

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// DefaultTime bounds the decoding of a film.
const DefaultTime = 900 * time.Second

// MaxMemory is FFmpeg's limit of memory, in bytes.
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

// UnsupportedError makes a fault that is raster.ErrUnsupported.
func UnsupportedError(format string, args ...any) error {
	return &Fault{raster.ErrUnsupported, fmt.Sprintf(format, args...)}
}

// TooLarge makes a fault that is raster.ErrTooLarge.
func TooLarge(format string, args ...any) error {
	return &Fault{raster.ErrTooLarge, fmt.Sprintf(format, args...)}
}

// CorruptError makes a fault that is raster.ErrCorrupt.
func CorruptError(format string, args ...any) error {
	return &Fault{raster.ErrCorrupt, fmt.Sprintf(format, args...)}
}

// ProbeError returns the fault of a film that ffprobe failed at.
func ProbeError() error { return CorruptError("video damaged: its index is missing or cannot be read") }

// DecodeError returns the fault of a film that ffmpeg failed at after so many frames.
func DecodeError(frames int, w api.Video) error {
	if frames == 0 {
		return CorruptError("video damaged from its beginning")
	}
	return CorruptError("video damaged after %s", far(frames, w))
}

// TooLong is the fault of a film that took longer than a limit. So many frames of it were decoded by then.
func TooLong(limit time.Duration, frames int, w api.Video) error {
	return TooLarge("video takes more than %v to decode: %s of it was decoded", limit, far(frames, w))
}

// TooMuchMemory is the fault of a film for which FFmpeg asked for more than MaxMemory.
func TooMuchMemory() error {
	return TooLarge("video takes more than %d MB of memory to decode", MaxMemory>>20)
}

// far is the time of the last of so many frames.
func far(frames int, w api.Video) string {
	if frames == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%g s", float64(int64(frames-1)*int64(w.SampleMS))/1000)
}
