package server

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Folders of compiled modules, in the user's cache folder or in the data folder. The key that seals the files of a folder is next to it, in a
// file with the extension .key.
const (
	DecoderCode = "decoder"  // of the module that decodes videos
	ModuleCode  = "compiled" // of the module that edges run
)

// CodeCache is a folder of compiled modules, and the key that seals its files.
type CodeCache struct {
	Dir    string
	Key    [32]byte
	Shared bool // other processes of the user may use the folder
}

// OpenCodeCache returns the folder name of compiled modules in the user's cache folder, so that all data folders share it. If user is empty
// or cannot be used, it returns the one in the data folder. An empty name of a data folder means that there is none. OpenCodeCache creates
// what is missing. Once the user's folder is used, it removes the one in the data folder.
func OpenCodeCache(user, data, name string) (CodeCache, error) {
	if user != "" {
		c, err := openCodeCache(user, name)
		if err == nil {
			c.Shared = true
			if data != "" {
				err = removeCode(data, name)
			}
		}
		if err == nil || data == "" {
			return c, err
		}
	}
	if data == "" {
		return CodeCache{}, errors.New("there is no folder for compiled modules")
	}
	return openCodeCache(data, name)
}

// removeCode removes a folder of compiled modules and its key from a data folder.
func removeCode(data, name string) error {
	folder, err := system.OpenFolder(data)
	if err != nil {
		return err
	}
	return errors.Join(folder.RemoveAll(name), folder.RemoveAll(name+".key"), folder.Close())
}

func openCodeCache(dir, name string) (c CodeCache, err error) {
	parent, err := system.OpenFolder(dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	c.Dir = filepath.Join(dir, name)
	if c.Key, err = system.LoadKey(parent, name+".key"); err != nil {
		return c, err
	}
	return c, parent.MkdirAll(name)
}

// Has reports whether the folder has the compiled form of a module, by its name. It does not check the seal.
func (c CodeCache) Has(name string) bool {
	_, _, err := system.ModTimeAndSize(filepath.Join(c.Dir, name))
	return err == nil
}

// keepCode is the time for which a compiled module stays that this program does not use. Another program of the user may use it, which
// otherwise compiles it again.
const keepCode = 30 * 24 * time.Hour

// Prune deletes old files except those with these names, the compiled forms of modules.
func (c CodeCache) Prune(names ...string) (err error) {
	folder, err := system.OpenFolder(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	entries, err := fs.ReadDir(folder.FS(), ".")
	for _, entry := range entries {
		info, failed := entry.Info()
		if failed != nil || slices.Contains(names, entry.Name()) || entry.IsDir() || entry.Name() == "LOCK" || system.Now().Sub(info.ModTime()) < keepCode {
			continue
		}
		err = errors.Join(err, folder.RemoveAll(entry.Name()))
	}
	return err
}
