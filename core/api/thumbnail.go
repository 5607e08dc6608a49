package api

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
)

// readThumbnail answers with a small JPEG of an input's picture, cropped as the input is. It is
// an addition of ours to the interface.
func readThumbnail(x *exchange) error {
	v := x.app.Partition.View()
	defer v.Close()
	in, err := x.inputOfPath(v)
	if err != nil {
		return err
	}
	picture, err := v.Thumb(in.Blob, in.Crop)
	if in.Code != catalog.InputReady || errors.Is(err, catalog.ErrNotFound) {
		return refusef(ErrPath, "input '%s' has no thumbnail: its picture has not been analysed.", in.ID)
	}
	if err != nil {
		return err
	}
	x.call.response = Response{
		Status:      200,
		ContentType: "image/jpeg",
		Header:      x.headers(Field{"Cache-Control", "private, max-age=3600"}),
		Body:        picture,
	}
	return nil
}
