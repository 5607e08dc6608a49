package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/wasm"
	"github.com/sightline-dev/sightline/wasm/host"
)

// Names in the data folder.
const (
	moduleFile  = "module.wasm"
	compiledDir = "compiled"
	keyFile     = "compiled.key"
)

// maxModule bounds a module's file; our own has a tenth.
const maxModule = 256 << 20

// builtIn is the program's own module and its hash.
func builtIn() ([]byte, [sha256.Size]byte, error) {
	own, err := wasm.Guest()
	return own, sha256.Sum256(own), err
}

// module returns the module that serves a data folder: the one that an operator has put there, or the program's own.
func module(dir *system.Folder) (bytes []byte, err error) {
	if bytes, err = placed(dir); bytes != nil || err != nil {
		return bytes, err
	}
	bytes, _, err = builtIn()
	return bytes, err
}

// placed is the module that an operator has put into a folder; nil: none.
func placed(dir *system.Folder) ([]byte, error) {
	f, err := dir.Open(moduleFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bytes, err := system.ReadAll(f, maxModule)
	if err = errors.Join(err, f.Close()); err == nil && bytes == nil {
		bytes = []byte{}
	}
	return bytes, err
}

// putModule makes a module the folder's; nil: the program's own is it again.
func putModule(dir *system.Folder, bytes []byte) error {
	if bytes == nil {
		if err := dir.Remove(moduleFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return dir.SyncDir(".")
	}
	return replaceFile(dir, moduleFile, bytes)
}

// replaceFile has a file hold bytes, or after a crash what it held before.
func replaceFile(dir *system.Folder, name string, bytes []byte) error {
	unfinished := name + ".new"
	if err := dir.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := write(dir, unfinished, bytes); err != nil {
		return err
	}
	if err := dir.Rename(unfinished, name); err != nil {
		return err
	}
	return dir.SyncDir(".")
}

// write makes a file that outlives a crash.
func write(dir *system.Folder, name string, bytes []byte) error {
	f, err := dir.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// compile makes a runtime of a module, or reads it from the folder's cache. The program's own runs without deadlines,
// which cost much.
func (n *Node) compile(ctx context.Context, dir *system.Folder, bytes []byte, log *slog.Logger) (*host.Runtime, error) {
	cache, err := openCache(dir)
	if err != nil {
		log.Warn("compiled modules are not kept", "error", err)
	}
	_, own, err := builtIn()
	if err != nil {
		return nil, err
	}
	rt, err := host.NewRuntime(ctx, host.Options{
		Module: bytes, Cache: cache, MemoryPages: memoryPages(n.memory), Trusted: [][sha256.Size]byte{own}, Own: own, CallTime: n.callTime,
		Now: system.Now, Rand: system.Random, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("module %x: %w", sha256.Sum256(bytes), err)
	}
	if cache != nil {
		if err := prune(cache, own, rt.Hash()); err != nil {
			log.Warn("compiled modules", "error", err)
		}
	}
	return rt, nil
}

// isOwn reports whether a runtime is of the program's own module.
func isOwn(rt *host.Runtime) bool {
	_, own, err := builtIn()
	return err == nil && rt.Hash() == own
}

// prune removes what other modules were compiled to: those of older programs, which nobody asks for again.
func prune(cache *host.Cache, keep ...[sha256.Size]byte) error {
	names, err := cache.Files.ReadDir(".")
	for _, name := range names {
		if !slices.ContainsFunc(keep, func(h [sha256.Size]byte) bool { return strings.HasPrefix(name, hex.EncodeToString(h[:])) }) {
			err = errors.Join(err, cache.Files.Remove(name))
		}
	}
	return err
}

// openCache is where a data folder's modules are kept compiled.
func openCache(dir *system.Folder) (*host.Cache, error) {
	key, err := cacheKey(dir)
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

// cacheKey is the node's own, made when it is first needed.
func cacheKey(dir *system.Folder) (key [32]byte, err error) {
	for {
		f, err := dir.Open(keyFile)
		if err == nil {
			text, err := system.ReadAll(f, 2*int64(len(key)))
			if err = errors.Join(err, f.Close()); err != nil {
				return key, err
			}
			if n, err := hex.Decode(key[:], text); err == nil && n == len(key) {
				return key, nil
			}
			if err := dir.Remove(keyFile); err != nil { // a crash left it, or it is damaged: what it sealed is compiled anew
				return key, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return key, err
		}
		if _, err := io.ReadFull(system.Random, key[:]); err != nil {
			return key, err
		}
		if err := write(dir, keyFile, []byte(hex.EncodeToString(key[:]))); err != nil && !errors.Is(err, fs.ErrExist) {
			return key, err
		}
	}
}
