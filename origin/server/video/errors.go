package video

import "errors"

// ErrBusy is returned if too many videos of all callers, or of this caller, wait for a decoder.
var ErrBusy = errors.New("too many videos are waiting to be decoded")

// Reasons for the end of a run.
var (
	errTime   = errors.New("time is up")
	errStart  = errors.New("start a decoder")
	errEnough = errors.New("no more output is wanted")
	errMore   = errors.New("more output than expected")
)

// exitError is the error of a run of FFmpeg that failed.
type exitError struct {
	memory bool // true if FFmpeg needed more memory than its limit
	text   string
}

func (e *exitError) Error() string { return e.text }
