package node

import (
	"crypto/ed25519"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/origin/server/token"
)

// TestEdgeKnowsTokenKeys checks that an edge knows the keys of the app records that it applied, also after a restart. Each key counts for
// the applications whose records have it.
func TestEdgeKnowsTokenKeys(t *testing.T) {
	store, now := memkv.New(), day
	other := catalog.AppID{8}.String()
	c := lone(t, store, &now)
	c.identity.Apps = []string{anApp, other}
	if err := c.loadApps(); err != nil {
		t.Fatal(err)
	}
	own := c.identity.key().Public().(ed25519.PublicKey)
	kid := "00112233445566778899aabbccddeeff"
	take := func(app string, seq uint64, trust catalog.Trust) {
		t.Helper()
		x := newAppRecord(0)
		x.App, x.Record.ID, x.Client.App, x.Client.ID = app, app, app, "c"+app
		x.Trust = trust
		if err := c.applyAppRecord(t.Context(), c.of(app), seq, x.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(kid, issuer string, key [32]byte, of ...string) {
		t.Helper()
		s, ok := c.Signer(kid)
		if !ok || s.Issuer != issuer || !s.Public.Equal(ed25519.PublicKey(key[:])) {
			t.Fatalf("Signer(%s) = %+v, %v", kid, s, ok)
		}
		for _, app := range []string{anApp, other, "another"} {
			want := false
			for _, o := range of {
				want = want || o == app
			}
			if s.MayIssue(app) != want {
				t.Errorf("%s may issue tokens of %s: %v", kid, app, !want)
			}
		}
	}
	take(anApp, 5, catalog.Trust{
		Issuer: "o", Keys: []log.PublicKey{{ID: "1", Key: [32]byte{1}}, {ID: "2", Key: [32]byte{2}}}, Peers: []log.PublicKey{{ID: kid, Key: [32]byte{3}}},
	})
	take(other, 6, catalog.Trust{Issuer: "o", Keys: []log.PublicKey{{ID: "2", Key: [32]byte{2}}}})
	for range 2 {
		expect("1", "o", [32]byte{1}, anApp)
		expect("2", "o", [32]byte{2}, anApp, other)
		expect(kid, token.EdgeIssuer(kid), [32]byte{3}, anApp)
		expect(c.identity.ID, token.EdgeIssuer(c.identity.ID), [32]byte(own), anApp, other)
		if _, ok := c.Signer("3"); ok {
			t.Error("a key that nobody has told is known")
		}
		if err := c.loadApps(); err != nil { // as a start does
			t.Fatal(err)
		}
	}
	take(anApp, 7, catalog.Trust{Issuer: "o", Keys: []log.PublicKey{{ID: "2", Key: [32]byte{2}}}})
	for _, removedKey := range []string{"1", kid} {
		if _, ok := c.Signer(removedKey); ok {
			t.Errorf("%s is known after it was taken away", removedKey)
		}
	}
	if d, ok := c.Delegate(anApp); !ok || d.ID != "e" || !d.Private.Public().(ed25519.PublicKey).Equal(own) || d.Issuer != token.EdgeIssuer("e") {
		t.Errorf("Delegate = %+v, %v", d, ok)
	}
	if _, ok := c.Delegate("another"); ok {
		t.Error("an application of the edge's own has a delegated key")
	}
}
