package kvtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// counter is the key under which each batch of a session writes its number, from 1.
var counter = []byte("a-counter")

// Session is a script of calls drawn from a seed, with the state after each batch. A test runs it on a store and stops the store
// anywhere. Check finds the state that the store has.
type Session struct {
	steps  []step
	states []kv.Snapshot // [n] is after the first n batches
}

// step is a batch and the way to write it to the store.
type step struct {
	batch  *kv.Batch
	commit bool // by Commit instead of Apply
	wait   bool // call wait at once
	read   bool // read from the store afterwards
}

// NewSession returns a session of calls random batches: puts of 0 to maxValue bytes, deletes and range deletes over a few hundred keys.
func NewSession(seed uint64, calls, maxValue int) *Session {
	rng := rand.New(rand.NewPCG(seed, 1))
	model := memkv.New()
	s := &Session{states: []kv.Snapshot{model.Snapshot()}}
	for i := range calls {
		st := step{batch: &kv.Batch{}, commit: rng.IntN(3) > 0, wait: rng.IntN(2) == 0, read: rng.IntN(4) == 0}
		for range 1 + rng.IntN(8) {
			draw(rng, st.batch, maxValue)
		}
		st.batch.Put(counter, binary.BigEndian.AppendUint64(nil, uint64(i+1)))
		if err := model.Apply(st.batch); err != nil {
			panic(err)
		}
		s.steps = append(s.steps, st)
		s.states = append(s.states, model.Snapshot())
	}
	return s
}

func draw(rng *rand.Rand, w kv.Writer, maxValue int) {
	switch key := drawKey(rng); rng.IntN(12) {
	case 0, 1:
		w.Delete(key)
	case 2:
		hi := bytes.Clone(key)
		hi[len(hi)-1] += byte(rng.IntN(4))
		w.DeleteRange(key, hi)
	default:
		value := make([]byte, rng.IntN(maxValue+1))
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		w.Put(key, value)
	}
}

func drawKey(rng *rand.Rand) []byte {
	return fmt.Appendf(nil, "key-%02d-%c", rng.IntN(40), 'a'+rng.IntN(10))
}

// Progress is the progress of a run. It may be read during the run.
type Progress struct {
	Durable atomic.Int64 // batches that a crash must keep: the last whose wait returned nil
	Given   atomic.Int64 // batches that a crash may keep: the last handed to the store
}

// Run writes the session's batches to the store, starting with number `from`+1. It stops at the first lasting error. After kv.ErrFull it
// asks for room a few times.
func (s *Session) Run(store kv.Store, from int, p *Progress) error {
	var waits []func() error
	for i := from; i < len(s.steps); i++ {
		st := s.steps[i]
		p.Given.Store(int64(i + 1))
		wait, err := s.give(store, st)
		if err != nil {
			if !errors.Is(err, kv.ErrFailed) { // the store has no part of the batch then
				p.Given.Store(int64(i))
			}
			return err
		}
		if wait == nil {
			continue
		}
		if waits = append(waits, wait); !st.wait {
			continue
		}
		for _, wait := range waits {
			if err := wait(); err != nil {
				return err
			}
		}
		waits = nil
		p.Durable.Store(int64(i + 1))
		if err := s.read(store, st, i+1); err != nil {
			return err
		}
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			return err
		}
	}
	return nil
}

// give writes one batch to the store. While the store is full and has no room, it tries again.
func (s *Session) give(store kv.Store, st step) (wait func() error, err error) {
	for range 4 {
		if st.commit {
			wait, err = store.Commit(st.batch)
		} else {
			err = store.Apply(st.batch)
		}
		if !errors.Is(err, kv.ErrFull) {
			return wait, err
		}
		if err := store.Room(); err != nil && !errors.Is(err, kv.ErrFull) {
			return nil, err
		}
	}
	return wait, err
}

// read compares a part of the store with the state after batch n.
func (s *Session) read(store kv.Store, st step, n int) error {
	if !st.read {
		return nil
	}
	snap := store.Snapshot()
	return errors.Join(same(snap, s.states[n], []byte("key-1"), []byte("key-2")), snap.Close())
}

// Check returns the number n of batches in r, and compares all of r with the state after batch n. It returns an error if they differ, and
// if n is not within least ≤ n ≤ most.
func (s *Session) Check(r kv.Reader, least, most int64) (n int, err error) {
	value, err := r.Get(counter)
	switch {
	case errors.Is(err, kv.ErrNotFound):
	case err != nil:
		return 0, err
	case len(value) != 8 || binary.BigEndian.Uint64(value) >= uint64(len(s.states)):
		return 0, fmt.Errorf("%w: counter %x", errWrong, value)
	default:
		n = int(binary.BigEndian.Uint64(value))
	}
	if int64(n) < least || int64(n) > most {
		return n, fmt.Errorf("%w: %d batches, want %d to %d", errWrong, n, least, most)
	}
	return n, same(r, s.states[n], nil, nil)
}

// Len returns the number of batches.
func (s *Session) Len() int { return len(s.steps) }

// errWrong reports data that differ from the written data although the store returned no error.
var errWrong = errors.New("wrong data")

// IsWrongData reports whether an error of Check or Run means that a store returned wrong data without an error.
func IsWrongData(err error) bool { return errors.Is(err, errWrong) }

// same compares two readers forwards and backwards.
func same(got, want kv.Reader, lo, hi []byte) error {
	type pair struct{ key, value []byte }
	var expected []pair
	var failed error
	for k, v := range kv.Range(want, lo, hi, &failed) {
		expected = append(expected, pair{bytes.Clone(k), bytes.Clone(v)})
	}
	for _, loop := range []func(kv.Reader, []byte, []byte, *error) iter.Seq2[[]byte, []byte]{kv.Range, kv.Backward} {
		i := 0
		for k, v := range loop(got, lo, hi, &failed) {
			switch {
			case i == len(expected):
				return fmt.Errorf("%w: %q is there", errWrong, k)
			case !bytes.Equal(k, expected[i].key):
				return fmt.Errorf("%w: key %q, want %q", errWrong, k, expected[i].key)
			case !bytes.Equal(v, expected[i].value):
				return fmt.Errorf("%w: key %q has another value", errWrong, k)
			}
			i++
		}
		if failed != nil {
			return failed
		}
		if i < len(expected) {
			return fmt.Errorf("%w: %d keys, want %d", errWrong, i, len(expected))
		}
		slices.Reverse(expected)
	}
	return nil
}
