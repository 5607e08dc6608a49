package channel_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
)

// TestPowerCut cuts the power of three nodes at the same moment, while clients write and the primary compacts etcd. Their Pebbles lose what was not
// synced, and etcd's files stay, because etcd syncs them before it answers. After the next start all nodes have every acknowledged write, and equal
// states.
func TestPowerCut(t *testing.T) {
	var all stats
	for seed := range testkit.Seeds(t, 10, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // the files of a round are removed at its end
			all.add(powerCut(t, rand.New(rand.NewPCG(seed, 58))))
		})
	}
	t.Logf("%+v", all)
}

// stats are figures of power cuts.
type stats struct{ Cuts, Acknowledged, Lost, Compactions int }

func (s *stats) add(o stats) {
	s.Cuts += o.Cuts
	s.Acknowledged += o.Acknowledged
	s.Lost += o.Lost
	s.Compactions += o.Compactions
}

// powered are three nodes whose Pebbles are on disks in memory.
type powered struct {
	t     *testing.T
	rng   *rand.Rand
	nodes []*real
	disks []pebbletest.Disk
	stats

	mu     sync.Mutex     // guards the fields below; the power is cut with it held
	acked  map[string]int // acknowledged value of each key; -1: deleted
	writes int            // number of acknowledged batches
	cut    bool           // the nodes have no power
	synced [3]int64       // revision that each node has synced
}

// powerCut runs a round.
func powerCut(t *testing.T, rng *rand.Rand) stats {
	t.Helper()
	x := &powered{t: t, rng: rng, acked: map[string]int{}}
	x.nodes = membersOn(t, 3, func() kv.Store {
		disk := pebbletest.New()
		x.disks = append(x.disks, disk)
		return openPebble(t, disk)
	})
	for range 1 + rng.IntN(2) {
		x.writeAndCut()
		x.restart()
		x.check()
	}
	for _, n := range x.nodes {
		n.close()
		if err := n.local.Close(); err != nil {
			t.Error(err)
		}
	}
	x.Acknowledged = x.writes
	return x.stats
}

func openPebble(t *testing.T, disk pebbletest.Disk) kv.Store {
	t.Helper()
	s, err := pebblekv.Open("store", pebblekv.Options{FS: disk, Free: func() (int64, error) { return 1 << 40, nil }, MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeAndCut lets clients write, then cuts the power of all nodes.
func (x *powered) writeAndCut() {
	p := primary(x.t, x.nodes)
	x.mu.Lock()
	x.cut = false
	x.mu.Unlock()
	var work sync.WaitGroup
	for w := range 4 {
		seed, prefix := x.rng.Uint64(), fmt.Sprintf("k%d-%d", x.Cuts, w)
		work.Go(func() { x.writer(w, prefix, rand.New(rand.NewPCG(seed, 0))) })
	}
	seed := x.rng.Uint64()
	work.Go(func() { x.tend(p.Client, rand.New(rand.NewPCG(seed, 0))) })
	before, wanted := x.acknowledged(), 20+x.rng.IntN(200)
	clustertest.Until(x.t, "some writes", func() bool { return x.acknowledged() >= before+wanted })

	x.mu.Lock()
	x.cut = true
	x.Cuts++
	percent := []int{0, 0, 50, 90}[x.rng.IntN(4)]
	after := make([]pebbletest.Disk, len(x.disks))
	for i, d := range x.disks {
		after[i] = d.Cut(percent, rand.New(rand.NewPCG(x.rng.Uint64(), 0)))
	}
	x.mu.Unlock()
	for _, n := range x.nodes {
		n.close()
	}
	work.Wait()
	for i, n := range x.nodes {
		at := positionOf(x.t, n.local)
		if err := n.local.Close(); err != nil {
			x.t.Error(err)
		}
		x.disks[i] = after[i]
		n.local = openPebble(x.t, after[i])
		if now := positionOf(x.t, n.local); now < at {
			x.Lost++
		}
	}
}

func (x *powered) acknowledged() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.writes
}

// writer writes until the power is cut: new keys, which begin with prefix, a key that it changes often, deletions, and a batch that needs several records.
func (x *powered) writer(w int, prefix string, rng *rand.Rand) {
	for i := 0; ; i++ {
		changes := map[string]int{fmt.Sprintf("%s-%d", prefix, i): i}
		if rng.IntN(4) == 0 {
			changes[fmt.Sprint("own", w)] = i
		}
		if rng.IntN(8) == 0 {
			changes[fmt.Sprintf("%s-%d", prefix, rng.IntN(i+1))] = -1
		}
		var b kv.Batch
		for k, v := range changes {
			if v < 0 {
				b.Delete([]byte(k))
			} else {
				b.Put([]byte(k), fmt.Append(nil, v))
			}
		}
		if rng.IntN(50) == 0 {
			large := make([]byte, 600<<10)
			for j := range large {
				large[j] = byte(rng.Uint32())
			}
			b.Put(fmt.Append(nil, "large", w), large)
		}
		err := kv.CommitAndWait(x.leader().Store, &b)
		x.mu.Lock()
		for k, v := range changes {
			switch {
			case err == nil:
				x.acked[k] = v
			case !errors.Is(err, kv.ErrFollows):
				delete(x.acked, k) // it may have happened
			}
		}
		if err == nil {
			x.writes++
		}
		cut := x.cut
		x.mu.Unlock()
		if cut {
			return
		}
	}
}

// leader returns the node that writes, or the first one.
func (x *powered) leader() *real {
	for _, n := range x.nodes {
		if term, _, _ := n.Serving(); term != 0 {
			return n
		}
	}
	return x.nodes[0]
}

// tend syncs the stores, and compacts the records in etcd that all have synced, until the power is cut.
func (x *powered) tend(etcd *clientv3.Client, rng *rand.Rand) {
	for {
		i := rng.IntN(3)
		revision, err := x.nodes[i].Store.Sync()
		x.mu.Lock()
		if x.cut {
			x.mu.Unlock()
			return
		}
		if err != nil {
			x.t.Error(err)
		}
		x.synced[i] = max(x.synced[i], revision)
		lowest := slices.Min(x.synced[:])
		if lowest > 0 && rng.IntN(3) == 0 {
			if _, err := etcd.Compact(x.t.Context(), lowest); err == nil {
				x.Compactions++
			}
		}
		x.mu.Unlock()
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	}
}

// restart starts all nodes again.
func (x *powered) restart() {
	var starting sync.WaitGroup
	for _, n := range x.nodes {
		starting.Go(n.startMember)
	}
	starting.Wait()
	for _, n := range x.nodes {
		n.startDriver()
	}
}

// check checks that all stores have what was acknowledged, and nothing else differs between them.
func (x *powered) check() {
	x.t.Helper()
	last := fmt.Sprint("last", x.Cuts)
	clustertest.Until(x.t, "a write after the cut", func() bool {
		err := primary(x.t, x.nodes).put(last)
		if err != nil && !errors.Is(err, kv.ErrFollows) {
			x.t.Fatal(err)
		}
		return err == nil
	})
	var first []byte
	for i, n := range x.nodes {
		clustertest.Until(x.t, "the last record at "+n.options.Name, func() bool { return n.has(last) })
		for k, want := range x.acked {
			v, err := kv.Find(n.local, []byte(k))
			if err != nil {
				x.t.Fatal(err)
			}
			if want < 0 && v != nil || want >= 0 && string(v) != fmt.Sprint(want) {
				x.t.Errorf("%s has %s = %q after the cut, acknowledged was %d", n.options.Name, k, v, want)
			}
		}
		if content := contentOf(x.t, n.local); i == 0 {
			first = content
		} else if !bytes.Equal(content, first) {
			x.t.Errorf("the stores of %s and %s differ", n.options.Name, x.nodes[0].options.Name)
		}
	}
}

// contentOf returns all keys and values of a store, the position included.
func contentOf(t *testing.T, s kv.Store) []byte {
	t.Helper()
	var (
		all bytes.Buffer
		err error
	)
	for k, v := range kv.WithPrefix(s, nil, &err) {
		fmt.Fprintf(&all, "%q=%q\n", k, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// positionOf returns the number of records that a store has.
func positionOf(t *testing.T, s kv.Store) uint64 {
	t.Helper()
	v, err := kv.Find(s, []byte("c"))
	if err != nil || len(v) < 24 {
		t.Fatalf("position %x, %v", v, err)
	}
	return binary.BigEndian.Uint64(v[16:])
}
