package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// pullStable pulls that the log is stable up to an entry.
func pullStable(t testing.TB, p *partition.Replica, stable uint64) {
	t.Helper()
	c := p.Cursor()
	if _, err := p.Pull(t.Context(), partition.Run{Frame: partition.Frame{Epoch: c.Epoch, From: c.Seq, To: c.Seq, Chain: c.Chain}, Stable: stable}); err != nil {
		t.Fatal(err)
	}
}

// epochsOf returns an origin's log of five epochs: the entries 1 and 2, 3 to 5, 6, 7 and 8, and 9.
func epochsOf(t testing.TB) *partition.Origin {
	t.Helper()
	origin := sealingAs(t, kvtest.OrLate(t, memkv.New()), log.Epoch{11})
	for i, n := range []int{1, 3, 1, 2, 1} { // the rules come first
		if i > 0 {
			origin.SetOpening(log.Epoch{byte(11 + i)})
		}
		for j := range n {
			submit(t, origin, create(fmt.Sprint(i, "-", j)))
		}
	}
	return origin
}

// TestFramesAreStored: a replica keeps runs as they came, with the place before each, also over another opening. It keeps no empty run, and
// none without a seal.
func TestFramesAreStored(t *testing.T) {
	origin := epochsOf(t)
	store := kvtest.OrLate(t, memkv.New())
	r := openNamed(t, store, 1)
	if frames, _ := framesOf(t, r); len(frames) > 0 || len(r.Kept()) > 0 {
		t.Errorf("a new replica keeps %+v", frames)
	}
	var want []partition.Frame
	for i, x := range sealedRuns(t, origin, 0) {
		want = append(want, x.Frame)
		if _, err := r.Pull(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		pullStable(t, r, 0)
		c := r.Cursor()
		if has, err := origin.HasPlace(log.Mark{Epoch: c.Epoch, To: c.Seq}, c.Chain); !has || err != nil || c.Epoch != x.Epoch {
			t.Errorf("the log has the place %+v: %v, %v", c, has, err)
		}
		if i == 2 {
			r = openNamed(t, store, 2)
		}
	}
	marks := []log.Mark{{Epoch: log.Epoch{15}, To: 9}, {Epoch: log.Epoch{14}, To: 8}, {Epoch: log.Epoch{13}, To: 6}, {Epoch: log.Epoch{12}, To: 5}, {Epoch: log.Epoch{11}, To: 2}}
	check := func(p *partition.Replica) {
		t.Helper()
		got, numbers := framesOf(t, p)
		if diff := cmp.Diff(want, got); diff != "" || !slices.IsSorted(numbers) {
			t.Errorf("frames %v (-want +got):\n%s", numbers, diff)
		}
		if got := p.Kept(); !slices.Equal(got, marks) {
			t.Errorf("kept %x, want %x", got, marks)
		}
	}
	check(r)
	check(openNamed(t, imageOf(t, store), 3))
	submit(t, origin, create("without a seal"))
	x := run(t, origin, r.Cursor(), 9)
	x.Stable = 0
	if _, err := r.Pull(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	check(r)
}

// TestFramesOfLastEpochsAreNamed: a session names the last 16 epochs of the kept frames.
func TestFramesOfLastEpochsAreNamed(t *testing.T) {
	origin := sealingAs(t, kvtest.OrLate(t, memkv.New()), log.Epoch{100})
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)
	for i := range 20 {
		origin.SetOpening(log.Epoch{byte(1 + i)})
		submit(t, origin, create(fmt.Sprint(i)))
		pullSealed(t, r, origin)
	}
	got := r.Kept()
	if frames, _ := framesOf(t, r); len(frames) != 21 || len(got) != 16 {
		t.Fatalf("%d frames of %d epochs", len(frames), len(got))
	}
	for i, m := range got {
		if m != (log.Mark{Epoch: log.Epoch{byte(20 - i)}, To: uint64(21 - i)}) {
			t.Errorf("epoch %d is %x", i, m)
		}
	}
}

// TestFramesAreBounded has a replica keep no more of the log than it may, and the newest of it.
func TestFramesAreBounded(t *testing.T) {
	origin := sealing(t, kvtest.OrLate(t, memkv.New()))
	r, err := partition.OpenReplica(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: clock, Epoch: opening()}, partition.ReplicaOptions{KeepBytes: 4000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		submit(t, origin, create(fmt.Sprint(i)))
		pullSealed(t, r, origin)
		frames, _ := framesOf(t, r)
		size := 0
		for _, f := range frames {
			size += len(f.Rows)
		}
		if size > 4000 {
			t.Fatalf("after %d entries the replica keeps %d bytes", i, size)
		}
	}
	frames, _ := framesOf(t, r)
	head := origin.Log().Head()
	if n := len(frames); n < 10 || n > 40 || frames[n-1].To != head {
		t.Errorf("%d frames to %d are kept of %d", n, frames[n-1].To, head)
	}
	for i := 1; i < len(frames); i++ {
		if frames[i].From != frames[i-1].To || frames[i].Before != frames[i-1].Chain {
			t.Errorf("a frame after %d follows one to %d", frames[i].From, frames[i-1].To)
		}
	}
	pullStable(t, r, head-3)
	if left, _ := framesOf(t, r); len(left) != 3 || left[0].From != head-3 {
		t.Errorf("%d frames after %d are kept, want those after %d", len(left), left[0].From, head-3)
	}
	pullStable(t, r, head)
	if left, _ := framesOf(t, r); len(left) > 0 {
		t.Errorf("%d frames are kept that are stable", len(left))
	}
}

// TestFramesThatLogMayLack: a log may lack the frames after an entry that it has with the same chain. If it does not show that, it may lack
// all of them.
func TestFramesThatLogMayLack(t *testing.T) {
	origin := epochsOf(t)
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)
	_, numbers := framesOf(t, r)
	chains := map[uint64]log.Chain{}
	for seq := range origin.Log().Head() + 1 {
		chain, err := origin.Log().Chain(seq)
		if err != nil {
			t.Fatal(err)
		}
		chains[seq] = chain
	}
	for _, tt := range []struct {
		name  string
		have  uint64
		chain log.Chain
		want  int // index of the first frame
	}{
		{"none", 0, log.Chain{}, 0},
		{"none, with the chain before the log", 0, chains[0], 0},
		{"part of a frame", 1, chains[1], 0},
		{"a frame", 2, chains[2], 1},
		{"the first entry of the next frame", 3, chains[3], 1},
		{"two frames", 5, chains[5], 2},
		{"all but one entry", 8, chains[8], 4},
		{"all", 9, chains[9], 5},
		{"another chain", 5, chains[4], 0},
		{"another chain in a frame", 4, chains[5], 0},
		{"a trimmed entry", 5, log.Chain{}, 0},
		{"an entry after all frames", 12, chains[9], 0},
	} {
		got, err := r.KeptFrom(tt.have, tt.chain)
		want := uint64(0)
		if tt.want == len(numbers) {
			want = numbers[tt.want-1] + 1
		} else if tt.want > 0 {
			want = numbers[tt.want]
		}
		if err != nil || got != want {
			t.Errorf("%s: from %d, %v, want %d", tt.name, got, err, want)
		}
	}
}

// keepSealed has a replica keep the log of an origin after an entry for a snapshot.
func keepSealed(t testing.TB, p *partition.Replica, origin *partition.Origin, after uint64) {
	t.Helper()
	for _, r := range sealedRuns(t, origin, after) {
		wrong := r.Frame
		wrong.Before[0]++
		if err := p.Keep(&wrong); !errors.Is(err, partition.ErrChain) {
			t.Fatalf("Keep of another log = %v", err)
		}
		if err := p.Keep(&r.Frame); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFramesForSnapshotReplaceOthers: the entries that a replica fetches for a snapshot replace the kept frames with it, and not before.
// The fetch can begin again, also in another process and with another log.
func TestFramesForSnapshotReplaceOthers(t *testing.T) {
	image := kvtest.OrLate(t, memkv.New())
	submit(t, sealingAs(t, image, log.Epoch{7}), create("old"))
	origin := sealingAs(t, imageOf(t, image), log.Epoch{8})
	submit(t, origin, create("a"))
	store := kvtest.OrLate(t, memkv.New())
	r := openReplica(t, store)
	pullSealed(t, r.Replica, origin)
	before, _ := framesOf(t, r.Replica)
	marks := r.Kept()

	other := openRestored(t, image, 9)
	submit(t, other, create("b"), create("c"))
	other.SetOpening(log.Epoch{10})
	submit(t, other, create("d"))
	want := framesAfter(t, other, 1)
	keep := func(from int) {
		t.Helper()
		for _, x := range sealedRuns(t, other, 1)[from:] {
			if err := r.Keep(&x.Frame); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := framesOf(t, r.Replica); !cmp.Equal(got, before) || !slices.Equal(r.Kept(), marks) {
			t.Errorf("fetched frames are kept before the snapshot: %+v", got)
		}
	}
	keepSealed(t, r.Replica, origin, 0) // a fetch from the log of before that does not end
	keep(2)
	keep(0)
	keep(1) // it does not follow, and begins again
	r = openReplica(t, store)
	pullStable(t, r.Replica, 1)
	before, _ = framesOf(t, r.Replica)
	keep(0)
	x, _ := export(t, other, network)
	if x.Lacked = true; r.Cursor().Stable != 1 {
		t.Errorf("cursor %+v", r.Cursor())
	}
	if err := r.Rebase(t.Context(), x.Snapshot); err != nil || r.Cursor().Stable != 0 {
		t.Errorf("cursor %+v, %v; an entry of the log of before is stable", r.Cursor(), err)
	}
	for range 2 {
		got, numbers := framesOf(t, r.Replica)
		if diff := cmp.Diff(want, got); diff != "" || !slices.IsSorted(numbers) {
			t.Errorf("frames %v (-want +got):\n%s", numbers, diff)
		}
		if got := r.Kept(); !slices.Equal(got, []log.Mark{{Epoch: log.Epoch{10}, To: 5}, {Epoch: log.Epoch{9}, To: 4}, {Epoch: log.Epoch{7}, To: 2}}) {
			t.Errorf("kept %x", got)
		}
		r = openReplica(t, store)
	}
	submit(t, other, create("e"))
	pullSealed(t, r.Replica, other)
	if got, _ := framesOf(t, r.Replica); len(got) != len(want)+1 || got[len(want)].From != 5 {
		t.Errorf("after the next run: %+v", got)
	}
	rebase(t, r, other) // without a fetch
	if got, _ := framesOf(t, r.Replica); len(got) > 0 || len(r.Kept()) > 0 || localRecords(t, store, "frame/") > 0 {
		t.Errorf("a snapshot of stable entries keeps %+v", got)
	}
}

// TestFramesForSnapshotAreBounded: the frames for a snapshot have the limit of the others.
func TestFramesForSnapshotAreBounded(t *testing.T) {
	origin := sealing(t, kvtest.OrLate(t, memkv.New()))
	for i := range 60 {
		submit(t, origin, create(fmt.Sprint(i)))
	}
	p, err := partition.OpenReplica(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: clock, Epoch: opening()}, partition.ReplicaOptions{KeepBytes: 4000})
	if err != nil {
		t.Fatal(err)
	}
	for at := uint64(0); at < origin.Log().Head(); at++ {
		f := singleFrame(t, origin, at+1)
		if err := p.Keep(&f); err != nil {
			t.Fatal(err)
		}
	}
	x, _ := export(t, origin, [32]byte{})
	if err := p.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	frames, _ := framesOf(t, p)
	size := 0
	for _, f := range frames {
		size += len(f.Rows)
	}
	if n := len(frames); n < 10 || size > 4000 || frames[n-1].To != origin.Log().Head() {
		t.Errorf("%d frames of %d bytes are kept", n, size)
	}
}

// TestTornSnapshotKeepsFrames: a snapshot that is installed in part leaves the kept frames as they are. The replica offers them, also after
// it has pulled the log from its beginning again.
func TestTornSnapshotKeepsFrames(t *testing.T) {
	origin := sealing(t, kvtest.OrLate(t, memkv.New()))
	large(t, origin, 0, 300)
	store := &brimful{Store: kvtest.OrLate(t, memkv.New()), left: -1}
	w := newCopies(t, nil, 0, false)
	w.origin = origin
	c := w.reopen(&testReplica{store: store, batch: 4 << 10})
	pullSealed(t, c.Replica, origin)
	want, numbers := framesOf(t, c.Replica)
	marks := c.Kept()
	large(t, origin, 300, 300)
	keepSealed(t, c.Replica, origin, 301)
	x, _ := export(t, origin, [32]byte{})
	store.left = 1
	if err := c.Rebase(t.Context(), x.Snapshot); err == nil {
		t.Fatal("the snapshot takes one batch")
	}
	store.left = -1
	for range 2 {
		c = w.reopen(c)
		if got, n := framesOf(t, c.Replica); c.Cursor() != (partition.Cursor{}) || !cmp.Equal(got, want) || !slices.Equal(n, numbers) || !slices.Equal(c.Kept(), marks) {
			t.Errorf("at %+v the replica keeps the frames %v of %x", c.Cursor(), n, c.Kept())
		}
	}
	for _, n := range []uint64{100, 200} {
		r := run(t, origin, c.Cursor(), 100)
		r.Seal, r.Stable = origin.Seal(r.To, r.Chain), 0
		if _, err := c.Pull(t.Context(), r); err != nil || r.To != n {
			t.Fatal(r.To, err)
		}
	}
	chain, err := origin.Log().Chain(150)
	if err != nil {
		t.Fatal(err)
	}
	if from, err := c.KeptFrom(150, chain); err != nil || from > numbers[0] {
		t.Errorf("a log with 150 entries is offered the frames from %d on, %v, want from %d: it lacks later entries", from, err, numbers[0])
	}
	if err := c.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	if got, _ := framesOf(t, c.Replica); len(got) > 0 && bytes.Equal(got[0].Rows, want[0].Rows) {
		t.Error("after the snapshot the frames of before are kept")
	}
	c.check(t, origin)
}
