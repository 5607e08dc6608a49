package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/reembed"
)

// TestUnavailableStore checks that callers may try again while the store of pictures does not answer, and that no answer has the address of
// the store. An input that has a URL waits for as long as that takes.
func TestUnavailableStore(t *testing.T) {
	err := fmt.Errorf("put blob: %w: dial 10.0.0.1: %w", blob.ErrUnavailable, context.DeadlineExceeded)
	st := call.StatusOf(err)
	if text := call.DetailsOf(err, st); st.HTTP != 503 || text != blob.ErrUnavailable.Error() || strings.Contains(text, "10.0.0.1") {
		t.Errorf("the status is %d with details %q, want 503 without the cause", st.HTTP, text)
	}
	s := smallService(t)
	if o := s.FetchOutcome([32]byte{}, &Result{Err: err}); o.Retry != ingest.Always || catalog.InputPending == o.Code {
		t.Errorf("FetchOutcome = %+v, want a retry always", o)
	}
	if o := DateOutcome(&Result{Err: err}); o.Retry != ingest.Always {
		t.Errorf("DateOutcome = %+v, want a retry always", o)
	}
	if _, c := s.ReembedOutcome([32]byte{}, &Result{Err: err, Analysis: predict.Analysis{}}); c != reembed.Transient {
		t.Errorf("RenewOutcome = %v, want Passing", c)
	}
}
