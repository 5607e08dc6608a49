package wire_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestBlock passes operations of every kind through a block: they, and their bytes, are the same.
func TestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make([]log.Entry, rapid.IntRange(0, 20).Draw(t, "entries"))
		from := rapid.Uint64Max(1<<40).Draw(t, "from")
		for i := range want {
			want[i] = log.Entry{Seq: from + 1 + uint64(i), Op: logtest.Op(t)}
		}
		got, err := wire.DecodeEntries(wire.EncodeEntries(want), from)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for i := range want {
			if a, b := log.Encode(nil, &want[i].Op), log.Encode(nil, &got[i].Op); !bytes.Equal(a, b) {
				t.Fatalf("entry %d encodes to %x, was %x", i, b, a)
			}
		}
	})
}
