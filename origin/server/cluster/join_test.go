package cluster

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// records returns the number of nodes that etcd knows.
func (n *node) records() int64 {
	n.t.Helper()
	res, err := n.cluster.client().Get(n.t.Context(), nodePrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		n.t.Fatal(err)
	}
	return res.Count
}

// TestJoinRefused: a join with wrong input gets one sentence with the cause, changes nothing, and leaves the token valid, unless the token is wrong.
func TestJoinRefused(t *testing.T) {
	t.Parallel()
	a := found(t)
	a.url = "https://a.example"
	a.start()
	a.await(leading)
	foreign := found(t)
	ctx := t.Context()

	// The token names node A's port, but the authority of another cluster.
	other, err := identity.Load(foreign.dir)
	if err != nil {
		t.Fatal(err)
	}
	other.Node.Address = a.address
	wrong, err := other.NewToken(system.Random)
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := a.cluster.file.NewToken(system.Random)
	if err != nil {
		t.Fatal(err)
	}
	unreachable := unknown
	unreachable.Address = clustertest.Addresses(t, 1)[0]

	old := a.token()
	leases, err := a.cluster.client().Leases(ctx)
	if err != nil || len(leases.Leases) != 1 {
		t.Fatal(leases, err)
	}
	if _, err := a.cluster.client().Revoke(ctx, leases.Leases[0].ID); err != nil { // as an hour later
		t.Fatal(err)
	}
	token := a.token()
	full := filepath.Join(t.TempDir(), "full")
	if err := os.MkdirAll(filepath.Join(full, "something"), 0o700); err != nil {
		t.Fatal(err)
	}
	x := newNode(t)
	for _, tt := range []struct{ name, dir, token, cause string }{
		{"foreign token", x.dir, wrong.Text(), identity.ErrAuthority.Error()},
		{"unknown token", x.dir, unknown.Text(), ErrToken.Error()},
		{"expired token", x.dir, old, ErrToken.Error()},
		{"no cluster", x.dir, unreachable.Text(), "cannot reach the cluster's node " + unreachable.Address.String()},
		{"mistyped token", x.dir, token[:len(token)-1], identity.ErrToken.Error()},
		{"folder that is not empty", full, token, "folder " + full + " is not empty"},
	} {
		_, err := Join(ctx, tt.dir, tt.token, x.address, 0, "v")
		if err == nil || !strings.Contains(err.Error(), tt.cause) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if n := a.records(); n != 1 {
			t.Errorf("%s: etcd has %d nodes", tt.name, n)
		}
		if system.IsDir(x.dir) {
			t.Errorf("%s: the folder exists", tt.name)
		}
	}

	// The same token is valid as long as it was not used.
	parsed, err := identity.ParseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(address identity.Address, now time.Time) error {
		j, err := identity.NewJoin(parsed, address, "v", now, system.Random)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.cluster.admit(ctx, j.Request)
		return err
	}
	if err := ask(a.address, system.Now()); err == nil || !strings.Contains(err.Error(), "another node of the cluster has the address") {
		t.Errorf("address of another node: %v", err)
	}
	if err := ask(x.address, system.Now()); err == nil || !strings.Contains(err.Error(), "cannot connect to "+x.address.String()) {
		t.Errorf("unreachable address: %v", err)
	}
	for _, by := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
		if err := ask(x.address, system.Now().Add(by)); err == nil || !strings.Contains(err.Error(), "clocks differ by 2m0s") {
			t.Errorf("clock %v: %v", by, err)
		}
	}
	if _, err := Join(ctx, x.dir, token, x.address, 0, "v"); err != nil {
		t.Fatalf("with the token that was not used: %v", err)
	}
	if _, err := Join(ctx, newNode(t).dir, token, newNode(t).address, 0, "v"); err == nil || err.Error() != ErrToken.Error() {
		t.Errorf("used token: %v", err)
	}
	y := newNode(t)
	if _, err := Join(ctx, y.dir, a.token(), x.address, 0, "v"); err == nil || !strings.Contains(err.Error(), "another node of the cluster has the address") {
		t.Errorf("address of a node that has just joined: %v", err)
	}

	// A node with another public URL does not start. Without the flag it has that of the others.
	x.url = "https://x.example"
	if err := x.tryStart(); !errors.Is(err, ErrPublicURL) || !strings.Contains(err.Error(), x.url) || !strings.Contains(err.Error(), a.url) {
		t.Errorf("another public URL: %v", err)
	}
	x.url = ""
	x.start()
	if u := x.cluster.PublicURL(); u != a.url {
		t.Errorf("public URL %q", u)
	}
	if file, err := identity.Load(x.dir); err != nil || file.PublicURL != a.url {
		t.Errorf("public URL %q of the folder, %v", file.PublicURL, err)
	}
}

// TestClockOfStart: a node whose clock differs from another node's by more than a minute does not start.
func TestClockOfStart(t *testing.T) {
	c, peer := fakeCluster(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(greeting{ID: "b", Now: system.Now().Add(-2 * time.Minute), State: leading})
	}))
	c.file.Peers = []identity.Node{peer}
	if err := c.comparePeers(t.Context()); err == nil || !strings.Contains(err.Error(), "clocks differ by 2m0s") {
		t.Errorf("comparePeers = %v", err)
	}
}
