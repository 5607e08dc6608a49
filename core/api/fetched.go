package api

import (
	"errors"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/renew"
)

// FetchJob is the job that a pending input waits for, by the network with a base.
func FetchJob(url string, crop raster.Crop, base [32]byte) *Job {
	return &Job{URL: url, Crop: crop, Want: wantOfInputs, Base: base, Keep: true}
}

// codeUnread is that of an input whose picture could not be analysed, whyever.
const codeUnread = 30300

// Fetched is what the result of a [FetchJob] with a base means for its input.
func (s *Service) Fetched(base [32]byte, r *Result) ingest.Outcome {
	err := r.Err
	if err == nil && r.Blob.IsZero() {
		err = errNoResult
	}
	var derived *catalog.Derived
	if err == nil {
		derived, err = s.network(base).derive(&r.Analysis)
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
		o = ingest.Outcome{Code: codeUnread, Detail: "Could not analyse the picture.", Retry: ingest.Limited}
	}
	return o
}

// RenewJob is the job of a ready input's picture that another network is to analyse.
func RenewJob(picture blob.Hash, crop raster.Crop, base [32]byte) *Job {
	return &Job{Blob: picture, Crop: crop, Want: wantOfInputs, Base: base}
}

// Renewed returns the derived record that the result of a [RenewJob] with a base gives, or nil and the cause.
func (s *Service) Renewed(base [32]byte, r *Result) (d *catalog.Derived, c renew.Cause) {
	if r.Err == nil {
		d, r.Err = s.network(base).derive(&r.Analysis)
	}
	switch {
	case errors.Is(r.Err, ErrBusy), errors.Is(r.Err, ErrTimeout):
		c = renew.Passing
	case errors.Is(r.Err, blob.ErrNotFound), errors.Is(r.Err, blob.ErrCorrupt):
		c = renew.Missing
	}
	return d, c
}
