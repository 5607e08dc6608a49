package sim

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// party is a replica with its disk, its clock and its link to the origin.
type party struct {
	node
	promises
	number int
	edge   *edge // nil: it asks with a key and leases its site
	old    bool  // it runs an older version, which does not know the log's rules, and notes no tokens
	gone   bool  // it was told to forget all, and has

	machine *replica.Machine
	life    int             // it is another after each start: what was on its way to an earlier one is lost
	down    bool            // its link is cut
	asked   map[uint64]bool // requests that were not answered yet
	waking  int             // the last WakeAt, counted

	image  *image           // an older state of the disk; nil: none was kept
	last   uint64           // last operation of the site that stays as it is when another one is taken
	rolled bool             // its disk was rolled back since it took the site
	known  partition.Cursor // end of the log when the origin last answered what it has of the site, or a session of another log
	seen   partition.Cursor // at the last look
	base   uint64           // last entry that was trimmed when it took a snapshot
	small  bool             // it keeps few entries
}

// promises are the known facts that bind a replica. They belong to a state of its disk.
type promises struct {
	promised []log.Dot           // operations that it said are safe
	tail     []byte              // last of them, encoded; nil: none is
	refused  map[log.Dot]refusal // of those, the ones that are conflicts
	ords     map[uint32]log.Dot  // inputs by their ordinals
	epoch    log.Epoch           // of the log that they are of
	site     log.Site            // at the last look
}

// clone returns a copy that keeps what p is now.
func (p promises) clone() promises {
	p.promised, p.refused, p.ords = slices.Clone(p.promised), maps.Clone(p.refused), maps.Clone(p.ords)
	return p
}

// begins stands among the requests of a machine that is about to begin: none has the number.
const begins = 0

// refusal is a verdict that is a conflict.
type refusal struct {
	epoch log.Epoch
	code  fold.Code
}

// start opens what the disk holds and begins.
func (r *party) start() (err error) {
	if r.gone {
		return nil
	}
	if err := r.mount(); err != nil {
		return err
	}
	r.life++
	if r.part, err = partition.Open(partition.Options{
		Store: r.wire, App: r.world.app, Clock: r.clock.now, Replica: &partition.Replica{Keep: r.room()}, Rules: r.rules(), Epoch: name(r.random),
	}); err != nil {
		return err
	}
	if r.machine, err = replica.New(replica.Options{
		App: r.world.app, Partition: &checkedPartition{r.part, r}, Store: r.wire, Blobs: r.blobs, Rand: r.random, Live: replica.Poll,
		Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull}, Audit: r.world.audit, AppRecords: r.register(),
	}); err != nil {
		return err
	}
	r.up, r.asked = true, map[uint64]bool{begins: true}
	life := r.life
	r.world.after(0, func() {
		if r.life == life {
			delete(r.asked, begins)
			r.step(replica.Begin{})
		}
	})
	r.seen = r.part.Cursor()
	if err := r.followMove(); err != nil {
		return err
	}
	// Verdicts that a crash undid arrive again, or a snapshot skips them.
	maps.DeleteFunc(r.refused, func(dot log.Dot, x refusal) bool {
		return x.epoch != r.seen.Epoch || r.world.log(r).at[dot] > r.seen.Seq
	})
	return r.world.inspect(r)
}

// room returns the bound of kept entries in bytes, 0 for the default.
func (r *party) room() uint64 {
	if r.small {
		return 1000
	}
	return 0
}

// name draws the name of a life.
func name(random io.Reader) (e log.Epoch) {
	if _, err := io.ReadFull(random, e[:]); err != nil {
		panic(err) // it never ends
	}
	return e
}

// Versions of the fold's rules in the simulation. They have the same effect: the simulator checks which party folds which entries.
const (
	oldRules = fold.First
	newRules = fold.First + 1
)

// rules is the newest version that the replica knows.
func (r *party) rules() uint32 {
	if r.old {
		return oldRules
	}
	return newRules
}

// write has a user of the replica write.
func (r *party) write() {
	if !r.up || r.part.Site() == 0 {
		return
	}
	w := r.world
	if r.site == 0 { // leased since the last look
		r.site = r.part.Site()
	}
	if r.image == nil || w.rng.IntN(2) == 0 {
		r.keep()
	}
	bodies := w.bodies(r.part.Site())
	r.runWithCuts(func() error {
		who := partition.Caller{By: r.by(), Token: r.token()}
		v, _, err := r.part.SubmitSpan(context.Background(), who, bodies, r.supply(bodies))
		if err != nil {
			return err
		}
		w.stats.Writes += len(v)
		issued, _ := r.part.Outbox()
		seen := r.part.Cursor()
		var wrong error
		err = r.part.Pending(issued-uint64(len(v)), func(op log.Op) bool {
			x := issue{data: log.Encode(nil, &op), seen: seen.Seq, chain: seen.Chain, token: who.Token, gone: r.rolled}
			if x.thing, wrong = r.thing(&op); wrong != nil {
				return false
			}
			x.prev, r.tail = before(r.tail, op.Dot), x.data
			w.oracle.issue(op.Dot, x)
			r.promised = append(r.promised, op.Dot)
			w.program.noteOp(&op)
			return true
		})
		return cmp.Or(wrong, err)
	})
	r.step(replica.Local{})
}

// thing returns the operation that made what another one names by a dot, as the replica knows it; nil: it names none so, or the replica
// does not know it.
func (r *party) thing(op *log.Op) (made *log.Op, err error) {
	dot := partition.Subject(op.Body)
	o := r.world.log(r)
	if at := o.at[dot]; at != 0 && at <= r.part.Cursor().Seq && makes(o.entries[at-1].Op.Body) {
		return &o.entries[at-1].Op, nil
	}
	err = r.part.Pending(0, func(x log.Op) bool {
		if x.Dot == dot && makes(x.Body) {
			made = &x
		}
		return made == nil
	})
	return made, err
}

// makes reports whether an operation makes a thing that others name by its dot.
func makes(body log.Body) bool {
	switch body.(type) {
	case *log.InputCreate, *log.ModelCreate, *log.WorkflowCreate:
		return true
	}
	return false
}

// before returns an encoded operation if its site made it right before another one.
func before(tail []byte, dot log.Dot) []byte {
	if tail == nil {
		return nil
	}
	op, err := log.Decode(tail)
	if err != nil || op.Dot.Site != dot.Site || op.Dot.Seq+1 != dot.Seq {
		return nil
	}
	return tail
}

// tidy does some of the work that was left for later.
func (r *party) tidy() {
	if r.up {
		r.runWithCuts(func() error {
			if err := r.node.tidy(); err != nil {
				return err
			}
			return r.world.inspect(r)
		})
	}
}

// reopen ends the replica in order and begins again.
func (r *party) reopen() {
	if !r.up {
		return
	}
	r.runWithCuts(func() error {
		if err := errors.Join(r.part.Close(), r.wire.Close()); err != nil {
			return err
		}
		r.up = false
		return r.start()
	})
}

// runWithCuts runs do, which a loss of power may end anywhere.
func (r *party) runWithCuts(do func() error) {
	if _, err := catchCut(do, r.crash); err != nil && !isFull(err, r.space) {
		r.world.fail(fmt.Errorf("replica %d: %w", r.number, err))
	}
}

// crash cuts the power, and has it back later.
func (r *party) crash() {
	if !r.up {
		return
	}
	r.world.stats.ReplicaCuts++
	r.machine = nil
	r.life++
	r.fall(5*time.Second, func() { r.runWithCuts(r.start) }, r.crash)
}

// checkedPartition is a partition whose verdicts are heard.
type checkedPartition struct {
	*partition.Partition
	party *party
}

// Renew implements [replica.Partition].
func (t *checkedPartition) Renew(site log.Site, last uint64, epoch log.Epoch) error {
	t.party.world.stats.Renewals++
	t.party.last = max(last, t.Log().Floor()-1)
	err := t.Partition.Renew(site, last, epoch)
	if err == nil {
		err = t.party.followMove()
	}
	return err
}

// Pull implements [replica.Partition].
func (t *checkedPartition) Pull(ctx context.Context, run partition.Run) ([]partition.OpVerdict, error) {
	told, err := t.Partition.Pull(ctx, run)
	t.checkFullDisk(&run, err)
	if err == nil {
		defer func() { t.party.world.fail(t.party.followMove()) }()
	}
	if from := t.party.world.log(t.party).ruled; err == nil && t.party.old && from > 0 && run.To >= from {
		t.party.world.fail(fmt.Errorf("I1: replica %d folds entry %d by rules that it does not know", t.party.number, run.To))
	}
	if errors.Is(err, fold.ErrNewer) {
		t.party.world.stats.Stopped++
	}
	for _, x := range told {
		t.party.world.fail(t.party.world.checkVerdict(t.party, x.Op.Dot, x.Verdict.Code))
	}
	return told, err
}

// Rebase implements [replica.Partition].
func (t *checkedPartition) Rebase(ctx context.Context, s partition.Snapshot) error {
	t.party.world.stats.Rebases++
	t.party.base = t.party.world.trimmed
	err := t.Partition.Rebase(ctx, s)
	if err == nil && t.party.wire.space > spacious {
		t.party.world.fail(fmt.Errorf("the full disk of replica %d takes a snapshot", t.party.number))
	}
	if err == nil {
		err = t.party.followMove()
	}
	return err
}

// edge is a replica that has enrolled and signs what it asks.
type edge struct {
	id      string
	key     ed25519.PrivateKey
	site    log.Site
	heard   uint64          // entry of the control log that its register is of
	token   partition.Token // of those whom it lets in
	revoked bool
	was     bool // revoked at some time: what the origin said then arrives after a backup without it was restored, too
}

// enrol makes the replica an edge.
func (r *party) enrol() error {
	ctx, control := context.Background(), r.world.origin.engine
	public, private, err := ed25519.GenerateKey(r.random)
	if err != nil {
		return err
	}
	token, made, err := control.Register.CreateEdge(ctx, register.Caller{Account: "operator"}, "edge", []string{r.world.app.String()})
	if err != nil {
		return err
	}
	if made, err = control.Register.EnrolEdge(ctx, token, [32]byte(public)); err != nil {
		return err
	}
	r.edge = &edge{id: made.ID, key: private, site: made.Site}
	return nil
}

// by returns the signature of a replica's operations, which the origin checks.
func (r *party) by() string {
	if r.edge != nil {
		return auth.ByToken // one of those that an edge lets in
	}
	return fmt.Sprintf("replica%d", r.number)
}

// token is that of somebody whom an edge lets in: of the generation that it knows. An older version notes none.
func (r *party) token() partition.Token {
	if r.edge == nil || r.old {
		return partition.Token{}
	}
	return r.edge.token
}

// register stores the application's tokens for an edge; other replicas do not use them.
func (r *party) register() replica.AppRecords {
	if r.edge == nil {
		return nil
	}
	return r.edge
}

// Seq implements [replica.AppRecords].
func (e *edge) Seq() uint64 { return e.heard }

// Take implements [replica.AppRecords].
func (e *edge) Take(seq uint64, data []byte) (gone string, err error) {
	x, err := catalog.DecodeRegister(data)
	if err != nil || x.Revoked != "" {
		return x.Revoked, err
	}
	e.heard, e.token = seq, partition.Token{Client: x.Client.ID, Generation: x.Client.Generation}
	return "", nil
}

// credential returns the credential of a request.
func (r *party) credential(a *replica.Ask) string {
	if r.edge != nil {
		return feed.Sign(r.edge.key, r.edge.id, r.clock.now(), a.Method, a.Path, a.Query, a.Body)
	}
	return "Key " + r.by()
}

// purge does what the host does when the replica is to forget all.
func (r *party) purge(x replica.Purge) error {
	switch {
	case r.world.deleted, r.edge != nil && r.edge.was:
	case r.world.o.LocalOnly:
		if err := r.checkPromises(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("I2: told to forget all: %s", x.Reason)
	}
	r.gone, r.up = true, false
	r.world.drop(r)
	return nil
}

// step hands the machine an event and does what it wants.
func (r *party) step(e replica.Event) {
	if !r.up {
		return
	}
	r.runWithCuts(func() error {
		effects, err := r.machine.Step(r.clock.now(), e)
		if err != nil {
			return fmt.Errorf("the machine ends: %v", err) // which a full disk is no reason for
		}
		for _, x := range effects {
			if err := r.effect(x); err != nil || r.gone {
				return err
			}
		}
		return r.world.observe(r)
	})
}

func (r *party) effect(x replica.Effect) error {
	switch x := x.(type) {
	case replica.Ask:
		r.send(x)
	case replica.Cancel:
		delete(r.asked, x.ID)
	case replica.WakeAt:
		r.waking++
		waking, life := r.waking, r.life
		r.world.after(x.At.Sub(r.clock.now()), func() {
			if r.life == life && r.waking == waking {
				r.step(replica.Wake{})
			}
		})
	case replica.Purge:
		return r.purge(x)
	}
	return nil
}
