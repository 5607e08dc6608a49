package video

import "errors"

// ErrBusy is returned when as many videos wait for a decoder as may wait.
var ErrBusy = errors.New("too many videos are waiting to be decoded")

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
