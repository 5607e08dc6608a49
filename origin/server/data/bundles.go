package data

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// The folder stores the bundles of every network that serves an application. A program with another network serves the application with the
// old network until the change to the new one is complete.
//
//	DIR/bundles/HASH/       the bundles of the network whose base has this hash
//	DIR/bundles.new/        bundles while they are being written

const (
	bundlesDir    = "bundles"
	newBundlesDir = "bundles.new"
)

// StoreBundles stores the bundles of a network in the folder, unless the folder has them with the same manifests. Stored bundles with other
// manifests are an earlier form of the same network: StoreBundles replaces them. A crash leaves all of the bundles or none, and the next
// call stores missing ones.
func (f *Folder) StoreBundles(base [32]byte, bundles fs.FS) error {
	err := keepBundles(f.folder, base, bundles)
	if err != nil {
		return fmt.Errorf("store bundles: %w", err)
	}
	return nil
}

func keepBundles(folder *system.Folder, base [32]byte, bundles fs.FS) error {
	to := path.Join(bundlesDir, hex.EncodeToString(base[:]))
	if same, err := sameManifests(folder, to, bundles); same || err != nil {
		return err
	}
	if err := folder.RemoveAll(newBundlesDir); err != nil {
		return err
	}
	var dirs []string
	err := fs.WalkDir(bundles, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path.Join(newBundlesDir, name))
			return folder.MkdirAll(dirs[len(dirs)-1])
		}
		data, err := fs.ReadFile(bundles, name)
		if err != nil {
			return err
		}
		return system.ReplaceIn(folder, path.Join(newBundlesDir, name), data)
	})
	for _, dir := range dirs {
		if err == nil {
			err = folder.SyncDir(dir)
		}
	}
	if err == nil {
		err = folder.MkdirAll(bundlesDir)
	}
	if err == nil {
		err = folder.RemoveAll(to)
	}
	if err == nil {
		err = folder.Rename(newBundlesDir, to)
	}
	if err == nil {
		err = folder.SyncDir(bundlesDir)
	}
	return err
}

// sameManifests reports whether the folder dir has the manifests of bundles.
func sameManifests(folder *system.Folder, dir string, bundles fs.FS) (bool, error) {
	manifests, err := fs.Glob(bundles, "*/manifest.json")
	if err != nil {
		return false, err
	}
	for _, name := range manifests {
		want, err := fs.ReadFile(bundles, name)
		if err != nil {
			return false, err
		}
		got, err := fs.ReadFile(folder.FS(), path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(got, want) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// Bundles returns the bundles of a network that StoreBundles stored. If they are missing, the error is fs.ErrNotExist.
func (f *Folder) Bundles(base [32]byte) (fs.FS, error) {
	dir := path.Join(bundlesDir, hex.EncodeToString(base[:]))
	if _, err := f.folder.ReadDir(dir); err != nil {
		return nil, err
	}
	return fs.Sub(f.folder.FS(), dir)
}

// DropBundles removes the bundles of networks for which keep returns false.
func (f *Folder) DropBundles(keep func(base [32]byte) bool) error {
	names, err := f.folder.ReadDir(bundlesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		var base [32]byte
		if n, err := hex.Decode(base[:], []byte(name)); err != nil || n != len(base) || keep(base) {
			continue // not a folder of bundles, or still needed
		}
		if err := f.folder.RemoveAll(path.Join(bundlesDir, name)); err != nil {
			return err
		}
	}
	return err
}
