// Package journaltest is numbered files in memory that fail, and lose their power at any byte.
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

// Disk is numbered files. It remembers everything that was ever done to them, so that any
// moment can be had again. It is safe for concurrent use, though a journal needs no such thing.
type Disk struct {
	mu     sync.Mutex
	files  map[int][]byte
	start  map[int][]byte // files as they were at first, durably
	trace  []op           // since then
	calls  int
	failAt int
	forAll bool
	quota  int // bytes of all files; 0: no limit
}

var _ journal.Files = (*Disk)(nil)

// op is a write, a truncate (to size) or a sync (neither).
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

// newDisk returns a disk that has files durably.
func newDisk(files map[int][]byte) *Disk {
	d := &Disk{files: map[int][]byte{}, start: files}
	for file, data := range files {
		d.files[file] = slices.Clone(data)
	}
	return d
}

// FailAt makes the n-th call from now that changes or syncs a file fail with ErrFault, counted
// from 1, and every one after it when forAll is set; 0 makes none fail. A write that fails
// writes half.
func (d *Disk) FailAt(n int, forAll bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.failAt, d.forAll = 0, n, forAll
}

// SetQuota limits the bytes of all files; 0 is no limit. A write past it returns kv.ErrFull. It writes what fits, or, every
// other time, everything.
func (d *Disk) SetQuota(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quota = bytes
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

// Calls returns the calls that changed or synced a file since FailAt.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// step counts a call; mu is held.
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

// do does and remembers; mu is held.
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

// Ops returns how much has been done so far: a moment for [Disk.At].
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.trace)
}

// Len returns the bytes that the n-th thing done, from 0, wrote: the cuts in it.
func (d *Disk) Len(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.trace[n].data)
}

// At returns the disk as it was when the first n things had been done, and of the next one the first
// so many bytes: what a program leaves that is killed there.
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

// Crash returns the disk after a loss of power: with all synced data, with a percentage of the others, and with parts of the rest.
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
	synced := map[int]int{} // what was done before is durable
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

// tear keeps none of the unsynced data, some of them, or zeros instead.
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
