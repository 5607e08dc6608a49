package core_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// appReplica is an application at an origin, and the store of an edge that replicates its app record.
type appReplica struct {
	origin *core.Engine
	app    string
	edge   string // ID of the edge
	store  kv.Store
}

// copyOf creates an application at origin, an edge for it and the edge's empty store.
func copyOf(t testing.TB, origin *core.Engine) *appReplica {
	t.Helper()
	c := &appReplica{origin: origin, app: newApp(t, origin), store: kvtest.OrLate(t, memkv.New())}
	_, edge, err := origin.Register.CreateEdge(t.Context(), register.Caller{}, "edge", []string{c.app})
	if err != nil {
		t.Fatal(err)
	}
	c.edge = edge.ID
	return c
}

// register returns the application's app record at the origin and its sequence number.
func (c *appReplica) register(t testing.TB) (data []byte, seq uint64) {
	t.Helper()
	data, seq, err := c.origin.Register.AppRecord(c.app, c.edge)
	if err != nil {
		t.Fatal(err)
	}
	return data, seq
}

// take applies the origin's app record to the store and compares the two.
func (c *appReplica) take(t testing.TB) {
	t.Helper()
	data, seq := c.register(t)
	if err := register.ApplyAppRecord(t.Context(), c.store, c.app, seq, data); err != nil {
		t.Fatal(err)
	}
	c.compare(t)
}

// compare checks that the store has the origin's app record.
func (c *appReplica) compare(t testing.TB) {
	t.Helper()
	data, _ := c.register(t)
	want, err := catalog.DecodeAppRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := catalog.Read(c.store, catalog.Control).AppRecord(c.app, c.edge)
	if err != nil {
		t.Fatal(err)
	}
	if got.Trust, err = catalog.Read(c.store, catalog.Control).TrustOf(c.app); err != nil { // which a replica stores separately
		t.Fatal(err)
	}
	got.Epoch = want.Epoch
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("register of the copy (-want +got):\n%s", diff)
	}
}

// TestReplicaGetsChangesOfItsApplication checks that a replica gets every change of its application, and nothing of another application.
func TestReplicaGetsChangesOfItsApplication(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := t.Context()
	c := copyOf(t, e)
	c.take(t)
	other := newApp(t, e)
	key := func(app string) catalog.Key {
		_, k, err := e.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: app, Scopes: []string{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	otherKey := key(other)
	first, second := key(c.app), key(c.app)
	c.take(t)
	name := "renamed"
	for event, change := range map[string]func() error{
		"a key is deleted": func() error { return e.Register.DeleteKey(ctx, register.Caller{}, c.app, first.Hash) },
		"a key is replaced": func() error {
			_, _, err := e.Register.ReplaceKey(ctx, register.Caller{}, c.app, second.Hash)
			return err
		},
		"another name": func() error {
			_, err := e.Register.ChangeApp(ctx, register.Caller{}, c.app, register.AppChange{Name: &name})
			return err
		},
		"the tokens are killed": func() error { return e.Register.RevokeTokens(ctx, register.Caller{}, c.app) },
		"another secret":        func() error { _, err := e.Register.ReplaceSecret(ctx, register.Caller{}, c.app); return err },
	} {
		before, _ := c.register(t)
		if err := change(); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		if after, _ := c.register(t); bytes.Equal(before, after) {
			t.Errorf("%s: the register is as it was", event)
		}
		c.take(t)
	}
	before, seq := c.register(t)
	if err := e.Register.DeleteKey(ctx, register.Caller{}, other, otherKey.Hash); err != nil {
		t.Fatal(err)
	}
	after, later := c.register(t)
	if !bytes.Equal(before, after) || later <= seq {
		t.Errorf("what happens to another application changes the register, from %d to %d", seq, later)
	}
	r := catalog.Read(c.store, catalog.Control)
	if _, err := r.App(other); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("the copy knows another application: %v", err)
	}
	if x, err := r.Edge(c.edge); err != nil || x.Token != [32]byte{} {
		t.Errorf("the edge's record has its token: %+v, %v", x, err)
	}
	if _, _, err := e.Register.AppRecord("no application", ""); !errors.Is(err, register.ErrApplication) {
		t.Errorf("register of no application: %v, want ErrApplication", err)
	}
	data, _, err := e.Register.AppRecord(c.app, "")
	if x, err2 := catalog.DecodeAppRecord(data); errors.Join(err, err2) != nil || x.Keys != nil || x.Client.ID != "" || x.Edge.ID != "" || x.Record.ID != c.app {
		t.Errorf("register for a browser: %+v, %v, %v", x, err, err2)
	}
}

// TestLogsShareOneOpening: a process has one opening for all its logs, also for those that it opens later, and for its app records. Reopen
// and the next process draw another one, for all logs. It does not show the random bytes from which the writers come.
func TestLogsShareOneOpening(t *testing.T) {
	l := newFixture(t)
	seen, random := map[log.Epoch]bool{}, map[[16]byte]bool{}
	var apps []string
	for range 2 {
		e := l.open(t)
		for _, reopens := range []bool{false, true} {
			if reopens {
				if err := e.Reopen(); err != nil {
					t.Fatal(err)
				}
			}
			apps = append(apps, newApp(t, e))
			openings := map[log.Epoch]bool{}
			for _, app := range apps {
				p, err := e.Origin(app)
				if err == nil {
					_, err = p.Submit(t.Context(), "", []log.Body{&log.ConceptCreate{ID: "x"}}, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				data, _, err := e.Register.AppRecord(app, "")
				x, failed := catalog.DecodeAppRecord(data)
				if err = errors.Join(err, failed); err != nil {
					t.Fatal(err)
				}
				openings[p.Opening()], openings[x.Epoch], openings[p.Log().EpochOf(p.Log().Head()).Epoch] = true, true, true
				id, failed := catalog.ParseAppID(app)
				first, err := e.Register.PartitionOptions(id)
				second, err2 := e.Register.PartitionOptions(id)
				if err = errors.Join(failed, err, err2); err != nil {
					t.Fatal(err)
				}
				if openings[first.Epoch] = true; second.Epoch != first.Epoch || first.Random == second.Random || seen[first.Random] || seen[second.Random] {
					t.Errorf("the process opens logs as %x with %x and as %x with %x", first.Epoch, first.Random, second.Epoch, second.Random)
				}
				random[first.Random], random[second.Random] = true, true
			}
			for e := range openings {
				if seen[e] || random[e] || len(openings) != 1 {
					t.Errorf("opening %x, one of %d, came before: %v", e, len(openings), seen[e])
				}
				seen[e] = true
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAppRecordsInOrder applies app records out of order. The newest one stays. A record of another epoch replaces it.
func TestAppRecordsInOrder(t *testing.T) {
	l := newFixture(t)
	c := copyOf(t, l.open(t))
	old, seq := c.register(t)
	if _, _, err := c.origin.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: c.app, Scopes: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	c.take(t)
	for range 2 {
		if err := register.ApplyAppRecord(t.Context(), c.store, c.app, seq, old); err != nil {
			t.Fatal(err)
		}
		c.compare(t)
	}
	x, err := catalog.DecodeAppRecord(old)
	if err != nil {
		t.Fatal(err)
	}
	x.Epoch[0] ^= 1 // the next opening of the origin, perhaps after a restore
	if err := register.ApplyAppRecord(t.Context(), c.store, c.app, 1, x.Encode()); err != nil {
		t.Fatal(err)
	}
	if keys := catalog.Read(c.store, catalog.Control); keys.KeysOf(c.app, func(k catalog.Key) bool {
		t.Errorf("key %x stayed of the log before", k.Hash[:4])
		return true
	}) != nil {
		t.Error("no keys can be read")
	}
	if epoch, seq, err := catalog.Read(c.store, catalog.Control).AppRecordSeq(c.app); epoch != x.Epoch || seq != 1 || err != nil {
		t.Errorf("register of place %d of log %x, %v", seq, epoch, err)
	}
}

// TestAppRecordsRefused checks that an invalid record, or one with data of another application, is refused and changes nothing.
func TestAppRecordsRefused(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	c, d := copyOf(t, e), copyOf(t, e)
	d.store = c.store
	_, k, err := e.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: d.app, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	d.take(t)
	data, seq := c.register(t)
	good, err := catalog.DecodeAppRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	client, err := e.Register.Client(d.app)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(x *catalog.AppRecord){
		"another's key":        func(x *catalog.AppRecord) { x.Keys = []catalog.Key{k} },
		"another's key, ours":  func(x *catalog.AppRecord) { k := k; k.App = c.app; x.Keys = []catalog.Key{k} },
		"a key twice":          func(x *catalog.AppRecord) { x.Keys = []catalog.Key{{App: c.app}, {App: c.app}} },
		"another's client":     func(x *catalog.AppRecord) { x.Client = client },
		"another's id of ours": func(x *catalog.AppRecord) { x.Client = client; x.Client.App = c.app },
		"another's record":     func(x *catalog.AppRecord) { x.Record.ID = d.app },
		"another's register":   func(x *catalog.AppRecord) { x.App, x.Record.ID, x.Client.App = d.app, d.app, d.app },
		"no application's":     func(x *catalog.AppRecord) { x.App, x.Record.ID, x.Client.App = "x", "x", "x" },
	} {
		x := good
		spoil(&x)
		err := register.ApplyAppRecord(t.Context(), c.store, c.app, seq+1, x.Encode())
		if !errors.Is(err, field.ErrFormat) && !errors.Is(err, register.ErrApplication) {
			t.Errorf("%s: %v, want ErrFormat or ErrApplication", name, err)
		}
		if _, err := catalog.Read(c.store, catalog.Control).App(c.app); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%s: the application is there, %v", name, err)
		}
		d.compare(t)
	}
}

// deleteApp takes the application from the edge and returns the reason in the app record. With way 0 the application is deleted, with 1 the
// edge is revoked, and with 2 the edge is unknown.
func (c *appReplica) deleteApp(t testing.TB, way int) (why string) {
	t.Helper()
	var err error
	switch way {
	case 0:
		why, err = catalog.ReasonDeleted, c.origin.Register.DeleteApp(t.Context(), register.Caller{}, c.app)
	case 1:
		why, err = catalog.ReasonRevoked, c.origin.Register.RevokeEdge(t.Context(), register.Caller{}, c.edge)
	default:
		why, c.edge = catalog.ReasonRevoked, "an edge that is unknown"
	}
	if err != nil {
		t.Fatal(err)
	}
	return why
}

// fillStore writes inputs, a note and a pending operation of the application to the store, and the same of application stays.
func (c *appReplica) fillStore(t testing.TB, stays catalog.AppID) {
	t.Helper()
	id, err := catalog.ParseAppID(c.app)
	if err != nil {
		t.Fatal(err)
	}
	for _, app := range []catalog.AppID{id, stays} {
		tx := kv.NewOverlay(c.store)
		w := catalog.Write(tx, app)
		for i := range 5000 {
			in := &catalog.Input{Ord: uint32(i), Dot: log.Dot{Writer: 2, Seq: uint64(i + 1)}, ID: fmt.Sprint(i), Hosted: [16]byte{byte(i), byte(i >> 8), 1}}
			if err := w.InsertInput(in); err != nil {
				t.Fatal(err)
			}
		}
		tx.Put(app.LocalKey("sync"), []byte("a secret"))
		tx.Put(append(app.LogPrefix(), 'e', 1), []byte("an operation that was not sent"))
		if err := c.store.Apply(tx.Batch()); err != nil {
			t.Fatal(err)
		}
	}
}

// empty checks that a store has nothing left of the application, and everything of application stays.
func (c *appReplica) empty(t testing.TB, store kv.Store, stays catalog.AppID) {
	t.Helper()
	id, err := catalog.ParseAppID(c.app)
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	err = store.Scan(nil, nil, func(key, _ []byte) bool {
		if bytes.Contains(key, id[:]) {
			t.Errorf("key %q is left", key)
		}
		if key[0] == 'h' {
			names++
		}
		return !t.Failed()
	})
	if err != nil || names != 5000 {
		t.Errorf("%d public names are left, %v, want 5000", names, err)
	}
	if in, err := catalog.Read(store, stays).Input(4999); err != nil || in.ID != "4999" {
		t.Errorf("input of the other application: %v, %v", in.ID, err)
	}
	if purges, err := catalog.Read(store, catalog.Control).Purges(); len(purges) != 0 || err != nil {
		t.Errorf("owed is %+v, %v", purges, err)
	}
}

// TestAppRecordOfDeletedAppEmptiesReplica applies the app record of a deleted application. The replica deletes all data of the application,
// including pending operations, and stays empty when an older record arrives.
func TestAppRecordOfDeletedAppEmptiesReplica(t *testing.T) {
	stays := catalog.AppID{0xff, 15: 1}
	for way := range 3 {
		l := newFixture(t)
		c := copyOf(t, l.open(t))
		c.take(t)
		c.fillStore(t, stays)
		old, seq := c.register(t)
		why := c.deleteApp(t, way)
		data, later := c.register(t)
		if x, err := catalog.DecodeAppRecord(data); err != nil || x.Revoked != why || x.Record.ID != "" || x.Keys != nil {
			t.Fatalf("register %+v, %v, want one that is %s", x, err, why)
		}
		if way == 2 {
			later++ // nothing happened at the origin: the edge asks with another ID
		}
		for range 2 {
			if err := register.ApplyAppRecord(t.Context(), c.store, c.app, later, data); err != nil {
				t.Fatal(err)
			}
			c.empty(t, c.store, stays)
			if err := register.ApplyAppRecord(t.Context(), c.store, c.app, seq, old); err != nil {
				t.Fatal(err)
			}
		}
		r := catalog.Read(c.store, catalog.Control)
		if deleted, err := r.AppDeleted(c.app); !deleted || err != nil {
			t.Errorf("the copy does not know that it is gone: %v", err)
		}
		if err := r.KeysOf(c.app, func(catalog.Key) bool { t.Error("a key is left"); return true }); err != nil {
			t.Error(err)
		}
	}
}

// TestKillEmptiedReplicas cuts the power while a replica is emptied. If the app record survived, PurgeDeleted completes the deletion after
// the restart. Otherwise the record is applied again.
func TestKillEmptiedReplicas(t *testing.T) {
	stays := catalog.AppID{0xff, 15: 1}
	for seed := range testkit.Seeds(t, 6, 2000) {
		r := rand.New(rand.NewPCG(seed, 72))
		l := newFixture(t)
		c := copyOf(t, l.open(t))
		disk := &tape{Store: c.store}
		c.store = disk
		c.take(t)
		c.fillStore(t, stays)
		before := len(disk.batches)
		c.deleteApp(t, r.IntN(2))
		data, seq := c.register(t)
		if err := register.ApplyAppRecord(t.Context(), disk, c.app, seq, data); err != nil {
			t.Fatal(err)
		}
		returned := r.IntN(2) == 0
		if !returned { // the power fails before ApplyAppRecord returns
			disk.synced = before
		}
		left := disk.crash(t, r)
		if err := register.PurgeDeleted(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		if deleted, err := catalog.Read(left, catalog.Control).AppDeleted(c.app); err != nil || !deleted && returned {
			t.Fatalf("seed %d: gone %v, %v after a crash", seed, deleted, err)
		} else if !deleted { // the crash undid all of it, so the record is applied again
			if err := register.ApplyAppRecord(t.Context(), left, c.app, seq, data); err != nil {
				t.Fatal(err)
			}
		}
		c.empty(t, left, stays)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestDeletedKeysStayDeletedAfterKills cuts the power after each app record that a replica applies. After the restart the replica has
// exactly the keys of that record, so a deleted key admits nobody.
func TestDeletedKeysStayDeletedAfterKills(t *testing.T) {
	for seed := range testkit.Seeds(t, 20, 2000) {
		r := rand.New(rand.NewPCG(seed, 73))
		l := newFixture(t)
		c := copyOf(t, l.open(t))
		disk := &tape{Store: c.store}
		c.store = disk
		var live []catalog.Key
		for range 1 + r.IntN(8) {
			if len(live) == 0 || r.IntN(3) > 0 {
				_, k, err := c.origin.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: c.app, Scopes: []string{"All"}})
				if err != nil {
					t.Fatal(err)
				}
				live = append(live, k)
			} else {
				if err := c.origin.Register.DeleteKey(t.Context(), register.Caller{}, c.app, live[0].Hash); err != nil {
					t.Fatal(err)
				}
				live = live[1:]
			}
			c.take(t)
			c.store = disk.crash(t, r)
			disk = c.store.(*tape)
			c.compare(t)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// TestReplicaObeysAppRecord serves a replica. Once it applied an app record without a key, it refuses that key. It does not serve a deleted
// application.
func TestReplicaObeysAppRecord(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	c := copyOf(t, e)
	text, key, err := e.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: c.app, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	c.take(t)
	edge := newFixture(t)
	edge.o.Store, edge.o.App = c.store, c.app
	server, err := core.Open(edge.o)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(want int) {
		t.Helper()
		if got := work(t, edge, server.Begin(t.Context(), &api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + text})); got.Status != want {
			t.Errorf("%d %s, want %d", got.Status, got.Body, want)
		}
	}
	carry := func() {
		t.Helper()
		data, seq := c.register(t)
		if err := server.Register.ApplyAppRecord(t.Context(), c.app, seq, data); err != nil {
			t.Fatal(err)
		}
	}
	ask(200)
	if err := e.Register.DeleteKey(t.Context(), register.Caller{}, c.app, key.Hash); err != nil {
		t.Fatal(err)
	}
	ask(200) // the replica has not received the deletion
	carry()
	ask(401)
	if _, err := server.Partition(c.app); err != nil {
		t.Fatal(err)
	}
	if p, err := server.Replica(c.app); err != nil || p.Cursor().Seq != 0 {
		t.Errorf("a replica's copy: %v", err)
	}
	if _, err := server.Origin(c.app); !errors.Is(err, partition.ErrKind) {
		t.Errorf("a replica's origin: %v, want ErrKind", err)
	}
	if _, err := e.Replica(c.app); !errors.Is(err, partition.ErrKind) {
		t.Errorf("an origin's copy: %v, want ErrKind", err)
	}
	if _, err := server.Partition(newApp(t, e)); !errors.Is(err, register.ErrApplication) {
		t.Errorf("partition of an application that is not here: %v", err)
	}
	if _, _, err := server.Register.AppRecord(c.app, c.edge); !errors.Is(err, register.ErrNotOrigin) {
		t.Errorf("a copy's register is given on: %v", err)
	}
	if err := e.Register.DeleteApp(t.Context(), register.Caller{}, c.app); err != nil {
		t.Fatal(err)
	}
	p, err := server.Partition(c.app)
	if err != nil {
		t.Fatal(err)
	}
	carry()
	ask(401)
	if _, err := p.Submit(t.Context(), "", []log.Body{&log.ConceptCreate{ID: "c"}}, nil); err == nil {
		t.Error("an application that is gone takes writes")
	}
	if _, err := server.Partition(c.app); !errors.Is(err, register.ErrApplication) {
		t.Errorf("partition of an application that is gone: %v", err)
	}
	if !server.Orphans() {
		t.Error("nobody is told that pictures are left")
	}
	if more, err := server.Step(t.Context(), apitest.Start); more || err != nil && !errors.Is(err, register.ErrApplication) {
		t.Errorf("Step = %v, %v", more, err)
	}
}

// TestWatch checks that Watch calls its function for a change that can be read, and no longer after stop.
func TestWatch(t *testing.T) {
	l := newFixture(t)
	c := copyOf(t, l.open(t))
	notices := 0
	stop := c.origin.Register.Watch(func() { notices++ })
	before, _ := c.register(t)
	if _, _, err := c.origin.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: c.app, Scopes: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	if after, _ := c.register(t); notices == 0 || bytes.Equal(before, after) {
		t.Errorf("told %d times, changed %v", notices, !bytes.Equal(before, after))
	}
	stop()
	was := notices
	if err := c.origin.Register.RevokeEdge(t.Context(), register.Caller{}, c.edge); err != nil {
		t.Fatal(err)
	}
	if notices != was {
		t.Error("told after it was stopped")
	}
}
