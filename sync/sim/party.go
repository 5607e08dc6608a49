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
	"github.com/sightline-dev/sightline/core/fold/foldtest"
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
	user   int   // number in its credential: that of the party that it is a copy of
	edge   *edge // nil if the replica sends a key
	old    bool  // whether it runs an older version, which does not know newRules and stores no tokens
	purged bool  // whether it received a Purge and deleted its data

	part     *partition.Replica
	machine  *replica.Machine
	life     int             // number of starts and ends of the process; answers to an earlier process are lost
	down     bool            // whether its link is cut
	requests map[uint64]bool // ids of the requests without a complete answer
	waking   int             // number of WakeAt effects; only the last one has an effect

	image *image           // earlier state of the disk; nil if there is none
	seen  partition.Cursor // cursor at the last check
	base  uint64           // world.trimmed at the last rebase
	small bool             // whether it stores few pulled entries
}

// promises are the facts that a replica must not contradict later. A rollback of its disk restores the facts of that time.
type promises struct {
	promised []log.Dot           // operations that it acknowledged
	refused  map[log.Dot]refusal // verdicts of those that ended in a conflict
	ords     map[uint32]log.Dot  // inputs by ordinal, in log
	log      *oracle             // log with the ordinals
}

// clone returns a copy of p that later changes of p do not affect.
func (p promises) clone() promises {
	p.promised, p.refused, p.ords = slices.Clone(p.promised), maps.Clone(p.refused), maps.Clone(p.ords)
	return p
}

// begins is the id in party.requests for the Begin of a new machine, until it runs. No request has this id.
const begins = 0

// refusal is a verdict that is a conflict, in a log.
type refusal struct {
	log  *oracle
	code fold.Code
	at   uint64 // cursor with which the replica got it
}

// start opens the partition on the disk, creates a machine and schedules its Begin. If the replica was purged, start does nothing.
func (r *party) start() (err error) {
	if r.purged {
		return nil
	}
	if err := r.mount(); err != nil {
		return err
	}
	r.life++
	if r.part, err = partition.OpenReplica(partition.Options{
		Store: r.wire, App: r.world.app, Clock: r.clock.now, Rules: r.rules(), Epoch: name(r.random),
	}, partition.ReplicaOptions{KeepBytes: r.room()}); err != nil {
		return err
	}
	if r.machine, err = replica.New(replica.Options{
		App: r.world.app, Partition: &checkedPartition{r.part, r}, Store: r.wire, Blobs: r.blobs, Rand: r.random, Live: replica.Poll,
		Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull}, Audit: r.world.audit, AppRecords: r.register(),
	}); err != nil {
		return err
	}
	r.up, r.requests = true, map[uint64]bool{begins: true}
	life := r.life
	r.world.after(0, func() {
		if r.life == life {
			delete(r.requests, begins)
			r.step(replica.Begin{})
		}
	})
	if r.world.o.Memory { // nobody can tell operations of a process that continued an image and ended before its next contact
		r.promised = slices.DeleteFunc(r.promised, r.world.oracle.isUsed)
	}
	r.seen = r.part.Cursor()
	// Verdicts that a crash undid arrive again, or a snapshot skips them.
	maps.DeleteFunc(r.refused, func(dot log.Dot, x refusal) bool {
		return x.log != r.world.log(r) || x.at > r.seen.Seq
	})
	return r.world.inspect(r)
}

// room returns the maximum size of the stored entries in bytes. 0 means the default.
func (r *party) room() uint64 {
	if r.small {
		return 1000
	}
	return 0
}

// name returns a random epoch.
func name(random io.Reader) (e log.Epoch) {
	if _, err := io.ReadFull(random, e[:]); err != nil {
		panic(err) // random never ends
	}
	return e
}

// Versions of the fold's rules in the simulation: those of this program, and a later version with the same rules. The simulator checks which
// party folds which entries.
const (
	oldRules = fold.Version
	newRules = fold.Version + 1
)

// rules returns the newest version of the fold's rules that the replica knows.
func (r *party) rules() uint32 {
	if r.old {
		return oldRules
	}
	return newRules
}

// write submits random operations of a user of the replica.
func (r *party) write() {
	if !r.up {
		return
	}
	w := r.world
	if r.image == nil || w.rng.IntN(2) == 0 {
		r.keep()
	}
	bodies := w.bodies(r.part)
	r.runWithCuts(func() error {
		caller := partition.Caller{By: r.by(), Token: r.token()}
		last, _ := r.part.Outbox()
		shown := r.part.View()
		defer func() { w.fail(shown.Close()) }()
		v, _, err := r.part.SubmitSpan(context.Background(), caller, bodies, r.supply(bodies))
		if err != nil {
			return err
		}
		w.stats.Writes += len(v)
		seen := r.part.Cursor()
		var wrong error
		err = r.part.Pending(last, func(_ uint64, op log.Op) bool {
			wrong = cmp.Or(foldtest.CheckSeen(shown.Reader, &op),
				w.oracle.issue(&op, issue{data: log.Encode(nil, &op), seen: seen.Seq, chain: seen.Chain, token: caller.Token, by: r}))
			r.promised = append(r.promised, op.Dot)
			w.program.noteOp(&op)
			return wrong == nil
		})
		return cmp.Or(wrong, err)
	})
	r.step(replica.LocalWrite{})
}

// tidy does all deferred work of the partition, and checks the replica.
func (r *party) tidy() {
	if r.up {
		r.runWithCuts(func() error {
			if err := r.node.tidy(r.part.Partition); err != nil {
				return err
			}
			return r.world.inspect(r)
		})
	}
}

// reopen closes the replica in order and starts it again.
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

// runWithCuts runs do. A loss of power may end do at any step of the store. Errors fail the run, except that of a full disk.
func (r *party) runWithCuts(do func() error) {
	if _, err := catchCut(do, r.crash); err != nil && !isFull(err, r.space) {
		r.world.fail(fmt.Errorf("replica %d: %w", r.number, err))
	}
}

// crash kills the process or cuts its power. The replica starts again within five seconds.
func (r *party) crash() {
	if !r.up {
		return
	}
	r.world.stats.ReplicaCuts++
	r.part, r.machine = nil, nil
	r.life++
	r.stop(5*time.Second, func() { r.runWithCuts(r.start) }, r.crash)
}

// checkedPartition is a partition that checks the calls of the machine and their verdicts against the oracle.
type checkedPartition struct {
	*partition.Replica
	party *party
}

// Pull implements [replica.Partition].
func (t *checkedPartition) Pull(ctx context.Context, run partition.Run) ([]partition.OpVerdict, error) {
	verdicts, err := t.Replica.Pull(ctx, run)
	t.checkFullDisk(&run, err)
	if from := t.party.world.log(t.party).ruled; err == nil && t.party.old && from > 0 && run.To >= from {
		t.party.world.fail(fmt.Errorf("I1: replica %d folds entry %d by rules that it does not know", t.party.number, run.To))
	}
	if errors.Is(err, fold.ErrNewer) {
		t.party.world.stats.Stopped++
	}
	for _, x := range verdicts {
		t.party.world.fail(t.party.world.checkVerdict(t.party, x.Op.Dot, x.Verdict.Code))
	}
	return verdicts, err
}

// Rebase implements [replica.Partition].
func (t *checkedPartition) Rebase(ctx context.Context, s partition.Snapshot) error {
	t.party.world.stats.Rebases++
	t.party.base = t.party.world.trimmed
	err := t.Replica.Rebase(ctx, s)
	if err == nil && t.party.world.o.Memory {
		t.party.dropPromises(&s)
	}
	if err == nil && t.party.wire.space > spacious {
		t.party.world.fail(fmt.Errorf("the full disk of replica %d takes a snapshot", t.party.number))
	}
	return err
}

// dropPromises drops promises that a snapshot counts as kept, since the log has other operations by their names at stable entries: no entry
// shows that.
func (r *party) dropPromises(s *partition.Snapshot) {
	o, stable := r.world.oracle, max(s.Stable, r.world.trimmed)
	r.promised = slices.DeleteFunc(r.promised, func(dot log.Dot) bool {
		forgiven := o.isUsed(dot) && !o.hasIssue(dot) && o.at[dot] != 0 && o.at[dot] <= stable
		if forgiven {
			r.world.stats.Forgiven++
		}
		return forgiven
	})
}

// edge is the state of a replica that has enrolled as an edge and signs its requests.
type edge struct {
	id      string
	key     ed25519.PrivateKey
	seq     uint64          // entry of the control log with its app record
	token   partition.Token // token of the callers that it authenticates
	revoked bool
	was     bool // whether it was ever revoked; an answer of that time may arrive after a restore undid the revocation
}

// enrol creates an edge at the origin and makes the replica that edge.
func (r *party) enrol() error {
	ctx, control := context.Background(), r.world.origin.engine
	public, private, err := ed25519.GenerateKey(r.random)
	if err != nil {
		return err
	}
	token, record, err := control.Register.CreateEdge(ctx, register.Caller{Account: "operator"}, "edge", []string{r.world.app.String()})
	if err != nil {
		return err
	}
	if record, err = control.Register.EnrolEdge(ctx, token, [32]byte(public)); err != nil {
		return err
	}
	r.edge = &edge{id: record.ID, key: private}
	return nil
}

// by returns the author (By) of the replica's operations, which the origin checks.
func (r *party) by() string {
	if r.edge != nil {
		return auth.ByToken // callers of an edge have tokens
	}
	return fmt.Sprintf("replica%d", r.user)
}

// token returns the token of a caller of an edge, with the generation that the edge knows. It is zero for other replicas and for an older
// version, which stores no tokens.
func (r *party) token() partition.Token {
	if r.edge == nil || r.old {
		return partition.Token{}
	}
	return r.edge.token
}

// register returns the store of an edge's app record. Other replicas have none.
func (r *party) register() replica.AppRecords {
	if r.edge == nil {
		return nil
	}
	return r.edge
}

// Seq implements [replica.AppRecords].
func (e *edge) Seq() uint64 { return e.seq }

// Apply implements [replica.AppRecords].
func (e *edge) Apply(seq uint64, data []byte) (reason string, err error) {
	x, err := catalog.DecodeAppRecord(data)
	if err != nil || x.Revoked != "" {
		return x.Revoked, err
	}
	e.seq, e.token = seq, partition.Token{Client: x.Client.ID, Generation: x.Client.Generation}
	return "", nil
}

// credential returns the credential of a request.
func (r *party) credential(a *replica.Ask) string {
	if r.edge != nil {
		return feed.Sign(r.edge.key, r.edge.id, r.clock.now(), a.Method, a.Path, a.Query, a.Body)
	}
	return "Key " + r.by()
}

// purge ends the replica, as its host does on a Purge. It returns an error if the origin had no reason for the Purge.
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
	r.purged, r.up = true, false
	r.world.drop(r)
	return nil
}

// step passes an event to the machine and carries out the effects.
func (r *party) step(e replica.Event) {
	if !r.up {
		return
	}
	r.runWithCuts(func() error {
		effects, err := r.machine.Step(r.clock.now(), e)
		if err != nil {
			return fmt.Errorf("the machine ends: %v", err) // without %w, so that the error of a full disk fails the run, too
		}
		for _, x := range effects {
			if err := r.effect(x); err != nil || r.purged {
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
		delete(r.requests, x.ID)
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
