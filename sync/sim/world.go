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

// Options are the options of a run. TestConverge uses the zero value.
type Options struct {
	Disk      func() Disk // returns an empty disk; nil: a new Memory
	LocalOnly bool        // the application becomes local only during the run
	Memory    bool        // images of replicas have their memory: a replica that is set back continues its writer
}

// Stats counts the events of a run.
type Stats struct {
	Requests, Duplicates    int
	OriginCuts, ReplicaCuts int
	Partitions, Jumps       int
	Writes, Entries         int
	Trims, Horizons         int
	Rebases, Scopes         int
	Upgrades                int // upgrades of the origin to newer rules
	Stopped                 int // pulls that a replica of an older version could not fold
	Revocations             int // times the application's tokens were revoked
	Quarantined             int // operations that the log refuses for a revoked token
	Restores                int
	Twice                   int // restores of the same backup before the first contact
	Full                    int // times a disk became full
	Rollbacks, Twins        int // rollbacks of replicas' disks; copies of replicas that run at the same time
	Used, Forgiven          int // names that replicas gave twice; operations of such names that nothing can tell apart
	Spoiled                 int // replicas with a state that only an audit finds to differ
	Owed, Listed            int // operations that a restore removed and replicas had; those that are not in the log at the end
	Checks                  int
	Rounds                  int // rounds of the healing until agreement
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
	oracle  *oracle   // oracle of the current log
	logs    []*oracle // oracles of all logs of the run, oldest first: each restore starts a log
	trimmed uint64    // highest entry that a log of the run trimmed
	owedOps map[log.Dot]*removedOp
	stats   Stats
	audit   time.Duration // time between two comparisons of a replica's state; below 0: never
	healing bool
	deleted bool // whether the application was deleted
	failed  error
}

// Run runs the schedule of a seed: writes and faults, then the healing. It returns the first violation of an invariant.
func Run(seed uint64, o Options) (stats Stats, err error) {
	if o.Disk == nil {
		o.Disk = func() Disk { return &Memory{} }
	}
	rng := rand.New(rand.NewPCG(seed, 0x51d))
	w := &world{rng: rng, o: o, program: program{Rand: rng}, owedOps: map[log.Dot]*removedOp{}}
	defer func() {
		if x := recover(); x != nil { // the first violation is reported, not its consequences
			stats, err = w.stats, cmp.Or(w.failed, fmt.Errorf("panic: %v\n%s", x, debug.Stack()))
		}
	}()
	w.faults = w.draw()
	w.audit = -1
	if !o.LocalOnly && rng.IntN(16) == 0 { // audits are expensive
		w.audit = 10 * time.Second
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

// close closes the feed and all open stores.
func (w *world) close() (err error) {
	if w.origin.up {
		err = errors.Join(w.origin.feed.Close(), w.origin.wire.Close())
	}
	for _, r := range w.parties {
		if r.up || r.purged {
			err = errors.Join(err, r.wire.Close())
		}
	}
	return err
}

// open creates and starts all parties.
func (w *world) open() error {
	w.origin = &origin{node: w.node(), rules: oldRules + uint32(w.rng.IntN(newRules-oldRules+1))}
	if err := w.origin.start(); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	small := w.rng.IntN(8) == 0
	for i := range 3 + w.rng.IntN(3) {
		r := &party{node: w.node(), number: i, user: i, promises: promises{refused: map[log.Dot]refusal{}, ords: map[uint32]log.Dot{}}}
		r.old, r.small = w.rng.IntN(3) == 0, small || w.rng.IntN(8) == 0
		w.parties = append(w.parties, r)
		if i == 0 && w.rng.IntN(4) == 0 { // signing is expensive
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

// setOracle makes o the oracle of the current log.
func (w *world) setOracle(o *oracle) { w.oracle, w.logs = o, append(w.logs, o) }

// Numbers of a run before the healing.
const (
	length = time.Minute
	steps  = 28 // random events
)

// fail stores the first error, which ends the run. A nil error has no effect.
func (w *world) fail(err error) {
	if w.failed == nil && err != nil {
		w.failed = fmt.Errorf("at %v: %w", w.now, err)
	}
}

// draw draws the probabilities of faults. Each is zero, low or high, independently of the others.
func (w *world) draw() faults {
	some := func(limit int) int { return []int{0, limit / 4, limit}[w.rng.IntN(3)] }
	return faults{
		lost: some(20), cut: some(30), twice: some(30), slow: some(20), unsynced: []int{0, 50, 100}[w.rng.IntN(3)],
	}
}

// plan schedules the events at random times of the run.
func (w *world) plan() {
	for range steps {
		w.after(time.Duration(w.rng.Int64N(int64(length))), w.happen)
	}
	if w.o.LocalOnly {
		w.after(time.Duration(w.rng.Int64N(int64(length))), w.origin.keepLocal)
	}
	if w.audit > 0 {
		w.after(time.Duration(w.rng.Int64N(int64(length))), w.parties[w.rng.IntN(len(w.parties))].spoil)
	}
}
