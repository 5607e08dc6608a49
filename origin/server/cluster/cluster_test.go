package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
)

// status returns the status as a node sees it.
func (n *node) status() Status {
	n.t.Helper()
	s, err := n.cluster.Status(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// writers write at the node that leads, until they are stopped. Another node may take over meanwhile.
type writers struct {
	nodes        []*node
	stop         context.CancelFunc
	work         sync.WaitGroup
	mu           sync.Mutex
	acknowledged []string
}

func write(nodes ...*node) *writers {
	w := &writers{nodes: nodes}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	for i := range 2 {
		w.work.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				key := fmt.Sprintf("w%d-%d", i, k)
				for _, n := range w.at(nil) {
					if n.put(key) == nil {
						w.mu.Lock()
						w.acknowledged = append(w.acknowledged, key)
						w.mu.Unlock()
						break
					}
				}
			}
		})
	}
	return w
}

// at returns the nodes at which the writers write, and sets them before if nodes is not nil.
func (w *writers) at(nodes []*node) []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	if nodes != nil {
		w.nodes = nodes
	}
	return w.nodes
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

// progress waits until further writes were acknowledged.
func (w *writers) progress(t *testing.T) {
	t.Helper()
	before := w.count()
	clustertest.Until(t, "further writes", func() bool { return w.count() > before+10 })
}

// end stops the writers, and checks that all nodes have all acknowledged writes and equal stores.
func (w *writers) end(t *testing.T, nodes ...*node) {
	t.Helper()
	w.stop()
	w.work.Wait()
	putAt(t, "last", nodes...)
	for _, n := range nodes {
		clustertest.Until(t, "the last record at "+n.address.String(), func() bool { return n.has("last") })
		for _, key := range w.acknowledged {
			if !n.has(key) {
				t.Errorf("node %s lacks the acknowledged %s", n.address, key)
			}
		}
		if !bytes.Equal(n.content(), nodes[0].content()) {
			t.Errorf("the stores of %s and %s differ", n.address, nodes[0].address)
		}
	}
}

// TestCluster: a cluster of one node serves. A second and a third node join while clients write, copy the store, follow, become learners and then
// together members. A node that stops lets another one lead. A node that was offline until etcd had compacted its records copies the store again.
func TestCluster(t *testing.T) {
	t.Parallel()
	a := found(t).start()
	a.await(leading)
	clustertest.Until(t, "a cluster of one", func() bool { return a.status().State == "one member" })
	if err := a.cluster.Ready(); err != nil {
		t.Errorf("the only node is not ready: %v", err)
	}
	w := write(a)
	w.progress(t)

	b := a.join().start()
	b.await(following)
	if b.reopens == nil || !errors.Is(b.reopens[0], channel.ErrCluster) || len(b.log.find("copied the store of another node")) != 1 {
		t.Errorf("the second node was opened again for %v and copied %v", b.reopens, b.log.find("copied the store of another node"))
	}
	clustertest.Until(t, "a learner", func() bool { return members(new(a.status()))["learner"] == 1 })
	if s := b.status(); s.State != "one member" || len(s.Nodes) != 2 || !s.Healthy() {
		t.Errorf("with two nodes: %+v", s)
	}
	w.progress(t)

	c := a.join().start()
	nodes := []*node{a, b, c}
	voters(t, nodes, 3)
	w.progress(t)
	s := c.status()
	if s.State != "running" || s.Term == 0 || s.Position == 0 || s.Cluster != a.cluster.file.Cluster.ID {
		t.Errorf("with three nodes: %+v", s)
	}
	for _, n := range s.Nodes {
		if n.Primary != (n.Address == a.address.String()) || n.Version != "v" || n.Etcd == "" || n.Primary != (n.State == "leading") {
			t.Errorf("node %+v", n)
		}
	}
	if text, err := json.Marshal(s); err != nil || !strings.Contains(string(text), `"lag_ms":`) || !strings.Contains(string(text), `"primary":true`) {
		t.Errorf("status %s, %v", text, err)
	}
	if text, err := b.cluster.Etcdctl(); err != nil || strings.Count(text, "https://127.0.0.1:") != 3 {
		t.Errorf("etcdctl %s, %v", text, err)
	}

	// A stops after it has handed over.
	w.at(nodes)
	a.cluster.Leave(t.Context())
	p := leads(t, b, c)
	a.close()
	w.progress(t)
	clustertest.Until(t, "a node that is not reachable or starts", func() bool { return p.status().State == "running" })

	// Etcd compacts what A lacks.
	if _, err := p.cluster.client().Compact(t.Context(), p.cluster.driving().Progress().Revision); err != nil {
		t.Fatal(err)
	}
	a.reopens = nil
	a.start()
	a.await(following)
	if len(a.reopens) != 1 || !errors.Is(a.reopens[0], channel.ErrCompacted) || len(a.log.find("copied the store of another node")) != 1 {
		t.Errorf("after the compaction node A was opened again for %v", a.reopens)
	}
	w.end(t, nodes...)

	// Without a majority there is no primary.
	rest := []*node{a, b, c}
	for _, n := range []*node{b, c} {
		n.close()
	}
	clustertest.Until(t, "no primary", func() bool { return a.status().State == "no primary" })
	if s := a.status(); s.Healthy() {
		t.Errorf("a cluster without a primary is healthy: %+v", s)
	}
	b.start()
	putAt(t, "two of three", rest[:2]...)
}

// TestFullDisk: a primary without room for more data hands over to a node that has room. If no other node has room either, it continues to lead.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	nodes := three(t)
	p := leads(t, nodes...)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n == p })
	others[0].full.Store(true)
	full := func(n *node) bool {
		return slices.ContainsFunc(p.cluster.known.list(), func(k knownNode) bool { return k.ID == n.cluster.file.Node.ID && k.Full })
	}
	clustertest.Until(t, "the record of a full node", func() bool { return full(others[0]) })
	p.full.Store(true)
	q := others[1]
	if leads(t, q) != q {
		t.Fatal("another primary")
	}

	q.full.Store(true)
	clustertest.Until(t, "the record of the full primary", func() bool { return full(q) })
	record := func() (revision int64) {
		for _, k := range q.cluster.known.list() {
			if k.ID == q.cluster.file.Node.ID {
				revision = k.revision
			}
		}
		return revision
	}
	before := record()
	clustertest.Until(t, "a further record of the primary", func() bool { return record() > before })
	if lines := q.log.find("handed over to another node"); len(lines) > 0 {
		t.Errorf("all disks are full, and the primary has handed over: %v", lines)
	}
}

// TestOldFoldersDoNotStart: a member whose etcd folder is missing or old does not start, nor does a node with an old store.
func TestOldFoldersDoNotStart(t *testing.T) {
	t.Parallel()
	nodes := three(t)
	a, b := nodes[0], nodes[1]
	putAt(t, "before", nodes...)
	clustertest.Until(t, "the first record", func() bool { return b.has("before") })
	b.close()
	oldStore, oldEtcd := b.setBack("store"), b.setBack(member.Dir)
	b.start()
	b.await(following)
	for i := range 20 {
		putAt(t, fmt.Sprint("later", i), a, nodes[2], b)
	}
	clustertest.Until(t, "a synced record in etcd", func() bool {
		p, _ := b.cluster.driving().Store.Position()
		return b.has("later19") && a.cluster.known.synced(b.cluster.file.Node.ID) >= p.Revision
	})
	applied := func() uint64 {
		a.cluster.known.mu.Lock()
		defer a.cluster.known.mu.Unlock()
		return a.cluster.known.all[b.cluster.file.Node.ID].Applied
	}
	clustertest.Until(t, "a record of what the member applied", func() bool { return applied() > 20 })
	b.close()
	newStore, newEtcd := b.setBack("store"), b.setBack(member.Dir)

	oldEtcd()
	if err := b.tryStart(); !errors.Is(err, ErrEtcdFolder) || !strings.Contains(err.Error(), "cluster join") {
		t.Errorf("with an old folder of etcd: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, member.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := b.tryStart(); !errors.Is(err, ErrEtcdFolder) || !strings.Contains(err.Error(), "cluster join") {
		t.Errorf("without a folder of etcd: %v", err)
	}
	newEtcd()
	oldStore()
	if err := b.tryStart(); !errors.Is(err, ErrStoreOld) || !strings.Contains(err.Error(), "cluster join") {
		t.Errorf("with an old store: %v", err)
	}
	newStore()
	b.start()
	b.await(following)
	putAt(t, "last", nodes...)
	clustertest.Until(t, "the last record", func() bool { return b.has("last") })
}

// TestUnknownRecord: a record of an unknown version stops a node, which reports it and keeps its data. If it leads, another node takes over.
func TestUnknownRecord(t *testing.T) {
	t.Parallel()
	nodes := three(t)
	putAt(t, "before", nodes...)
	p := leads(t, nodes...)
	for _, n := range nodes {
		clustertest.Until(t, "the first record", func() bool { return n.has("before") })
	}
	if _, err := p.cluster.client().Put(t.Context(), string(channel.Log), "\xff"); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.await(stopped)
		if err := n.cluster.Ready(); err == nil || !strings.Contains(err.Error(), "has stopped: record ") {
			t.Errorf("a stopped node is ready, or does not name the record: %v", err)
		}
	}
	clustertest.Until(t, "the reason in the status", func() bool {
		for _, n := range p.status().Nodes {
			if !strings.HasPrefix(n.State, "stopped: record ") {
				return false
			}
		}
		return true
	})
	for _, n := range nodes {
		if err := n.end(); !errors.Is(err, channel.ErrRecord) || errors.Is(err, server.ErrReopen) {
			t.Errorf("node %s ended with %v", n.address, err)
		}
		f := n.open()
		if v, err := kv.Find(f.Store, []byte("before")); err != nil || v == nil {
			t.Errorf("node %s lacks its data: %v", n.address, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStopWhileJoining: a node that stops while it becomes a learner of etcd stops, and becomes one after its next start.
func TestStopWhileJoining(t *testing.T) {
	t.Parallel()
	a := found(t).start()
	a.await(leading)
	b := a.join()
	for range 2 {
		b.start()
		clustertest.Until(t, "a learner in etcd", func() bool {
			list, err := a.cluster.client().MemberList(t.Context())
			return err == nil && len(list.Members) == 2
		})
		ended := make(chan bool)
		go func() {
			b.close()
			close(ended)
		}()
		clustertest.Until(t, "the end of the node", func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
	}
	b.start()
	clustertest.Until(t, "a learner", func() bool {
		s := a.status()
		return s.Healthy() && members(&s)["learner"] == 1
	})
	a.mustPut("last")
	clustertest.Until(t, "the last record", func() bool { return b.has("last") })
}
