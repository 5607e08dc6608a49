package api

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/reembed"
)

// FetchJob returns the job that a pending input waits for. base is the base of the network that analyses the picture.
func FetchJob(url string, crop raster.Crop, base [32]byte) *call.Job {
	return &call.Job{URL: url, Crop: crop, Want: call.WantOfInputs, Base: base, Keep: true}
}

// FetchOutcome returns the outcome of a [FetchJob] with the same base for its input.
func (s *Service) FetchOutcome(base [32]byte, r *call.Result) ingest.Outcome {
	err := r.Err
	if err == nil && r.Blob.IsZero() {
		err = call.ErrNoResult
	}
	var derived *catalog.DerivedData
	if err == nil {
		derived, err = s.host.Network(base).Derive(&r.Analysis)
	}
	if err == nil {
		return ingest.Outcome{
			Code: catalog.InputReady, Blob: r.Blob, ContentType: r.ContentType,
			Derived: derived, Thumb: r.Analysis.Thumb, Place: call.PointOf(r.Analysis.Exif.Place),
		}
	}
	st := call.StatusOf(err)
	o := ingest.Outcome{Code: st.Code, Detail: call.DetailsOf(err, st)}
	switch {
	case maySucceed(err):
		o.Retry = ingest.Always
	case errors.Is(err, call.ErrFetch) && r.Passing:
		o.Retry = ingest.Limited
	case st.HTTP >= 500: // an error of this host, which the picture may cause
		o = ingest.Outcome{Code: catalog.InputUnreadable, Detail: "Could not analyse the picture.", Retry: ingest.Limited}
	}
	return o
}

// maySucceed reports whether a job failed because the host, or its store of pictures, accepts no work at present.
func maySucceed(err error) bool {
	return errors.Is(err, call.ErrBusy) || errors.Is(err, call.ErrTimeout) || errors.Is(err, blob.ErrUnavailable)
}

// DateJob returns the job that reads the metadata of a ready input's file.
func DateJob(picture blob.Hash) *call.Job { return &call.Job{Blob: picture, Want: predict.WantExif} }

// DateOutcome returns the outcome of a [DateJob] for its input.
func DateOutcome(r *call.Result) ingest.Outcome {
	var o ingest.Outcome
	switch {
	case maySucceed(r.Err):
		o.Retry = ingest.Always
	case r.Err != nil:
		o.Retry = ingest.Limited
	case r.Analysis.Has&predict.WantExif != 0:
		o.Code, o.Derived = catalog.InputReady, &catalog.DerivedData{Taken: r.Analysis.Exif.Taken}
	}
	return o
}

// ReembedJob returns the job that analyses a ready input's picture with another network.
func ReembedJob(picture blob.Hash, crop raster.Crop, base [32]byte) *call.Job {
	return &call.Job{Blob: picture, Crop: crop, Want: call.WantOfInputs, Base: base}
}

// ReembedOutcome returns the derived record from the result of a [ReembedJob] with the same base. If it has none, d is nil and c is the
// cause.
func (s *Service) ReembedOutcome(base [32]byte, r *call.Result) (d *catalog.DerivedData, c reembed.Cause) {
	if r.Err == nil {
		d, r.Err = s.host.Network(base).Derive(&r.Analysis)
	}
	switch {
	case maySucceed(r.Err):
		c = reembed.Transient
	case errors.Is(r.Err, blob.ErrNotFound), errors.Is(r.Err, blob.ErrCorrupt):
		c = reembed.Missing
	}
	return d, c
}
