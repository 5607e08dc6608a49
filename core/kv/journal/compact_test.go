package journal_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
)

// shelf is a map from keys to contents in a journal. A record's head is the key and its body the contents. Later records replace earlier
// ones.
type shelf struct {
	*journal.Journal
	places   map[string]*place
	left     []string          // keys that the compaction has not copied yet
	snapshot map[string]*place // places at the start of the compaction
	since    map[int64]*place
	ended    int // number of compactions that ended
	moved    int // number of records that moved
	broken   bool
}

// place is the offset of contents, now and after the running compaction, and their length.
type place struct {
	at, next int64
	n        int
}

func openShelf(files journal.Files) (*shelf, error) {
	s := &shelf{places: map[string]*place{}}
	var err error
	s.Journal, err = journal.Open(journal.Options{Files: files, Pair: [2]int{0, 1}, Magic: magic, Step: 50}, func(head []byte, body int64, n int) error {
		s.places[string(head)] = &place{at: body, n: n}
		return nil
	})
	return s, err
}

func (s *shelf) put(key string, contents []byte) error {
	at, _, err := s.Append([]byte(key), contents)
	if err != nil {
		return err
	}
	p := &place{at: at, n: len(contents)}
	s.places[key] = p
	if s.since != nil {
		s.since[at] = p
	}
	live := int64(0)
	for _, p := range s.places {
		live += int64(p.n)
	}
	if s.CompactionDue(live, 2000) {
		s.snapshot, s.left, s.since = maps.Clone(s.places), slices.Sorted(maps.Keys(s.places)), map[int64]*place{}
		s.Compact(s)
	}
	return nil
}

// Next implements [journal.Source].
func (s *shelf) Next(to *journal.Copier, n int) (done bool, err error) {
	for ; n > 0 && len(s.left) > 0; s.left = s.left[1:] {
		p := s.snapshot[s.left[0]]
		if p.next, err = to.Copy([]byte(s.left[0]), p.at, p.n); err != nil {
			return false, err
		}
		n -= p.n
	}
	return len(s.left) == 0, nil
}

// NoteMove implements [journal.Source].
func (s *shelf) NoteMove(from, to int64) {
	s.moved++
	s.since[from].next = to
}

// Switch implements [journal.Source].
func (s *shelf) Switch(read func(off int64, p []byte) error) error {
	if s.broken {
		return errors.New("not now")
	}
	for key, p := range s.places {
		if err := read(p.at, make([]byte, p.n)); err != nil {
			return err
		}
		if p.next == 0 {
			return fmt.Errorf("%q was left out", key)
		}
		p.at = p.next
	}
	s.ended++
	return nil
}

// Close implements [journal.Source].
func (s *shelf) Close() {
	for _, p := range s.places {
		p.next = 0
	}
	s.since = nil
}

// holds compares the contents at the shelf's offsets with want.
func (s *shelf) holds(t testing.TB, want map[string][]byte) {
	t.Helper()
	if len(s.places) != len(want) {
		t.Fatalf("%d keys, want %d", len(s.places), len(want))
	}
	for key, p := range s.places {
		got := make([]byte, p.n)
		if err := s.Read(p.at, got); err != nil || !bytes.Equal(got, want[key]) {
			t.Fatalf("%q holds %d bytes, %v, want %d others", key, len(got), err, len(want[key]))
		}
	}
}

// fullDisk is a disk on which writes to the files in full fail.
type fullDisk struct {
	*journaltest.Disk
	full map[int]bool
}

func (l *fullDisk) Write(file int, off int64, p []byte) error {
	if l.full[file] {
		return journaltest.ErrFault
	}
	return l.Disk.Write(file, off, p)
}

// churn appends random contents under random keys.
func churn(t testing.TB, rng *rand.Rand, s *shelf, want map[string][]byte, n int) {
	t.Helper()
	for range n {
		key, contents := fmt.Sprint("key-", rng.IntN(12)), make([]byte, 1+rng.IntN(400))
		for i := range contents {
			contents[i] = byte(rng.Uint32())
		}
		if err := s.put(key, contents); err != nil {
			t.Fatal(err)
		}
		want[key] = contents
	}
}

// TestCompaction replaces contents many times. They are found at the offsets that the compactions returned, and after the files are opened
// again.
func TestCompaction(t *testing.T) {
	d := journaltest.NewDisk()
	want := map[string][]byte{}
	rng := rand.New(rand.NewPCG(1, 41))
	ended, moved := 0, 0
	for range 5 {
		s, err := openShelf(d)
		if err != nil {
			t.Fatal(err)
		}
		s.holds(t, want)
		for range 20 {
			churn(t, rng, s, want, 20)
			s.holds(t, want)
		}
		ended, moved = ended+s.ended, moved+s.moved
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if ended < 20 || moved < 20 {
		t.Errorf("%d compactions ended, %d records came meanwhile", ended, moved)
	}
}

// TestFailedCompactionIsRetried makes compactions fail because the disk is full or because of their source. The journal still accepts
// records, tries again when it has grown, and succeeds when it can.
func TestFailedCompactionIsRetried(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 500
	}
	for name, fail := range map[string]func(l *fullDisk, s *shelf, yes bool){
		"room":   func(l *fullDisk, _ *shelf, yes bool) { l.full[1] = yes },
		"source": func(_ *fullDisk, s *shelf, yes bool) { s.broken = yes },
	} {
		l := &fullDisk{journaltest.NewDisk(), map[int]bool{}}
		s, err := openShelf(l)
		if err != nil {
			t.Fatal(err)
		}
		rng, want := rand.New(rand.NewPCG(2, 42)), map[string][]byte{}
		fail(l, s, true)
		churn(t, rng, s, want, n)
		s.holds(t, want)
		if s.ended != 0 {
			t.Fatalf("%s: %d compactions ended", name, s.ended)
		}
		fail(l, s, false)
		churn(t, rng, s, want, n)
		s.holds(t, want)
		if s.ended == 0 {
			t.Errorf("%s: it was never tried again", name)
		}
		if err := s.Journal.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = openShelf(l); err != nil {
			t.Fatal(err)
		}
		s.holds(t, want)
	}
}

// TestCompactionCopiesNoDamage flips a bit of a record that was written during a compaction: the compaction does not copy it.
func TestCompactionCopiesNoDamage(t *testing.T) {
	d := journaltest.NewDisk()
	s, err := openShelf(d)
	if err != nil {
		t.Fatal(err)
	}
	rng, want := rand.New(rand.NewPCG(3, 43)), map[string][]byte{}
	for s.since == nil {
		churn(t, rng, s, want, 1)
	}
	churn(t, rng, s, want, 1)
	at := slices.MaxFunc(slices.Collect(maps.Values(s.places)), func(a, b *place) int { return cmp.Compare(a.at, b.at) }).at
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	d.Flip(0, at, 3)
	for s.since != nil {
		churn(t, rng, s, want, 1)
	}
	if s.ended != 0 {
		t.Error("damaged contents were carried over")
	}
}

// TestLargeRecords appends records that are larger than the write buffer, and reads them before and after they are written.
func TestLargeRecords(t *testing.T) {
	d := journaltest.NewDisk()
	s, err := openShelf(d)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for i, n := range []int{1, 100 << 10, 300 << 10, 1 << 20, 0, 256 << 10} {
		key, contents := fmt.Sprint(i), bytes.Repeat([]byte{byte(i), 7}, n)[:n]
		if err := s.put(key, contents); err != nil {
			t.Fatal(err)
		}
		want[key] = contents
		s.holds(t, want)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if s, err = openShelf(d); err != nil {
		t.Fatal(err)
	}
	s.holds(t, want)
	for _, off := range []int64{0, 63, 1 << 40} {
		if err := s.Read(off, make([]byte, 1)); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("Read at %d = %v, want %v", off, err, kv.ErrCorrupt)
		}
	}
}

// TestFailedJournalAcceptsNothing makes one call of the journal fail. The journal accepts no records afterwards.
func TestFailedJournalAcceptsNothing(t *testing.T) {
	for n := 1; n < 8; n++ {
		d := journaltest.NewDisk()
		d.FailAt(n, false)
		s, err := openShelf(d)
		if err != nil {
			if !errors.Is(err, journaltest.ErrFault) {
				t.Fatal(err)
			}
			continue
		}
		err = s.put("a", []byte("1"))
		if err == nil {
			err = s.Sync()
		}
		if err == nil {
			if err = s.put("b", []byte("2")); err == nil {
				err = s.Sync()
			}
		}
		if !errors.Is(err, kv.ErrFailed) {
			t.Fatalf("call %d fails: %v, want %v", n, err, kv.ErrFailed)
		}
		if err := s.put("c", []byte("3")); !errors.Is(err, kv.ErrFailed) {
			t.Errorf("call %d has failed: Append = %v, want %v", n, err, kv.ErrFailed)
		}
	}
}
