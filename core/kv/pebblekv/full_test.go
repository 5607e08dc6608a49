//go:build !wasip1

package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
)

func crcOf(s string) uint32 { return crc32.Checksum([]byte(s), castagnoli) }

func TestWatermark(t *testing.T) {
	var free atomic.Int64
	broken := errors.New("no such disk")
	o := small(vfs.NewMem())
	var logs bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	o.Watermark = 1000
	o.Free = func() (int64, error) {
		if free.Load() < 0 {
			return 0, broken
		}
		return free.Load(), nil
	}
	s := open(t, o)
	b := &kv.Batch{}
	b.Put([]byte("k"), nil)
	for _, tt := range []struct {
		free int64
		want error
	}{{1000, nil}, {999, kv.ErrFull}, {998, kv.ErrFull}, {-1, broken}, {5000, nil}, {6000, nil}} {
		free.Store(tt.free)
		if err := s.Room(); !errors.Is(err, tt.want) {
			t.Errorf("Room with %d bytes free = %v, want %v", tt.free, err, tt.want)
		}
		if err := s.Apply(b); err != nil {
			t.Errorf("Apply with %d bytes free = %v: deleting must remain allowed", tt.free, err)
		}
	}
	for _, line := range []string{`level=ERROR msg="the disk is nearly full: rejecting writes" free=999 required=1000`, `msg="the disk has space again: accepting writes" free=5000`} {
		if strings.Count(logs.String(), line) != 1 {
			t.Errorf("%q is not in the log once:\n%s", line, &logs)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// fullDisk fails matching writes with ENOSPC while it is full.
type fullDisk struct {
	*vfs.MemFS
	full    atomic.Bool
	matches func(op errorfs.Op) bool
	refused atomic.Int64
}

func (d *fullDisk) options() Options {
	o := small(errorfs.Wrap(d.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) && d.matches(op) {
			d.refused.Add(1)
			return syscall.ENOSPC
		}
		return nil
	})))
	o.Free = func() (int64, error) {
		if d.full.Load() {
			return 0, nil
		}
		return 1 << 40, nil
	}
	return o
}

func filler(i int) *kv.Batch {
	b := &kv.Batch{}
	b.Put(fmt.Appendf(nil, "filler-%04d", i), bytes.Repeat([]byte{byte(i)}, 1000))
	return b
}

// TestNoSpaceForTables: while there is no space for tables, writes fail without hanging, flushes do not spin, and reads work. Once there is
// space, everything works.
func TestNoSpaceForTables(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("free space known %v", known), func(t *testing.T) {
			d := &fullDisk{MemFS: vfs.NewMem(), matches: func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") }}
			o := d.options()
			if !known {
				o.Free = nil
			}
			s := open(t, o)
			d.full.Store(true)
			n := 0
			for ; n < 10_000; n++ {
				if err := s.Apply(filler(n)); errors.Is(err, kv.ErrFull) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if n == 10_000 {
				t.Fatal("a full disk never refused a write")
			}
			if err := s.Room(); !errors.Is(err, kv.ErrFull) {
				t.Errorf("Room = %v, want ErrFull", err)
			}
			if v, err := s.Get([]byte("filler-0000")); len(v) != 1000 || err != nil {
				t.Errorf("Get on a full disk = %d bytes, %v", len(v), err)
			}
			if refused := d.refused.Load(); refused > 20 {
				t.Errorf("%d writes were tried on a full disk, want a few", refused)
			}
			d.full.Store(false)
			for i := 0; ; i++ {
				if err := s.Room(); err == nil {
					break
				} else if i == 1 {
					t.Fatalf("Room with space again = %v", err)
				}
			}
			for i := n; i < n+300; i++ {
				err := s.Apply(filler(i))
				for try := 0; errors.Is(err, kv.ErrFull) && !known && try < 3; try++ { // an earlier failure may be returned only now
					_ = s.Room() // Room tries again
					err = s.Apply(filler(i))
				}
				if err != nil {
					t.Fatalf("Apply with space again = %v", err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, small(d.MemFS))
			count := 0
			if err := s.Scan(nil, nil, func(_, _ []byte) bool { count++; return true }); err != nil || count != n+300 {
				t.Errorf("%d keys, %v, want %d", count, err, n+300)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestManyMemTables: writes that are faster than flushes wait for them, so that memtables stay within their limit.
func TestManyMemTables(t *testing.T) {
	o := small(vfs.NewMem())
	o.MemTableBytes = 1 << 20 // Pebble begins with a quarter of this size, and flushes only above half of it
	s := open(t, o)
	const n = 12_000
	for i := range n {
		if err := s.Apply(filler(i)); err != nil {
			t.Fatal(err)
		}
	}
	if size := s.db.Metrics().MemTable.Size; size > (maxMemTables+1)<<20 {
		t.Errorf("%d bytes of memtables, want at most %d", size, (maxMemTables+1)<<20)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCloseWhileFull: a store can be closed on a full disk. When it is opened again it has all its data.
func TestCloseWhileFull(t *testing.T) {
	d := &fullDisk{MemFS: vfs.NewMem(), matches: func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") }}
	s := open(t, d.options())
	d.full.Store(true)
	n := 0
	for s.Apply(filler(n)) == nil {
		n++
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, small(d.MemFS))
	count := 0
	if err := s.Scan(nil, nil, func(_, _ []byte) bool { count++; return true }); err != nil || count != n {
		t.Errorf("%d keys, %v, want %d", count, err, n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBallast: freeing the ballast lets the log write on a full disk. Nothing fails, and Room returns ErrFull until there is space. Then
// the store creates the ballast again.
func TestBallast(t *testing.T) {
	ballast := folder + "/" + ballastName
	d := &fullDisk{MemFS: vfs.NewMem()}
	exists := func() bool {
		_, err := d.Stat(ballast)
		return !errors.Is(err, fs.ErrNotExist)
	}
	d.matches = func(op errorfs.Op) bool { return exists() && op.Path != ballast }
	o := d.options()
	o.Ballast = 1 << 20
	o.Free = func() (int64, error) {
		switch {
		case !d.full.Load():
			return 1 << 40, nil
		case exists():
			return 0, nil
		}
		return o.Ballast, nil
	}
	s := open(t, o)
	if !exists() {
		t.Fatal("no ballast")
	}
	d.full.Store(true)
	for i := range 3 {
		wait, err := s.Commit(filler(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := wait(); err != nil {
			t.Fatalf("a commit that the ballast makes room for: %v", err)
		}
	}
	if exists() || d.refused.Load() == 0 {
		t.Errorf("ballast there %v after %d refusals, want it gone", exists(), d.refused.Load())
	}
	if err := s.Room(); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Room = %v, want ErrFull", err)
	}
	d.full.Store(false)
	if err := s.Room(); err != nil || !exists() {
		t.Errorf("Room with space again = %v, ballast there %v", err, exists())
	}
	if err := s.Close(); err != nil || exists() {
		t.Errorf("Close = %v, ballast there %v, want it gone", err, exists())
	}
}

// TestNoSpaceLeft: once the ballast is freed, commits fail before they use the last space, which the log needs. Reads work on a full disk.
func TestNoSpaceLeft(t *testing.T) {
	d := &fullDisk{MemFS: vfs.NewMem()}
	var free atomic.Int64
	d.matches = func(op errorfs.Op) bool {
		_, err := d.Stat(folder + "/" + ballastName)
		return err == nil && op.Path != folder+"/"+ballastName || free.Load() == 0
	}
	o := d.options()
	o.Ballast = 1 << 20
	o.Free = func() (int64, error) { return free.Load(), nil }
	died := make(chan error, 1)
	o.Fatal = func(err error) { died <- err }
	free.Store(1 << 40)
	s := open(t, o)
	d.full.Store(true)
	free.Store(1 << 20) // the space of the ballast
	wait, err := s.Commit(filler(0))
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatalf("a commit that the ballast makes room for: %v", err)
	}
	free.Store(0) // other programs have used it
	for i := range 3 {
		if _, err := s.Commit(filler(1 + i)); !errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrFailed) {
			t.Errorf("Commit = %v, want ErrFull", err)
		}
	}
	if v, err := s.Get([]byte("filler-0000")); len(v) != 1000 || err != nil || len(died) > 0 {
		t.Errorf("Get on a full disk = %d bytes, %v, %d failures", len(v), err, len(died))
	}
	d.full.Store(false)
	free.Store(1 << 40)
	if err := errors.Join(s.Room(), s.Apply(filler(1)), s.Close()); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

// TestOpenWhileFull: a store that is opened on a full disk returns ErrFull and does not report damage.
func TestOpenWhileFull(t *testing.T) {
	d := &fullDisk{MemFS: vfs.NewCrashableMem(), matches: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst")
	}}
	s := open(t, d.options())
	for i := range 100 {
		wait, err := s.Commit(filler(i))
		if err == nil {
			err = wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	crashed := d.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d.MemFS = crashed
	o := d.options()
	var logs bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	d.full.Store(true)
	if s, err := Open(folder, o); !errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("Open on a full disk = %v, %v, want ErrFull", s, err)
	}
	h := newHealth(&o) // Pebble may look for a table that it could not write
	h.fail(syscall.ENOSPC)
	h.damage(errors.New("no such table"))
	if strings.Contains(logs.String(), "damage") || !strings.Contains(logs.String(), "the disk is full") {
		t.Errorf("log:\n%s", &logs)
	}
	d.full.Store(false)
	s = open(t, d.options())
	if v, err := s.Get([]byte("filler-0099")); len(v) != 1000 || err != nil {
		t.Errorf("Get with space again = %d bytes, %v", len(v), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNoSpaceForBallast(t *testing.T) {
	broken := errors.New("no such disk")
	for _, free := range []func() (int64, error){
		func() (int64, error) { return 1<<30 + 10, nil },
		func() (int64, error) { return 0, broken },
	} {
		d := vfs.NewMem()
		o := small(d)
		o.Free, o.Watermark, o.Ballast = free, 1<<30, 11
		s := open(t, o)
		if _, err := d.Stat(folder + "/" + ballastName); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the ballast took the last space: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoSpaceForTheLog: without space for the log and without ballast, nothing is acknowledged and Fatal is called.
func TestNoSpaceForTheLog(t *testing.T) {
	d := &fullDisk{MemFS: vfs.NewCrashableMem(), matches: func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }}
	o := d.options()
	died := make(chan error, 1)
	o.Fatal = func(err error) { died <- err }
	s := open(t, o)
	first, err := s.Commit(filler(0))
	if err != nil || first() != nil {
		t.Fatal(err)
	}
	d.full.Store(true)
	wait, err := s.Commit(filler(1))
	if err == nil { // the log's writer has not failed yet
		err = wait()
	}
	if !errors.Is(err, kv.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Commit, and its wait = %v, want ErrFailed for want of space", err)
	}
	if err := <-died; !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Fatal was told %v, want ENOSPC", err)
	}
	d.full.Store(false)
	if err := s.Apply(filler(2)); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("Apply = %v, want ErrFailed for ever", err)
	}
	if v, err := s.Get([]byte("filler-0000")); len(v) != 1000 || err != nil {
		t.Errorf("Get = %d bytes, %v: reads go on", len(v), err)
	}
	if err := s.Close(); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("Close = %v, want ErrFailed", err)
	}
	s = open(t, small(d.MemFS))
	if v, err := s.Get([]byte("filler-0000")); len(v) != 1000 || err != nil {
		t.Errorf("Get after opening again = %d bytes, %v", len(v), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamageInTheBackground: once a compaction finds damage, Room returns it, and so do reads of the damaged data.
func TestDamageInTheBackground(t *testing.T) {
	mem := vfs.NewMem()
	session := kvtest.NewSession(1, 100, 600)
	s := open(t, small(mem))
	var p kvtest.Progress
	ran := errors.Join(session.Run(s, 0, &p), s.db.Flush(), s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false)) // so that opening finds nothing to compact
	if err := errors.Join(ran, s.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			data, err := mem.UnsafeGetFileDataBuffer(folder + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			data[100] ^= 1 // within the first data block
		}
	}
	s = open(t, small(mem))
	b := &kv.Batch{}
	b.Put([]byte("a"), nil) // spans all existing keys, with z
	b.Put([]byte("z"), nil)
	if err := errors.Join(s.Apply(b), s.db.Flush()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.db.Compact(ctx, []byte("a"), []byte("zz"), false) // returns once ctx is canceled
	}()
	for !errors.Is(s.Room(), kv.ErrCorrupt) {
		runtime.Gosched()
	}
	cancel()
	<-done
	if err := s.Scan(nil, nil, func(_, _ []byte) bool { return true }); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("Scan = %v, want ErrCorrupt", err)
	}
	if err := s.ScanBack(nil, nil, func(_, _ []byte) bool { return true }); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("ScanBack = %v, want ErrCorrupt", err)
	}
	_ = s.Close()
}

// TestPanicInScan: a yield that panics leaves no iterator open.
func TestPanicInScan(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	if err := s.Apply(filler(1)); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = s.Scan(nil, nil, func(_, _ []byte) bool { panic("ours") })
	}()
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v: the iterator leaks", err)
	}
}

// TestCloseWithSnapshot: closing the store closes its open snapshots.
func TestCloseWithSnapshot(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	snap := s.Snapshot()
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := snap.Get([]byte("k")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Get = %v, want ErrClosed", err)
	}
	if err := snap.Close(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Close of the snapshot = %v, want ErrClosed", err)
	}
}

// TestNoSpaceForCheckpoint: a checkpoint that finds no space fails. The store continues to work.
func TestNoSpaceForCheckpoint(t *testing.T) {
	d := &fullDisk{MemFS: vfs.NewMem(), matches: func(op errorfs.Op) bool { return strings.HasPrefix(op.Path, "data/copy") }}
	s := open(t, d.options())
	d.full.Store(true)
	if err := s.Checkpoint("data/copy"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Checkpoint = %v, want ENOSPC", err)
	}
	d.full.Store(false)
	if err := errors.Join(s.Room(), s.Apply(filler(1)), s.Close()); err != nil {
		t.Errorf("the store after it: %v", err)
	}
}

// TestNullFile writes to the file that a failed store gives to Pebble. The file is empty and accepts all writes.
func TestNullFile(t *testing.T) {
	f := nullFile()
	info, err := f.Stat()
	n, err2 := f.Write([]byte("abc"))
	m, err3 := f.WriteAt([]byte("ab"), 3)
	_, err4 := f.SyncTo(1)
	if err := errors.Join(err, err2, err3, err4, f.Sync(), f.SyncData(), f.Preallocate(0, 1), f.Prefetch(0, 1)); err != nil {
		t.Error(err)
	}
	if n != 3 || m != 2 || info.Size() != 0 || info.IsDir() || f.Fd() != vfs.InvalidFd {
		t.Error("it is not empty")
	}
}
