package partition

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// oldReplica returns the store of a replica of version 0.1.0 at the end of an origin's log. It keeps entries of two runs:
//
//	run 1   2 3 ◆ 4 5 ◆ 6       of a log before a restore
//	run 2   4 5 6 ◆   8 9 ◆     of the present log; the seal of entry 7 did not come
func oldReplica(t *testing.T, origin *Origin) kv.Store {
	t.Helper()
	store := kvtest.OrLate(t, memkv.New())
	p := copyTest(t, Options{Store: store, Epoch: log.Epoch{2}})
	pullTest(t, p, origin, origin.log.Head(), 1)
	n := p.replicaState
	n.kept, n.oldKept = keptState{}, oldKept{run: 2, since: 3, bytes: 1000, epoch: n.cursor.Epoch, to: 9}
	var b kv.Batch
	frames := testApp.LocalKey(frameName)
	kv.DeletePrefix(&b, frames)
	b.Put(noteKey(testApp), n.encode())
	for _, x := range []struct {
		run    log.Writer
		seq    uint64
		sealed bool
	}{
		{1, 2, false},
		{1, 3, true},
		{1, 4, false},
		{1, 5, true},
		{1, 6, false},
		{2, 4, false},
		{2, 5, false},
		{2, 6, true},
		{2, 8, false},
		{2, 9, true},
	} {
		f := frameTest(t, origin, x.seq-1, x.seq)
		rows, err := log.Rows(f.Rows)
		if err != nil {
			t.Fatal(err)
		}
		e := keptEntry{before: f.Before, op: rows[0]}
		if x.sealed {
			e.seal = f.Seal
		}
		b.Put(dotKey(testApp, keptName, log.Dot{Writer: x.run, Seq: x.seq}), encodeKeptEntry(nil, &e))
	}
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	return store
}

// frameTest returns entries of an origin's log as a frame.
func frameTest(t *testing.T, origin *Origin, from, to uint64) Frame {
	t.Helper()
	f := Frame{Epoch: origin.log.EpochOf(to).Epoch, From: from, To: to}
	err := origin.log.Read(from+1, func(e log.Entry) bool {
		f.Rows = log.AppendRow(f.Rows, log.Encode(nil, &e.Op))
		return e.Seq < to
	})
	if err == nil {
		f.Before, err = origin.log.Chain(from)
	}
	if err == nil {
		f.Chain, err = origin.log.Chain(to)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Seal = origin.Seal(to, f.Chain)
	return f
}

// pullTest pulls entries of an origin's log, up to an entry.
func pullTest(t *testing.T, p *Replica, origin *Origin, to, stable uint64) {
	t.Helper()
	r := Run{Frame: Frame{From: p.Cursor().Seq, To: to, Epoch: origin.log.EpochOf(to).Epoch}, Stable: stable}
	if to > r.From {
		r.Frame = frameTest(t, origin, r.From, to)
		var err error
		if r.Entries, err = log.DecodeRows(r.Rows, r.From); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.Chain, err = origin.log.Chain(to); err == nil {
		_, err = p.Pull(t.Context(), r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keptTest returns the kept frames, each as its entries and epoch.
func keptTest(t *testing.T, p *Replica) (frames []Frame, list []string) {
	t.Helper()
	err := p.KeptAfter(0, func(_ uint64, f Frame) bool {
		frames, list = append(frames, f), append(list, fmt.Sprintf("%d-%d/%d", f.From+1, f.To, f.Epoch[0]))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return frames, list
}

// TestFramesOfOldVersion: a replica makes frames of the entries that version 0.1.0 kept, up to each seal. It does not know the epoch of
// earlier runs, and offers their frames to every log that lacks its place, until all that it showed then is stable.
func TestFramesOfOldVersion(t *testing.T) {
	disk := kvtest.OrLate(t, memkv.New())
	origin := openTest(t, Options{Store: disk, Epoch: log.Epoch{1}, Secret: [32]byte{1}})
	submitTest(t, origin, 8) // the rules come first
	store := oldReplica(t, origin)
	want := []string{"2-3/0", "4-5/0", "4-6/1", "8-9/1"}
	var p *Replica
	for opening := range byte(2) {
		p = copyTest(t, Options{Store: store, Epoch: log.Epoch{3, opening}})
		frames, got := keptTest(t, p)
		if marks := p.Kept(); !slices.Equal(got, want) || !slices.Equal(marks, []log.Mark{{Epoch: log.Epoch{1}, To: 9}}) {
			t.Errorf("opening %d: frames %v of %x, want %v", opening, got, marks, want)
		}
		for i, f := range frames {
			same := frameTest(t, origin, f.From, f.To)
			if same.Epoch = f.Epoch; string(encodeFrame(nil, &same)) != string(encodeFrame(nil, &f)) {
				t.Errorf("frame %s is %+v, want %+v", got[i], f, same)
			}
		}
		if some, err := kv.AnyWithPrefix(store, testApp.LocalKey(keptName)); err != nil || some {
			t.Fatalf("old entries are left: %v, %v", some, err)
		}
		chain, err := origin.log.Chain(6)
		if err != nil {
			t.Fatal(err)
		}
		if from, err := p.KeptFrom(6, chain); from != 0 || err != nil {
			t.Errorf("a log with 6 entries is offered the frames from %d on, %v, want all", from, err)
		}
		lost := openTest(t, Options{Store: kvtest.OrLate(t, memkv.New()), Epoch: log.Epoch{4}, Secret: [32]byte{1}})
		head := lost.log.Head()
		if err := lost.TakeBack(t.Context(), &Returned{Opening: log.Epoch{4}, Frames: frames}, nil); err != nil || lost.log.Head() != head+7 {
			t.Errorf("the log took %d entries back, %v, want 2 to 6, 8 and 9", lost.log.Head()-head, err)
		}
	}
	submitTest(t, origin, 2)
	pullTest(t, p, origin, 10, 8)
	if _, got := keptTest(t, p); !slices.Equal(got, append(want, "10-10/1")) {
		t.Errorf("with 8 stable entries: %v", got)
	}
	pullTest(t, p, origin, 11, 9)
	if _, got := keptTest(t, p); !slices.Equal(got, []string{"10-10/1", "11-11/1"}) {
		t.Errorf("with 9 stable entries: %v", got)
	}
}

// TestFramesOfOldVersionAfterTornSnapshot: a replica of version 0.1.0 ended while it installed a snapshot. It keeps the frames of earlier
// runs, although it pulls the log from its beginning.
func TestFramesOfOldVersionAfterTornSnapshot(t *testing.T) {
	origin := openTest(t, Options{Store: kvtest.OrLate(t, memkv.New()), Epoch: log.Epoch{1}, Secret: [32]byte{1}})
	submitTest(t, origin, 8)
	store := oldReplica(t, origin)
	n, err := readPlace(store, testApp)
	if err != nil {
		t.Fatal(err)
	}
	n.torn = true
	var b kv.Batch
	b.Put(noteKey(testApp), n.encode())
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	p := copyTest(t, Options{Store: store, Epoch: log.Epoch{3}})
	pullTest(t, p, origin, 6, 5)
	if _, got := keptTest(t, p); p.Cursor().Seq != 6 || !slices.Equal(got, []string{"2-3/0", "4-5/0", "4-6/1", "8-9/1", "1-6/1"}) {
		t.Errorf("at %d with 5 stable entries: %v", p.Cursor().Seq, got)
	}
	pullTest(t, p, origin, 9, 9)
	if _, got := keptTest(t, p); len(got) > 0 {
		t.Errorf("with 9 stable entries: %v", got)
	}
}

// fullStore is a store without space.
type fullStore struct{ kv.Store }

func (fullStore) Apply(*kv.Batch) error { return kv.ErrFull }

// TestFramesOfOldVersionWhileFull: a full replica of version 0.1.0 opens, and makes its frames at the first opening with space.
func TestFramesOfOldVersionWhileFull(t *testing.T) {
	origin := openTest(t, Options{Store: kvtest.OrLate(t, memkv.New()), Epoch: log.Epoch{1}, Secret: [32]byte{1}})
	submitTest(t, origin, 8)
	store := oldReplica(t, origin)
	p, err := OpenReplica(Options{Store: fullStore{store}, App: testApp, Clock: testNow, Epoch: log.Epoch{3}}, ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, got := keptTest(t, p); len(got) > 0 || p.Cursor().Seq != 9 {
		t.Errorf("a full replica at %d keeps %v", p.Cursor().Seq, got)
	}
	p = copyTest(t, Options{Store: store, Epoch: log.Epoch{4}})
	if _, got := keptTest(t, p); len(got) != 4 {
		t.Errorf("with space again: %v", got)
	}
}
