package sim

import (
	"context"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// node is the machine of a party: a disk, a clock, and power that fails.
type node struct {
	world  *world
	disk   Disk
	space  space // that is left of it
	clock  clock
	random io.Reader
	blobs  *blob.Memory // pictures; a crash loses none of them

	up   bool // it runs
	wire *powerCutStore
	part *partition.Partition
}

// node makes the node of a party.
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

// spare sets what is left of the disk.
func (n *node) spare(s space) {
	if n.space = s; n.up {
		n.wire.space = s
	}
}

// fuse has the power fail soon, or at once.
func (n *node) fuse(crash func()) {
	if !n.up {
		return
	}
	if n.wire.left = 1 + n.world.rng.IntN(12); n.wire.left > 8 {
		crash()
	}
}

// catchCut runs do, which a loss of power may end anywhere. powered then calls crash and returns false.
func catchCut(do func() error, crash func()) (whole bool, err error) {
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

// fall ends the process that runs: it is killed, or its machine loses power. It starts again within a time. One that was killed may then
// crash soon once more.
func (n *node) fall(within time.Duration, start, crash func()) {
	w := n.world
	n.up, n.part = false, nil
	var killed bool
	n.disk, killed = w.lose(n.disk)
	w.after(w.some(within), func() {
		if !n.up {
			start()
			w.relapse(killed, crash)
		}
	})
}

// supply stores the pictures and records that operations need, where their writer keeps them.
func (n *node) supply(bodies []log.Body) func(*kv.Batch) {
	return func(b *kv.Batch) {
		for _, body := range bodies {
			derive(b, n.world.app, body)
			keep(n.blobs, body)
		}
	}
}

// tidy does the work that was left for later.
func (n *node) tidy() error {
	for {
		if more, err := n.part.Step(context.Background(), n.clock.now()); err != nil || !more {
			return err
		}
	}
}

// renew gives logs on a disk another epoch, as restoring a backup does.
func renew(disk Disk, epoch log.Epoch, apps ...catalog.AppID) error {
	store, err := disk.Open()
	for _, app := range apps {
		var l *log.Store
		if err == nil {
			l, err = log.Open(store, log.Options{Prefix: app.LogPrefix()})
		}
		if err == nil {
			err = l.Renew(epoch)
		}
	}
	if err == nil {
		err = store.Close()
	}
	return err
}
