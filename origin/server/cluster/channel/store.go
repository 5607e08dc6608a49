package channel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/sightline-dev/sightline/core/kv"
)

// Errors of a Store.
var (
	// ErrGap is returned by Show for an event that is not the next one. The watch must start again, after [Store.Rewind].
	ErrGap = errors.New("the watch has skipped an event")
	// ErrCluster is returned by Open for a store of another cluster, or of none. Such a store needs the copy of another node's store.
	ErrCluster = errors.New("the store does not belong to this cluster")
)

// Key is one of a cluster's two keys.
type Key string

// The keys of a cluster.
const (
	Primary Key = "0/primary"
	Log     Key = "0/log"
)

// Event is a change of a key, as a watch shows it.
type Event struct {
	Key      Key
	Revision int64 // of etcd's store
	Version  int64 // number of changes of Log up to this one, also if the key is Primary: so a node finds that its watch has skipped a record
	Value    []byte
}

// Txn is a transaction: If Primary was last changed at revision Term, and Log has version Version unless the key is Primary, Then Put.
type Txn struct {
	Key     Key
	Term    int64
	Version int64
	Value   []byte
}

// Position is the last record whose batch a store has.
type Position struct {
	Cluster  uint64 // id of the etcd cluster
	Revision int64  // revision of the record
	Version  int64  // number of records up to it
	Term     int64  // revision of the last claim before it; 0: none
}

// positionKey is the key of the position in a node's store.
var positionKey = []byte("c")

const positionSize = 32

func (p Position) put(b *kv.Batch) {
	v := make([]byte, 0, positionSize)
	for _, n := range []uint64{p.Cluster, uint64(p.Revision), uint64(p.Version), uint64(p.Term)} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	b.Put(positionKey, v)
}

// readPosition returns the position in a store; the zero Position: it has none.
func readPosition(r kv.Reader) (p Position, err error) {
	v, err := kv.Find(r, positionKey)
	if err != nil || v == nil {
		return p, err
	}
	if len(v) != positionSize {
		return p, fmt.Errorf("position of %d bytes: %w", len(v), kv.ErrCorrupt)
	}
	p.Cluster = binary.BigEndian.Uint64(v)
	for i, n := range []*int64{&p.Revision, &p.Version, &p.Term} {
		*n = int64(binary.BigEndian.Uint64(v[8*(i+1):]))
	}
	return p, nil
}

// Begin makes a store the first one of a cluster, whose etcd is at a revision and has no record.
func Begin(s kv.Store, cluster uint64, revision int64) error {
	var b kv.Batch
	Position{Cluster: cluster, Revision: revision}.put(&b)
	return kv.CommitAndWait(s, &b)
}

// Options are the settings of a Store. Store, Cluster and Self are required.
type Options struct {
	Store   kv.Store // the node's own store, which Close closes
	Cluster uint64   // id of the etcd cluster
	Self    string   // value of a claim of this process: no other process, and no other start of this one, has it

	// RecordSize is the size from which a record takes no further batch, and the size of a part, in bytes; 0: 256 KB.
	RecordSize int

	// Wake is called when there may be another transaction to send. It must not block, nor call the store. nil: nothing is called.
	Wake func()

	// Await calls other parts of a simulation until ready returns true. nil: other goroutines are such parts.
	Await func(ready func() bool)
}

// Store is the store of one node. While the node leads, it has the promises of [kv.Store] towards the whole cluster. While it follows, Commit and
// the waits of earlier Commits return kv.ErrFollows. Its methods are safe for concurrent use, except Show and Rewind, which one goroutine calls.
type Store struct {
	kv.Store
	o Options

	mu      sync.Mutex
	changed sync.Cond // signals room in the queue, and the end of a term

	at    Position // last applied record
	seen  Position // last event: its revision, and the records up to it
	parts parts
	term  int64 // revision of the newest claim; 0: none
	claim int64 // term in which this node leads; 0: it follows
	err   error // error of Commit while claim is 0

	queue []*record // records that were not shown, oldest first
	bytes int       // size of their batches
	sent  int64     // number of records of the log that are known to be decided
}

// record is a record that this node sends, or will send.
type record struct {
	batch  kv.Batch
	n      int      // number of Commits
	values [][]byte // the record, or its parts; nil: further Commits may join
	first  int64    // version of the log that has values[0]
	done   chan struct{}
	err    error // set before done is closed
}

// Limits of the Commits that wait.
const (
	maxQueued      = 1024
	maxQueuedBytes = 32 << 20
)

// Open returns the store of a node, which follows. The first event that it needs comes after the revision of its position. Errors: ErrCluster and
// those of kv.
func Open(o Options) (*Store, error) {
	at, err := readPosition(o.Store)
	if err != nil {
		return nil, err
	}
	if at.Cluster != o.Cluster {
		return nil, fmt.Errorf("cluster %x, position of cluster %x: %w", o.Cluster, at.Cluster, ErrCluster)
	}
	o.RecordSize = cmp.Or(o.RecordSize, recordSize)
	if o.Wake == nil {
		o.Wake = func() {}
	}
	s := &Store{Store: o.Store, o: o, at: at, seen: at, term: at.Term, err: kv.ErrFollows}
	s.changed.L = &s.mu
	return s, nil
}

// RoleChange is a change of a node's role.
type RoleChange int

// The changes.
const (
	Same    RoleChange = iota
	Leads              // the node begins to lead
	Follows            // the node has ended to lead
)

// Show takes the next event of the watch. A record's batch is visible afterwards. The caller must let what is above the store follow, before it
// shows the next event: the batch, if the node follows, or the change of the role. An event that was shown before changes nothing. Errors:
// ErrGap, ErrRecord and those of kv, after which Show may be called with the same event.
func (s *Store) Show(e Event) (b *kv.Batch, role RoleChange, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.seen.Version
	if e.Key == Log {
		version++
	}
	switch {
	case e.Revision <= s.seen.Revision:
	case e.Version != version:
		return nil, Same, fmt.Errorf("record %d after %d: %w", e.Version, s.seen.Version, ErrGap)
	case e.Key == Primary:
		role = s.showClaim(e)
	default:
		if b, err = s.showRecord(e); s.claim != 0 {
			b = nil
		}
	}
	return b, role, err
}

// showClaim takes a claim. The parts that came before it are void.
func (s *Store) showClaim(e Event) (role RoleChange) {
	s.seen.Revision, s.seen.Term, s.parts = e.Revision, e.Revision, parts{}
	if e.Revision <= s.term { // shown before the watch started again
		return Same
	}
	if s.term, s.err = e.Revision, kv.ErrFollows; s.claim != 0 {
		s.end(kv.ErrFollows)
		role = Follows
	}
	if string(e.Value) == s.o.Self {
		s.claim, s.sent, role = e.Revision, s.seen.Version, Leads
	}
	return role
}

// showRecord takes a record. It returns its batch; nil: a part of it is missing.
func (s *Store) showRecord(e Event) (*kv.Batch, error) {
	had := s.parts
	b, err := s.parts.take(e.Value, s.seen.Term)
	if err != nil {
		s.parts = had
		return nil, err
	}
	seen := Position{s.at.Cluster, e.Revision, e.Version, s.seen.Term}
	if b != nil {
		var batch kv.Batch
		batch.Append(b)
		seen.put(&batch)
		if err := s.Store.Apply(&batch); err != nil {
			s.parts = had
			return nil, err
		}
		s.at = seen
	}
	s.seen = seen
	s.sent = max(s.sent, e.Version)
	if len(s.queue) > 0 && b != nil && s.claim != 0 {
		s.pop(nil)
	}
	s.changed.Broadcast()
	return b, nil
}

// pop removes the oldest record and ends its waits.
func (s *Store) pop(err error) {
	r := s.queue[0]
	s.queue, s.bytes = s.queue[1:], s.bytes-len(r.batch.Bytes())
	r.err = err
	close(r.done)
}

// end ends the term of this node. The waits, and later Commits, return err.
func (s *Store) end(err error) {
	for s.claim, s.err = 0, err; len(s.queue) > 0; {
		s.pop(err)
	}
	s.changed.Broadcast()
}

// Resign ends the term of this node before another node claims, because its own store refuses a record. The waits return err: the cluster may
// have their batches.
func (s *Store) Resign(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claim != 0 {
		s.end(err)
	}
}

// Rewind prepares the store for a watch that starts again. It returns the revision of its first event.
func (s *Store) Rewind() (revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.parts = s.at, parts{}
	return s.at.Revision + 1
}

// Position returns the position of the last applied record, and the term in which the node leads; 0: it follows.
func (s *Store) Position() (at Position, term int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.claim
}

// Sync makes all that was shown survive a crash. It returns the revision up to which this node no longer needs the records of etcd.
func (s *Store) Sync() (revision int64, err error) {
	at, _ := s.Position()
	return at.Revision, kv.CommitAndWait(s.Store, &kv.Batch{})
}

// MayAnswer reports whether this node may answer a read that came before etcd was asked for the revision of the last claim: then all that
// other nodes acknowledged before is visible here.
func (s *Store) MayAnswer(claim int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claim != 0 && s.claim == claim
}

// Claim returns the transaction by which this node claims to be the primary. ok is false if the node leads.
func (s *Store) Claim() (t Txn, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Txn{Key: Primary, Term: s.term, Value: []byte(s.o.Self)}, s.claim == 0
}

// Next returns the transaction to send next; ok is false if there is none. The caller sends it until it has an answer or the watch shows the
// record, and calls [Store.Sent] if it succeeded.
func (s *Store) Next() (t Txn, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.unsent()
	if r == nil {
		return Txn{}, false
	}
	if r.values == nil {
		r.values, r.first = encode(&r.batch, s.claim, s.o.RecordSize), s.sent+1
	}
	return Txn{Key: Log, Term: s.claim, Version: s.sent, Value: r.values[s.sent+1-r.first]}, true
}

// unsent returns the oldest record that is not decided, as far as this node knows; nil: there is none.
func (s *Store) unsent() *record {
	for _, r := range s.queue {
		if r.values == nil || s.sent < r.first+int64(len(r.values))-1 {
			return r
		}
	}
	return nil
}

// Sent records that a transaction succeeded.
func (s *Store) Sent(t Txn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Term == s.claim {
		s.sent = max(s.sent, t.Version+1)
	}
}

// await waits until ready returns true. The caller holds mu; await releases it meanwhile.
func (s *Store) await(ready func() bool) {
	if s.o.Await == nil {
		for !ready() {
			s.changed.Wait()
		}
		return
	}
	s.mu.Unlock()
	s.o.Await(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return ready()
	})
	s.mu.Lock()
}

// Commit implements [kv.Store]. It waits while too many Commits wait. The batch is not refused for a full disk: callers ask Room before they add
// data.
func (s *Store) Commit(b *kv.Batch) (wait func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, n := len(b.Bytes()), 0
	s.await(func() bool {
		n = 0
		for _, r := range s.queue {
			n += r.n
		}
		return s.claim == 0 || n == 0 || n < maxQueued && s.bytes+size <= maxQueuedBytes
	})
	if s.claim == 0 {
		return nil, s.err
	}
	var r *record
	if len(s.queue) > 0 {
		r = s.queue[len(s.queue)-1]
	}
	if r == nil || r.values != nil || r.n > 0 && len(r.batch.Bytes())+size > s.o.RecordSize {
		r = &record{done: make(chan struct{})}
		s.queue = append(s.queue, r)
	}
	before := len(r.batch.Bytes())
	r.batch.Append(b)
	r.n++
	s.bytes += len(r.batch.Bytes()) - before
	s.o.Wake()
	return func() error {
		if s.o.Await != nil {
			s.o.Await(func() bool {
				select {
				case <-r.done:
					return true
				default:
					return false
				}
			})
		}
		<-r.done
		return r.err
	}, nil
}

// Close ends the term, and closes the node's own store. The waits return kv.ErrClosed.
func (s *Store) Close() error {
	s.Resign(kv.ErrClosed)
	return s.o.Store.Close()
}
