package channel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
)

// cut cuts the links between a member and the others in both directions, or mends them.
func cut(x *real, nodes []*real, change func(*etcdserver.EtcdServer, *etcdserver.EtcdServer)) {
	for _, y := range nodes {
		if y != x {
			change(x.Server, y.Server)
			change(y.Server, x.Server)
		}
	}
}

// TestCutLinks cuts the primary of three real members from the others, which choose another one. Meanwhile it acknowledges no write and confirms no
// read. When the links are mended, all stores have each acknowledged write, and none has a write that got kv.ErrFollows.
func TestCutLinks(t *testing.T) {
	nodes := members(t, 3)
	var acknowledged, refused []string
	for round := range 3 {
		p := primary(t, nodes)
		others := slices.DeleteFunc(slices.Clone(nodes), func(x *real) bool { return x == p })
		before := fmt.Sprint("before-", round)
		if err := p.put(before); err != nil {
			t.Fatal(err)
		}
		cut(p, nodes, func(a, b *etcdserver.EtcdServer) { a.CutPeer(b.MemberID()) })
		during := fmt.Sprint("during-", round)
		written := make(chan error, 1)
		go func() { written <- p.put(during) }()
		q := primary(t, others)
		after := fmt.Sprint("after-", round)
		if err := q.put(after); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := p.Client.Get(ctx, string(channel.Log)); err == nil {
			t.Error("a node without a majority confirms a read")
		}
		stop()
		if len(written) > 0 {
			err := <-written
			if err == nil {
				t.Fatal("a node without a majority acknowledges a write")
			}
			written <- err
		}
		cut(p, nodes, func(a, b *etcdserver.EtcdServer) { a.MendPeer(b.MemberID()) })
		acknowledged = append(acknowledged, before, after)
		switch err := <-written; {
		case errors.Is(err, kv.ErrFollows):
			refused = append(refused, during)
		case err == nil:
			acknowledged = append(acknowledged, during)
		}
		clustertest.Until(t, "the cut node follows", func() bool { return p.has(after) })
	}
	p := primary(t, nodes)
	if err := p.put("last"); err != nil {
		t.Fatal(err)
	}
	checkStores(t, nodes, acknowledged, refused)
}
