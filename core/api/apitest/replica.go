package apitest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
)

// Replica is a replica of a world's application, as at an edge. Tests move operations between the two with Push and Pull. The replica
// shares the origin's environment, including the clock.
//
//	Replica.World ──Push──▶ Origin
//	           ◀──Pull──
type Replica struct {
	*World
	Origin *World

	// SyncStatus is the sync status without pushed and pulled operations. HasStatus reports whether the replica has a status.
	SyncStatus api.SyncStatus
	HasStatus  bool

	pushed uint64 // position of the last pushed operation in the outbox
}

// NewReplica returns a world and a replica of its application without data. Settings are those of
// [NewServer], and "thumbnails" for a host whose replicas create thumbnails.
func NewReplica(t testing.TB, set *predict.Set, settings map[string]string) *Replica {
	t.Helper()
	origin := NewWorld(t, memkv.New(), set, nil, settings)
	token, edge, err := origin.Engine.Register.CreateEdge(t.Context(), register.Caller{}, "edge", []string{origin.App})
	if err != nil {
		t.Fatal(err)
	}
	if edge, err = origin.Engine.Register.EnrolEdge(t.Context(), token, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	data, seq, err := origin.Engine.Register.AppRecord(origin.App, edge.ID)
	if err != nil {
		t.Fatal(err)
	}
	store := memkv.New()
	if err := register.ApplyAppRecord(t.Context(), store, origin.App, seq, data); err != nil {
		t.Fatal(err)
	}
	w := *origin
	w.IDs.Counter = NewCounter(1 << 40)
	c := &Replica{World: &w, Origin: origin, HasStatus: true, SyncStatus: api.SyncStatus{Origin: "https://origin.test", Phase: "current"}}
	w.options.App, w.options.SyncStatus, w.options.Rand = w.App, c.syncStatus, &w.IDs
	w.options.Thumbnails = settings["thumbnails"] != ""
	c.Open(t, store)
	return c
}

// Partition returns the replica's partition.
func (c *Replica) Partition(t testing.TB) *partition.Replica {
	t.Helper()
	p, err := c.Engine.Replica(c.App)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func originOf(t testing.TB, w *World) *partition.Origin {
	t.Helper()
	p, err := w.Engine.Origin(w.App)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// syncStatus implements Copies of [core.Options].
func (c *Replica) syncStatus(app string) (api.SyncStatus, bool) {
	p, err := c.Engine.Replica(app)
	if err != nil || !c.HasStatus {
		return api.SyncStatus{}, false
	}
	s := c.SyncStatus
	_, s.Folded = p.Outbox()
	s.Accepted = max(c.pushed, s.Folded)
	return s, true
}

// Push sends the pending operations of the replica to the origin.
func (c *Replica) Push(t testing.TB) { c.push(t, nil) }

func (c *Replica) push(t testing.TB, also func(*kv.Batch)) {
	t.Helper()
	var ops []log.Op
	err := c.Partition(t).Pending(c.pushed, func(at uint64, op log.Op) bool {
		ops, c.pushed = append(ops, op), at
		return true
	})
	if err == nil && len(ops) > 0 {
		_, _, err = originOf(t, c.Origin).Accept(context.Background(), ops, also)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Pull sends the entries of the origin's log after the replica's cursor to the replica.
func (c *Replica) Pull(t testing.TB) { c.pull(t, nil) }

func (c *Replica) pull(t testing.TB, also func(*kv.Batch)) {
	t.Helper()
	if err := c.tryPull(t, also); err != nil {
		t.Fatal(err)
	}
}

// TryPull pulls like a replica that gets many derived records: it stores them before the entries. It returns the error of the entries.
func (c *Replica) TryPull(t testing.TB) error {
	t.Helper()
	p := c.Partition(t)
	at := p.Cursor()
	r := partition.Run{
		Frame: partition.Frame{Epoch: at.Epoch, From: at.Seq, To: at.Seq, Chain: at.Chain}, Attach: func(b *kv.Batch) { carry(t, c.Origin, b) },
	}
	if _, err := p.Pull(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return c.tryPull(t, r.Attach)
}

func (c *Replica) tryPull(t testing.TB, also func(*kv.Batch)) error {
	t.Helper()
	from, origin := c.Partition(t), originOf(t, c.Origin).Log()
	at := from.Cursor()
	r := partition.Run{Frame: partition.Frame{Epoch: origin.EpochOf(origin.Head()).Epoch, From: at.Seq, To: at.Seq}, Attach: also}
	err := origin.Read(at.Seq+1, func(e log.Entry) bool {
		r.Entries, r.Rows = append(r.Entries, e), log.AppendRow(r.Rows, log.Encode(nil, &e.Op))
		r.To = e.Seq
		return true
	})
	if err == nil {
		r.Before, err = origin.Chain(r.From)
	}
	if err == nil {
		r.Chain, err = origin.Chain(r.To)
	}
	r.Seal = []byte("seal") // the replica keeps what it pulls, as from an origin with seals
	if err == nil {
		_, err = from.Pull(context.Background(), r)
	}
	return err
}

// Sync pushes and pulls, with the derived records and the objects that operations need.
func (c *Replica) Sync(t testing.TB) {
	t.Helper()
	c.push(t, func(b *kv.Batch) { carry(t, c.World, b) })
	c.pull(t, func(b *kv.Batch) { carry(t, c.Origin, b) })
}

// carry adds the derived records and the objects of a world's application to a batch.
func carry(t testing.TB, w *World, b *kv.Batch) {
	t.Helper()
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	r := catalog.Read(w.Store, app)
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	err = r.Inputs(0, func(in catalog.Input) bool {
		if d, err := r.DerivedOfInput(h.Base, &in); err == nil {
			catalog.PutDerived(b, app, h.Base, in.Blob, in.Crop, d)
		}
		return true
	})
	if err == nil {
		err = r.Objects(func(h blob.Hash, _ int) bool {
			data, err := r.Object(h)
			if err != nil {
				t.Fatal(err)
			}
			catalog.PutObject(b, app, data)
			return true
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// NewReplicaServer is [NewServer] for a replica. Before a request that reads, the replica sends its writes to the origin. The replica and
// the origin must answer a GET with the same bytes. A step runs the background work of both.
func NewReplicaServer(t testing.TB, set *predict.Set, settings map[string]string) Server {
	t.Helper()
	c := NewReplica(t, set, settings)
	c.Sync(t)
	w := NewWorld(t, memkv.New(), set, nil, settings)
	originOf(t, w)
	c.IDs.Counter = NewCounter(w.IDs.n) // the transcript has these ids
	return func(r api.Request) api.Response {
		t.Helper()
		if r.Method == "STEP" {
			c.Sync(t)
			c.Origin.Serve(t, r)
			c.Sync(t)
			c.World.Now = c.Origin.Now
			c.World.Step(t, 0)
			c.Sync(t)
			return api.Response{}
		}
		if r.Method != "GET" && !strings.Contains(r.Path, "/searches") {
			return c.Serve(t, r)
		}
		c.Sync(t)
		replica := c.Serve(t, r)
		if r.Method != "GET" {
			return replica // each search has a new id
		}
		origin := c.Origin.Serve(t, r)
		if replica.Status != origin.Status || !bytes.Equal(replica.Body, origin.Body) {
			t.Errorf("%s %s\ncopy:   %d %s\norigin: %d %s", r.Method, r.Path, replica.Status, replica.Body, origin.Status, origin.Body)
		}
		return replica
	}
}

// Restart opens the replica again on the content of its store.
func (c *Replica) Restart(t testing.TB) {
	t.Helper()
	if err := c.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	c.Open(t, c.World.Store)
}
