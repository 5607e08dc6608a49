package sim

import (
	"context"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// node is the computer of a party: a disk, a clock and power that fails.
type node struct {
	world  *world
	disk   Disk
	space  space // space left on the disk
	clock  clock
	random io.Reader
	blobs  *blob.Memory // pictures; a crash loses none of them

	up   bool // whether the party's process runs
	wire *powerCutStore
}

// node creates the node of a party, with an empty disk.
func (w *world) node() node {
	return node{world: w, disk: w.o.Disk(), clock: clock{loop: &w.loop}, random: random(w.rng), blobs: blob.NewMemory(blob.Options{})}
}

// mount opens the store on the disk.
func (n *node) mount() error {
	store, err := n.disk.Open()
	if err == nil {
		n.wire = &powerCutStore{Store: store, space: min(n.space, scarce)}
	}
	return err
}

// setFreeSpace sets the space left on the disk.
func (n *node) setFreeSpace(s space) {
	if n.space = s; n.up {
		n.wire.space = s
	}
}

// cutPowerSoon cuts the power at one of the next steps of the store, or calls crash at once.
func (n *node) cutPowerSoon(crash func()) {
	if !n.up {
		return
	}
	if n.wire.left = 1 + n.world.rng.IntN(12); n.wire.left > 8 {
		crash()
	}
}

// catchCut runs do. If a loss of power ends do, catchCut calls crash and returns false and no error.
func catchCut(do func() error, crash func()) (complete bool, err error) {
	defer func() {
		switch x := recover(); x.(type) {
		case nil:
		case cut:
			crash()
		default:
			panic(x)
		}
	}()
	err = do()
	return true, err
}

// stop ends the party's process: it is killed, or its computer loses power. stop calls start after a random time below within, unless the
// process runs again by then. A process that was killed may crash again soon after that.
func (n *node) stop(within time.Duration, start, crash func()) {
	w := n.world
	n.up = false
	var killed bool
	n.disk, killed = w.lose(n.disk)
	w.after(w.some(within), func() {
		if !n.up {
			start()
			w.relapse(killed, crash)
		}
	})
}

// supply returns a function that stores the pictures and records that the operations need: pictures in n.blobs and records in the batch.
func (n *node) supply(bodies []log.Body) func(*kv.Batch) {
	return func(b *kv.Batch) {
		for _, body := range bodies {
			derive(b, n.world.app, body)
			keep(n.blobs, body)
		}
	}
}

// tidy does all deferred work of the party's partition.
func (n *node) tidy(p *partition.Partition) error {
	for {
		if more, err := p.Step(context.Background(), n.clock.now()); err != nil || !more {
			return err
		}
	}
}
