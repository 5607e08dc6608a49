package pack_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/blobtest"
	"github.com/sightline-dev/sightline/core/blob/pack"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// always is a slack so small that a pack compacts all the time.
const always = -1 << 40

func openPack(d *journaltest.Disk) (*pack.FS, error) {
	return pack.Open(pack.Options{Files: d, Pair: [2]int{2, 3}, Extent: 100, Slack: always, Step: 1})
}

func mustOpen(t testing.TB, d *journaltest.Disk) *pack.FS {
	t.Helper()
	f, err := openPack(d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func openFolder(t testing.TB, fsys blob.FS) *blob.Folder {
	t.Helper()
	f, err := blob.OpenFolder(fsys, blob.Options{MaxBytes: blobtest.MaxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFolder(t *testing.T) {
	blobtest.Blobs(t, func(t *testing.T) blob.Blobs { return openFolder(t, mustOpen(t, journaltest.NewDisk())) })
}

func TestHosted(t *testing.T) {
	blobtest.HostedNames(t, func(t *testing.T, o blob.HostedOptions) (*blob.HostedNames, blob.Blobs) {
		fsys := mustOpen(t, journaltest.NewDisk())
		o.FS, o.Blobs = fsys, openFolder(t, fsys)
		h, err := blob.OpenHosted(o)
		if err != nil {
			t.Fatal(err)
		}
		return h, o.Blobs
	})
}

// TestFailedPackAcceptsNothing fails each file call of a Put in turn. After a failed Put the pack rejects others until it is opened again,
// but can read. A pack that is opened again has every acknowledged picture.
func TestFailedPackAcceptsNothing(t *testing.T) {
	put := func(f *blob.Folder, data string) error {
		_, err := f.Put(t.Context(), strings.NewReader(data), blob.Sum([]byte(data)))
		return err
	}
	failed := 0
	for n := 1; ; n++ {
		d := journaltest.NewDisk()
		f := openFolder(t, mustOpen(t, d))
		if err := put(f, "good"); err != nil {
			t.Fatal(err)
		}
		d.FailAt(n, false)
		err := put(f, "bad")
		if err == nil && d.Calls() < n {
			break // a Put makes fewer calls than n
		}
		if err != nil {
			failed++
			if !errors.Is(err, kv.ErrFailed) {
				t.Errorf("call %d fails: %v, want ErrFailed", n, err)
			}
			if err := put(f, "later"); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a picture after call %d failed: %v, want ErrFailed", n, err)
			}
		}
		if b, err := f.Get(t.Context(), blob.Sum([]byte("good"))); string(b) != "good" || err != nil {
			t.Errorf("a read after call %d failed: %q, %v", n, b, err)
		}
		folder := openFolder(t, mustOpen(t, d))
		if b, err := folder.Get(t.Context(), blob.Sum([]byte("good"))); string(b) != "good" || err != nil {
			t.Errorf("opened again after call %d failed: %q, %v", n, b, err)
		}
		if err := put(folder, "bad"); err != nil {
			t.Errorf("opened again after call %d failed: %v", n, err)
		}
	}
	if failed < 3 {
		t.Errorf("%d calls failed a Put", failed)
	}
}

// TestFull puts pictures into full files that fail in the middle of a write. Earlier pictures can be read, a later Put succeeds once there
// is space, and the files are never damaged.
func TestFull(t *testing.T) {
	contents := func(n int) string { return strings.Repeat(fmt.Sprint("picture ", n, " "), 40) }
	put := func(f *blob.Folder, n int) error {
		_, err := f.Put(t.Context(), strings.NewReader(contents(n)), blob.Hash{})
		return err
	}
	checkContents := func(f *blob.Folder, upTo int) {
		t.Helper()
		for n := range upTo {
			if b, err := f.Get(t.Context(), blob.Sum([]byte(contents(n)))); string(b) != contents(n) || err != nil {
				t.Fatalf("picture %d of %d: %d bytes, %v", n, upTo, len(b), err)
			}
		}
	}
	d := journaltest.NewDisk()
	f := openFolder(t, mustOpen(t, d))
	full := 0
	for n := range 30 {
		for more := n; ; more += 37 {
			d.SetQuota(d.Total() + more)
			err := put(f, n)
			if err == nil {
				break
			}
			if full++; !errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrFailed) {
				t.Fatalf("picture %d with %d bytes free: %v, want ErrFull", n, more, err)
			}
			checkContents(f, n)
		}
		checkContents(openFolder(t, mustOpen(t, d.At(d.Ops(), 0))), n+1)
	}
	if full < 100 {
		t.Errorf("the files were full %d times", full)
	}
}

// TestDroppedWrites puts pictures into files that drop writes past a quota and report success. Each acknowledged picture can be read after
// the files were opened again.
func TestDroppedWrites(t *testing.T) {
	for quota := range 4000 {
		d := journaltest.NewDisk()
		d.DropWrites()
		f := openFolder(t, mustOpen(t, d))
		d.SetQuota(d.Total() + quota)
		var kept []blob.Hash
		for n := range 10 {
			h, err := f.Put(t.Context(), strings.NewReader(strings.Repeat(fmt.Sprint("picture ", n, " "), 40)), blob.Hash{})
			if err != nil {
				break
			}
			kept = append(kept, h)
		}
		reopened := openFolder(t, mustOpen(t, d.At(d.Ops(), 0)))
		for _, h := range kept {
			if _, err := reopened.Get(t.Context(), h); err != nil {
				t.Fatalf("quota %d: a picture of %d that were acknowledged is gone: %v", quota, len(kept), err)
			}
		}
	}
}

// TestSalvage damages a pack anywhere, and opens it with a salvage. It opens, each picture before the damage can be read, and no picture has
// other bytes. New pictures can be stored.
func TestSalvage(t *testing.T) {
	d := journaltest.NewDisk()
	open := func(d *journaltest.Disk, s *journal.Salvage) *blob.Folder {
		t.Helper()
		f, err := pack.Open(pack.Options{Files: d, Pair: [2]int{2, 3}, Extent: 100, Salvage: s})
		if err != nil {
			t.Fatal(err)
		}
		return openFolder(t, f)
	}
	f := open(d, nil)
	var all []blob.Hash
	var ends []int // bytes of the file after each picture
	for n := range 40 {
		h, err := f.Put(t.Context(), strings.NewReader(strings.Repeat(fmt.Sprint("picture ", n, " "), 1+n%9)), blob.Hash{})
		if err != nil {
			t.Fatal(err)
		}
		all, ends = append(all, h), append(ends, len(d.Bytes(2)))
	}
	data := d.Bytes(2)
	for at := 0; at < len(data); at += stride() {
		after := journaltest.NewDisk()
		after.SetBytes(2, slices.Concat(data[:at], make([]byte, min(30, len(data)-at)), data[min(len(data), at+30):]))
		folder := open(after, &journal.Salvage{Any: true})
		for i, h := range all {
			switch data, err := folder.Get(t.Context(), h); {
			case err == nil && blob.Sum(data) != h:
				t.Fatalf("byte %d: picture %d has other bytes", at, i)
			case err != nil && at >= ends[i]:
				t.Fatalf("byte %d: picture %d, which ends at byte %d: %v", at, i, ends[i], err)
			}
		}
		h, err := folder.Put(t.Context(), strings.NewReader("one more"), blob.Hash{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(after, nil).Get(t.Context(), h); err != nil {
			t.Fatalf("byte %d: a later picture: %v", at, err)
		}
	}
}

// step is one change in a script.
type step struct {
	op       string
	from, to string
	data     []byte
	sync     bool // whether do makes the change durable
}

var names = []string{"a/1", "a/2", "b/1", "b/2", "a/b/1"}

// script returns n random changes to a few files in a few folders.
func script(rng *rand.Rand, n int) []step {
	steps := []step{{op: "mkdir", to: "a"}, {op: "mkdir", to: "a/b"}, {op: "mkdir", to: "b"}}
	for range n {
		s := step{from: names[rng.IntN(len(names))], to: names[rng.IntN(len(names))], sync: rng.IntN(3) == 0}
		switch rng.IntN(8) {
		case 0:
			s.op = "remove"
		case 1, 2:
			s.op = "rename"
		case 3:
			s.op, s.to = "mkdir", []string{"a", "b/c", "a/b/d"}[rng.IntN(3)]
		default:
			s.op = "write"
			s.data = make([]byte, rng.IntN(350))
			for i := range s.data {
				s.data[i] = byte(rng.Uint32())
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// do makes the change. A write creates a file, writes it in two parts and closes it.
func (s step) do(f blob.FS) (err error) {
	switch s.op {
	case "mkdir":
		err = f.MkdirAll(s.to)
	case "remove":
		err = f.Remove(s.from)
	case "rename":
		err = f.Rename(s.from, s.to)
	case "write":
		var w blob.File
		if w, err = f.Create(s.to); err == nil {
			half := len(s.data) / 3
			_, err1 := w.Write(s.data[:half])
			_, err2 := w.Write(s.data[half:])
			if s.sync {
				err = w.Sync()
			}
			err = errors.Join(err1, err2, err, w.Close())
		}
	}
	if s.sync && err == nil {
		err = f.SyncDir("a")
	}
	return err
}

// class returns the kind of an error: the fs error that it wraps, or else its text.
func class(err error) string {
	for _, is := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrInvalid, fs.ErrClosed} {
		if errors.Is(err, is) {
			return is.Error()
		}
	}
	return fmt.Sprint(err)
}

// state returns a list of all folders and files with their contents.
func state(t testing.TB, f blob.FS) string {
	t.Helper()
	var out strings.Builder
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := f.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(entries)
		for _, base := range entries {
			name := strings.TrimPrefix(dir+"/"+base, "./")
			n, err := f.Size(name)
			if errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(&out, "%s/\n", name)
				walk(name)
				continue
			}
			var data []byte
			r, err1 := f.Open(name)
			if err1 == nil {
				data, err1 = io.ReadAll(r)
				err1 = errors.Join(err1, r.Close())
			}
			if err = errors.Join(err, err1); err != nil || n != int64(len(data)) {
				t.Fatalf("%s: %d bytes, want %d: %v", name, len(data), n, err)
			}
			fmt.Fprintf(&out, "%s %x\n", name, data)
		}
	}
	walk(".")
	return out.String()
}

// TestEqualsAFileSystem compares a pack, which is reopened at random, with a file system in memory.
func TestEqualsAFileSystem(t *testing.T) {
	for seed := range testkit.Seeds(t, 40, 2000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		d := journaltest.NewDisk()
		got, want := mustOpen(t, d), blobtest.NewFS()
		for i, s := range script(rng, 120) {
			err, wanted := s.do(got), s.do(want)
			if class(err) != class(wanted) {
				t.Fatalf("seed %d, step %d, %s %s %s = %v, want %v", seed, i, s.op, s.from, s.to, err, wanted)
			}
			if rng.IntN(10) == 0 {
				if err := got.Close(); err != nil {
					t.Fatal(err)
				}
				got = mustOpen(t, d)
			}
			if diff := cmp.Diff(state(t, want), state(t, got)); diff != "" {
				t.Fatalf("seed %d, step %d, -want +got:\n%s", seed, i, diff)
			}
		}
	}
}

// TestOpenReadersSurviveCompaction reads files that were removed or moved by compactions after they were opened.
func TestOpenReadersSurviveCompaction(t *testing.T) {
	f := mustOpen(t, journaltest.NewDisk())
	data := map[string][]byte{}
	readers := map[string]io.ReadCloser{}
	for i := range 6 {
		s := step{op: "write", to: fmt.Sprintf("file-%d", i), data: bytes.Repeat([]byte{byte(i)}, 950)}
		if err := s.do(f); err != nil {
			t.Fatal(err)
		}
		data[s.to] = s.data
		r, err := f.Open(s.to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 130)); err != nil {
			t.Fatal(err)
		}
		readers[s.to] = r
		if i%2 == 0 {
			if err := f.Remove(s.to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 300 { // compacts many times
		if err := (step{op: "write", to: "x", data: make([]byte, 100)}).do(f); err != nil {
			t.Fatal(i, err)
		}
		if err := f.Remove("x"); err != nil {
			t.Fatal(err)
		}
	}
	for name, r := range readers {
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(rest, data[name][130:]) {
			t.Errorf("rest of %s: %d bytes, %v", name, len(rest), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Read after Close = %v, want %v", err, fs.ErrClosed)
		}
	}
}

// TestPackStaysSmall writes and removes many files and keeps some. The pack stays small.
func TestPackStaysSmall(t *testing.T) {
	d := journaltest.NewDisk()
	f, err := pack.Open(pack.Options{Files: d, Pair: [2]int{2, 3}, Extent: 700, Slack: 10_000, Step: 100})
	if err != nil {
		t.Fatal(err)
	}
	maxBytes, liveBytes := 0, 0
	for i := range 2000 {
		s := step{op: "write", to: fmt.Sprint(i), data: bytes.Repeat([]byte{byte(i)}, 1000)}
		if err := s.do(f); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			liveBytes += 1300
			continue
		}
		if err := f.Remove(s.to); err != nil {
			t.Fatal(err)
		}
		maxBytes = max(maxBytes, len(d.Bytes(2))+len(d.Bytes(3)))
	}
	if maxBytes > 4*liveBytes+600<<10 { // up to 256 kB of each file are buffered before they are written
		t.Errorf("the files grew to %d bytes for %d that are kept", maxBytes, liveBytes)
	}
	for i := 0; i < 2000; i += 100 {
		r, err := f.Open(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(data, bytes.Repeat([]byte{byte(i)}, 1000)) {
			t.Errorf("file %d: %d bytes, %v", i, len(data), err)
		}
	}
}

// TestWritingRemovedFiles writes to a file that was removed after it was created.
func TestWritingRemovedFiles(t *testing.T) {
	d := journaltest.NewDisk()
	f := mustOpen(t, d)
	w, err := f.Create("x")
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := w.Write(make([]byte, 250))
	err2 := f.Remove("x")
	_, err3 := w.Write(make([]byte, 250))
	if err := errors.Join(err1, err2, err3, w.Sync(), w.Close()); err != nil {
		t.Error(err)
	}
	if _, err := w.Write(nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write after Close = %v, want %v", err, fs.ErrClosed)
	}
	if got := state(t, f) + state(t, mustOpen(t, d)); got != "" {
		t.Errorf("there is %s", got)
	}
}

// countingDisk is a disk that counts the bytes that are read.
type countingDisk struct {
	*journaltest.Disk
	read int
}

func (c *countingDisk) Read(file int, off int64, p []byte) error {
	c.read += len(p)
	return c.Disk.Read(file, off, p)
}

// TestOpenReadsNoContents checks that opening a pack of 20 MB does not read the files' contents.
func TestOpenReadsNoContents(t *testing.T) {
	c := &countingDisk{Disk: journaltest.NewDisk()}
	open := func() *pack.FS {
		f, err := pack.Open(pack.Options{Files: c, Pair: [2]int{0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	for i := range 100 {
		s := step{op: "write", to: fmt.Sprint(i), data: make([]byte, 200<<10), sync: i == 99}
		if err := s.do(f); err != nil && !errors.Is(err, fs.ErrNotExist) { // folder a, which the step syncs, does not exist
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c.read = 0
	f = open()
	if c.read > 1<<20 {
		t.Errorf("opening read %d bytes of 20 MB", c.read)
	}
	if n, err := f.Size("57"); n != 200<<10 || err != nil {
		t.Errorf("Size = %d, %v", n, err)
	}
}

func TestBadPaths(t *testing.T) {
	f := mustOpen(t, journaltest.NewDisk())
	for _, name := range []string{"", "/", "/a", "..", "../a", "a/../b", "a//b", "a/"} {
		if _, err := f.Create(name); err == nil {
			t.Errorf("Create(%q) makes a file", name)
		}
		if err := f.MkdirAll(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("MkdirAll(%q) = %v, want %v", name, err, fs.ErrInvalid)
		}
	}
	if err := f.MkdirAll("."); err != nil {
		t.Errorf("MkdirAll of the root = %v", err)
	}
	if got := state(t, f); got != "" {
		t.Errorf("there is %s", got)
	}
}

// FuzzReplay opens packs with random records. Open returns kv.ErrCorrupt, or a pack that has the same files when it is opened again.
func FuzzReplay(f *testing.F) {
	f.Add([]byte("\x02\x05a\x04\x01\x01a/1\x03\x02\x01\x05\x03\x03a/1a/2\x04\x04a/2"))
	f.Add([]byte("\x04\x01\x01a\x03\x02\x01\x05\x02\x04a"))
	f.Fuzz(func(t *testing.T, script []byte) {
		d := journaltest.NewDisk()
		j, err := journal.Open(journal.Options{Files: d, Pair: [2]int{2, 3}, Magic: [8]byte([]byte("SLBLOBS1"))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for len(script) > 1 { // a record: length of its head, then the head; a data record has a body of four bytes
			n := min(int(script[0])+1, len(script)-1)
			head, body := script[1:1+n], []byte(nil)
			if head[0] == 2 {
				body = []byte("body")
			}
			if _, _, err := j.Append(head, body); err != nil {
				t.Fatal(err)
			}
			script = script[1+n:]
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := openPack(d)
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		want := state(t, p)
		if got := state(t, mustOpen(t, d)); got != want {
			t.Fatalf("opened again: %s, want %s", got, want)
		}
	})
}
