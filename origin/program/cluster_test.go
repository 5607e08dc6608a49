package program

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestKillCluster kills and stops the nodes of a cluster at random while clients of all nodes add inputs, append numbers to their metadata, and
// delete some. Afterwards everything acknowledged exists once, calls without an answer happened at most once, and deleted inputs stay deleted.
// All nodes have equal lists, and equal states with a replica in a folder and an edge. Each picture loads from every node.
func TestKillCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of killing")
	}
	for seed := range testkit.Seeds(t, 5, 100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newNodes(t)
			k := &killedCluster{nodes: c, rnd: rand.New(rand.NewPCG(seed, 58))}
			for i := range testkit.Size(t, 3, 3, 6, 8) {
				k.writers = append(k.writers, c.newWriter(fmt.Sprintf("w%d", i), i%len(c.all), seed))
			}
			k.replicas = append(k.replicas, c.newFolder(c.all[k.rnd.IntN(len(c.all))], seed))
			if edge := c.newEdge(c.all[k.rnd.IntN(len(c.all))], seed); edge != nil {
				k.replicas = append(k.replicas, edge)
			}
			for _, r := range k.replicas {
				k.writers = append(k.writers, r.writer)
			}
			k.round(time.Duration(testkit.Size(t, 10, 10, 60, 300)) * time.Second)
			k.check()
		})
		if t.Failed() {
			return
		}
	}
}

// killedCluster is a cluster with its writers.
type killedCluster struct {
	*nodes
	rnd      *rand.Rand
	writers  []*clusterWriter
	replicas []*clusterReplica
	faults   int
}

// round lets the writers write for a time with faults. Afterwards all nodes run.
func (k *killedCluster) round(length time.Duration) {
	k.t.Helper()
	ctx, stop := context.WithCancel(k.t.Context())
	defer stop()
	var work sync.WaitGroup
	for _, w := range k.writers {
		work.Go(func() {
			for ctx.Err() == nil && !k.t.Failed() {
				w.step()
				if w.sends != nil { // as fast as one who labels pictures
					system.Pause(ctx, 50*time.Millisecond)
				}
			}
		})
	}
	for end := system.Now().Add(length); system.Now().Before(end) && !k.t.Failed(); {
		k.waitWrites()
		system.Pause(ctx, k.between(200*time.Millisecond, 2*time.Second))
		k.fault(ctx)
	}
	for _, n := range k.all {
		if !n.running {
			n.start()
		}
	}
	k.waitWrites()
	stop()
	work.Wait()
}

func (k *killedCluster) between(a, b time.Duration) time.Duration {
	return a + time.Duration(k.rnd.Int64N(int64(b-a)))
}

// waitWrites waits until a write is acknowledged that began later.
func (k *killedCluster) waitWrites() {
	k.t.Helper()
	acked := func() (n int64) {
		for _, w := range k.writers {
			if w.sends == nil { // a replica stores writes without the cluster
				n += w.acked.Load()
			}
		}
		return n
	}
	before := acked() + int64(len(k.writers)) // those that wait for an answer
	k.wait("writes", func() bool { return acked() > before || k.t.Failed() })
}

// fault kills or stops a node: the primary or any one. A killed node starts again, sometimes before its successor leads, sometimes after.
func (k *killedCluster) fault(ctx context.Context) {
	k.t.Helper()
	victim := k.all[k.rnd.IntN(len(k.all))]
	if k.rnd.IntN(2) == 0 {
		victim = k.primary()
	}
	k.faults++
	if k.rnd.IntN(2) == 0 {
		k.t.Logf("SIGSTOP of node %d", victim.number)
		victim.pause()
		system.Pause(ctx, k.between(500*time.Millisecond, 4*time.Second))
		victim.proceed()
		return
	}
	k.t.Logf("SIGKILL of node %d", victim.number)
	victim.kill()
	if k.rnd.IntN(2) == 0 {
		k.waitWrites()
	} else {
		system.Pause(ctx, k.between(0, 2*time.Second))
	}
	victim.start()
	if k.rnd.IntN(2) == 0 {
		victim.waitReady()
	}
}

// check compares the lists of all nodes with the calls of the writers, and stops the nodes.
func (k *killedCluster) check() {
	k.t.Helper()
	for _, r := range k.replicas {
		r.settle()
	}
	k.settle()
	first := k.list(k.all[0])
	for _, n := range k.all[1:] {
		if other := k.list(n); !reflect.DeepEqual(first, other) {
			k.t.Errorf("the lists of nodes 0 and %d differ: %d and %d inputs", n.number, len(first), len(other))
		}
	}
	var calls [done + 1]int
	gap, why := time.Duration(0), map[string]int{}
	for _, w := range k.writers {
		w.check(first)
		gap = max(gap, w.gap)
		for f, n := range w.calls {
			calls[f] += n
		}
		for text, n := range w.why {
			why[text] += n
		}
	}
	k.checkPictures(first)
	var folders []string
	for _, r := range k.replicas {
		r.stop()
		folders = append(folders, r.data)
	}
	k.stop()
	for _, n := range k.all {
		folders = append(folders, n.data)
	}
	k.checkDigests(folders...)
	k.t.Logf("%d faults, %d inputs; calls: %d acknowledged, %d unknown, %d refused; longest gap of a writer %v\n%v",
		k.faults, len(first), calls[done], calls[unknown], calls[refused], gap, why)
}

// checkPictures loads the picture of each input from every node.
func (k *killedCluster) checkPictures(all map[string]listed) {
	k.t.Helper()
	for _, w := range k.writers {
		for id, in := range w.inputs {
			got, ok := all[id]
			if !ok {
				continue
			}
			u, err := url.Parse(got.Data.Image.URL)
			if err != nil {
				k.t.Fatal(err)
			}
			for _, n := range k.all {
				code, b := k.fetch(n.base + u.RequestURI())
				if code != http.StatusOK || sha256.Sum256(b) != in.picture {
					k.t.Errorf("the picture of %s at node %d: %d, %d bytes", id, n.number, code, len(b))
				}
			}
		}
	}
}
