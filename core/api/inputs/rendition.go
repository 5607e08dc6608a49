package inputs

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
)

// Rendition answers with a JPEG of an input's whole picture, for pages whose browser cannot draw the picture. The original interface does
// not have this call.
//
// The host makes it at the first request and caches it in memory. No record has it, so it is not replicated.
func Rendition(x *call.Call) error {
	_, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	if in.Code != catalog.InputReady {
		return call.Refusef(call.ErrPath, "input '%s' has no rendition: its picture has not been analysed.", in.ID)
	}
	key := call.RenditionKey{App: x.App.AppID(), Picture: in.Blob}
	if jpeg, ok := x.Host.Renditions.Find(key); ok {
		return x.SendTagged("image/jpeg", jpeg, renditionTag(in.Blob))
	}
	return x.Ask([]call.Job{{Blob: in.Blob, Want: predict.WantRendition}}, func(results []call.Result) error {
		if len(results) == 0 {
			return call.ErrNoResult
		}
		r := &results[0]
		switch {
		case errors.Is(r.Err, call.ErrFetch):
			return call.Refusef(call.ErrPath, "input '%s': its picture is not stored here, and the download from the origin failed.", in.ID)
		case r.Err != nil:
			return r.Err
		case r.Analysis.Has&predict.WantRendition == 0:
			return call.ErrNoResult
		}
		jpeg := r.Analysis.Picture
		x.Host.Renditions.Put(key, jpeg, len(jpeg))
		return x.SendTagged("image/jpeg", jpeg, renditionTag(in.Blob))
	})
}

// HasRendition reports whether the caller's cache has the rendition of the input in the path.
func HasRendition(x *call.Call) bool {
	_, in, err := inputOfPath(x)
	return err == nil && in.Code == catalog.InputReady && call.MatchesTag(x.Known, renditionTag(in.Blob))
}

// renditionVersion is part of each rendition's tag. Increase it when the bytes of renditions change.
const renditionVersion = 1

// renditionTag returns the entity tag of a picture's rendition. It depends on the picture, because the bytes of a rendition are equal on
// all hosts, and because a host need not make a rendition to know that the caller has it.
func renditionTag(picture blob.Hash) string { return tagOf(append(picture[:], renditionVersion)) }
