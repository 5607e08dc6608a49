package log

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/sightline-dev/sightline/core/kv"
)

// Store is one partition's log on a kv store, under a prefix of its keys:
//
//	prefix m          → 1 first epoch, 2 floor, 3 chain before the floor, 6 epochs
//	prefix e seq      → chain of 16 bytes, operation          seq: 8 bytes, big-endian
//
// Each Append writes one batch. Entries count from 1 without gaps and never change. The methods are safe for concurrent use.
//
// A log follows if another process appends its entries to the store: see [Store.Advance].
type Store struct {
	store  kv.Store
	prefix []byte

	mu sync.Mutex
	meta
	opening  Epoch  // epoch of the entries that are appended next
	appended uint64 // last entry in the store
	chain    Chain  // chain of the log up to appended
	durable  uint64 // last entry that survives a crash
	failed   error
	turn     uint64 // number of the calls of Advance and Lead
	batch    kv.Batch
	tails    map[int]func()
	nextTail int
}

// meta is the stored record of a log.
//
//field:message
//field:reserved 4 5
type meta struct {
	epoch  Epoch     `wire:"1"`
	floor  uint64    `wire:"2"` // first entry
	base   Chain     `wire:"3"` // chain before floor
	epochs []segment `wire:"6"` // nil: all entries belong to epoch
}

// Options of a log.
type Options struct {
	Prefix []byte // prefix of the log's keys
	Epoch  Epoch  // the opening: epoch of the entries that are appended

	// Durable is an entry that the caller knows to survive a crash, usually the last folded one. Open syncs only if the log has later
	// entries.
	Durable uint64

	// Follow opens a log that follows. Open then writes nothing, and a log that the store lacks is empty.
	Follow bool
}

// Open opens the log, or creates one. Unsynced entries of an earlier process are then either durable or lost.
func Open(store kv.Store, o Options) (*Store, error) {
	l := &Store{store: store, prefix: bytes.Clone(o.Prefix), opening: o.Epoch, tails: map[int]func(){}}
	err := l.load()
	if err == nil && !o.Follow {
		l.durable = min(o.Durable, l.appended)
		if err = l.create(); err == nil {
			err = l.WaitDurable()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return l, nil
}

// create writes the record of a log that has none.
func (l *Store) create() error {
	if l.floor > 0 {
		return nil
	}
	l.epoch, l.floor, l.base = l.opening, 1, Chain(l.opening)
	if l.appended == 0 {
		l.chain = l.base
	}
	err := kv.CommitAndWait(l.store, l.record())
	if err != nil {
		l.meta = meta{}
	}
	return err
}

// load reads the record and the last entry of the log. All entries in the store count as durable.
func (l *Store) load() error {
	data, err := kv.Find(l.store, l.metaKey())
	if l.meta = (meta{}); err == nil && data != nil {
		l.meta, err = decodeMeta(data)
	}
	if err != nil {
		return err
	}
	l.appended, l.chain = max(l.floor, 1)-1, l.base
	for key, value := range kv.Backward(l.store, l.entryKey(0), l.end(), &err) {
		l.appended = seqOf(key)
		l.chain, err = chainOf(value)
		break
	}
	l.durable = l.appended
	return err
}

// record returns a batch with the record of the log.
func (l *Store) record() *kv.Batch {
	var b kv.Batch
	b.Put(l.metaKey(), encodeMeta(nil, &l.meta))
	return &b
}

func (l *Store) metaKey() []byte { return append(bytes.Clone(l.prefix), 'm') }

func (l *Store) entryKey(seq uint64) []byte {
	k := append(make([]byte, 0, len(l.prefix)+9), l.prefix...)
	return binary.BigEndian.AppendUint64(append(k, 'e'), seq)
}

// end returns the key after all entries.
func (l *Store) end() []byte { return append(bytes.Clone(l.prefix), 'f') }

func chainOf(value []byte) (Chain, error) {
	if len(value) < len(Chain{}) {
		return Chain{}, fmt.Errorf("%w: entry of %d bytes", kv.ErrCorrupt, len(value))
	}
	return Chain(value[:len(Chain{})]), nil
}

// Next returns the chain after an operation. op is the result of [Encode].
func (c Chain) Next(op []byte) Chain {
	h := sha256.New()
	h.Write(c[:])
	h.Write(op)
	var sum [sha256.Size]byte
	return Chain(h.Sum(sum[:0])[:len(c)])
}

// Head returns the last entry that survives a crash, 0 for none. Readers see entries up to it.
func (l *Store) Head() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// LastSeq returns the last entry in the store, which may not be durable yet.
func (l *Store) LastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appended
}

// Floor returns the first entry that the log still has, or will have.
func (l *Store) Floor() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.floor, 1)
}

// Append adds operations at the end, all or none, in a row. It writes also, which may be nil, to the local store before readers see them.
// wait returns nil once they are durable, and until then no reader sees them; the caller calls it once. If wait returns an error, they may or
// may not be durable, and the log rejects later appends. Append borrows the operations until it returns. Errors: those of kv.
func (l *Store) Append(ops []Op, also *kv.Batch) (first uint64, wait func() error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return 0, nil, l.failed
	}
	l.batch.Reset()
	if also != nil {
		l.batch.Append(also)
	}
	epochs := l.epochs
	if l.noteOpening() {
		l.batch.Put(l.metaKey(), encodeMeta(nil, &l.meta))
	}
	first, chain := l.appended+1, l.chain
	value := make([]byte, 0, 512)
	for i := range ops {
		value = Encode(append(value[:0], chain[:]...), &ops[i])
		chain = chain.Next(value[len(chain):])
		copy(value, chain[:])
		l.batch.Put(l.entryKey(first+uint64(i)), value)
	}
	last := l.appended
	l.appended += uint64(len(ops))
	if wait, err = l.commit(&l.batch); err != nil {
		l.epochs, l.appended = epochs, last
		return 0, nil, err
	}
	l.chain = chain
	return first, wait, nil
}

// WaitDurable waits until all entries appended before the call are durable.
func (l *Store) WaitDurable() error {
	l.mu.Lock()
	if l.failed != nil || l.durable == l.appended {
		defer l.mu.Unlock()
		return l.failed
	}
	wait, err := l.commit(l.record())
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return wait()
}

// commit commits a batch. wait returns once it, and all entries appended before, are durable. The caller holds mu, and calls wait without it.
func (l *Store) commit(b *kv.Batch) (wait func() error, err error) {
	durable, err := l.store.Commit(b)
	if err != nil {
		return nil, err
	}
	last, turn := l.appended, l.turn
	return func() error { return l.markDurable(turn, last, durable()) }, nil
}

// markDurable records that the entries up to last, appended in a turn, are durable, or that the sync failed.
func (l *Store) markDurable(turn, last uint64, err error) error {
	l.mu.Lock()
	moves := false
	switch {
	case turn != l.turn: // the log was read again since
	case err != nil:
		l.failed = err
	case last > l.durable:
		l.durable, moves = last, true
	}
	l.mu.Unlock()
	if moves {
		l.moved()
	}
	return err
}

// moved tells the tails that Head has moved.
func (l *Store) moved() {
	l.mu.Lock()
	tails := maps.Clone(l.tails)
	l.mu.Unlock()
	for _, moved := range tails {
		moved()
	}
}

// Read yields the entries, starting at from, up to Head as it was when Read began, until yield returns false. yield may keep the entries.
// Errors: ErrTrimmed below Floor, kv.ErrCorrupt if an entry is missing or has changed.
func (l *Store) Read(from uint64, yield func(Entry) bool) error {
	l.mu.Lock()
	floor, durable, chain := l.floor, l.durable, l.base
	l.mu.Unlock()
	if from < floor {
		return fmt.Errorf("entry %d: %w", from, ErrTrimmed)
	}
	next, known := from, from == floor
	var failed error
	err := l.store.Scan(l.entryKey(from), l.entryKey(durable+1), func(key, value []byte) bool {
		var e Entry
		e, failed = readEntry(key, value, next, &chain, known)
		known = true
		next++
		return failed == nil && yield(e)
	})
	if failed == nil && err == nil && next == from && from <= durable {
		failed = fmt.Errorf("entry %d is missing: %w", from, kv.ErrCorrupt)
	}
	if failed != nil && from < l.Floor() {
		return fmt.Errorf("entry %d: %w", from, ErrTrimmed)
	}
	return errors.Join(err, failed)
}

// readEntry decodes an entry, which must have the number want. If known is set, it checks the entry against chain, the chain before it.
func readEntry(key, value []byte, want uint64, chain *Chain, known bool) (Entry, error) {
	c, err := chainOf(value)
	switch {
	case err != nil || seqOf(key) != want:
		return Entry{}, fmt.Errorf("entry %d is missing: %w", want, kv.ErrCorrupt)
	case known && chain.Next(value[len(c):]) != c:
		return Entry{}, fmt.Errorf("entry %d differs from the appended one: %w", want, kv.ErrCorrupt)
	}
	*chain = c
	return entryOf(key, value)
}

// seqOf returns the number of the entry with a key.
func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// entryOf decodes an entry of the store without checking its chain.
func entryOf(key, value []byte) (e Entry, err error) {
	if _, err = chainOf(value); err != nil {
		return e, err
	}
	e.Seq = seqOf(key)
	if e.Op, err = Decode(bytes.Clone(value[len(Chain{}):])); err != nil {
		err = fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	return e, err
}

// Chain returns the chain up to an entry seq ≤ Head, or 0. It returns ErrTrimmed below Floor - 1.
func (l *Store) Chain(seq uint64) (Chain, error) {
	l.mu.Lock()
	floor, base := l.floor, l.base
	l.mu.Unlock()
	switch {
	case seq+1 == floor:
		return base, nil
	case seq < floor:
		return Chain{}, fmt.Errorf("entry %d: %w", seq, ErrTrimmed)
	}
	return l.chainAt(seq)
}

// chainAt returns the chain up to an entry, which the log has.
func (l *Store) chainAt(seq uint64) (Chain, error) {
	value, err := l.store.Get(l.entryKey(seq))
	if err != nil {
		return Chain{}, fmt.Errorf("entry %d: %w", seq, err)
	}
	return chainOf(value)
}

// WatchHead calls moved each time after Head has moved, from the goroutine that moved it. moved must not wait; it calls Head for the new
// value. stop ends the calls, but one may still be running.
func (l *Store) WatchHead(moved func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.nextTail
	l.nextTail++
	l.tails[id] = moved
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.tails, id)
	}
}

// Trim deletes the entries below an entry, which is at most Head + 1. When it returns no error, that survives a crash.
func (l *Store) Trim(below uint64) error {
	l.mu.Lock()
	wait, err := l.trim(below)
	l.mu.Unlock()
	if err != nil || wait == nil {
		return err
	}
	return wait()
}

// trim commits the deletion of entries. A nil wait means that there are none. The caller holds mu.
func (l *Store) trim(below uint64) (wait func() error, err error) {
	if l.failed != nil || below <= l.floor {
		return nil, l.failed
	}
	if below > l.durable+1 {
		return nil, fmt.Errorf("trim below entry %d of %d: %w", below, l.durable, kv.ErrNotFound)
	}
	chain, err := l.chainAt(below - 1)
	if err != nil {
		return nil, err
	}
	floor, base := l.floor, l.base
	l.floor, l.base = below, chain
	b := l.record()
	b.DeleteRange(l.entryKey(0), l.entryKey(below))
	if wait, err = l.commit(b); err != nil {
		l.floor, l.base = floor, base
	}
	return wait, err
}
