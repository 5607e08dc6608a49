package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
)

// Numbers of a run.
const (
	clusterID = 7
	calls     = 40  // calls of a run
	monthly   = 100 // calls of the account's plan

	keepAge     = 100 * time.Second
	keepOffline = 300 * time.Second

	recordSize = 2000 // so that a large batch has some parts

	maxSteps = 200_000 // a run that needs more hangs
	maxDepth = 4       // calls at a time
)

// Stats counts the events of a run.
type Stats struct {
	Steps, Calls, Acknowledged, Followed int
	Terms, Crashes, Copies, Skips        int
	Lost, Again                          int // transactions without an answer; transactions sent again
	Sessions, Reads, Compared            int
	Appended, Repeated                   int // numbers that clients appended; calls sent again after kv.ErrFollows
	Returned, Dismissed                  int // conflicts
}

// world is one run.
type world struct {
	rng    *rand.Rand
	random *rand.ChaCha8
	models *predict.Set
	blobs  *blob.Memory
	etcd   etcd
	nodes  []*node
	net    []message
	at     time.Duration
	app    catalog.AppID
	owner  string

	depth   int
	healing bool
	terms   map[int64]string // primary of each term
	oracle
	edge     edge
	returned []returned
	stats    Stats
	err      error
}

// message is a transaction on its way.
type message struct {
	t    channel.Txn
	node *node
	of   *process
	saw  int64 // newest claim that the watch of the process had shown
}

// Run runs the schedule of a seed. It returns the first violation.
func Run(seed uint64, from *Template) (Stats, error) {
	w, err := run(seed, from)
	return w.stats, err
}

func run(seed uint64, from *Template) (w *world, err error) {
	rng := rand.New(rand.NewPCG(seed, 0xc1))
	w = &world{
		rng: rng, random: random(rng), models: from.models, blobs: blob.NewMemory(blob.Options{}), owner: from.account, returned: from.returned,
		terms: map[int64]string{}, oracle: newOracle(),
	}
	defer func() {
		if x := recover(); x != nil { // the first violation is reported, not its consequences
			err = cmp.Or(w.err, fmt.Errorf("panic: %v\n%s", x, debug.Stack()))
		}
	}()
	if w.app, err = catalog.ParseAppID(from.app); err != nil {
		return w, err
	}
	w.edge.draw(w)
	w.etcd.revision = 1
	for i := range 3 {
		d := &disk{from.batches, len(from.batches)}
		if err := begin(d); err != nil {
			return w, err
		}
		n := &node{world: w, number: i, disk: d}
		w.nodes = append(w.nodes, n)
		if err := n.start(); err != nil {
			return w, err
		}
	}
	for w.err == nil && w.stats.Calls < calls {
		w.step()
	}
	if w.err == nil {
		w.heal()
	}
	return w, w.err
}

// begin makes the store on a disk the first one of the cluster.
func begin(d *disk) error {
	d.batches = d.batches[:len(d.batches):len(d.batches)]
	s, err := memkv.Open(memkv.Options{Journal: d})
	if err != nil {
		return err
	}
	return channel.Begin(s, clusterID, 1)
}

// random returns a source of random bytes, which the state of rng determines.
func random(rng *rand.Rand) *rand.ChaCha8 {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rng.Uint32())
	}
	return rand.NewChaCha8(seed)
}

func (w *world) now() time.Time { return epoch.Add(w.at) }

// epoch is the time at which all runs begin.
var epoch = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// fail stores the first error, which ends the run.
func (w *world) fail(err error) {
	if w.err == nil && err != nil {
		w.err = err
	}
}

// await lets the world continue until ready returns true.
func (w *world) await(p *process, ready func() bool) {
	for !ready() {
		if w.err != nil {
			p.store.Resign(w.err)
			return
		}
		w.step()
	}
}

// step lets one thing happen.
func (w *world) step() {
	if w.stats.Steps++; w.stats.Steps > maxSteps {
		panic("the run hangs")
	}
	w.at += 100 * time.Millisecond
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	if n.asleep > 0 {
		n.asleep--
	}
	switch k := w.rng.IntN(100); {
	case k < 45:
		n.show()
	case k < 60:
		n.send()
	case k < 75:
		w.deliver()
	case k < 76:
		w.claim(n)
	case k < 79:
		n.sync()
	case w.healing:
	case k < 80:
		w.disturb(n)
	case k < 81:
		w.compact()
	case k < 84:
		if w.read(n); w.err == nil {
			w.session(n)
		}
	default:
		w.call(n)
	}
}

// transmit sends a transaction, which may arrive late.
func (w *world) transmit(n *node, t channel.Txn) {
	for _, m := range w.net {
		if m.of == n.process && m.t.Key == t.Key && m.t.Version == t.Version && m.t.Term == t.Term && w.rng.IntN(8) > 0 {
			return // on its way
		}
	}
	w.net = append(w.net, message{t, n, n.process, n.saw})
}

// deliver runs a transaction that was sent, and sometimes leaves it on its way.
func (w *world) deliver() {
	if len(w.net) == 0 {
		return
	}
	i := w.rng.IntN(len(w.net))
	m := w.net[i]
	if w.rng.IntN(10) == 0 {
		w.stats.Again++
	} else {
		w.net = append(w.net[:i], w.net[i+1:]...)
	}
	if !w.healing && w.rng.IntN(10) == 0 {
		return // it got lost
	}
	before := w.etcd.claim
	if !w.etcd.do(m.t) {
		return
	}
	if m.t.Key == channel.Primary && before != m.saw {
		w.fail(fmt.Errorf("node %s deposed the primary of term %d, and it had seen term %d", m.of.self, before, m.saw))
	}
	if m.of.dead {
		return
	}
	if w.rng.IntN(8) == 0 {
		w.stats.Lost++
	} else if m.t.Key == channel.Log {
		m.of.store.Sent(m.t)
	}
}

// claim lets a node claim, seldom while another one leads.
func (w *world) claim(n *node) {
	if n.asleep > 0 || n.leads() {
		return
	}
	for _, x := range w.nodes {
		if _, term := x.store.Position(); term == w.etcd.claim && term > 0 && (w.healing || w.rng.IntN(3) > 0) {
			return
		}
	}
	if t, ok := n.store.Claim(); ok {
		w.transmit(n, t)
	}
}

// disturb is a fault of a node.
func (w *world) disturb(n *node) {
	switch w.rng.IntN(12) {
	case 0:
		n.crash(true)
	case 1, 2:
		n.crash(false)
	case 3: // all nodes lose their power
		for _, n := range w.nodes {
			n.crash(true)
		}
	default:
		n.asleep = w.rng.IntN(60)
	}
}

// sync makes what the node has shown survive a loss of power.
func (n *node) sync() {
	revision, err := n.store.Sync()
	n.fail(err)
	n.synced = revision
}

// compact compacts etcd up to the revision that all nodes, except perhaps one, have synced.
func (w *world) compact() {
	but := w.rng.IntN(2 * len(w.nodes)) // a node that does not live
	revision := w.etcd.revision
	for i, n := range w.nodes {
		if i != but {
			revision = min(revision, n.synced)
		}
	}
	w.etcd.compact(revision)
}

// heal lets the nodes reach one state, and compares it.
func (w *world) heal() {
	w.healing = true
	for _, n := range w.nodes {
		n.asleep = 0
	}
	w.settle()
	for _, leads := range []bool{true, false} { // a node that started folds the log of an application when it opens it
		for _, n := range w.nodes {
			if w.err == nil && n.leads() == leads {
				w.fail(n.openAll())
			}
		}
		w.settle()
	}
	if w.err == nil {
		w.fail(w.compare())
	}
}

// openAll opens all applications.
func (n *node) openAll() error {
	ids, err := n.engine.Register.IDs()
	n.calls++
	for _, id := range ids {
		if err == nil {
			_, err = n.engine.Partition(id)
		}
	}
	n.calls--
	return err
}

// settle lets the world continue until one node leads and all have shown all events.
func (w *world) settle() {
	for settled := false; !settled && w.err == nil; {
		w.step()
		settled = len(w.net) == 0
		led := false
		for _, n := range w.nodes {
			settled = settled && n.shown == w.etcd.revision && n.calls == 0 && !n.changes && !n.ends
			led = led || n.leads()
		}
		settled = settled && led
	}
}
