package call

import (
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// HostedPath is the path below PublicURL at which hosted pictures are served, by name. An input's thumbnail has the same path followed by
// [ThumbnailPath].
const (
	HostedPath    = "/hosted/"
	ThumbnailPath = "/thumbnail"
)

// PublicPictures finds the pictures that have public names: pictures of predict calls, and of inputs.
type PublicPictures struct {
	Names interface {
		// Lookup returns the picture with a name. The error for an unknown name is blob.ErrNotFound.
		Lookup(name string, now time.Time) (blob.Picture, error)
	}
	Store kv.Reader // store with the inputs' pictures; nil: there are no inputs
	Clock func() time.Time
}

// Picture returns the picture at PublicURL + [HostedPath] + name: the picture of a predict call, or of an input. The host serves its blob
// with nosniff. The error is blob.ErrNotFound, for which the host answers 404 without a reason.
func (g PublicPictures) Picture(name string) (blob.Picture, error) {
	p, err := g.Names.Lookup(name, g.Clock())
	if err == nil || !errors.Is(err, blob.ErrNotFound) {
		return p, err
	}
	app, in, err := g.input(name)
	if err != nil {
		return blob.Picture{}, err
	}
	return blob.Picture{Hash: in.Blob, App: app, ContentType: in.ContentType}, nil
}

// Thumbnail returns the small JPEG of an input's picture. The error is
// blob.ErrNotFound, for which the host answers 404 without a reason.
func (g PublicPictures) Thumbnail(name string) ([]byte, error) {
	app, in, err := g.input(name)
	if err != nil {
		return nil, err
	}
	thumb, err := catalog.Read(g.Store, app).Thumb(in.Blob, in.Crop)
	return thumb, ReplaceNotFound(err, blob.ErrNotFound)
}

// input returns the input whose picture has a public name, and its application, if the picture was downloaded.
func (g PublicPictures) input(name string) (catalog.AppID, *catalog.Input, error) {
	var key [16]byte
	if n, err := hex.Decode(key[:], []byte(name[:min(len(name), 2*len(key))])); err != nil || n != len(key) || hex.EncodeToString(key[:]) != name || g.Store == nil {
		return catalog.AppID{}, nil, blob.ErrNotFound
	}
	app, ord, err := catalog.HostedInput(g.Store, key)
	if err == nil {
		var in catalog.Input
		if in, err = catalog.Read(g.Store, app).Input(ord); err == nil && in.Code == catalog.InputReady {
			return app, &in, nil
		}
	}
	if err = ReplaceNotFound(err, blob.ErrNotFound); err == nil {
		err = blob.ErrNotFound
	}
	return catalog.AppID{}, nil, err
}

// HostedName returns the public name in the URL of a picture that this host serves. ours is false for another URL.
func (h *Host) HostedName(url string) (name [16]byte, ours bool) {
	text, ours := strings.CutPrefix(url, h.PublicURL+HostedPath)
	if !ours || len(text) != 2*len(name) {
		return name, false
	}
	_, err := hex.Decode(name[:], []byte(text))
	return name, err == nil
}
