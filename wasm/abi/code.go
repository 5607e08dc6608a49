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

// Code is an error in an envelope.
type Code uint32

// The codes. Those of results are 1 to 11. 12 is unused.
const (
	Well         Code = 0
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
	Malformed    Code = 13 // an invalid envelope
	Options      Code = 14 // settings that cannot be
	Bundle       Code = 15
	NewerBundle  Code = 16
	NoApp        Code = 17
	StoreCorrupt Code = 18
	StoreFailed  Code = 19
	NotFound     Code = 20 // a record
)

// codes in the order in which errors are matched: an error that wraps several is the first. The
// first row of a code is what the code means on the other side.
var codes = []struct {
	err  error
	code Code
}{
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

// CodeOf returns an error's code and text: Internal for an error without a row, Well and no text for nil.
func CodeOf(err error) (c Code, text string) {
	if err == nil {
		return Well, ""
	}
	for _, row := range codes {
		if errors.Is(err, row.err) {
			return row.code, err.Error()
		}
	}
	return Internal, err.Error()
}

// Err is the error behind a code and a text: nil for Well, else one that errors.Is finds to be the
// code's first row and that says the text.
func (c Code) Err(text string) error {
	if c == Well {
		return nil
	}
	for _, row := range codes {
		if row.code == c {
			return far(row.err, text)
		}
	}
	return far(ErrRemote, text)
}

// far is an error of the other side, with its own words.
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
