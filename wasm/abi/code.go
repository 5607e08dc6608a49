package abi

import (
	"context"
	"errors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
	"github.com/sightline-dev/sightline/core/register"
)

// Code is the number of an error in an envelope.
type Code uint32

// The codes. Results have the codes 1 to 11. Code 12 is unused.
const (
	NoError      Code = 0
	Fetch        Code = 1
	Busy         Code = 2
	Timeout      Code = 3
	Unsupported  Code = 4
	TooLarge     Code = 5
	Corrupt      Code = 6
	Expired      Code = 7
	Network      Code = 8
	Internal     Code = 9
	NoBlob       Code = 10
	Full         Code = 11
	Malformed    Code = 13 // invalid envelope
	Options      Code = 14 // invalid settings
	Bundle       Code = 15
	NewerBundle  Code = 16
	NoApp        Code = 17
	StoreCorrupt Code = 18
	StoreFailed  Code = 19
	NotFound     Code = 20 // missing record
	Answered     Code = 21 // failed download of a URL whose server has answered; the text is for the caller
)

// codes maps errors to codes. If an error wraps several of these errors, CodeOf uses the first row that matches. Err returns the error of a
// code's first row.
var codes = []struct {
	err  error
	code Code
}{
	{api.ErrAnswered, Answered},
	{api.ErrFetch, Fetch},
	{api.ErrBusy, Busy},
	{kv.ErrFull, Full},
	{api.ErrTimeout, Timeout},
	{context.DeadlineExceeded, Timeout},
	{context.Canceled, Timeout},
	{api.ErrInternal, Internal},
	{raster.ErrUnsupported, Unsupported},
	{raster.ErrTooLarge, TooLarge},
	{raster.ErrCorrupt, Corrupt},
	{raster.ErrExpired, Expired},
	{jpg.ErrUnsupported, Unsupported},
	{jpg.ErrTooLarge, TooLarge},
	{jpg.ErrTooManyScans, TooLarge},
	{jpg.ErrCorrupt, Corrupt},
	{jpg.ErrExpired, Expired},
	{predict.ErrNetwork, Network},
	{blob.ErrNotFound, NoBlob},
	{field.ErrFormat, Malformed},
	{api.ErrOptions, Options},
	{predict.ErrBundle, Bundle},
	{predict.ErrEngine, NewerBundle},
	{register.ErrApplication, NoApp},
	{catalog.ErrNotFound, NotFound},
	{kv.ErrCorrupt, StoreCorrupt},
	{kv.ErrFailed, StoreFailed},
}

// CodeOf returns the code and the text of an error: NoError and no text for nil, Internal for an error that codes does not list.
func CodeOf(err error) (c Code, text string) {
	if err == nil {
		return NoError, ""
	}
	for _, row := range codes {
		if errors.Is(err, row.err) {
			return row.code, err.Error()
		}
	}
	return Internal, err.Error()
}

// Err returns an error with a text for a code, or nil for NoError. The error wraps the error of the code's first row in codes, or ErrRemote
// for an unknown code.
func (c Code) Err(text string) error {
	if c == NoError {
		return nil
	}
	for _, row := range codes {
		if row.code == c {
			return far(row.err, text)
		}
	}
	return far(ErrRemote, text)
}

// far returns an error that wraps err and has the text of the other side.
func far(err error, text string) error {
	if text == "" || text == err.Error() {
		return err
	}
	return &farError{err, text}
}

type farError struct {
	err  error
	text string
}

func (e *farError) Error() string { return e.text }
func (e *farError) Unwrap() error { return e.err }
