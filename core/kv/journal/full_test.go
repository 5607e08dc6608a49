package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
)

// openReserved opens a journal with a reserve of 256 bytes.
func openReserved(t testing.TB, d *journaltest.Disk) (j *journal.Journal, heads []string) {
	t.Helper()
	j, err := journal.Open(journal.Options{Files: d, Pair: [2]int{0, 1}, Magic: magic, Reserve: 256}, func(head []byte, _ int64, _ int) error {
		heads = append(heads, string(head))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return j, heads
}

// TestFull fills a disk. A record without space is rejected completely, and earlier ones stay. The journal frees its reserve once Room
// returns an error, and works normally when there is space again. Write returns the error at once, and Append at the sync.
func TestFull(t *testing.T) {
	for name, add := range map[string]func(j *journal.Journal, head string) error{
		"write": func(j *journal.Journal, head string) error {
			_, _, err := j.Write([]byte(head), nil)
			return err
		},
		"append": func(j *journal.Journal, head string) error {
			_, seq, err := j.Append([]byte(head), nil)
			if err != nil {
				return err
			}
			return j.SyncTo(seq)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := journaltest.NewDisk()
			d.SetQuota(1000)
			j, _ := openReserved(t, d)
			if err := j.Room(); err != nil {
				t.Fatalf("there is space, but Room returns %v", err)
			}
			var want []string
			full, after := error(nil), 0
			for i := 0; full == nil; i++ {
				if j.Room() != nil {
					after++ // this record uses the reserve
				}
				head := fmt.Sprintf("%04d", i)
				if full = add(j, head); full == nil {
					want = append(want, head)
				}
			}
			if !errors.Is(full, kv.ErrFull) || !errors.Is(j.Room(), kv.ErrFull) || after < 5 {
				t.Fatalf("%d records, %d of them in the reserve, then %v and %v", len(want), after, full, j.Room())
			}
			d.SetQuota(0)
			if err := j.Room(); err != nil {
				t.Fatalf("there is space again, but Room returns %v", err)
			}
			if name == "append" { // the last record waited in memory for space
				want = append(want, fmt.Sprintf("%04d", len(want)))
			}
			if err := add(j, "last"); err != nil {
				t.Fatal(err)
			}
			want = append(want, "last")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if _, got := openReserved(t, d); !slices.Equal(got, want) {
				t.Errorf("the journal has %q, want %q", got, want)
			}
		})
	}
}
