package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// salvage opens the journal as open does, with a salvage.
func salvage(d *journaltest.Disk, s *journal.Salvage) (*journal.Journal, []string, error) {
	var heads []string
	o := journal.Options{Files: d, Pair: [2]int{0, 1}, Magic: magic, Salvage: s}
	j, err := journal.Open(o, func(head []byte, _ int64, _ int) error {
		heads = append(heads, string(head))
		return nil
	})
	return j, heads, err
}

// damage returns a disk whose file 0 is damaged, and the offset of the first damaged byte. The damage is a flipped bit of the header, or a
// flipped bit, zeros, random bytes or a missing end of the records.
func damage(d *journaltest.Disk, rng *rand.Rand) (*journaltest.Disk, int) {
	data := d.Bytes(0)
	at := header + rng.IntN(len(data)-header)
	n := 1 + rng.IntN(min(200, len(data)-at))
	switch rng.IntN(5) {
	case 0:
		data[at] ^= 1 << rng.IntN(8)
	case 1:
		clear(data[at:][:n])
	case 2:
		for i := range n {
			data[at+i] = byte(rng.Uint32())
		}
	case 3:
		data = data[:at]
	case 4:
		at = rng.IntN(28)
		data[at] ^= 1 << rng.IntN(8)
	}
	damaged := journaltest.NewDisk()
	damaged.SetBytes(0, data)
	damaged.SetBytes(1, d.Bytes(1))
	return damaged, at
}

// TestSalvage damages a journal of synced records at random places. A salvage reads all records before the damage and nothing else, counts
// them, and the journal then works as if the others had never been appended.
func TestSalvage(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	var want []string
	ends := []int{header} // sizes of the file after each record
	for i := range 60 {
		head := fmt.Sprintf("%d %s", i, strings.Repeat("x", i*7%50))
		appendAll(t, j, head)
		sync(t, j)
		want, ends = append(want, head), append(ends, len(d.Bytes(0)))
	}
	cut, refused := 0, 0
	for seed := range testkit.Seeds(t, 300, 20_000) {
		rng := rand.New(rand.NewPCG(seed, 41))
		damaged, at := damage(d, rng)
		least, _ := slices.BinarySearch(ends, at+1)
		least = max(0, least-1) // records that end before the damage
		_, _, strict := open(damaged)
		var s journal.Salvage
		j, heads, err := salvage(damaged, &s)
		if err != nil {
			if least > 0 || !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("seed %d: damage at byte %d, after %d records: %v", seed, at, least, err)
			}
			refused++
			continue
		}
		if len(heads) < least || !slices.Equal(heads, want[:len(heads)]) {
			t.Fatalf("seed %d: damage at byte %d: %d records, want %d or more: %q", seed, at, len(heads), least, heads)
		}
		if isCut := len(heads) < len(want); isCut != (s.Lost > 0) || isCut != (strict != nil) || s.Records != len(heads) {
			t.Fatalf("seed %d: %d of %d records, %+v, without a salvage %v", seed, len(heads), len(want), s, strict)
		}
		if s.Lost > 0 {
			cut++
		}
		appendAll(t, j, "more")
		sync(t, j)
		if _, again := mustOpen(t, damaged); !slices.Equal(again, append(heads, "more")) {
			t.Fatalf("seed %d: replayed %q, want %q and one more", seed, again, heads)
		}
	}
	if cut == 0 || refused == 0 {
		t.Errorf("%d journals were cut and %d refused", cut, refused)
	}
}

// TestSalvageCutAnywhere stops a salvage at each of its calls, also with a loss of power. The next salvage reads the same records.
func TestSalvageCutAnywhere(t *testing.T) {
	d := journaltest.NewDisk()
	j, _ := mustOpen(t, d)
	for i := range 10 {
		appendAll(t, j, fmt.Sprint("record ", i))
		sync(t, j)
	}
	d.Flip(0, int64(len(d.Bytes(0))-3*25), 1)
	damaged := journaltest.NewDisk()
	damaged.SetBytes(0, d.Bytes(0))
	before := damaged.Ops()
	_, want, err := salvage(damaged, &journal.Salvage{})
	if err != nil || len(want) == 0 || len(want) == 10 {
		t.Fatalf("%d records, %v", len(want), err)
	}
	for at := before; at <= damaged.Ops(); at++ {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 42))
			after := damaged.CrashAt(at, rng.IntN(101), rng)
			if seed == 0 {
				after = damaged.At(at, 0)
			}
			if _, heads, err := salvage(after, &journal.Salvage{}); err != nil || !slices.Equal(heads, want) {
				t.Fatalf("stopped before call %d, seed %d: %q, %v", at-before, seed, heads, err)
			}
		}
	}
}

// TestSalvageAfterCompaction damages a record that a compaction wrote. They have the order of the user's keys and not of time, so what
// precedes the damage was never the content of the journal. A salvage is refused, unless it has Any.
func TestSalvageAfterCompaction(t *testing.T) {
	d := journaltest.NewDisk()
	s, err := openShelf(d)
	if err != nil {
		t.Fatal(err)
	}
	churn(t, rand.New(rand.NewPCG(1, 43)), s, map[string][]byte{}, 400)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	file := 0
	if len(d.Bytes(1)) > len(d.Bytes(0)) {
		file = 1
	}
	flipped := func(at int) *journaltest.Disk {
		after := d.At(d.Ops(), 0)
		after.Flip(file, int64(at), 1)
		return after
	}
	if base := 16; d.Bytes(file)[base] == header {
		t.Fatal("no compaction has ended")
	}
	for _, at := range []int{header + 1, 3} { // the first record, the file's header
		if _, _, err := salvage(flipped(at), &journal.Salvage{}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("damage at byte %d: %v, want ErrCorrupt", at, err)
		}
		after, s := flipped(at), journal.Salvage{Any: true}
		j, heads, err := salvage(after, &s)
		if err != nil || len(heads) > 0 || s.Lost == 0 {
			t.Fatalf("damage at byte %d: %d records, %+v, %v", at, len(heads), s, err)
		}
		appendAll(t, j, "more")
		sync(t, j)
		if _, again := mustOpen(t, after); !slices.Equal(again, []string{"more"}) {
			t.Errorf("damage at byte %d: replayed %q", at, again)
		}
	}
}
