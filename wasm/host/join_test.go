package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// joiner is a fleet that keeps a copy of a source.
type joiner struct {
	testing.TB
	*Fleet
	from          *source
	placed, taken int
}

func newJoiner(t testing.TB, from *source, rt *Runtime) *joiner {
	t.Helper()
	lent := lend0(t)
	lent.Store, lent.Bundles = memkv.New(), models.FS
	data, seq, err := from.engine.Register(from.app, from.edge)
	if err == nil {
		err = core.TakeRegister(context.Background(), lent.Store, from.app, seq, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	lent.Register = &book{app: from.app, seq: seq}
	j := &joiner{TB: t, from: from}
	j.Fleet, err = NewFleet(context.Background(), FleetOptions{
		Runtime: rt, Lent: lent,
		Replica: func(string) *abi.Replica {
			return &abi.Replica{Name: "copy", Live: replica.Once, Wants: wire.Wants{Vectors: wire.VectorsQ16}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// follow has the copy take all that the source has, and does what an edge does beside it.
func (j *joiner) follow() {
	j.Helper()
	ctx := context.Background()
	for events := []replica.Event{replica.Begin{}}; len(events) > 0; events = events[1:] {
		done, err := j.Sync(ctx, j.from.app, events[0])
		if err != nil {
			j.Fatal(err)
		}
		if done.Status.Cursor == j.from.part.Log().Head() {
			return
		}
		for _, x := range done.Effects {
			switch x := x.(type) {
			case replica.Take:
				if err := j.TakeSnapshot(ctx, j.from.app, x.Manifest); err != nil {
					j.Fatal(err)
				}
				j.taken++
				events = []replica.Event{nil, replica.Begin{}}
			case replica.Ask:
				events = append(events, j.answer(&x))
			}
		}
	}
	j.Fatal("the copy does not come to the end")
}

func (j *joiner) answer(a *replica.Ask) replica.Answer {
	j.Helper()
	x := j.from.answer(j, a)
	if !a.Place {
		return x
	}
	hash, err := blob.ParseHash(path.Base(a.Path))
	if err == nil {
		x.Sum = hash
		x.Placed, err = j.Place(context.Background(), j.from.app, hash, x.Body)
	}
	if err != nil {
		j.Fatal(err)
	}
	if x.Placed {
		j.placed++
		x.Body = nil
	}
	return x
}

// says is what the copy answers about its inputs, and about those that are most like one.
func (j *joiner) says(id string) (text string) {
	j.Helper()
	for _, r := range []api.Request{
		{Method: "GET", Path: "/v2/inputs/status"},
		{Method: "GET", Path: "/v2/inputs"},
		{Method: "POST", Path: "/v2/searches", Body: fmt.Appendf(nil, `{"query":{"ands":[{"output":{"input":{"id":%q}}}]}}`, id)},
		{Method: "POST", Path: "/v2/searches", Body: []byte(`{"query":{"ands":[{"input":{"data":{"concepts":[{"id":"concept-7","value":1}]}}}]}}`)},
	} {
		r.Authorization = "Key " + j.from.key
		call := j.Begin(context.Background(), &r)
		if !call.Done() || call.Response().Status != 200 {
			j.Fatalf("%s %s: %d %s", r.Method, r.Path, call.Response().Status, call.Response().Body)
		}
		var all struct { // but for what a search is called
			Counts, Inputs, Hits json.RawMessage
		}
		if err := json.Unmarshal(call.Response().Body, &all); err != nil {
			j.Fatal(err)
		}
		text += fmt.Sprintf("%s %s %s\n", all.Counts, all.Inputs, all.Hits)
	}
	return text
}

// TestTakesSnapshots: a copy whose module is the program's own is joined natively, and answers as one does whose
// module has done all of it.
func TestTakesSnapshots(t *testing.T) {
	s := newSource(t, 3_000)
	s.do = wire.DoRebase
	id := s.idAt(t, 7)
	its := newJoiner(t, s, anotherRuntime(t))
	its.follow()
	if its.placed != 0 || its.taken != 0 {
		t.Errorf("another's module: %d pieces were placed, %d snapshots taken", its.placed, its.taken)
	}
	want := its.says(id)
	own := newJoiner(t, s, ownRuntime(t))
	own.follow()
	if own.placed < 8 || own.taken != 1 {
		t.Errorf("%d pieces were placed, %d snapshots taken", own.placed, own.taken)
	}
	if got := own.says(id); got != want {
		t.Errorf("the copy that was joined natively says\n%.2000s\nthe other\n%.2000s", got, want)
	}
	if in := own.Instances(); in != 1 {
		t.Errorf("%d instances are open", in)
	}
}

// TestTakesNothing: what the host cannot take it leaves to the instance.
func TestTakesNothing(t *testing.T) {
	s := newSource(t, 3_000)
	s.do = wire.DoRebase
	j := newJoiner(t, s, ownRuntime(t))
	ctx := context.Background()
	if placed, err := j.Place(ctx, s.app, blob.Hash{}, []byte("no piece")); placed || err != nil {
		t.Errorf("without an instance: %v, %v", placed, err)
	}
	if _, err := j.Sync(ctx, s.app, nil); err != nil {
		t.Fatal(err)
	}
	if placed, err := j.Place(ctx, s.app, blob.Hash{}, []byte("no piece")); placed || err != nil {
		t.Errorf("no piece: %v, %v", placed, err)
	}
	if err := j.TakeSnapshot(ctx, s.app, []byte("no manifest")); err != nil {
		t.Fatal(err)
	}
	j.follow()
	if j.placed != 0 || j.taken != 0 {
		t.Errorf("%d pieces were placed, %d snapshots taken after one that could not be", j.placed, j.taken)
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	if placed, err := j.Place(ended, s.app, blob.Hash{}, nil); placed || !errors.Is(err, context.Canceled) {
		t.Errorf("nobody wants it any more: %v, %v", placed, err)
	}
}

// TestCollectsInCalls: the heap of a page's copy is collected in the one call that takes a snapshot, too.
func TestCollectsInCalls(t *testing.T) {
	s := newSource(t, 10_000)
	s.do = wire.DoRebase
	register, seq, err := s.engine.Register(s.app, s.edge)
	if err != nil {
		t.Fatal(err)
	}
	lent := lend0(t)
	lent.Bundles, lent.Files = models.FS, journaltest.NewDisk()
	in, err := module(t).Open(t.Context(), lent, abi.Settings{
		Role: abi.Engine, App: s.app, Store: abi.StoreFiles, OpenDoor: true,
		Replica: &abi.Replica{
			Name: "page", Live: replica.Once, Wants: wire.Wants{Vectors: wire.VectorsQ16}, Origin: "https://origin.example",
			RegisterSeq: seq, Register: register,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.follow(t, in)
	if got := in.Bytes() >> 20; got > 150 { // 90; 206 where it is not
		t.Errorf("the instance has %d MB", got)
	}
}
