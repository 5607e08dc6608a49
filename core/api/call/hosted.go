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

// Gallery finds the pictures of public names: those of predict calls, and those of inputs.
type Gallery struct {
	Names interface {
		// Lookup returns the picture with a name; the error is blob.ErrNotFound.
		Lookup(name string, now time.Time) (blob.Picture, error)
	}
	Store kv.Reader // where inputs' pictures are found; nil: there are none
	Clock func() time.Time
}

// Picture returns the picture at PublicURL + [HostedPath] + name, whose blob the host serves with nosniff: a copy for a predict call, or
// an input's picture. The error is blob.ErrNotFound, for which the host answers 404 without a reason.
func (g Gallery) Picture(name string) (blob.Picture, error) {
	p, err := g.Names.Lookup(name, g.Clock())
	if err == nil || !errors.Is(err, blob.ErrNotFound) {
		return p, err
	}
	_, in, err := g.input(name)
	if err != nil {
		return blob.Picture{}, err
	}
	return blob.Picture{Hash: in.Blob, ContentType: in.ContentType}, nil
}

// Thumbnail returns the small JPEG of an input's picture. The error is
// blob.ErrNotFound; say no more than 404.
func (g Gallery) Thumbnail(name string) ([]byte, error) {
	r, in, err := g.input(name)
	if err != nil {
		return nil, err
	}
	thumb, err := r.Thumb(in.Blob, in.Crop)
	return thumb, Unless(err, blob.ErrNotFound)
}

// input is the input whose picture has a public name, once it has been downloaded.
func (g Gallery) input(name string) (catalog.Reader, *catalog.Input, error) {
	var key [16]byte
	if n, err := hex.Decode(key[:], []byte(name[:min(len(name), 2*len(key))])); err != nil || n != len(key) || hex.EncodeToString(key[:]) != name || g.Store == nil {
		return catalog.Reader{}, nil, blob.ErrNotFound
	}
	app, ord, err := catalog.HostedInput(g.Store, key)
	if err == nil {
		r := catalog.Read(g.Store, app)
		var in catalog.Input
		if in, err = r.Input(ord); err == nil && in.Code == catalog.InputReady {
			return r, &in, nil
		}
	}
	if err = Unless(err, blob.ErrNotFound); err == nil {
		err = blob.ErrNotFound
	}
	return catalog.Reader{}, nil, err
}

// HostedName is the public name in the address of a picture of ours.
func (h *Host) HostedName(url string) (name [16]byte, ours bool) {
	text, ours := strings.CutPrefix(url, h.PublicURL+HostedPath)
	if !ours || len(text) != 2*len(name) {
		return name, false
	}
	_, err := hex.Decode(name[:], []byte(text))
	return name, err == nil
}
