package feed

import (
	"encoding/hex"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
)

// Releases are the core modules that edges get; *release.Publisher of the origin is one.
type Releases interface {
	// Manifest is the signed manifest of a channel; false: there is no such channel.
	Manifest(channel string) ([]byte, bool)
	// Module is a module by its hash, to be read; false: it is not published.
	Module(h blob.Hash) ([]byte, bool)
	// Key is the public Ed25519 key that manifests are signed with; zero: nothing is released.
	Key() [32]byte
}

// released lets in whoever may hold anything here.
func (c *call) released() error {
	if err := c.identify(); err != nil {
		return err
	}
	switch {
	case c.edge != nil && c.edge.Revoked != 0:
		return errScope
	case c.f.o.Releases == nil:
		return unknown("no modules are released here")
	}
	return nil
}

// release answers with the manifest of a channel.
func (c *call) release() (api.Response, error) {
	if err := c.released(); err != nil {
		return api.Response{}, err
	}
	signed, ok := c.f.o.Releases.Manifest(c.name)
	if !ok {
		return api.Response{}, unknown("no such channel")
	}
	res := message(signed)
	res.Header = []api.Field{{Name: "Cache-Control", Value: "no-store"}}
	return res, nil
}

// module answers with a module, or a part of one.
func (c *call) module() (api.Response, error) {
	if err := c.released(); err != nil {
		return api.Response{}, err
	}
	data, ok := c.f.o.Releases.Module(c.hash)
	if !ok {
		return api.Response{}, unknown("no such module: ask for the channel's manifest")
	}
	c.app = c.user() // whose traffic it is
	return c.bytes(data)
}

// releaseKey is what an edge that enrols learns, as 64 hex digits; empty: nothing is released.
func (f *Feed) releaseKey() string {
	if f.o.Releases == nil {
		return ""
	}
	key := f.o.Releases.Key()
	if key == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(key[:])
}
