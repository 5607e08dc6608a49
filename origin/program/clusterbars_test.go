package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// clusterLoad is a set of writers that write until stop.
type clusterLoad struct {
	nodes   *nodes
	writers []*clusterWriter
	end     context.CancelFunc
	work    sync.WaitGroup
}

// writeAt starts writers, one for each of the given nodes.
func (c *nodes) writeAt(at ...*node) *clusterLoad {
	ctx, end := context.WithCancel(c.t.Context())
	l := &clusterLoad{nodes: c, end: end}
	c.t.Cleanup(l.stop)
	for i, n := range at {
		w := c.newWriter(fmt.Sprintf("l%d-%d", writersMade.Add(1), i), n.number, uint64(i))
		l.writers = append(l.writers, w)
		l.work.Go(func() {
			for ctx.Err() == nil && !c.t.Failed() {
				w.step()
			}
		})
	}
	return l
}

// writersMade makes the names of writers differ.
var writersMade atomic.Int64

func (l *clusterLoad) stop() {
	l.end()
	l.work.Wait()
}

// gaps calls fault, waits until each writer has written again afterwards, and returns each writer's longest time without an acknowledged call
// since then.
func (l *clusterLoad) gaps(fault func()) (all []time.Duration) {
	l.nodes.t.Helper()
	l.flow()
	for _, w := range l.writers {
		w.takeGap()
	}
	fault()
	l.flow()
	for _, w := range l.writers {
		all = append(all, w.takeGap())
	}
	return all
}

// flow waits until two more calls of each writer are acknowledged.
func (l *clusterLoad) flow() {
	l.nodes.t.Helper()
	for _, w := range l.writers {
		before := w.acked.Load()
		l.nodes.wait("writes of "+w.name, func() bool { return w.acked.Load() > before+1 || l.nodes.t.Failed() })
	}
}

// unknown returns the number of calls that may have happened.
func (l *clusterLoad) unknown() (n int) {
	for _, w := range l.writers {
		n += w.calls[unknown]
	}
	return n
}

// check stops the writers and compares the inputs of the cluster with their calls.
func (l *clusterLoad) check() {
	l.nodes.t.Helper()
	l.stop()
	all := l.nodes.list(l.nodes.all[0])
	calls := [done + 1]int{}
	why := map[string]int{}
	for _, w := range l.writers {
		w.check(all)
		for f, n := range w.calls {
			calls[f] += n
		}
		for text, n := range w.why {
			why[text] += n
		}
	}
	l.nodes.t.Logf("calls: %d acknowledged, %d unknown, %d refused; %v", calls[done], calls[unknown], calls[refused], why)
}

// boundTimes logs times, and compares them with bounds. A bound of 0 compares nothing.
func boundTimes(t testing.TB, name string, all []time.Duration, median, longest time.Duration) {
	t.Helper()
	slices.Sort(all)
	p50, most := all[len(all)/2], all[len(all)-1]
	ms := time.Millisecond
	t.Logf("%s: %d times, min %v, median %v, max %v", name, len(all), all[0].Round(ms), p50.Round(ms), most.Round(ms))
	if median > 0 && p50 > median {
		t.Errorf("%s: median %v, want at most %v", name, p50, median)
	}
	if longest > 0 && most > longest {
		t.Errorf("%s: longest %v, want at most %v", name, most, longest)
	}
}

// but returns all nodes but one.
func (c *nodes) but(n *node) []*node {
	return slices.DeleteFunc(slices.Clone(c.all), func(x *node) bool { return x == n })
}

// TestClusterKills measures how long writes stop after the primary is killed.
func TestClusterKills(t *testing.T) {
	testkit.RequireTiming(t)
	c := newNodes(t)
	l := c.writeAt(c.all[0], c.all[1], c.all[2], c.all[0])
	var all []time.Duration
	for range 20 {
		p := c.primary()
		gaps := l.gaps(p.kill)
		all = append(all, gaps...)
		p.start()
		began := system.Now()
		c.recovered()
		t.Logf("node %d was killed: %v; it follows after %v", p.number, gaps, system.Now().Sub(began))
	}
	boundTimes(t, "writes after kill -9 of the primary", all, 2500*time.Millisecond, 8*time.Second)
	l.check()
}

// TestClusterPauses measures how long writes stop while the primary hangs for three seconds. Afterwards it answers nothing old.
func TestClusterPauses(t *testing.T) {
	testkit.RequireTiming(t)
	c := newNodes(t)
	var all []time.Duration
	for i := range 10 {
		p := c.primary()
		others := c.but(p)
		l := c.writeAt(others...)
		probe := c.newWriter(fmt.Sprint("probe", i), others[i%2].number, uint64(i))
		probe.add()
		id := fmt.Sprintf("%s-1", probe.name)
		all = append(all, l.gaps(func() {
			p.pause()
			resume := system.Now().Add(3 * time.Second)
			l.flow()
			for probe.inputs[id].numbers[probe.serial] != done {
				probe.append(id)
			}
			answers := make(chan []int, 2)
			ask := func() {
				var answer struct{ Input listed }
				c.get(p, "/v2/inputs/"+id, &answer)
				answers <- answer.Input.Data.Metadata.Numbers
			}
			system.Pause(t.Context(), resume.Sub(system.Now())-50*time.Millisecond)
			go ask()
			system.Pause(t.Context(), resume.Sub(system.Now()))
			p.proceed()
			go ask()
			for range 2 {
				if numbers := <-answers; !slices.Contains(numbers, probe.serial) {
					t.Errorf("the node that hung answers %v without %d", numbers, probe.serial)
				}
			}
		})...)
		l.check()
		c.recovered()
	}
	boundTimes(t, "writes while the primary hangs", all, 3*time.Second, 0)
}

// TestClusterAllKilled measures the time until writes after all nodes were killed at once.
func TestClusterAllKilled(t *testing.T) {
	testkit.RequireTiming(t)
	c := newNodes(t)
	l := c.writeAt(c.all...)
	var all []time.Duration
	for range 20 {
		l.flow()
		for _, n := range c.all {
			_ = n.cmd.Process.Kill()
		}
		for _, n := range c.all {
			<-n.exited
			n.running = false
		}
		for _, n := range c.all {
			n.start()
		}
		began := system.Now()
		for _, w := range l.writers {
			before := w.acked.Load()
			c.wait("writes of "+w.name, func() bool { return w.acked.Load() > before })
		}
		all = append(all, system.Now().Sub(began))
		c.recovered()
	}
	boundTimes(t, "writes of all after all were killed", all, 0, 8*time.Second)
	l.check()
}

// TestClusterHandover measures how long writes stop when the primary is stopped cleanly. No call may be without an answer.
func TestClusterHandover(t *testing.T) {
	testkit.RequireTiming(t)
	c := newNodes(t)
	l := c.writeAt(c.all[0], c.all[1], c.all[2], c.all[0])
	var all []time.Duration
	for range 10 {
		p := c.primary()
		all = append(all, l.gaps(func() {
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := <-p.exited; err != nil {
				t.Errorf("node %d after SIGTERM: %v", p.number, err)
			}
			p.running = false
		})...)
		p.start()
		c.recovered()
	}
	boundTimes(t, "writes after SIGTERM of the primary", all, 0, time.Second)
	l.check()
	if n := l.unknown(); n > 0 {
		t.Errorf("%d calls failed without a clean refusal", n)
	}
}

// TestClusterJoinKilled kills nodes at random moments while they join and copy a checkpoint. Each follows after its next start with an equal state.
func TestClusterJoinKilled(t *testing.T) {
	testkit.RequireTiming(t)
	c := newNodes(t)
	l := c.writeAt(c.all...)
	began := system.Now()
	other := c.join()
	usual := system.Now().Sub(began)
	t.Logf("a node joins in %v", usual)
	stop := func(n *node) {
		if _, err := n.terminate(t); err != nil {
			t.Errorf("node %d after SIGTERM: %v", n.number, err)
		}
		n.running = false
	}
	for range 20 {
		n := c.enter()
		n.start()
		after := time.Duration(rand.Int64N(int64(usual)))
		system.Pause(t.Context(), after)
		n.kill()
		n.start()
		n.waitReady()
		l.stop()
		c.settle()
		stop(n)
		stop(other)
		c.checkDigests(other.data, n.data)
		if t.Failed() {
			t.Fatalf("killed after %v", after)
		}
		l.check()
		other.start()
		l = c.writeAt(c.all[:3]...)
	}
}

// TestClusterWithoutS3 stops the S3 server: everything but adding pictures works, and a refused input leaves nothing.
func TestClusterWithoutS3(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	c := newNodes(t)
	w := c.newWriter("w", 0, 1)
	for range 8 {
		w.add()
	}
	c.s3.Stop()
	call := func(n *node, want int, method, path string, body any) {
		t.Helper()
		code, answer := c.ask(n, method, path, body)
		if code != want {
			t.Errorf("without S3: %s %s at node %d = %d %.300s, want %d", method, path, n.number, code, answer, want)
		}
	}
	image := cli.Object{"image": cli.Object{"base64": encoded(dots(t, 7, 16))}}
	similar := cli.Object{"query": cli.Object{"ands": []cli.Object{{"output": cli.Object{"input": cli.Object{"data": image}}}}}}
	label := []cli.Object{{"id": "w-1", "data": cli.Object{"concepts": []cli.Object{{"id": "cat"}}}}}
	refused := 0
	for end := system.Now().Add(time.Duration(testkit.Size(t, 2, 3, 20, 60)) * time.Second); system.Now().Before(end) && !t.Failed(); {
		for _, n := range c.all {
			call(n, 200, "POST", "/v2/models/"+generalID+"/outputs", cli.Object{"inputs": []cli.Object{{"data": image}}})
			call(n, 200, "POST", "/v2/searches", similar)
			call(n, 200, "PATCH", "/v2/inputs", cli.Object{"action": "merge", "inputs": label})
			refused++
			other := cli.Object{"image": cli.Object{"base64": encoded(dots(t, uint64(100+refused), 16))}}
			call(n, 503, "POST", "/v2/inputs", cli.Object{"inputs": []cli.Object{{"id": fmt.Sprint("refused-", refused), "data": other}}})
		}
		w.append("w-3")
	}
	for i, n := range c.all {
		id := fmt.Sprint("w-", 4+i)
		call(n, 200, "DELETE", "/v2/inputs", cli.Object{"ids": []string{id}})
		w.inputs[id].deleted = done
	}
	all := c.list(c.all[0])
	for i := range refused {
		if id := fmt.Sprint("refused-", i+1); all[id].ID != "" {
			t.Errorf("%s exists, but the call was refused", id)
		}
	}
	w.check(all)
	c.s3.Start()
	c.wait("adding with S3", func() bool {
		code, _ := c.ask(c.all[0], "POST", "/v2/inputs", cli.Object{"inputs": []cli.Object{{"id": "refused-1", "data": image}}})
		return code == http.StatusOK
	})
}
