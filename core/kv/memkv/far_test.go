package memkv_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
)

// TestFarValues reads values that are stored in the journal only, singly and in scans: before they are written to the disk, afterwards,
// when the store is opened again, and after a compaction.
func TestFarValues(t *testing.T) {
	const n, size = 300, 2000
	d := &watchedDisk{Disk: journaltest.NewDisk()}
	s, err := openInFiles(d, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for i := range n {
			key, want := numberedPair(i, 0, size)
			if got, err := s.Get(key); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: Get(%s) = %.10x, %v, want %.10x", when, key, got, err, want)
			}
		}
		for _, scan := range []func(lo, hi []byte, yield func(key, value []byte) bool) error{s.Scan, s.ScanBack} {
			seen := 0
			if err := scan(nil, nil, func(k, v []byte) bool {
				i, _ := strconv.Atoi(string(k[4:]))
				if _, want := numberedPair(i, 0, size); !bytes.Equal(v, want) {
					t.Errorf("%s: a scan has another value of %s", when, k)
				}
				seen++
				return true
			}); err != nil || seen != n {
				t.Errorf("%s: a scan saw %d values and %v, want %d", when, seen, err, n)
			}
		}
	}
	for i := range n {
		var b kv.Batch
		b.Put(numberedPair(i, 0, size))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if i == 50 { // some values are still in memory
			d.read = 0
			if _, err := s.Get([]byte("key-0050")); err != nil || d.read > 0 {
				t.Fatalf("Get of what was just applied: %v, %d bytes read", err, d.read)
			}
		}
	}
	check("written")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openInFiles(d, always); err != nil { // opening starts a compaction
		t.Fatal(err)
	}
	check("opened again")
	snap := s.Snapshot()
	for i := range 3 * n { // each is replaced during a compaction
		var b kv.Batch
		b.Put(numberedPair(i%n, i/n+1, size))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	now := s
	s = nil
	for i := range n {
		key, want := numberedPair(i, 0, size)
		if got, err := snap.Get(key); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("a snapshot has %.10x of %s, and %v, want %.10x", got, key, err, want)
		}
		_, want = numberedPair(i, 3, size)
		if got, err := now.Get(key); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("Get(%s) = %.10x, %v, want %.10x", key, got, err, want)
		}
	}
	seen := 0
	if err := errors.Join(snap.Scan(nil, nil, func(k, v []byte) bool {
		if _, want := numberedPair(seen, 0, size); !bytes.Equal(v, want) {
			t.Errorf("a scan of a snapshot has another value of %s", k)
		}
		seen++
		return true
	}), snap.Close(), now.Close()); err != nil || seen != n {
		t.Fatalf("%d values, %v", seen, err)
	}
}

// TestFarOpen: opening reads no durable values, and a scan reads only the values that it yields.
func TestFarOpen(t *testing.T) {
	const n, size = 100, 100 << 10
	d := &watchedDisk{Disk: journaltest.NewDisk()}
	s, err := openInFiles(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var b kv.Batch
		b.Put(numberedPair(i, 0, size))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d.read = 0
	if s, err = openInFiles(d, 0); err != nil || d.read > n*size/10 {
		t.Fatalf("Open read %d bytes of %d, %v", d.read, n*size, err)
	}
	d.read = 0
	if err := s.Scan([]byte("key-0050"), nil, func(_, _ []byte) bool { return false }); err != nil || d.read != size {
		t.Errorf("a scan that wanted one value of %d bytes read %d, %v", size, d.read, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFarErrors: every call that reads a damaged or unreadable value returns an error. No scan omits the key.
func TestFarErrors(t *testing.T) {
	d := &watchedDisk{Disk: journaltest.NewDisk()}
	s, err := openInFiles(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 10
	for i := range n {
		var b kv.Batch
		b.Put(numberedPair(i, 0, 500))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	wait, err := s.Commit(&kv.Batch{})
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	expectError := func(fault string, want error) {
		t.Helper()
		snap := s.Snapshot()
		defer func() { _ = snap.Close() }()
		for name, r := range map[string]kv.Reader{"store": s, "snapshot": snap} {
			if _, err := r.Get([]byte("key-0007")); !errors.Is(err, want) {
				t.Errorf("%s: Get of a %s = %v, want %v", fault, name, err, want)
			}
			for _, scan := range []func(lo, hi []byte, yield func(key, value []byte) bool) error{r.Scan, r.ScanBack} {
				if err := scan(nil, nil, func(_, _ []byte) bool { return true }); !errors.Is(err, want) {
					t.Errorf("%s: a scan of a %s = %v, want %v", fault, name, err, want)
				}
			}
		}
	}
	d.err = errors.New("no reading")
	expectError("nothing can be read", d.err)
	d.err = nil
	data := d.Bytes(2)
	_, value := numberedPair(7, 0, 500)
	at := bytes.Index(data, value)
	d.Flip(2, int64(at)+499, 3)
	expectError("a bit flipped", kv.ErrCorrupt)
	d.SetBytes(2, data[:at+200])
	if _, err := s.Get([]byte("key-0007")); err == nil || errors.Is(err, kv.ErrNotFound) {
		t.Errorf("cut off: Get = %v, want an error", err)
	}
}

// TestCompactionCopiesNoDamagedFarValue: a compaction that reads a damaged value gives up. The stored data stay.
func TestCompactionCopiesNoDamagedFarValue(t *testing.T) {
	d := journaltest.NewDisk()
	s, err := openInFiles(d, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		var b kv.Batch
		b.Put(numberedPair(i, 0, 500))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, value := numberedPair(7, 0, 500)
	d.Flip(2, int64(bytes.Index(d.Bytes(2), value)), 3)
	if s, err = openInFiles(d, always); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		var b kv.Batch
		b.Put(numberedPair(100+i%5, 0, 500))
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get([]byte("key-0007")); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("Get of a damaged value = %v, want ErrCorrupt", err)
	}
	for _, i := range []int{0, 6, 8, 19, 100, 104} {
		key, want := numberedPair(i, 0, 500)
		if got, err := s.Get(key); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Get(%s) = %.10x, %v, want %.10x", key, got, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFarUpgrade opens a store whose large values are in record heads, as older programs wrote them, with several limits for far values.
func TestFarUpgrade(t *testing.T) {
	session := kvtest.NewSession(5, 50, 60)
	d := journaltest.NewDisk()
	s, err := openFar(d, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var p kvtest.Progress
	if err := errors.Join(session.Run(s, 0, &p), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, far := range []int{20, 1, 1 << 20, 20} {
		if s, err = openFar(d, always, far); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Check(s, int64(session.Len()), int64(session.Len())); err != nil {
			t.Errorf("far values of %d: %v", far, err)
		}
		for range 1000 { // until the store is compacted
			var b kv.Batch
			b.Delete([]byte("z"))
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := session.Check(s, int64(session.Len()), int64(session.Len())); err != nil {
			t.Errorf("far values of %d, compacted: %v", far, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
