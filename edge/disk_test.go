package main_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/edge/node"
	origin "github.com/sightline-dev/sightline/origin/program"
	floor "github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Variables of the environment of a process that a test starts.
const (
	asProgram = "SIGHTLINE_TEST_PROGRAM" // the test binary runs as the program that it is called
	diskOf    = "SIGHTLINE_TEST_DISK"    // folder of the disk that the process has
)

// originName is the name of the test binary that runs as the origin. With any other name it runs as the edge.
const originName = "sightline"

// TestMain runs the test binary as one of the programs where a test has started it as such. The program is the released one. Its data
// folder is on a disk whose power can be cut and which can be full.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := system.CancelOnSignal(context.Background())
	system.IgnoreBrokenPipes()
	env := floor.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ}
	program := node.New()
	if filepath.Base(os.Args[0]) == originName {
		program = origin.New()
	}
	if dir := os.Getenv(diskOf); dir != "" {
		env.Data = openDisk(dir).options()
	}
	code := cli.Run(ctx, program, env)
	stop()
	os.Exit(code)
}

// disk is the disk of one process. Its files are those of the operating system, which keep all that a killed process wrote. The disk notes
// in a journal what was synced, and cut removes the rest:
//
//	c FILE          FILE was created; its name is not durable before the folder is synced
//	s SIZE FILE     SIZE bytes of FILE are durable
//	d FOLDER        the names in FOLDER are durable
//	r FROM TO       FROM was renamed
//	n FILE          the name of FILE is durable, since another file had it
//	x FILE          FILE was removed; a removal is always durable
type disk struct {
	dir string

	mu      sync.Mutex
	journal *os.File
}

// Files in the folder of a disk.
const (
	journalName = "journal"
	fullName    = "full" // where it exists, the disk has no space
)

func openDisk(dir string) *disk {
	journal, err := os.OpenFile(filepath.Join(dir, journalName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	return &disk{dir: dir, journal: journal}
}

// options are those of a data folder on the disk.
func (d *disk) options() data.Options {
	return data.Options{
		Free: func() (int64, error) {
			if _, err := os.Stat(filepath.Join(d.dir, fullName)); err == nil {
				return 1 << 10, nil
			}
			return 1 << 40, nil
		},
		StoreFS: cutStore{vfs.Default, d},
		BlobFS:  func(files blob.FS) blob.FS { return cutFiles{files, d} },
	}
}

// note writes to the journal.
func (d *disk) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Fprintf(d.journal, format+"\n", args...); err != nil {
		panic(err)
	}
}

// noteRename notes a rename, and whether a file had the new name.
func (d *disk) noteRename(from, to string, existed bool) {
	d.note("r %s %s", from, to)
	if existed {
		d.note("n %s", to)
	}
}

// entry is a file in the journal of a disk.
type entry struct {
	nameSynced bool // its name is durable
	synced     int64
}

// readJournal returns the files that a journal has.
func readJournal(dir string) (map[string]*entry, error) {
	f, err := os.Open(filepath.Join(dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files := map[string]*entry{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Split(lines.Text(), " ")
		name := words[len(words)-1]
		switch words[0] {
		case "c":
			files[name] = &entry{}
		case "s":
			if x := files[name]; x != nil {
				if _, err := fmt.Sscan(words[1], &x.synced); err != nil {
					return nil, err
				}
			}
		case "d":
			for file, x := range files {
				x.nameSynced = x.nameSynced || filepath.Dir(file) == name
			}
		case "r":
			x, was := files[words[1]], files[name]
			delete(files, words[1])
			if x != nil {
				x.nameSynced = was != nil && was.nameSynced
				files[name] = x
			}
		case "n":
			if x := files[name]; x != nil {
				x.nameSynced = true
			}
		case "x":
			delete(files, name)
		}
	}
	return files, nil
}

// cutPower does to the data folder of a killed process what a power cut does. It removes the unsynced data, or a part of it, and returns
// the number of removed bytes and files.
func cutPower(t testing.TB, disk, folder string, rnd *rand.Rand) (bytes int64, names int) {
	t.Helper()
	files, err := readJournal(disk)
	if err != nil {
		t.Fatal(err)
	}
	remainder := rnd.IntN(3) // share of the unsynced data that is left: nothing, a part, all
	all := make([]string, 0, len(files))
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	for _, name := range all {
		x, path := files[name], name
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, name)
		}
		info, err := os.Stat(path)
		if err != nil || !strings.HasPrefix(path, folder+"/") { // a backup is durable, and the command changes it, too
			continue
		}
		lost := info.Size() - x.synced
		switch {
		case remainder == 2:
			continue
		case !x.nameSynced && (remainder == 0 || rnd.IntN(2) == 0):
			names++
			err = os.Remove(path)
		case lost > 0 && remainder == 0:
			bytes += lost
			err = os.Truncate(path, x.synced)
		case lost > 0:
			part := rnd.Int64N(lost + 1)
			bytes += lost - part
			err = os.Truncate(path, x.synced+part)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	forgetJournal(t, disk)
	// The machine was started again, so the program reads its copies of pictures.
	if err := os.WriteFile(filepath.Join(folder, "BOOT"), []byte("an earlier start"), 0o600); err != nil {
		t.Fatal(err)
	}
	return bytes, names
}

// forgetJournal makes all files of a disk durable.
func forgetJournal(t testing.TB, disk string) {
	t.Helper()
	if err := os.Remove(filepath.Join(disk, journalName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// cutStore are the files of a store on a disk.
type cutStore struct {
	vfs.FS
	disk *disk
}

var _ vfs.FS = cutStore{}

// Create implements [vfs.FS].
func (c cutStore) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if err != nil {
		return f, err
	}
	c.disk.note("c %s", name)
	return &cutFile{File: f, name: name, disk: c.disk}, nil
}

// OpenReadWrite implements [vfs.FS].
func (c cutStore) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	_, missing := c.Stat(name)
	f, err := c.FS.OpenReadWrite(name, category, opts...)
	if err == nil && missing != nil {
		c.disk.note("c %s", name)
	}
	return f, err
}

// ReuseForWrite implements [vfs.FS].
func (c cutStore) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.Remove(oldname); err != nil {
		return nil, err
	}
	return c.Create(newname, category)
}

// OpenDir implements [vfs.FS].
func (c cutStore) OpenDir(name string) (vfs.File, error) {
	f, err := c.FS.OpenDir(name)
	if err != nil {
		return f, err
	}
	return cutDir{f, name, c.disk}, nil
}

// Rename implements [vfs.FS].
func (c cutStore) Rename(from, to string) error {
	_, missing := c.Stat(to)
	err := c.FS.Rename(from, to)
	if err == nil {
		c.disk.noteRename(from, to, missing == nil)
	}
	return err
}

// Remove implements [vfs.FS].
func (c cutStore) Remove(name string) error {
	err := c.FS.Remove(name)
	if err == nil {
		c.disk.note("x %s", name)
	}
	return err
}

// Unwrap implements [vfs.FS].
func (c cutStore) Unwrap() vfs.FS { return c.FS }

// cutFile is a file that is written from its start to its end.
type cutFile struct {
	vfs.File
	name string
	disk *disk

	mu   sync.Mutex
	size int64
}

// Write implements [vfs.File].
func (f *cutFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size += int64(n)
	return n, err
}

// Preallocate implements [vfs.File]. Nothing is allocated: the size of the file is what was written.
func (f *cutFile) Preallocate(_, _ int64) error { return nil }

// runSync runs a sync and notes what it made durable.
func (f *cutFile) runSync(sync func() (fullSync bool, err error)) error {
	f.mu.Lock()
	size := f.size
	f.mu.Unlock()
	fullSync, err := sync()
	if err == nil && fullSync {
		f.disk.note("s %d %s", size, f.name)
	}
	return err
}

// Sync implements [vfs.File].
func (f *cutFile) Sync() error {
	return f.runSync(func() (bool, error) { return true, f.File.Sync() })
}

// SyncData implements [vfs.File].
func (f *cutFile) SyncData() error {
	return f.runSync(func() (bool, error) { return true, f.File.SyncData() })
}

// SyncTo implements [vfs.File].
func (f *cutFile) SyncTo(length int64) (fullSync bool, err error) {
	err = f.runSync(func() (_ bool, err error) {
		fullSync, err = f.File.SyncTo(length)
		return fullSync, err
	})
	return fullSync, err
}

// cutDir is a folder of a store.
type cutDir struct {
	vfs.File
	name string
	disk *disk
}

// Sync implements [vfs.File].
func (d cutDir) Sync() error {
	err := d.File.Sync()
	if err == nil {
		d.disk.note("d %s", filepath.Clean(d.name))
	}
	return err
}

// cutFiles are the pictures on a disk, by names below the data folder.
type cutFiles struct {
	blob.FS
	disk *disk
}

// Create implements [blob.FS].
func (c cutFiles) Create(name string) (blob.File, error) {
	f, err := c.FS.Create(name)
	if err != nil {
		return f, err
	}
	c.disk.note("c %s", name)
	return &cutPicture{f, name, c.disk, 0}, nil
}

// Rename implements [blob.FS].
func (c cutFiles) Rename(from, to string) error {
	_, missing := c.Size(to)
	err := c.FS.Rename(from, to)
	if err == nil {
		c.disk.noteRename(from, to, missing == nil)
	}
	return err
}

// Remove implements [blob.FS].
func (c cutFiles) Remove(name string) error {
	err := c.FS.Remove(name)
	if err == nil {
		c.disk.note("x %s", name)
	}
	return err
}

// SyncDir implements [blob.FS].
func (c cutFiles) SyncDir(name string) error {
	err := c.FS.SyncDir(name)
	if err == nil {
		c.disk.note("d %s", filepath.Clean(name))
	}
	return err
}

// cutPicture is a picture that one goroutine writes.
type cutPicture struct {
	blob.File
	name string
	disk *disk
	size int64
}

// Write implements [blob.File].
func (f *cutPicture) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.size += int64(n)
	return n, err
}

// Sync implements [blob.File].
func (f *cutPicture) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.disk.note("s %d %s", f.size, f.name)
	}
	return err
}
