// Package release is the origin's side of core modules: which one its edges are to run, in a manifest that
// it signs.
//
//	module of the program ──its hash is another than the last──▶ a new number, kept in the store
//	                                  key, made once ──▶ Manifest: signed for who asks, good for a week
//
// The key is made when it is first needed and stays in the store, so it is in every backup, and an
// origin that was restored signs on. Numbers are times, so they rise even then.
package release

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/release"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// goodFor is how long a manifest is good: an edge that hears nothing newer for so long says so.
const goodFor = 7 * 24 * time.Hour

// Options are a publisher's settings. All are needed, but Program.
type Options struct {
	Store   kv.Store
	Module  func() ([]byte, error) // the same bytes each time, which are the caller's
	Program string                 // version of the program, for people
	Now     func() time.Time
	Rand    io.Reader // fit for secrets
}

// Publisher publishes one module on the channel [release.Stable]. It is safe for concurrent use.
type Publisher struct {
	o    Options
	note note
	hash blob.Hash
	size int
}

// note is what is kept.
type note struct {
	seed    []byte // of the private key
	version uint64
	module  blob.Hash // of that version
}

// noteKey is where: beside the register, and no part of its log.
func noteKey() []byte { return catalog.Control.LocalKey("release") }

// Open makes a publisher. A module that is not the last one that was published becomes the next release. Errors:
// those of Module, of the store and of the random source.
func Open(o Options) (*Publisher, error) {
	module, err := o.Module()
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	p := &Publisher{o: o, hash: blob.Sum(module), size: len(module)}
	changed, err := p.load()
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	if p.note.module != p.hash {
		p.note.version = max(p.note.version+1, uint64(o.Now().UnixMilli()))
		p.note.module, changed = p.hash, true
	}
	if changed {
		if err := p.save(); err != nil {
			return nil, fmt.Errorf("release: %w", err)
		}
	}
	return p, nil
}

// load reads what is kept, and makes a key where there is none.
func (p *Publisher) load() (made bool, err error) {
	data, err := p.o.Store.Get(noteKey())
	switch {
	case errors.Is(err, kv.ErrNotFound):
		p.note.seed = make([]byte, ed25519.SeedSize)
		_, err = io.ReadFull(p.o.Rand, p.note.seed)
		return true, err
	case err != nil:
		return false, err
	}
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			p.note.seed = d.Raw()
		case 2:
			p.note.version = d.Uint()
		case 3:
			d.Hash(p.note.module[:])
		}
	}
	if err := d.Err(); err != nil {
		return false, err
	}
	if len(p.note.seed) != ed25519.SeedSize {
		return false, fmt.Errorf("the key has %d bytes: %w", len(p.note.seed), kv.ErrCorrupt)
	}
	return false, nil
}

// save keeps the note, before anybody is told of it.
func (p *Publisher) save() error {
	var e field.Encoder
	e.Reset(nil)
	e.Raw(1, p.note.seed)
	e.Uint(2, p.note.version)
	e.Hash(3, p.note.module[:])
	var b kv.Batch
	b.Put(noteKey(), e.Bytes(nil))
	wait, err := p.o.Store.Commit(&b)
	if err != nil {
		return err
	}
	return wait()
}

func (p *Publisher) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(p.note.seed) }

// Key is the public key by which edges know the origin's releases.
func (p *Publisher) Key() [32]byte { return [32]byte(p.private().Public().(ed25519.PublicKey)) }

// Manifest is the signed manifest of a channel, good from now on; false: there is no such channel.
func (p *Publisher) Manifest(channel string) ([]byte, bool) {
	if channel != release.Stable {
		return nil, false
	}
	now := p.o.Now()
	return release.Sign(p.private(), &release.Manifest{
		Channel: channel, Version: p.note.version, Module: p.hash, Size: uint64(p.size),
		ABI: abi.Version, Fold: fold.Version, NotBefore: now, Expires: now.Add(goodFor), Program: p.o.Program,
	}), true
}

// Module is a module by its hash; false: it is not published. It is not held in memory, since it is hardly
// ever asked for.
func (p *Publisher) Module(h blob.Hash) ([]byte, bool) {
	if h != p.hash {
		return nil, false
	}
	module, err := p.o.Module()
	return module, err == nil && blob.Sum(module) == h
}
