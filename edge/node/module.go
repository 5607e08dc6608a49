package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/wasm"
	"github.com/sightline-dev/sightline/wasm/host"
)

// Names in the data folder.
const (
	compiledDir = "compiled"
	keyFile     = "compiled.key"
)

// load compiles the program's module, or reads it from the folder's cache.
func (n *Node) load(ctx context.Context, dir *system.Folder, log *slog.Logger) (*host.Runtime, error) {
	module, err := wasm.Guest()
	if err != nil {
		return nil, err
	}
	cache, err := openCache(dir)
	if err != nil {
		log.Warn("cannot cache compiled modules", "error", err)
	}
	rt, err := host.NewRuntime(ctx, host.Options{
		Module: module, Cache: cache, MemoryPages: uint32(n.memory >> 16), Now: system.Now, Rand: system.Random, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("module: %w", err)
	}
	if cache != nil {
		if err := prune(cache, rt.Hash()); err != nil {
			log.Warn("cannot remove old compiled modules", "error", err)
		}
	}
	return rt, nil
}

// prune deletes the compiled modules of other versions of the program.
func prune(cache *host.Cache, hash [sha256.Size]byte) error {
	names, err := cache.Files.ReadDir(".")
	for _, name := range names {
		if !strings.HasPrefix(name, hex.EncodeToString(hash[:])) {
			err = errors.Join(err, cache.Files.Remove(name))
		}
	}
	return err
}

// openCache opens the cache of compiled modules in a data folder.
func openCache(dir *system.Folder) (*host.Cache, error) {
	key, err := system.Key(dir, keyFile)
	if err != nil {
		return nil, err
	}
	if err := dir.MkdirAll(compiledDir); err != nil {
		return nil, err
	}
	files, err := dir.Sub(compiledDir)
	if err != nil {
		return nil, err
	}
	return &host.Cache{Files: files, Key: key, Scratch: system.Scratch}, nil
}
