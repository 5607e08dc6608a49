package memkv_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// always is slack with which a store compacts all the time.
const always = -1 << 40

// openInFiles opens a store in files 2 and 3 of a disk, in which values of 20 bytes stay. It compacts in many steps.
func openInFiles(d journal.Files, slack int64) (*memkv.Store, error) { return openFar(d, slack, 20) }

// openFar opens a store as openInFiles does. Values of far bytes or more stay in the files.
func openFar(d journal.Files, slack int64, far int) (*memkv.Store, error) {
	return memkv.Open(memkv.Options{Files: &memkv.Files{Disk: d, Pair: [2]int{2, 3}, MinFileValue: far, Slack: slack, Step: 1}})
}

// disk is files that lose their power.
type disk struct{ *journaltest.Disk }

func (d disk) Open() (kv.Store, error) { return openInFiles(d.Disk, always) }

func (d disk) Crash(percent int, rng *rand.Rand) kvtest.Crasher {
	return disk{d.Disk.Crash(percent, rng)}
}

func TestFilesStore(t *testing.T) {
	for _, slack := range []int64{always, 1000, 0} {
		for _, far := range []int{1, 20} {
			t.Run(fmt.Sprintf("slack=%d/far=%d", slack, far), func(t *testing.T) {
				kvtest.Store(t, func(t testing.TB) kv.Store {
					s, err := openFar(journaltest.NewDisk(), slack, far)
					if err != nil {
						t.Fatal(err)
					}
					return s
				})
			})
		}
	}
}

func TestFilesCrashes(t *testing.T) {
	kvtest.Crashes(t, testkit.Seeds(t, 150, 10_000), func() kvtest.Crasher { return disk{journaltest.NewDisk()} })
}

func TestFilesCommitNothing(t *testing.T) {
	kvtest.CommitNothing(t, func() kvtest.Crasher { return disk{journaltest.NewDisk()} })
}

func TestFilesCommitOrder(t *testing.T) {
	kvtest.CommitOrder(t, testkit.Seeds(t, 20, 200), func() kvtest.Crasher { return disk{journaltest.NewDisk()} })
}

// stride is the distance in bytes between the places where a test cuts or damages a file.
func stride(t testing.TB) int { return testkit.Size(t, 13, 3, 1, 1) }

// progress is the number of acknowledged and of given batches at moments of a disk.
type progress struct {
	moment         int
	durable, given int64
}

// record runs a session on a store and notes, for every moment of the disk, what a crash there must
// and may keep.
func record(t testing.TB, d *journaltest.Disk, s *kvtest.Session, slack int64) []progress {
	t.Helper()
	store, err := openInFiles(d, slack)
	if err != nil {
		t.Fatal(err)
	}
	var p kvtest.Progress
	var notes []progress
	note := func() {
		notes = append(notes, progress{d.Ops(), p.Durable.Load(), p.Given.Load()})
	}
	note()
	if err := s.Run(hookedStore{store, note}, 0, &p); err != nil {
		t.Fatal(err)
	}
	note()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return notes
}

// hookedStore calls note before each batch.
type hookedStore struct {
	kv.Store
	note func()
}

func (n hookedStore) Apply(b *kv.Batch) error {
	n.note()
	return n.Store.Apply(b)
}

func (n hookedStore) Commit(b *kv.Batch) (func() error, error) {
	n.note()
	return n.Store.Commit(b)
}

// within returns the bounds of the disk's state at a moment.
func within(notes []progress, moment int) (least, most int64) {
	for _, n := range notes {
		if n.moment <= moment {
			least, most = n.durable, n.given
		}
	}
	return least, most
}

// TestFilesCutAnywhere kills the program at every byte of a session that compacts over and over, and pulls the plug at each of its writes.
func TestFilesCutAnywhere(t *testing.T) {
	for seed := range testkit.Seeds(t, 2, 100) {
		session := kvtest.NewSession(seed, 50, 60)
		d := journaltest.NewDisk()
		notes := record(t, d, session, always)
		rng := rand.New(rand.NewPCG(seed, 21))
		check := func(name string, after *journaltest.Disk, moment int) {
			t.Helper()
			store, err := openInFiles(after, always)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			least, most := within(notes, moment)
			if _, err := session.Check(store, least, most); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
		}
		cuts := 0
		for moment := range d.Ops() {
			for n := 0; n < max(1, d.Len(moment)); n += stride(t) {
				check(fmt.Sprintf("cut at byte %d of call %d", n, moment), d.At(moment, n), moment)
				cuts++
			}
			for range 3 {
				check(fmt.Sprintf("power lost at call %d", moment), d.CrashAt(moment, rng.IntN(100), rng), moment)
			}
		}
		if cuts < 5000/stride(t) {
			t.Errorf("seed %d: only %d cuts", seed, cuts)
		}
	}
}

// TestFilesDamage flips bits of a store that was closed: what opens all the same, and can be read, holds everything. Only in values that
// were replaced since is a bit nobody's concern.
func TestFilesDamage(t *testing.T) {
	session := kvtest.NewSession(7, 40, 60)
	d := journaltest.NewDisk()
	record(t, d, session, 1<<20)
	data := d.Bytes(2)
	rng := rand.New(rand.NewPCG(1, 22))
	refused, replaced := 0, 0
	for at := 0; at < len(data); at += stride(t) {
		after := d.At(d.Ops(), 0)
		after.Flip(2, int64(at), byte(rng.IntN(8)))
		store, err := openInFiles(after, 1<<20)
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("byte %d flipped: %v, want ErrCorrupt", at, err)
			}
			refused++
			continue
		}
		switch _, err := session.Check(store, int64(session.Len()), int64(session.Len())); {
		case errors.Is(err, kv.ErrCorrupt): // a value that is read when it is asked for
			refused++
		case err != nil:
			t.Fatalf("byte %d flipped: %v", at, err)
		default:
			replaced++
		}
	}
	if unused := 64 + len(data)/10; replaced*stride(t) > unused || refused == 0 {
		t.Errorf("%d flips were refused, %d of %d were not, want at most %d", refused, replaced*stride(t), len(data), unused)
	}
	for cut := 0; cut < len(data); cut += stride(t) { // a file that lost what was synced
		after := d.At(d.Ops(), 0)
		after.SetBytes(2, data[:cut])
		if _, err := openInFiles(after, 1<<20); cut > 64 && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v, want ErrCorrupt", cut, err)
		}
	}
}

// TestFilesSalvage damages a store at random places and opens it with a salvage. It has the state after some batch, not before the last one
// that the file had before the damage, and takes the later batches again. Damage of a compaction's records is refused.
func TestFilesSalvage(t *testing.T) {
	session := kvtest.NewSession(9, 200, 60)
	cut, refused := 0, 0
	for _, slack := range []int64{1 << 20, 2000} {
		d := journaltest.NewDisk()
		notes := record(t, d, session, slack)
		file := 2
		if len(d.Bytes(3)) > len(d.Bytes(2)) {
			file = 3
		}
		data := d.Bytes(file)
		base := int(binary.LittleEndian.Uint64(data[16:]))
		durable := map[int]int64{} // by the size of the file at that moment
		for _, n := range notes {
			if now := d.At(n.moment, 0).Bytes(file); len(now) >= 64 && bytes.HasPrefix(data[64:], now[64:]) {
				durable[len(now)] = n.durable
			}
		}
		for seed := range testkit.Seeds(t, 100, 5000) {
			rng := rand.New(rand.NewPCG(seed, 44))
			at := 64 + rng.IntN(len(data)-64)
			bad := slices.Clone(data)
			if n := rng.IntN(min(500, len(data)-at)); n > 0 {
				clear(bad[at:][:n])
			} else {
				bad = bad[:at]
			}
			least := int64(0)
			for size, n := range durable {
				if at >= base && size <= at {
					least = max(least, n)
				}
			}
			after := d.At(d.Ops(), 0)
			after.SetBytes(file, bad)
			var salvage journal.Salvage
			o := memkv.Files{Disk: after, Pair: [2]int{2, 3}, MinFileValue: 20, Slack: slack, Step: 1, Salvage: &salvage}
			store, err := memkv.Open(memkv.Options{Files: &o})
			if err != nil {
				if at >= base && least > 0 || !errors.Is(err, kv.ErrCorrupt) {
					t.Fatalf("seed %d: byte %d of %d, compacted %d: %v", seed, at, len(data), base, err)
				}
				refused++
				continue
			}
			n, err := session.Check(store, least, int64(session.Len()))
			if err == nil {
				err = session.Run(store, n, &kvtest.Progress{})
			}
			if err == nil {
				store, err = openInFiles(after, slack)
			}
			if err == nil {
				_, err = session.Check(store, int64(session.Len()), int64(session.Len()))
			}
			if errors.Is(err, kv.ErrCorrupt) && at < base { // a value in the file, which opening does not read
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: byte %d of %d, compacted %d: %v", seed, at, len(data), base, err)
			}
			cut++
		}
	}
	if cut == 0 || refused == 0 {
		t.Errorf("%d salvages, %d refused", cut, refused)
	}
}

// TestFilesFaults has each call of a session fail in turn, and all after it: what was acknowledged is there when the files work again.
func TestFilesFaults(t *testing.T) {
	session := kvtest.NewSession(3, 50, 60)
	count := journaltest.NewDisk()
	record(t, count, session, always)
	for n := 1; n <= count.Ops(); n += stride(t) {
		for _, forAll := range []bool{false, true} {
			d := journaltest.NewDisk()
			d.FailAt(n, forAll)
			var p kvtest.Progress
			store, err := openInFiles(d, always)
			if err == nil {
				if err = session.Run(store, 0, &p); err != nil && !errors.Is(err, kv.ErrFailed) {
					t.Fatalf("call %d fails: %v, want ErrFailed", n, err)
				}
			} else if !errors.Is(err, journaltest.ErrFault) {
				t.Fatalf("call %d fails: Open = %v", n, err)
			}
			d.FailAt(0, false)
			for name, after := range map[string]*journaltest.Disk{"killed": d, "power lost": d.Crash(50, rand.New(rand.NewPCG(uint64(n), 23)))} {
				store, err := openInFiles(after, always)
				if err != nil {
					t.Fatalf("call %d failed, %s: %v", n, name, err)
				}
				if _, err := session.Check(store, p.Durable.Load(), p.Given.Load()); err != nil {
					t.Fatalf("call %d failed, %s: %v", n, name, err)
				}
			}
		}
	}
}

// TestFilesFull runs sessions in files that are full over and over, in the middle of any write. A refused batch leaves nothing, reads
// continue, later batches are taken once there is space, and the files are never damaged.
func TestFilesFull(t *testing.T) {
	for seed := range testkit.Seeds(t, 12, 300) {
		rng := rand.New(rand.NewPCG(seed, 29))
		size := []int{60, 3000, 200_000}[seed%3]
		session := kvtest.NewSession(seed, []int{40, 40, 8}[seed%3], size)
		d := journaltest.NewDisk()
		store, err := openInFiles(d, []int64{always, 1000}[seed%2])
		if err != nil {
			t.Fatal(err)
		}
		var p kvtest.Progress
		full := 0
		for more := 1; ; more += 1 + rng.IntN(2*size) {
			d.SetQuota(d.Total() + more)
			before := p.Given.Load()
			err := session.Run(store, int(p.Given.Load()), &p)
			if err == nil {
				break
			}
			if !errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrFailed) {
				t.Fatalf("seed %d: full at batch %d: %v, want ErrFull", seed, p.Given.Load(), err)
			}
			if _, err := session.Check(store, p.Given.Load(), p.Given.Load()); err != nil {
				t.Fatalf("seed %d: full at batch %d: %v", seed, p.Given.Load(), err)
			}
			if full++; p.Given.Load() > before {
				more = 0
			}
			if rng.IntN(6) > 0 {
				continue
			}
			for name, after := range map[string]*journaltest.Disk{"killed": d.At(d.Ops(), 0), "power lost": d.Crash(50, rng)} {
				reopened, err := openInFiles(after, 0)
				if err == nil {
					_, err = session.Check(reopened, p.Durable.Load(), p.Given.Load())
				}
				if err != nil {
					t.Fatalf("seed %d: full at batch %d, %s: %v", seed, p.Given.Load(), name, err)
				}
			}
		}
		if full == 0 {
			t.Errorf("seed %d: the files were never full", seed)
		}
		d.SetQuota(0)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if store, err = openInFiles(d, always); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Check(store, int64(session.Len()), int64(session.Len())); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestFilesDropWrites runs sessions in files that drop writes past a quota and report success. The store acknowledges no batch that the
// files do not have, and opens again.
func TestFilesDropWrites(t *testing.T) {
	for seed := range testkit.Seeds(t, 50, 1000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		session := kvtest.NewSession(seed, 40, []int{60, 3000, 200_000}[seed%3])
		d := journaltest.NewDisk()
		d.DropWrites()
		store, err := openInFiles(d, []int64{always, 1000}[seed%2])
		if err != nil {
			t.Fatal(err)
		}
		var p kvtest.Progress
		for d.SetQuota(d.Total() + rng.IntN(100_000)); err == nil && int(p.Given.Load()) < session.Len(); {
			err = session.Run(store, int(p.Given.Load()), &p)
		}
		for name, after := range map[string]*journaltest.Disk{"killed": d.At(d.Ops(), 0), "power lost": d.Crash(50, rng)} {
			reopened, failed := openInFiles(after, 0)
			if failed == nil {
				_, failed = session.Check(reopened, p.Durable.Load(), p.Given.Load())
			}
			if failed != nil {
				t.Fatalf("seed %d: after %v at batch %d, %s: %v", seed, err, p.Given.Load(), name, failed)
			}
		}
	}
}

// TestFilesReserve fills files that have a reserve. Small batches are taken then, as those of deletions are, and Room refuses all others
// until there is space. The files open again, also where the reserve is left in them.
func TestFilesReserve(t *testing.T) {
	d := journaltest.NewDisk()
	open := func() *memkv.Store {
		s, err := memkv.Open(memkv.Options{Files: &memkv.Files{Disk: d, Pair: [2]int{2, 3}, Reserve: 100 << 10}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	put := func(n, size int) error {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "key-%d", n), make([]byte, size))
		wait, err := s.Commit(&b)
		if err == nil {
			err = wait()
		}
		return err
	}
	if err := errors.Join(s.Room(), put(0, 10)); err != nil {
		t.Fatal(err)
	}
	d.SetQuota(d.Total() + 5000)
	big := 0
	for n := 1; s.Room() == nil; n++ {
		if big = n; n > 100 {
			t.Fatal("Room does not report that the files are full")
		}
		if err := put(n, 2000); err != nil {
			t.Fatalf("batch %d after Room: %v", n, err)
		}
	}
	if err := s.Room(); big < 2 || !errors.Is(err, kv.ErrFull) {
		t.Errorf("Room in full files after %d batches: %v", big, err)
	}
	for n := range 200 {
		var b kv.Batch
		b.Delete(fmt.Appendf(nil, "key-%d", n))
		wait, err := s.Commit(&b)
		if err == nil {
			err = wait()
		}
		if err != nil {
			t.Fatalf("deletion %d in full files: %v", n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d.SetQuota(0)
	for range 2 { // the second finds the reserve of the first
		s = open()
		if err := s.Room(); err != nil {
			t.Errorf("Room in files with space: %v", err)
		}
		if _, err := s.Get([]byte("key-1")); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("a deleted key: %v", err)
		}
	}
}

// TestFilesForeign opens files of something else.
func TestFilesForeign(t *testing.T) {
	d := journaltest.NewDisk()
	d.SetBytes(2, make([]byte, 65))
	if _, err := openInFiles(d, 0); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("Open of zeros = %v, want ErrCorrupt", err)
	}
}

// TestFilesStaySmall writes the same keys over and over.
func TestFilesStaySmall(t *testing.T) {
	d := journaltest.NewDisk()
	s, err := openInFiles(d, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	peak := 0
	for i := range 2000 {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "key-%d", i%50), make([]byte, 500))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			wait, err := s.Commit(&b)
			if err == nil {
				err = wait()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		peak = max(peak, len(d.Bytes(2))+len(d.Bytes(3)))
	}
	if live := 50 * 510; peak > 4*live+400<<10 {
		t.Errorf("the files grew to %d bytes for %d that are kept", peak, live)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// watchedDisk counts the bytes that are read from a disk, and fails at chosen reads.
type watchedDisk struct {
	*journaltest.Disk
	read int
	err  error
}

func (d *watchedDisk) Read(file int, off int64, p []byte) error {
	d.read += len(p)
	if d.err != nil {
		return d.err
	}
	return d.Disk.Read(file, off, p)
}

// numberedPair returns the n-th key, and a value of size bytes of which no two are alike.
func numberedPair(n, version, size int) (key, value []byte) {
	value = make([]byte, size)
	rng := rand.New(rand.NewPCG(uint64(n), uint64(version)))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	return fmt.Appendf(nil, "key-%04d", n), value
}

// BenchmarkReplay opens a store of the size of 10,000 inputs: 100,000 keys, 27 MB.
func BenchmarkReplay(b *testing.B) {
	d := journaltest.NewDisk()
	s, err := openInFiles(d, 0)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 24))
	var size int64
	for i := range 10_000 {
		var batch kv.Batch
		for k := range 10 {
			value := make([]byte, []int{700, 700, 360, 360, 160, 160, 60, 30, 10, 0}[k])
			for at := range value {
				value[at] = byte(rng.Uint32())
			}
			batch.Put(fmt.Appendf(nil, "%c-application-%02d-%08x", "abcdefghij"[k], k, rng.Uint32()), value)
		}
		size += int64(len(batch.Bytes()))
		if err := s.Apply(&batch); err != nil {
			b.Fatal(i, err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		s, err := openInFiles(d, 0)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
