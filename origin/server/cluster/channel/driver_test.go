package channel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
)

// machine counts the batches and the roles of a node.
type machine struct {
	mu      sync.Mutex
	batches int
	roles   []string
}

func (m *machine) Advance(_ context.Context, b *kv.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches++
	return nil
}

func (m *machine) role(r string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roles = append(m.roles, r)
	return nil
}

func (m *machine) Lead(context.Context) error   { return m.role("leads") }
func (m *machine) Follow(context.Context) error { return m.role("follows") }

// real is a node with its member.
type real struct {
	t       *testing.T
	options member.Options
	local   kv.Store
	starts  int
	calls   atomic.Int64 // transactions of the driver

	*member.Member
	*channel.Driver
	machine *machine
	stop    context.CancelFunc
	ended   chan error
}

// counting counts transactions.
type counting struct {
	clientv3.KV
	calls *atomic.Int64
}

func (c counting) Txn(ctx context.Context) clientv3.Txn {
	c.calls.Add(1)
	return c.KV.Txn(ctx)
}

// members starts nodes whose etcds form a cluster.
func members(t *testing.T, n int) []*real {
	t.Helper()
	return membersOn(t, n, func() kv.Store { return memkv.New() })
}

// membersOn is members with the given stores.
func membersOn(t *testing.T, n int, local func() kv.Store) (nodes []*real) {
	t.Helper()
	at := clustertest.Addresses(t, n)
	peers := map[string]identity.Address{}
	for i, a := range at {
		peers[fmt.Sprint("n", i)] = a
	}
	var starting sync.WaitGroup
	for i, a := range at {
		x := &real{t: t, options: member.Options{
			Data: t.TempDir(), Name: fmt.Sprint("n", i), Address: a, Peers: peers, Cluster: "c", Election: 500 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		}}
		nodes = append(nodes, x)
		starting.Go(x.startMember)
		t.Cleanup(x.close)
	}
	starting.Wait()
	for _, x := range nodes {
		x.local = local()
		if err := channel.Begin(x.local, uint64(x.Server.Cluster().ID()), 1); err != nil {
			t.Fatal(err)
		}
		x.startDriver()
	}
	return nodes
}

func (x *real) startMember() {
	var err error
	if x.Member, err = member.Start(x.options); err != nil {
		x.t.Error(err)
	}
}

func (x *real) startDriver() {
	x.t.Helper()
	x.starts++
	var err error
	m := x.Member
	c := clientv3.NewCtxClient(context.Background())
	c.KV, c.Watcher = counting{m.Client.KV, &x.calls}, m.Client.Watcher
	x.Driver, err = channel.OpenDriver(
		channel.Options{Store: x.local, Cluster: uint64(m.Server.Cluster().ID()), Self: fmt.Sprint(x.options.Name, "/", x.starts)},
		channel.DriverOptions{Client: func() *clientv3.Client { return c }, Log: x.options.Log, Leads: m.Leads},
	)
	if err != nil {
		x.t.Fatal(err)
	}
	x.machine = &machine{}
	ctx, stop := context.WithCancel(context.Background())
	x.stop, x.ended = stop, make(chan error, 1)
	go func(d *channel.Driver, m *machine, ended chan error) { ended <- d.Run(ctx, m) }(x.Driver, x.machine, x.ended)
}

// close stops the driver and the member.
func (x *real) close() {
	if x.stop != nil {
		x.stop()
		if err := <-x.ended; err != nil {
			x.t.Errorf("driver of %s: %v", x.options.Name, err)
		}
		x.stop = nil
	}
	if x.Member != nil {
		if err := x.Member.Close(); err != nil {
			x.t.Errorf("member of %s: %v", x.options.Name, err)
		}
		x.Member = nil
	}
}

// primary waits until a node writes.
func primary(t *testing.T, nodes []*real) (p *real) {
	t.Helper()
	clustertest.Until(t, "a primary", func() bool {
		for _, x := range nodes {
			if x.stop != nil {
				if term, _, _ := x.Serving(); term != 0 {
					p = x
					return true
				}
			}
		}
		return false
	})
	return p
}

// put commits a key at the node.
func (x *real) put(key string) error {
	var b kv.Batch
	b.Put([]byte(key), []byte("v"))
	return kv.CommitAndWait(x.Store, &b)
}

func (x *real) has(key string) bool {
	v, err := kv.Find(x.local, []byte(key))
	if err != nil {
		x.t.Fatal(err)
	}
	return v != nil
}

// checkStores compares the stores, once they have the key "last", with the fates of writes.
func checkStores(t *testing.T, nodes []*real, acknowledged, refused []string) {
	t.Helper()
	for _, x := range nodes {
		clustertest.Until(t, "the last record at "+x.options.Name, func() bool { return x.has("last") })
		for _, key := range acknowledged {
			if !x.has(key) {
				t.Errorf("%s lacks the acknowledged %s", x.options.Name, key)
			}
		}
		for _, key := range refused {
			if x.has(key) {
				t.Errorf("%s has %s, which got kv.ErrFollows", x.options.Name, key)
			}
		}
	}
}

// TestDriver stops the primary of three real members again and again while clients write. Each acknowledged write is in all stores, and a write
// that got kv.ErrFollows is in none.
func TestDriver(t *testing.T) {
	nodes := members(t, 3)
	var acknowledged, refused []string
	written := 0
	for range 3 {
		p := primary(t, nodes)
		var (
			mu      sync.Mutex
			writers sync.WaitGroup
		)
		before := len(acknowledged)
		for range 8 {
			writers.Go(func() {
				for ended := false; !ended; {
					mu.Lock()
					written++
					key := fmt.Sprint("key-", written)
					mu.Unlock()
					err := p.put(key)
					mu.Lock()
					switch ended = err != nil; {
					case err == nil:
						acknowledged = append(acknowledged, key)
					case errors.Is(err, kv.ErrFollows):
						refused = append(refused, key)
					}
					mu.Unlock()
				}
			})
		}
		clustertest.Until(t, "some writes", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acknowledged) > before+100
		})
		p.close()
		writers.Wait() // each ends with an error
		q := primary(t, nodes)
		if err := q.put(fmt.Sprint("after-", q.starts, q.options.Name)); err != nil && !errors.Is(err, kv.ErrFollows) {
			t.Fatal(err)
		}
		p.startMember()
		p.startDriver()
	}
	p := primary(t, nodes)
	if err := p.put("last"); err != nil {
		t.Fatal(err)
	}
	checkStores(t, nodes, acknowledged, refused)
	t.Logf("%d acknowledged, %d refused of %d", len(acknowledged), len(refused), written)
}

// TestDriverCatchesUp: a node that is 1,200 records behind reads them one by one. A node whose records etcd has compacted gets ErrCompacted.
func TestDriverCatchesUp(t *testing.T) {
	nodes := members(t, 3)
	p := primary(t, nodes)
	late := nodes[(slices.Index(nodes, p)+1)%3]
	late.stop()
	if err := <-late.ended; err != nil {
		t.Fatal(err)
	}
	late.stop = nil
	for i := range 1200 {
		if err := p.put(fmt.Sprint("key-", i)); err != nil {
			t.Fatal(err)
		}
	}
	late.calls.Store(0)
	late.startDriver()
	clustertest.Until(t, "the last record", func() bool { return late.has("key-1199") })
	if n := late.calls.Load(); n > 100 { // otherwise it would be slower than the writers of the primary, and never follow
		t.Errorf("the node has read 1,200 records with %d calls", n)
	}

	late.stop()
	if err := <-late.ended; err != nil {
		t.Fatal(err)
	}
	late.stop = nil
	if err := p.put("key-1200"); err != nil {
		t.Fatal(err)
	}
	if err := p.put("key-1201"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Client.Compact(t.Context(), p.Progress().Revision); err != nil {
		t.Fatal(err)
	}
	late.startDriver()
	if err := <-late.ended; !errors.Is(err, channel.ErrCompacted) {
		t.Errorf("after a compaction: %v", err)
	}
	late.stop = nil
}
