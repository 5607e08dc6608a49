package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// Options of a run. The zero value is what make test runs.
type Options struct {
	Disk      func() Disk // a blank disk; nil: Memory
	LocalOnly bool        // the application becomes local only
}

// Stats counts the events of a run.
type Stats struct {
	Requests, Duplicates    int
	OriginCuts, ReplicaCuts int
	Partitions, Jumps       int
	Writes, Entries         int
	Trims, Horizons         int
	Rebases, Scopes         int
	Upgrades                int // of origins
	Stopped                 int // runs that a replica could not fold, being of an older version
	Revocations             int // of tokens
	Quarantined             int // operations that were asked for with them
	Restores                int
	OriginRollbacks         int // of the origin's disk
	Noticed                 int // by the origin, of those
	Full                    int // disks
	Rollbacks, Renewals     int // of replicas' disks, and of their sites
	Owed, Listed            int // operations that restores took from the origin and replicas held; of those, not in the log
	Checks                  int
	Rounds                  int // from the healing to agreement
}

// world is one run.
type world struct {
	loop
	rng     *rand.Rand
	o       Options
	faults  faults
	app     catalog.AppID
	program program
	origin  *origin
	parties []*party
	oracle  *oracle   // of the log as it is now
	logs    []*oracle // all of the run, oldest first: another one since each restore, rollback, and notice of one
	trimmed uint64    // last entry that the log forgot at any time
	owed    map[log.Dot]*owedOp
	moves   []move // of all replicas, in their order
	stats   Stats
	audit   time.Duration // between two comparisons of states; below 0: never
	healing bool
	deleted bool // the application was
	failed  error
}

// Run runs the schedule of a seed: writes and faults, then healing. It returns the first thing
// that must never be and was.
func Run(seed uint64, o Options) (stats Stats, err error) {
	if o.Disk == nil {
		o.Disk = func() Disk { return &Memory{} }
	}
	rng := rand.New(rand.NewPCG(seed, 0x51d))
	w := &world{rng: rng, o: o, program: program{Rand: rng}, owed: map[log.Dot]*owedOp{}}
	defer func() {
		if x := recover(); x != nil { // the first violation is reported, not its consequences
			stats, err = w.stats, cmp.Or(w.failed, fmt.Errorf("panic: %v\n%s", x, debug.Stack()))
		}
	}()
	w.faults = w.draw()
	w.audit = -1
	if rng.IntN(16) == 0 { // it is dear
		w.audit = time.Minute
	}
	if err := w.open(); err != nil {
		return w.stats, err
	}
	w.plan()
	for w.failed == nil && w.step(length) {
		continue
	}
	if w.failed == nil {
		w.heal()
	}
	w.stats.Entries = len(w.oracle.entries)
	w.stats.Quarantined = w.oracle.countTokenRefusals()
	w.fail(w.close())
	return w.stats, w.failed
}

// close ends the stores that are open.
func (w *world) close() (err error) {
	if w.origin.up {
		err = errors.Join(w.origin.feed.Close(), w.origin.wire.Close())
	}
	for _, r := range w.parties {
		if r.up || r.gone {
			err = errors.Join(err, r.wire.Close())
		}
	}
	return err
}

// open starts everybody.
func (w *world) open() error {
	w.origin = &origin{node: w.node(), rules: oldRules + uint32(w.rng.IntN(2))}
	if err := w.origin.start(); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	small := w.rng.IntN(8) == 0
	for i := range 3 + w.rng.IntN(3) {
		r := &party{node: w.node(), number: i, promises: promises{refused: map[log.Dot]refusal{}, ords: map[uint32]log.Dot{}}}
		r.old, r.small = w.rng.IntN(3) == 0, small || w.rng.IntN(8) == 0
		w.parties = append(w.parties, r)
		if i == 0 && w.rng.IntN(4) == 0 { // signing is dear
			if err := r.enrol(); err != nil {
				return fmt.Errorf("edge: %w", err)
			}
		}
		if err := r.start(); err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
	}
	return nil
}

// goOn makes an oracle the one of the log as it is from now on.
func (w *world) goOn(o *oracle) { w.oracle, w.logs = o, append(w.logs, o) }

// A run has a length before it heals, and so many things happen in it.
const (
	length = time.Minute
	steps  = 28
)

// fail keeps the first failure and ends the run.
func (w *world) fail(err error) {
	if w.failed == nil && err != nil {
		w.failed = fmt.Errorf("at %v: %w", w.now, err)
	}
}

// draw draws what goes wrong in this run: much of one thing, or a little of all.
func (w *world) draw() faults {
	some := func(most int) int { return []int{0, most / 4, most}[w.rng.IntN(3)] }
	return faults{
		lost: some(20), cut: some(30), twice: some(30), slow: some(20), unsynced: []int{0, 50, 100}[w.rng.IntN(3)],
	}
}

// plan spreads what happens over the length of the run.
func (w *world) plan() {
	for range steps {
		w.after(time.Duration(w.rng.Int64N(int64(length))), w.happen)
	}
	if w.o.LocalOnly {
		w.after(time.Duration(w.rng.Int64N(int64(length))), w.origin.keepLocal)
	}
}
