package journal_test

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
)

var magic = [8]byte{'t', 'e', 's', 't'}

// open opens the journal in files 0 and 1 and returns its heads.
func open(d *journaltest.Disk) (*journal.Journal, []string, error) {
	var heads []string
	j, err := journal.Open(journal.Options{Files: d, Pair: [2]int{0, 1}, Magic: magic}, func(head []byte, _ int64, _ int) error {
		heads = append(heads, string(head))
		return nil
	})
	return j, heads, err
}

func mustOpen(t testing.TB, d *journaltest.Disk) (*journal.Journal, []string) {
	t.Helper()
	j, heads, err := open(d)
	if err != nil {
		t.Fatal(err)
	}
	return j, heads
}

func appendAll(t testing.TB, j *journal.Journal, heads ...string) {
	t.Helper()
	for _, h := range heads {
		if _, _, err := j.Append([]byte(h), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func sync(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
}

// Sizes in a file whose records have bodies of four bytes.
const (
	header = 64
	record = 16 + 4
)

// TestOldBytesAreNotReplayed: a file has an intact record after a torn one. A new record of the same length overwrites the torn one. The
// old record is not replayed.
func TestOldBytesAreNotReplayed(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	appendAll(t, j, "one.")
	sync(t, j)
	appendAll(t, j, "two.", "old.")
	sync(t, j)
	data := d.Bytes(0)
	copy(data[32:64], make([]byte, 32)) // the power failed before a mark recorded the sync
	data[header+record+16] ^= 1
	d.SetBytes(0, data)
	j, heads := mustOpen(t, d)
	if !slices.Equal(heads, []string{"one."}) {
		t.Fatalf("replayed %q", heads)
	}
	appendAll(t, j, "new.")
	sync(t, j)
	// The journal now ends after the new record. The old bytes follow it again.
	after := append(d.Bytes(0), data[header+2*record:]...)
	if len(after) != len(data) {
		t.Fatalf("%d bytes, want %d", len(after), len(data))
	}
	d.SetBytes(0, after)
	if _, heads = mustOpen(t, d); !slices.Equal(heads, []string{"one.", "new."}) {
		t.Errorf("replayed %q", heads)
	}
}

// TestDamageBelowOlderMarkIsReported damages the newer of two marks. Damage of a record that the older mark covers is still reported.
func TestDamageBelowOlderMarkIsReported(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	appendAll(t, j, "one.", "two.")
	sync(t, j)
	appendAll(t, j, "new.")
	sync(t, j)
	data := d.Bytes(0)
	marks := map[uint64]int{} // by the synced length
	for _, at := range []int{32, 48} {
		marks[binary.LittleEndian.Uint64(data[at:])] = at
	}
	newer, ok := marks[uint64(header+3*record)]
	if _, older := marks[uint64(header+2*record)]; !ok || !older {
		t.Fatalf("marks %v", marks)
	}
	tests := []struct {
		name    string
		damage  []int
		want    []string
		corrupt bool
	}{
		{name: "nothing", want: []string{"one.", "two.", "new."}},
		{name: "newer mark", damage: []int{newer}, want: []string{"one.", "two.", "new."}},
		{name: "last record", damage: []int{header + 2*record + 17}, corrupt: true},
		{name: "last record and newer mark", damage: []int{header + 2*record + 17, newer}, want: []string{"one.", "two."}},
		{name: "second record and newer mark", damage: []int{header + record + 17, newer}, corrupt: true},
		{name: "header", damage: []int{17}, corrupt: true},
	}
	for _, tt := range tests {
		d := journaltest.NewDisk()
		bad := bytes.Clone(data)
		for _, at := range tt.damage {
			bad[at] ^= 0x40
		}
		d.SetBytes(0, bad)
		_, heads, err := open(d)
		if tt.corrupt != errors.Is(err, kv.ErrCorrupt) || !tt.corrupt && !slices.Equal(heads, tt.want) {
			t.Errorf("%s: %q, %v, want %q", tt.name, heads, err, tt.want)
		}
	}
}

// TestSyncsAreShared waits for each of 100 records. One sync makes all of them durable.
func TestSyncsAreShared(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	var seqs []uint64
	for i := range 100 {
		_, seq, err := j.Append(fmt.Appendf(nil, "%04d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	d.FailAt(0, false)
	for _, seq := range seqs {
		if err := j.SyncTo(seq); err != nil {
			t.Fatal(err)
		}
	}
	if d.Calls() != 3 { // the records, the sync, the mark
		t.Errorf("%d calls, want 3", d.Calls())
	}
}

func TestForeignFiles(t *testing.T) {
	d := journaltest.NewDisk()
	mustOpen(t, d)
	_, err := journal.Open(journal.Options{Files: d, Pair: [2]int{0, 1}, Magic: [8]byte{'o'}}, nil)
	if !errors.Is(err, kv.ErrForeign) {
		t.Errorf("Open = %v, want %v", err, kv.ErrForeign)
	}
}

func TestClosed(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	appendAll(t, j, "one.")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Append([]byte("two."), nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Append = %v, want %v", err, kv.ErrClosed)
	}
	if _, heads := mustOpen(t, d.CrashAt(d.Ops(), 0, rand.New(rand.NewPCG(1, 1)))); !slices.Equal(heads, []string{"one."}) {
		t.Errorf("replayed %q", heads)
	}
}

// FuzzOpen opens files with random content, with a salvage if they are damaged. The result is ErrForeign, or records that are the same after
// they are written again.
func FuzzOpen(f *testing.F) {
	d := journaltest.NewDisk()
	j, _, err := open(d)
	for _, r := range [][2]string{{"head", ""}, {"", "body"}, {"head", "body"}} {
		if err == nil {
			_, _, err = j.Append([]byte(r[0]), []byte(r[1]))
		}
	}
	if err == nil {
		err = j.Sync()
	}
	if err != nil {
		f.Fatal(err)
	}
	data := d.Bytes(0)
	f.Add(data, []byte(nil))
	f.Add([]byte(nil), data)
	f.Add(data[:len(data)-3], data)
	f.Add(data[:70], []byte{1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a)+len(b) > 1<<20 {
			t.Skip()
		}
		d := journaltest.NewDisk()
		d.SetBytes(0, a)
		d.SetBytes(1, b)
		_, heads, err := open(d)
		if errors.Is(err, kv.ErrCorrupt) {
			_, heads, err = salvage(d, &journal.Salvage{Any: true})
		}
		if errors.Is(err, kv.ErrForeign) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		reopened, same := mustOpen(t, d)
		if !slices.Equal(heads, same) {
			t.Fatalf("replayed %q, then %q", heads, same)
		}
		appendAll(t, reopened, "more")
		sync(t, reopened)
		if _, same = mustOpen(t, d); !slices.Equal(append(heads, "more"), same) {
			t.Fatalf("replayed %q and one more as %q", heads, same)
		}
	})
}
