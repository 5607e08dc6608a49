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

// Offsets of a file with records of four bytes.
const (
	header = 64
	record = 16 + 4
)

// TestOldBytesAreNoRecords leaves a whole record behind a torn one, and puts another of the same
// length into the torn one's place: the record of the old time does not come back.
func TestOldBytesAreNoRecords(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	appendAll(t, j, "one.")
	sync(t, j)
	appendAll(t, j, "two.", "old.")
	sync(t, j)
	whole := d.Bytes(0)
	copy(whole[32:64], make([]byte, 32)) // the power went before a mark said that these were synced
	whole[header+record+16] ^= 1
	d.SetBytes(0, whole)
	j, heads := mustOpen(t, d)
	if !slices.Equal(heads, []string{"one."}) {
		t.Fatalf("replayed %q", heads)
	}
	appendAll(t, j, "new.")
	sync(t, j)
	// The cut was not kept, what was appended was.
	after := append(d.Bytes(0), whole[header+2*record:]...)
	if len(after) != len(whole) {
		t.Fatalf("%d bytes, want %d", len(after), len(whole))
	}
	d.SetBytes(0, after)
	if _, heads = mustOpen(t, d); !slices.Equal(heads, []string{"one.", "new."}) {
		t.Errorf("replayed %q", heads)
	}
}

// TestMarksTellDamage loses the newer of two marks: what the older says was synced is held to.
func TestMarksTellDamage(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	appendAll(t, j, "one.", "two.")
	sync(t, j)
	appendAll(t, j, "new.")
	sync(t, j)
	whole := d.Bytes(0)
	marks := map[uint64]int{} // by length
	for _, at := range []int{32, 48} {
		marks[binary.LittleEndian.Uint64(whole[at:])] = at
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
		bad := bytes.Clone(whole)
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

// TestSyncsAreShared counts the syncs of records that are waited for one after the other.
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

func TestForeign(t *testing.T) {
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

// FuzzOpen opens files with any content. The result is an error, or records that are the same after they are written again.
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
	whole := d.Bytes(0)
	f.Add(whole, []byte(nil))
	f.Add([]byte(nil), whole)
	f.Add(whole[:len(whole)-3], whole)
	f.Add(whole[:70], []byte{1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a)+len(b) > 1<<20 {
			t.Skip()
		}
		d := journaltest.NewDisk()
		d.SetBytes(0, a)
		d.SetBytes(1, b)
		_, heads, err := open(d)
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrForeign) {
				t.Fatal(err)
			}
			return
		}
		again, same := mustOpen(t, d)
		if !slices.Equal(heads, same) {
			t.Fatalf("replayed %q, then %q", heads, same)
		}
		appendAll(t, again, "more")
		sync(t, again)
		if _, same = mustOpen(t, d); !slices.Equal(append(heads, "more"), same) {
			t.Fatalf("replayed %q and one more as %q", heads, same)
		}
	})
}
