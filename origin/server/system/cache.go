//go:build unix

package system

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// CacheFolder returns the program's folder in the user's cache folder, and creates it if necessary. It is the folder that systemd made for
// the unit, in CACHE_DIRECTORY, or else the folder sightline in the user's folder of caches. lookup returns variables of the environment.
// If another user can write to the folder, CacheFolder returns an error.
func CacheFolder(lookup func(name string) string) (string, error) {
	if dir, _, _ := strings.Cut(lookup("CACHE_DIRECTORY"), ":"); dir != "" {
		return dir, errors.Join(MakeFolder(dir), checkOwner(dir))
	}
	if lookup("HOME") == "" && lookup("XDG_CACHE_HOME") == "" {
		return "", errors.New("the user has no folder of caches")
	}
	parent, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, "sightline")
	if err := errors.Join(MakeFolder(dir), checkOwner(parent), os.Chmod(dir, 0o700)); err != nil { // an existing folder may allow others
		return "", err
	}
	return dir, checkOwner(dir)
}

// checkOwner returns an error if another user than this one can write to a folder.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s belongs to another user, or others can write to it", dir)
	}
	return nil
}
