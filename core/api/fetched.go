package api

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// FetchJob is the job that a pending input waits for.
func FetchJob(url string, crop raster.Crop) *Job {
	return &Job{URL: url, Crop: crop, Want: wantOfInputs, Keep: true}
}

// codeUnread is that of an input whose picture could not be analysed, whyever.
const codeUnread = 30300

// Fetched is what a [FetchJob]'s result means for its input.
func (s *Service) Fetched(r *Result) ingest.Outcome {
	err := r.Err
	if err == nil && r.Blob.IsZero() {
		err = errNoResult
	}
	var derived *catalog.Derived
	if err == nil {
		derived, err = s.derive(&r.Analysis)
	}
	if err == nil {
		return ingest.Outcome{
			Code: catalog.InputReady, Blob: r.Blob, ContentType: r.ContentType,
			Derived: derived, Thumb: r.Analysis.Thumb,
		}
	}
	st := statusOf(err)
	o := ingest.Outcome{Code: st.code, Detail: detailsOf(err, st)}
	switch {
	case errors.Is(err, ErrBusy), errors.Is(err, ErrTimeout):
		o.Retry = ingest.Always
	case errors.Is(err, ErrFetch) && r.Passing:
		o.Retry = ingest.Limited
	case st.http >= 500: // ours; it may be the picture that brings it about
		o = ingest.Outcome{Code: codeUnread, Detail: "The picture could not be analysed.", Retry: ingest.Limited}
	}
	return o
}
