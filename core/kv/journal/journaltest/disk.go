// Package journaltest provides numbered files in memory for tests. The files can fail, and lose their power at any byte.
package journaltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
)

// ErrFault is the error of a call that [Disk.FailAt] made fail.
var ErrFault = errors.New("injected fault")

// Disk is a set of numbered files. It records every change, so that a test can return to any moment. It is safe for concurrent use,
// although a journal does not need that.
type Disk struct {
	mu     sync.Mutex
	files  map[int][]byte
	start  map[int][]byte // durable files at the beginning
	trace  []op           // changes since then
	calls  int
	failAt int
	forAll bool
	quota  int // bytes of all files; 0: no limit
	drops  bool
}

var _ journal.Files = (*Disk)(nil)

// op is a write of data at an offset, a truncation to a size, or a sync.
type op struct {
	file int
	kind opKind
	at   int64
	data []byte
}

type opKind byte

const (
	opWrite opKind = iota
	opTruncate
	opSync
)

// NewDisk returns a disk of empty files.
func NewDisk() *Disk { return newDisk(nil) }

// newDisk returns a disk with durable files.
func newDisk(files map[int][]byte) *Disk {
	d := &Disk{files: map[int][]byte{}, start: files}
	for file, data := range files {
		d.files[file] = slices.Clone(data)
	}
	return d
}

// FailAt makes the n-th call from now that changes or syncs a file fail with ErrFault; the first call is 1. With forAll every later call
// fails, too. 0 makes no call fail. A write that fails writes half of its bytes.
func (d *Disk) FailAt(n int, forAll bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.failAt, d.forAll = 0, n, forAll
}

// SetQuota limits the total bytes of all files; 0 means no limit. A write past it returns kv.ErrFull. It writes the bytes that fit, or,
// every other time, all bytes.
func (d *Disk) SetQuota(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quota = bytes
}

// DropWrites makes writes past the quota report success, and write nothing.
func (d *Disk) DropWrites() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drops = true
}

// Total returns the bytes of all files.
func (d *Disk) Total() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total()
}

func (d *Disk) total() (n int) {
	for _, data := range d.files {
		n += len(data)
	}
	return n
}

// Calls returns the number of calls that changed or synced a file since FailAt.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// step counts a call and returns its fault. The caller holds mu.
func (d *Disk) step() error {
	d.calls++
	if d.failAt > 0 && (d.calls == d.failAt || d.forAll && d.calls > d.failAt) {
		return ErrFault
	}
	return nil
}

// Size implements [journal.Files].
func (d *Disk) Size(file int) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.files[file])), nil
}

// Read implements [journal.Files].
func (d *Disk) Read(file int, off int64, p []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if data := d.files[file]; off < 0 || off+int64(len(p)) > int64(len(data)) {
		return fmt.Errorf("read of %d bytes at %d of %d", len(p), off, len(data))
	}
	copy(p, d.files[file][off:])
	return nil
}

// Write implements [journal.Files].
func (d *Disk) Write(file int, off int64, p []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if off < 0 || off > int64(len(d.files[file])) {
		return fmt.Errorf("write at %d of %d", off, len(d.files[file]))
	}
	err := d.step()
	if err != nil {
		p = p[:len(p)/2]
	}
	if over := int(off) + len(p) - len(d.files[file]) + d.total() - d.quota; d.quota > 0 && over > 0 && int(off)+len(p) > len(d.files[file]) {
		if d.drops {
			return nil
		}
		if err = kv.ErrFull; d.calls%2 == 0 {
			p = p[:max(0, len(p)-over)]
		}
	}
	d.do(op{file: file, kind: opWrite, at: off, data: slices.Clone(p)})
	return err
}

// Truncate implements [journal.Files].
func (d *Disk) Truncate(file int, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.do(op{file: file, kind: opTruncate, at: size})
	return nil
}

// Sync implements [journal.Files].
func (d *Disk) Sync(file int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.do(op{file: file, kind: opSync})
	return nil
}

// do makes a change and records it. The caller holds mu.
func (d *Disk) do(o op) {
	d.trace = append(d.trace, o)
	apply(d.files, o)
}

func apply(files map[int][]byte, o op) {
	data := files[o.file]
	switch o.kind {
	case opWrite:
		if grow := int(o.at) + len(o.data) - len(data); grow > 0 {
			data = append(data, make([]byte, grow)...)
		}
		copy(data[o.at:], o.data)
	case opTruncate:
		data = append(slices.Clone(data), make([]byte, max(0, int(o.at)-len(data)))...)[:o.at]
	}
	files[o.file] = data
}

// Ops returns the number of changes so far: a moment for [Disk.At].
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.trace)
}

// Len returns the number of bytes that the n-th change, counted from 0, wrote. A test can cut the write at each of them.
func (d *Disk) Len(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.trace[n].data)
}

// At returns the disk after the first n changes and the given number of bytes of the next one. A program that is killed at that moment
// leaves this disk.
func (d *Disk) At(n, bytes int) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := newDisk(d.start).files
	for _, o := range d.trace[:n] {
		apply(files, o)
	}
	if bytes > 0 {
		o := d.trace[n]
		o.data = o.data[:bytes]
		apply(files, o)
	}
	return newDisk(files)
}

// Crash returns the disk after a loss of power: with all synced changes, with a percentage of the others, and with parts of the rest.
func (d *Disk) Crash(percent int, rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crash(len(d.trace), percent, rng)
}

// CrashAt is Crash at an earlier moment.
func (d *Disk) CrashAt(n, percent int, rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crash(n, percent, rng)
}

func (d *Disk) crash(n, percent int, rng *rand.Rand) *Disk {
	synced := map[int]int{} // index of each file's last sync; changes before it are durable
	for i, o := range d.trace[:n] {
		if o.kind == opSync {
			synced[o.file] = i
		}
	}
	files := newDisk(d.start).files
	for i, o := range d.trace[:n] {
		if at, ok := synced[o.file]; ok && i <= at || rng.IntN(100) < percent {
			apply(files, o)
			continue
		}
		tear(files, o, rng)
	}
	return newDisk(files)
}

// tear applies none of an unsynced write, a part of it, or zeros instead.
func tear(files map[int][]byte, o op, rng *rand.Rand) {
	if o.kind != opWrite || len(o.data) == 0 {
		return
	}
	from := rng.IntN(len(o.data) + 1)
	to := from + rng.IntN(len(o.data)-from+1)
	switch rng.IntN(4) {
	case 0: // a part in the middle
		o.at, o.data = o.at+int64(from), o.data[from:to]
	case 1: // the first part
		o.data = o.data[:to]
	case 2: // blocks allotted, never written
		o.data = make([]byte, to)
	default:
		return
	}
	apply(files, o)
}

// Flip changes a bit of a file.
func (d *Disk) Flip(file int, at int64, bit byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[file][at] ^= 1 << (bit % 8)
}

// Bytes returns a copy of a file.
func (d *Disk) Bytes(file int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.files[file])
}

// SetBytes replaces a file, durably.
func (d *Disk) SetBytes(file int, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do(op{file: file, kind: opTruncate})
	d.do(op{file: file, kind: opWrite, data: slices.Clone(data)})
	d.do(op{file: file, kind: opSync})
}
