package api

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

// TestOutcomesNameTheCause checks that the details of a failed input name one cause. Internal errors have one text, and so have all
// failures that concern the address.
func TestOutcomesNameTheCause(t *testing.T) {
	s := smallService(t)
	var base [32]byte
	details := map[string]error{}
	for _, err := range []error{
		raster.ErrUnsupported, raster.ErrTooLarge, raster.ErrCorrupt, raster.ErrExpired,
		jpg.ErrUnsupported, jpg.ErrTooLarge, jpg.ErrTooManyScans, jpg.ErrCorrupt, jpg.ErrExpired, blob.ErrTooLarge,
		call.ErrFetch, call.DownloadError("it is empty"), call.DownloadError("its server answered with HTTP status 404"),
	} {
		o := s.FetchOutcome(base, &Result{Err: err})
		if before, ok := details[o.Detail]; ok || o.Detail == "" {
			t.Errorf("%v has the text %q, and so has %v", err, o.Detail, before)
		}
		details[o.Detail] = err
	}
	for _, err := range []error{kv.ErrCorrupt, errors.New("boom"), fmt.Errorf("%w: x", call.ErrInternal)} {
		if o := s.FetchOutcome(base, &Result{Err: err}); o.Detail != "Could not analyse the picture." {
			t.Errorf("%v has the text %q", err, o.Detail)
		}
	}
	for _, err := range []error{fmt.Errorf("%w: 10.0.0.1", call.ErrFetch), fmt.Errorf("%w: no such host", call.ErrFetch)} {
		if o := s.FetchOutcome(base, &Result{Err: err}); o.Detail != call.ErrFetch.Error() {
			t.Errorf("%v has the text %q", err, o.Detail)
		}
	}
}
