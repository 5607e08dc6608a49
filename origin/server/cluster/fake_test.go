package cluster

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// fakeCluster returns a node that is not open, whose calls and orders go to h without TLS, and the node of h.
func fakeCluster(t *testing.T, h http.Handler) (*Cluster, identity.Node) {
	t.Helper()
	dir := t.TempDir()
	folder, err := system.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}}
	c := &Cluster{
		o: Options{Data: dir, Version: "v", Log: slog.New(slog.DiscardHandler)}, folder: folder, calls: plain, orders: plain, ended: make(chan struct{}),
		file: &identity.File{Node: identity.Node{ID: "a", Address: identity.Address{Host: "127.0.0.1", Port: 1}}}, self: "a/1", cancel: func() {},
	}
	c.known.init(nil)
	t.Cleanup(func() {
		plain.CloseIdleConnections()
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, serveFake(t, "b", h)
}

// serveFake returns a node whose port answers with h, without TLS.
func serveFake(t *testing.T, id string, h http.Handler) identity.Node {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return identity.Node{ID: id, Address: parse(t, s.Listener.Addr().String())}
}

// orderOf sends an order of another node to c, and returns the status of the answer.
func (c *Cluster) orderOf(t *testing.T, method, target string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), nodeKey{}, "b"), method, target, http.NoBody)
	w := httptest.NewRecorder()
	c.orderHandler().ServeHTTP(w, r)
	return w.Code
}
