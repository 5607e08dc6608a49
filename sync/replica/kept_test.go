package replica_test

import (
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
)

// TestEntriesOfOldVersion opens a store of version 0.1.0, which keeps entries of two logs one by one. Only the epoch of the newest is
// stored. The origin was restored to before all of them. The replica gives back those of both logs, except for the last one, which has no
// seal.
func TestEntriesOfOldVersion(t *testing.T) {
	first := newSealedRig(t)
	first.origin.submit(create("a"))
	first.settle()
	backup := copyOf(t, first.origin.store)
	first.origin.submit(create("b"), create("c"))
	first.settle()
	earlier := first.kept()
	first.step(replica.Offline{})
	first.origin.restore(copyOf(t, backup), log.Epoch{5})
	r := first.another()
	r.origin.submit(create("d"), create("e"), create("f"))
	r.start()
	r.settle()
	r.origin.submit(create("no seal"))
	r.settle()
	newest := r.kept()

	var b kv.Batch
	b.DeleteRange(app.LocalKey("frame/"), app.LocalKey("frame0"))
	newest[len(newest)-1].Seal = nil
	putKept(t, &b, 1, earlier)
	putKept(t, &b, 2, newest)
	note, err := r.store.Get(app.LocalKey("replica"))
	if err != nil {
		t.Fatal(err)
	}
	b.Put(app.LocalKey("replica"), oldNote(t, note, 2, newest[len(newest)-1].Epoch))
	if err := r.store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	r.origin.restore(backup, log.Epoch{6})
	r.reopen(r.image())
	r.settle()
	r.equals("a", "b", "c", "d", "e", "f")
	r.keeps()
}

// putKept adds frames as kept entries of version 0.1.0. The last entry of each frame has its seal.
func putKept(t *testing.T, b *kv.Batch, run uint32, frames []partition.Frame) {
	t.Helper()
	for _, f := range frames {
		rows, err := log.Rows(f.Rows)
		if err != nil {
			t.Fatal(err)
		}
		chain := f.Before
		for i, row := range rows {
			x := protowire.AppendBytes(protowire.AppendTag([]byte{field.Version}, 1, protowire.BytesType), chain[:])
			if i == len(rows)-1 && f.Seal != nil {
				x = protowire.AppendBytes(protowire.AppendTag(x, 3, protowire.BytesType), f.Seal)
			}
			x = protowire.AppendBytes(protowire.AppendTag(x, 4, protowire.BytesType), row)
			key := binary.BigEndian.AppendUint32(app.LocalKey("kept/"), run)
			b.Put(binary.BigEndian.AppendUint64(key, f.From+1+uint64(i)), x)
			chain = chain.Next(row)
		}
	}
}

// oldNote returns the record of a replica as version 0.1.0 stored it: the cursor, and the newest run of kept entries with its epoch.
func oldNote(t *testing.T, note []byte, run uint64, epoch log.Epoch) []byte {
	t.Helper()
	out := []byte{note[0]}
	for data := note[1:]; len(data) > 0; {
		number, _, n := protowire.ConsumeField(data)
		if n < 0 {
			t.Fatal("the record of the replica is malformed")
		}
		if number <= 4 {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	out = protowire.AppendVarint(protowire.AppendTag(out, 8, protowire.VarintType), run)
	return protowire.AppendBytes(protowire.AppendTag(out, 11, protowire.BytesType), epoch[:])
}
