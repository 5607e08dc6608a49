package command

import (
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/release"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/feed"
	wire "github.com/sightline-dev/sightline/sync/release"
	"github.com/sightline-dev/sightline/wasm"
)

// releases are the core modules that edges get from here: the program's own, or the one that --edge-module
// names. They are looked at when the first edge asks; a program that was built without a module has none.
func (srv *Server) releases() feed.Releases {
	module := wasm.Guest
	if o, ok := srv.settings.program.(*origin); ok && o.module != "" {
		module = func() ([]byte, error) { return system.ReadFile(o.module, wire.MaxModule) }
	}
	return &published{open: sync.OnceValue(func() *release.Publisher {
		p, err := release.Open(release.Options{
			Store: srv.folder.Store, Module: module, Program: version, Now: system.Now, Rand: system.Random,
		})
		if err != nil {
			srv.log.Error("edges get no module from here", "error", err)
			return nil
		}
		return p
	})}
}

// published opens the publisher for the first who asks.
type published struct{ open func() *release.Publisher }

// Manifest implements [feed.Releases].
func (p *published) Manifest(channel string) ([]byte, bool) {
	if r := p.open(); r != nil {
		return r.Manifest(channel)
	}
	return nil, false
}

// Module implements [feed.Releases].
func (p *published) Module(h blob.Hash) ([]byte, bool) {
	if r := p.open(); r != nil {
		return r.Module(h)
	}
	return nil, false
}

// Key implements [feed.Releases].
func (p *published) Key() [32]byte {
	if r := p.open(); r != nil {
		return r.Key()
	}
	return [32]byte{}
}
