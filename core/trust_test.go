package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
)

// trusts applies the current app record and returns the keys that the replica trusts.
func (c *appReplica) trusts(t testing.TB) catalog.Trust {
	t.Helper()
	c.take(t)
	trust, err := catalog.Read(c.store, catalog.Control).TrustOf(c.app)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// TestReplicaGetsTokenKeys checks that a replica gets the keys that verify tokens: those of the origin, which change, and those of the
// application's other edges, until they are revoked. A browser gets none.
func TestReplicaGetsTokenKeys(t *testing.T) {
	f := newFixture(t)
	e := f.open(t)
	ctx := t.Context()
	c := copyOf(t, e)
	want := catalog.Trust{}
	expect := func(when string) {
		t.Helper()
		if diff := cmp.Diff(want, c.trusts(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("before any token")

	want = catalog.Trust{Issuer: "https://origin.example", Keys: []log.PublicKey{{ID: "1", Key: [32]byte{1}}}}
	signs := func() {
		t.Helper()
		if err := e.Register.PutTokenKeys(ctx, want.Issuer, want.Keys); err != nil {
			t.Fatal(err)
		}
	}
	signs()
	expect("with a key")
	_, before := c.register(t)
	signs()
	if _, after := c.register(t); after != before {
		t.Errorf("what was said before is entry %d, after %d", after, before)
	}
	want.Keys = append(want.Keys, log.PublicKey{ID: "2", Key: [32]byte{2}})
	signs()
	expect("with the next key")
	want.Keys = want.Keys[1:]
	signs()
	expect("without the first")

	enrolled := func(app string, key [32]byte) catalog.Edge {
		t.Helper()
		token, _, err := e.Register.CreateEdge(ctx, register.Caller{}, "peer", []string{app})
		if err != nil {
			t.Fatal(err)
		}
		expect("before a peer enrols")
		peer, err := e.Register.EnrolEdge(ctx, token, key)
		if err != nil {
			t.Fatal(err)
		}
		return peer
	}
	enrolled(newApp(t, e), [32]byte{3})
	expect("with an edge of another application")
	peer := enrolled(c.app, [32]byte{4})
	want.Peers = []log.PublicKey{{ID: peer.ID, Key: peer.Key}}
	expect("with a peer")
	if got, err := catalog.Read(f.o.Store, catalog.Control).TrustOf(c.app); err != nil || got.Issuer != "" || got.Peers != nil {
		t.Errorf("the origin holds no copy, and trusts %+v, %v", got, err)
	}
	data, _, err := e.Register.AppRecord(c.app, "")
	if x, err2 := catalog.DecodeAppRecord(data); errors.Join(err, err2) != nil || x.Trust.Keys != nil || x.Trust.Peers != nil {
		t.Errorf("a browser's register has %+v, %v, %v", x.Trust, err, err2)
	}
	if err := e.Register.RevokeEdge(ctx, register.Caller{}, peer.ID); err != nil {
		t.Fatal(err)
	}
	want.Peers = nil
	expect("once the peer was revoked")

	if err := e.Register.DeleteApp(ctx, register.Caller{}, c.app); err != nil {
		t.Fatal(err)
	}
	data, seq := c.register(t)
	if err := register.ApplyAppRecord(ctx, c.store, c.app, seq, data); err != nil {
		t.Fatal(err)
	}
	if got, err := catalog.Read(c.store, catalog.Control).TrustOf(c.app); err != nil || got.Keys != nil {
		t.Errorf("an application that is gone leaves %+v, %v", got, err)
	}
}

// TestMaxStale changes the time for which edges work offline, within bounds, and finds it in the app record.
func TestMaxStale(t *testing.T) {
	e := newFixture(t).open(t)
	c := copyOf(t, e)
	for _, tt := range []struct {
		d    time.Duration
		want error
	}{
		{0, nil},
		{register.MinMaxStale, nil},
		{register.RefuseStale, nil},
		{48 * time.Hour, nil},
		{time.Second, register.ErrMaxStale},
		{register.RefuseStale + 1, register.ErrMaxStale},
		{-time.Hour, register.ErrMaxStale},
	} {
		before, err := e.Register.App(c.app)
		if err != nil {
			t.Fatal(err)
		}
		after, err := e.Register.ChangeApp(t.Context(), register.Caller{}, c.app, register.AppChange{MaxStale: &tt.d})
		if !errors.Is(err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.d, err, tt.want)
		}
		if tt.want != nil {
			after, _ = e.Register.App(c.app)
			tt.d = time.Duration(before.MaxStale) * time.Second
		}
		if after.MaxStale != uint64(tt.d/time.Second) || after.Name != before.Name {
			t.Errorf("%v: %+v", tt.d, after)
		}
		c.take(t)
	}
}
