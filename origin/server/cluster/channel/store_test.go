package channel_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
)

const cluster = 7

// engine is etcd with the two keys, and a watch for each node, which the test moves.
type engine struct {
	revision, claim, records int64
	events                   []channel.Event
}

// do runs a transaction whose guards hold.
func (e *engine) do(t *testing.T, x channel.Txn) {
	t.Helper()
	if x.Term != e.claim || x.Key == channel.Log && x.Version != e.records {
		t.Fatalf("transaction %+v at claim %d, record %d", x, e.claim, e.records)
	}
	e.revision++
	if x.Key == channel.Primary {
		e.claim = e.revision
	} else {
		e.records++
	}
	e.events = append(e.events, channel.Event{Key: x.Key, Revision: e.revision, Version: e.records, Value: x.Value})
}

// node is a node whose events the test shows.
type node struct {
	*channel.Store
	t  *testing.T
	on *engine
	at int // events that were shown
}

func (e *engine) node(t *testing.T, name string) *node {
	t.Helper()
	local := memkv.New()
	if err := channel.Begin(local, cluster, 0); err != nil {
		t.Fatal(err)
	}
	s, err := channel.Open(channel.Options{Store: local, Cluster: cluster, Self: name})
	if err != nil {
		t.Fatal(err)
	}
	return &node{Store: s, t: t, on: e}
}

// show shows all events, and returns the last change of the role.
func (n *node) show() (last channel.RoleChange) {
	n.t.Helper()
	for ; n.at < len(n.on.events); n.at++ {
		_, role, err := n.Show(n.on.events[n.at])
		if err != nil {
			n.t.Fatal(err)
		}
		if role != channel.Same {
			last = role
		}
	}
	return last
}

// lead makes the node the primary.
func (n *node) lead() {
	n.t.Helper()
	n.show()
	claim, _ := n.Claim()
	n.on.do(n.t, claim)
	if role := n.show(); role != channel.Leads {
		n.t.Fatalf("role %d after the claim", role)
	}
}

// send sends the next transaction.
func (n *node) send() bool {
	n.t.Helper()
	x, ok := n.Next()
	if ok {
		n.on.do(n.t, x)
		n.Sent(x)
	}
	return ok
}

func (n *node) commit(key, value string) (wait func() error) {
	n.t.Helper()
	var b kv.Batch
	b.Put([]byte(key), []byte(value))
	wait, err := n.Commit(&b)
	if err != nil {
		n.t.Fatal(err)
	}
	return wait
}

// value returns the value of a key; "": none.
func (n *node) value(key string) string {
	n.t.Helper()
	v, err := kv.Find(n.Store, []byte(key))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(v)
}

// TestRoles: a node that leads acknowledges what its watch shows. When another node claims, what was decided is acknowledged, and the rest is in no
// store and never will be.
func TestRoles(t *testing.T) {
	e := &engine{}
	a, b := e.node(t, "a"), e.node(t, "b")
	if _, err := a.Commit(&kv.Batch{}); !errors.Is(err, kv.ErrFollows) {
		t.Errorf("Commit of a node that follows: %v", err)
	}
	a.lead()
	shared := []func() error{a.commit("k", "1"), a.commit("l", "1")}
	if !a.send() || a.send() {
		t.Error("two Commits that wait are not one transaction")
	}
	late := a.commit("k", "2")
	if a.value("k") != "" {
		t.Error("the batch is visible before the watch shows it")
	}
	a.show()
	for _, wait := range shared {
		if err := wait(); err != nil || a.value("l") != "1" {
			t.Errorf("%v, l = %q", err, a.value("l"))
		}
	}
	if !a.send() {
		t.Error("the second record has no transaction")
	}
	never := a.commit("k", "3")
	b.lead()
	if role := a.show(); role != channel.Follows {
		t.Errorf("role %d after the claim of another node", role)
	}
	if err := late(); err != nil {
		t.Errorf("a batch that was decided before the claim: %v", err)
	}
	if err := never(); !errors.Is(err, kv.ErrFollows) {
		t.Errorf("a batch that was not: %v", err)
	}
	b.show()
	for _, n := range []*node{a, b} {
		if n.value("k") != "2" {
			t.Errorf("k = %q", n.value("k"))
		}
	}
	if a.send() {
		t.Error("a node that follows has a transaction")
	}
	_, term := b.Position()
	if !b.MayAnswer(e.claim) || b.MayAnswer(e.claim-1) || a.MayAnswer(e.claim) || term != e.claim {
		t.Error("only the primary answers")
	}
}

// TestParts sends a batch that is larger than a record, and starts the watch again between its parts. The parts of another batch are void
// because another node claims.
func TestParts(t *testing.T) {
	e := &engine{}
	a, b := e.node(t, "a"), e.node(t, "b")
	a.lead()
	large := make([]byte, 3<<20)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(large)
	wait := a.commit("large", string(large))
	for n := 0; a.send(); n++ {
		if n == 4 {
			b.show()
			if _, term := b.Position(); term != 0 || b.Rewind() != 1 {
				t.Error("the position is not before the parts")
			}
			b.at = 0
		}
	}
	a.show()
	b.show()
	if err := wait(); err != nil || !bytes.Equal([]byte(a.value("large")), large) || a.value("large") != b.value("large") {
		t.Errorf("%v; %d bytes and %d", err, len(a.value("large")), len(b.value("large")))
	}
	wait = a.commit("large", string(large[1:]))
	a.send()
	a.send()
	b.lead()
	a.show()
	if err := wait(); !errors.Is(err, kv.ErrFollows) {
		t.Errorf("a batch of which the last part is missing: %v", err)
	}
	after := b.commit("small", "1")
	b.send()
	b.show()
	a.show()
	if err := after(); err != nil || a.value("small") != "1" || !bytes.Equal([]byte(a.value("large")), large) {
		t.Errorf("%v; small = %q", err, a.value("small"))
	}
}

// TestGaps: a node takes no event after one that it lacks, whatever the watch has skipped, and continues once the watch has started again.
func TestGaps(t *testing.T) {
	e := &engine{}
	a, b := e.node(t, "a"), e.node(t, "b")
	a.lead()
	for i := range 3 {
		a.commit("k", fmt.Sprint(i))
		a.send()
	}
	a.show()
	b.show()
	b.lead()
	b.commit("k", "of b")
	b.send()
	for skipped := range len(e.events) - 1 {
		c := e.node(t, "c")
		var err error
		for i := range e.events {
			if i != skipped && err == nil {
				_, _, err = c.Show(e.events[i])
			}
		}
		if !errors.Is(err, channel.ErrGap) {
			t.Errorf("without event %d: %v", skipped, err)
		}
		c.at = int(c.Rewind()) - 1
		if c.show(); c.value("k") != "of b" {
			t.Errorf("without event %d: k = %q afterwards", skipped, c.value("k"))
		}
	}
}

// TestRecords: a record that a program does not know stops the node, and changes nothing.
func TestRecords(t *testing.T) {
	e := &engine{}
	a := e.node(t, "a")
	a.lead()
	a.commit("k", "1")
	x, _ := a.Next()
	claim, good := byte(e.claim), x.Value
	for name, value := range map[string][]byte{
		"empty":             {},
		"newer version":     append([]byte{2}, good[1:]...),
		"unknown kind":      append([]byte{1, 9}, good[2:]...),
		"no term":           {1, 1},
		"no batch":          {1, 1, claim},
		"damaged batch":     append(bytes.Clone(good), 1),
		"damaged zstd":      {1, 2, claim, 1, 2, 3},
		"part of none":      {1, 3, claim, 0, 0},
		"part without head": {1, 3, claim, 0x80},
		"second part first": {1, 3, claim, 1, 2, 1},
	} {
		event := channel.Event{Key: channel.Log, Revision: e.revision + 1, Version: 1, Value: value}
		if b, _, err := a.Show(event); !errors.Is(err, channel.ErrRecord) || b != nil {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
	e.do(t, x)
	if a.show(); a.value("k") != "1" {
		t.Errorf("k = %q afterwards", a.value("k"))
	}
}

// TestForeignStoreIsRefused: a store without a position, or of another cluster, is refused.
func TestForeignStoreIsRefused(t *testing.T) {
	other, damaged := memkv.New(), memkv.New()
	if err := channel.Begin(other, cluster+1, 5); err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	b.Put([]byte("c"), []byte("short"))
	if err := damaged.Apply(&b); err != nil {
		t.Fatal(err)
	}
	for want, s := range map[error]kv.Store{channel.ErrCluster: other, kv.ErrCorrupt: damaged} {
		if _, err := channel.Open(channel.Options{Store: s, Cluster: cluster, Self: "a"}); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := channel.Open(channel.Options{Store: memkv.New(), Cluster: cluster, Self: "a"}); !errors.Is(err, channel.ErrCluster) {
		t.Errorf("a store of no cluster: %v", err)
	}
}

// TestResign: a node whose own store refuses a record ends its term. Calls that wait do not know whether the cluster has their batches.
func TestResign(t *testing.T) {
	e := &engine{}
	a := e.node(t, "a")
	a.lead()
	wait := a.commit("k", "1")
	a.send()
	a.Resign(kv.ErrFull)
	if err := wait(); !errors.Is(err, kv.ErrFull) {
		t.Errorf("wait = %v", err)
	}
	if _, err := a.Commit(&kv.Batch{}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Commit = %v", err)
	}
	a.show()
	a.lead()
	if a.value("k") != "1" {
		t.Errorf("k = %q", a.value("k"))
	}
	wait = a.commit("k", "2")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := wait(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("wait = %v", err)
	}
}

// TestQueue: Commits wait while too many wait already, and a large batch waits for an empty queue.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{}
		a := e.node(t, "a")
		a.lead()
		for i := range 1024 {
			a.commit("k", fmt.Sprint(i))
		}
		var group sync.WaitGroup
		ended := false
		later := func(value string, want error) {
			var b kv.Batch
			b.Put([]byte("k"), []byte(value))
			if _, err := a.Commit(&b); !errors.Is(err, want) {
				t.Errorf("Commit = %v, want %v", err, want)
			}
			ended = true
		}
		group.Go(func() { later("last", nil) })
		if synctest.Wait(); ended {
			t.Error("a Commit does not wait for room")
		}
		for a.send() {
			a.show()
			synctest.Wait()
		}
		group.Wait()
		large := string(make([]byte, 20<<20))
		first := a.commit("k", large)
		ended = false
		group.Go(func() { later(large, kv.ErrFollows) })
		if synctest.Wait(); ended {
			t.Error("a large batch does not wait for room")
		}
		a.Resign(kv.ErrFollows)
		group.Wait()
		if err := first(); !errors.Is(err, kv.ErrFollows) {
			t.Errorf("wait = %v", err)
		}
	})
}

// TestConcurrent commits from several goroutines, while another one sends and shows. Each sees what it has committed, and shares records with the
// others.
func TestConcurrent(t *testing.T) {
	e := &engine{}
	a, b := e.node(t, "a"), e.node(t, "b")
	a.lead()
	const writers, commits = 8, 200
	var group sync.WaitGroup
	var done atomic.Int32
	for w := range writers {
		group.Go(func() {
			defer done.Add(1)
			for i := range commits {
				key, value := fmt.Sprint("k", w), fmt.Sprint(i)
				if err := a.commit(key, value)(); err != nil || a.value(key) != value {
					t.Errorf("%s = %q after %q, %v", key, a.value(key), value, err)
					return
				}
			}
		})
	}
	for done.Load() < writers {
		a.send()
		a.show()
		runtime.Gosched()
	}
	group.Wait()
	b.show()
	for w := range writers {
		if key := fmt.Sprint("k", w); b.value(key) != fmt.Sprint(commits-1) {
			t.Errorf("%s = %q at the other node", key, b.value(key))
		}
	}
	if e.records > writers*commits {
		t.Errorf("%d records", e.records)
	}
}
