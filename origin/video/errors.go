package video

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ErrBusy is returned when as many videos wait for a decoder as may wait.
var ErrBusy = errors.New("too many videos are waiting to be decoded")

// fault is an error with a plain text for the caller, of one of package raster's kinds. A video's item has the status of a
// picture with that error, plus 1,000: 31101, 31105 or 31300.
type fault struct {
	kind error
	text string
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

func unsupported(format string, args ...any) error {
	return &fault{raster.ErrUnsupported, fmt.Sprintf(format, args...)}
}

func tooLarge(format string, args ...any) error {
	return &fault{raster.ErrTooLarge, fmt.Sprintf(format, args...)}
}

func damaged(format string, args ...any) error {
	return &fault{raster.ErrCorrupt, fmt.Sprintf(format, args...)}
}

// Reasons for the end of a run.
var (
	errTime   = errors.New("time is up")
	errStart  = errors.New("start a decoder")
	errEnough = errors.New("no more output is wanted")
)

// exitError is a run of FFmpeg that failed.
type exitError struct {
	memory bool // it asked for more memory than it may have
	text   string
}

func (e *exitError) Error() string { return e.text }
