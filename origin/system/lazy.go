package system

import (
	"os"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
)

// LazyFolder is a [Folder] that leaves it to the operating system when to write: what it
// holds survives the death of the process, and loses at most its newest files when the
// machine loses power. It is for what may be lost, such as copies that are dropped anyway.
type LazyFolder struct{ *Folder }

var _ blob.FS = LazyFolder{}

// Lazy returns the folder without its syncs.
func (f *Folder) Lazy() LazyFolder { return LazyFolder{f} }

// Create makes a new file whose Sync does nothing.
func (f LazyFolder) Create(name string) (blob.File, error) {
	file, err := f.Folder.Create(name)
	if err != nil {
		return nil, err
	}
	return lazyFile{file}, nil
}

// SyncDir does nothing.
func (f LazyFolder) SyncDir(string) error { return nil }

type lazyFile struct{ blob.File }

func (lazyFile) Sync() error { return nil }

// Boot names the time since the machine was started: it changes with every start, and is
// empty where it cannot be known.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
