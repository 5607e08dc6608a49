//go:build !wasip1

package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
)

// The marker is a text file. writeMarker replaces it by renaming:
//
//	sightline store              identifies the file
//	format 1                     format of the store around Pebble, not Pebble's own
//	state sealed                 creating, open or sealed
//	file 000004.log 52 1b2c3d4f  when sealed, one line for each file: name, bytes, CRC-32C
//	sum 9f8e7d6c                 CRC-32C of the lines above
//
// Tables are not listed. The listed manifest has their number and lengths, which Pebble compares when it opens the store. Their blocks have
// checksums, which Pebble compares at each read.
const (
	markerName  = "SIGHTLINE"
	markerTemp  = "SIGHTLINE.tmp"
	ballastName = "BALLAST"
	lockName    = "LOCK"

	markerMagic  = "sightline store\n"
	markerFormat = 1
)

// States of a store in its marker.
const (
	stateCreating = "creating" // nothing was acknowledged yet
	stateOpen     = "open"     // in use, or stopped by a crash
	stateSealed   = "sealed"   // closed cleanly, or a checkpoint: the files are as listed
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealedFile is a file that the seal lists.
type sealedFile struct {
	name  string
	bytes int64
	sum   uint32 // CRC-32C
}

// marker returns the content of the marker file.
func marker(state string, files []sealedFile) []byte {
	b := fmt.Appendf(nil, "%sformat %d\nstate %s\n", markerMagic, markerFormat, state)
	for _, f := range files {
		b = fmt.Appendf(b, "file %s %d %08x\n", f.name, f.bytes, f.sum)
	}
	return fmt.Appendf(b, "sum %08x\n", crc32.Checksum(b, castagnoli))
}

// writeMarker replaces the marker. It is durable when writeMarker returns nil.
func writeMarker(fsys vfs.FS, dir, state string, files []sealedFile) error {
	temp := fsys.PathJoin(dir, markerTemp)
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(marker(state, files))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temp, fsys.PathJoin(dir, markerName)); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readMarker returns the state and the files, or an empty state if the marker does not exist.
func readMarker(fsys vfs.FS, dir string) (state string, files []sealedFile, err error) {
	f, err := fsys.Open(fsys.PathJoin(dir, markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, err
	}
	return parseMarker(data)
}

// parseMarker reads a marker. It rejects one that differs from the output of marker.
func parseMarker(data []byte) (state string, files []sealedFile, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(markerMagic))
	if !ok {
		return "", nil, fmt.Errorf("%w: its %s file was not written by Sightline", kv.ErrForeign, markerName)
	}
	var format int
	if _, err := fmt.Fscanf(bytes.NewReader(rest), "format %d\n", &format); err != nil {
		return "", nil, fmt.Errorf("%w: marker: format is missing", kv.ErrCorrupt)
	}
	if format > markerFormat {
		return "", nil, fmt.Errorf("%w: it has format %d, but this version reads formats up to %d", kv.ErrNewer, format, markerFormat)
	}
	for line := range strings.Lines(string(rest)) {
		if after, ok := strings.CutPrefix(line, "state "); ok {
			state = strings.TrimSuffix(after, "\n")
		}
		if !strings.HasPrefix(line, "file ") {
			continue
		}
		var f sealedFile
		if _, err := fmt.Sscanf(line, "file %s %d %x\n", &f.name, &f.bytes, &f.sum); err != nil {
			return "", nil, fmt.Errorf("%w: marker: %w", kv.ErrCorrupt, err)
		}
		files = append(files, f)
	}
	known := slices.Contains([]string{stateCreating, stateOpen, stateSealed}, state)
	if !known || !bytes.Equal(marker(state, files), data) {
		return "", nil, fmt.Errorf("%w: marker", kv.ErrCorrupt)
	}
	return state, files, nil
}

// seal writes the marker of a closed store or checkpoint, with the checksums of its files.
func seal(fsys vfs.FS, dir string) error {
	files, err := sumAll(fsys, dir, vfs.File.Sync)
	if err != nil {
		return err
	}
	return writeMarker(fsys, dir, stateSealed, files)
}

// sumAll returns the files that a seal lists, by name, for a store at rest. It calls visit with each open file.
func sumAll(fsys vfs.FS, dir string, visit func(vfs.File) error) ([]sealedFile, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var files []sealedFile
	for _, name := range names {
		if !isSealedName(name) {
			continue
		}
		f, err := sumFile(fsys, fsys.PathJoin(dir, name), visit)
		if err != nil {
			return nil, err
		}
		f.name = name
		files = append(files, f)
	}
	return files, nil
}

func sumFile(fsys vfs.FS, path string, visit func(vfs.File) error) (s sealedFile, err error) {
	f, err := fsys.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return s, err
	}
	h := crc32.New(castagnoli)
	s.bytes, err = io.Copy(h, f)
	s.sum = h.Sum32()
	return s, errors.Join(err, visit(f), f.Close())
}

// isSealedName reports whether a seal lists a file of that name.
func isSealedName(name string) bool {
	for _, prefix := range []string{"MANIFEST-", "OPTIONS-", "marker."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".log")
}

// ownFile reports whether the store creates a file of that name before its marker exists.
func ownFile(name string) bool {
	return slices.Contains([]string{markerName, markerTemp, ballastName, lockName}, name)
}

// checkSeal compares the files with those that the seal lists. It ignores other files.
func checkSeal(fsys vfs.FS, dir string, want []sealedFile) error {
	got, err := sumAll(fsys, dir, func(vfs.File) error { return nil })
	if err != nil {
		return err
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(f sealedFile) bool { return f.name == w.name })
		if i < 0 {
			return fmt.Errorf("%w: %s is missing", kv.ErrCorrupt, w.name)
		}
		if got[i] != w {
			return fmt.Errorf("%w: %s changed since the store was closed", kv.ErrCorrupt, w.name)
		}
	}
	return nil
}

// checkEmpty returns kv.ErrForeign for a folder without a marker that has any other file.
func checkEmpty(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") || name == "CURRENT" {
			return fmt.Errorf("%w: the store belongs to another program", kv.ErrForeign)
		}
	}
	for _, name := range names {
		if !ownFile(name) {
			return fmt.Errorf("%w: the folder holds other files, such as %s", kv.ErrForeign, name)
		}
	}
	return nil
}

// removeTorn removes Pebble's files after an interrupted creation, because Pebble may not find all that it expects. The store had
// acknowledged nothing.
func removeTorn(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isSealedName(name) {
			continue
		}
		if err := fsys.Remove(fsys.PathJoin(dir, name)); err != nil {
			return err
		}
	}
	return syncDir(fsys, dir)
}

// makeDir creates the folder and its missing parents, durably.
func makeDir(fsys vfs.FS, dir string) error {
	missing := []string{}
	for at := dir; ; at = fsys.PathDir(at) {
		if _, err := fsys.Stat(at); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, at)
		if fsys.PathDir(at) == at {
			break
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, at := range missing {
		parent := fsys.PathDir(at)
		if parent == "" {
			parent = "."
		}
		if err := syncDir(fsys, parent); err != nil {
			return err
		}
	}
	return nil
}
