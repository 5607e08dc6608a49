package inputs

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
)

// Thumbnail answers with a small JPEG of an input's picture, cropped like the input. The original interface does not have this call.
//
// An origin sends no thumbnails to replicas. If its host permits it, a replica creates a missing thumbnail at the first request.
func Thumbnail(x *call.Call) error {
	v, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	thumb, err := v.Thumb(in.Blob, in.Crop)
	missing := errors.Is(err, catalog.ErrNotFound)
	switch {
	case in.Code == catalog.InputReady && missing && x.Host.Thumbnails && x.App.Replica != nil:
		return x.Ask([]call.Job{{Blob: in.Blob, Crop: in.Crop, Want: predict.WantThumb}}, func(results []call.Result) error { return madeThumbnail(x, &in, results) })
	case in.Code != catalog.InputReady || missing:
		return call.Refusef(call.ErrPath, "input '%s' has no thumbnail: its picture has not been analysed.", in.ID)
	case err != nil:
		return err
	}
	return answerThumbnail(x, thumb)
}

// madeThumbnail stores a new thumbnail, which lasts as long as an input has its picture, and answers with it.
func madeThumbnail(x *call.Call, in *catalog.Input, results []call.Result) error {
	if len(results) == 0 {
		return call.ErrNoResult
	}
	r := &results[0]
	switch {
	case errors.Is(r.Err, call.ErrFetch):
		return call.Refusef(call.ErrPath, "input '%s': neither picture nor thumbnail is stored here, and the download from the origin failed.", in.ID)
	case r.Err != nil:
		return r.Err
	case r.Analysis.Has&predict.WantThumb == 0:
		return call.ErrNoResult
	}
	err := x.App.Partition.AddDerived([]log.Dot{in.Dot}, func(w kv.Writer, inputs []catalog.Input) {
		for i := range inputs {
			catalog.PutThumb(w, x.App.AppID(), inputs[i].Blob, inputs[i].Crop, r.Analysis.Thumb)
		}
	})
	if err != nil && !errors.Is(err, kv.ErrFull) && !errors.Is(err, kv.ErrFollows) { // then the next request creates it again
		return err
	}
	return answerThumbnail(x, r.Analysis.Thumb)
}

// HasThumbnail reports whether the caller's cache has the thumbnail of the input in the path.
func HasThumbnail(x *call.Call) bool {
	v, in, err := inputOfPath(x)
	if err != nil {
		return false
	}
	thumb, err := v.Thumb(in.Blob, in.Crop)
	return err == nil && call.MatchesTag(x.Known, tagOf(thumb))
}

// tagOf returns the entity tag of a thumbnail: equal bytes have equal tags, at each server.
func tagOf(jpeg []byte) string { return `"` + blob.Sum(jpeg).String()[:24] + `"` }

func answerThumbnail(x *call.Call, jpeg []byte) error {
	return x.SendTagged("image/jpeg", jpeg, tagOf(jpeg))
}
