//go:build !wasip1

package pebblekv

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that Pebble uses. An error on a log, a manifest or a folder stops the store. disk hides it from Pebble, which
// would panic while it holds its locks, or retry forever. Afterwards disk changes no file that a start relies on, since everything after a
// lost write must be lost as well. disk creates no table while there is no space.
type disk struct {
	vfs.FS
	dir    string // the store's folder; files in another folder belong to a checkpoint, which may fail without the store
	health *health
	listed atomic.Bool // List has succeeded at least once
}

// List implements [vfs.FS]. Pebble's Open lists the folder twice, first and last. If the second call fails, Pebble leaves goroutines that
// panic, so List hides the error.
func (d *disk) List(dir string) ([]string, error) {
	names, err := d.FS.List(dir)
	if err != nil && d.listed.Load() && !d.health.isServing() {
		d.health.fail(err)
		return nil, nil
	}
	d.listed.Store(true)
	return names, err
}

// Create implements [vfs.FS].
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		if d.health.failure() != nil && !d.health.isServing() {
			return nullFile(), nil // Pebble's Open would wait for a failed flush
		}
		if err := d.health.waitSpace(); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(d.PathBase(name), "marker.") {
		// The name of this file selects the manifest, so the manifest's name must be durable first.
		d.do(func() error { return syncDir(d.FS, d.PathDir(name)) })
	}
	if !d.isLog(name) && (d.health.isServing() || strings.HasSuffix(name, ".sst")) {
		if err := d.health.failure(); err != nil {
			return nil, err
		}
		return d.FS.Create(name, category)
	}
	return d.logFile(func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// ReuseForWrite implements [vfs.FS].
func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.logFile(func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir implements [vfs.FS].
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil || name != d.dir {
		return f, err
	}
	return &logFile{File: f, disk: d}, nil
}

// Unwrap implements [vfs.FS].
func (d *disk) Unwrap() vfs.FS { return d.FS }

// Remove implements [vfs.FS].
func (d *disk) Remove(name string) error {
	return d.change(func() error { return d.FS.Remove(name) })
}

// RemoveAll implements [vfs.FS].
func (d *disk) RemoveAll(name string) error {
	return d.change(func() error { return d.FS.RemoveAll(name) })
}

// Rename implements [vfs.FS].
func (d *disk) Rename(oldname, newname string) error {
	return d.change(func() error { return d.FS.Rename(oldname, newname) })
}

// Link implements [vfs.FS].
func (d *disk) Link(oldname, newname string) error {
	return d.change(func() error { return d.FS.Link(oldname, newname) })
}

// change runs op unless the store has failed. During Pebble's Open it hides errors, since some of them make Open panic, or leave goroutines
// that panic.
func (d *disk) change(op func() error) error {
	if !d.health.isServing() {
		d.do(op)
		return nil
	}
	if err := d.health.failure(); err != nil {
		return err
	}
	return op()
}

func (d *disk) isLog(name string) bool {
	base := d.PathBase(name)
	return (strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-")) && name == d.PathJoin(d.dir, base)
}

// logFile opens a log file. Once the store has failed, it returns an empty file in memory.
func (d *disk) logFile(open func() (vfs.File, error)) (vfs.File, error) {
	f := nullFile()
	d.do(func() error {
		opened, err := open()
		if err == nil {
			f = opened
		}
		return err
	})
	return &logFile{File: f, disk: d}, nil
}

// do runs op unless the store has failed. If op returns an error, the store fails.
func (d *disk) do(op func() error) {
	if d.health.failure() != nil {
		return
	}
	if err := op(); err != nil {
		d.health.fail(err)
	}
}

// logFile is a log, a manifest, or a folder. Acknowledged writes rely on its durability. Pebble sees no errors of it.
type logFile struct {
	vfs.File
	disk *disk
}

// Write implements [vfs.File].
func (f *logFile) Write(p []byte) (int, error) {
	f.disk.do(func() error {
		_, err := f.File.Write(p)
		return err
	})
	return len(p), nil
}

// Sync implements [vfs.File].
func (f *logFile) Sync() error {
	f.disk.do(f.File.Sync)
	return nil
}

// SyncData implements [vfs.File].
func (f *logFile) SyncData() error {
	f.disk.do(f.File.SyncData)
	return nil
}

// SyncTo implements [vfs.File].
func (f *logFile) SyncTo(length int64) (fullSync bool, err error) {
	f.disk.do(func() (err error) {
		fullSync, err = f.File.SyncTo(length)
		return err
	})
	return fullSync, nil
}

// Stat implements [vfs.File].
func (f *logFile) Stat() (vfs.FileInfo, error) {
	info, err := nullFile().Stat()
	f.disk.do(func() error {
		got, err := f.File.Stat()
		if err == nil {
			info = got
		}
		return err
	})
	return info, err
}

// Close implements [vfs.File].
func (f *logFile) Close() error {
	err := f.File.Close()
	f.disk.do(func() error { return err })
	return nil
}

var (
	_ vfs.FS   = (*disk)(nil)
	_ vfs.File = (*logFile)(nil)
)

// nullFile returns an empty file in memory. Once the store has failed, Pebble writes to it, and nobody reads it.
func nullFile() vfs.File {
	f, _ := vfs.NewMem().Create("null", vfs.WriteCategoryUnspecified)
	return f
}
