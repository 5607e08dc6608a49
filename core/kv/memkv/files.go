package memkv

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
)

// magic begins the files of a store.
var magic = [8]byte{'S', 'L', 'S', 'T', 'O', 'R', 'E', '1'}

// compactSlack is how many bytes a journal may be longer than twice what is kept.
const compactSlack = 4 << 20

// Filed is a [Journal] in a pair of numbered files, as a browser's private file system has
// them: a batch is a record. It is compacted as it grows, a little with each batch.
type Filed struct {
	o       FiledOptions
	journal *journal.Journal // nil until Replay
}

var (
	_ Journal   = (*Filed)(nil)
	_ compacter = (*Filed)(nil)
)

// FiledOptions say where a store is kept.
type FiledOptions struct {
	Files journal.Files // borrowed for as long as the store is open
	Pair  [2]int        // the two of them
	Slack int64         // how many bytes more than twice what is kept the files may grow; 0 means 4 MB, below 0 means fewer
	Step  int           // see journal.Options
}

// NewFiled returns the journal in a pair of files, which Replay opens.
func NewFiled(o FiledOptions) *Filed {
	if o.Slack == 0 {
		o.Slack = compactSlack
	}
	return &Filed{o: o}
}

// Replay implements [Journal].
func (f *Filed) Replay(yield func(batch []byte) error) (err error) {
	f.journal, err = journal.Open(journal.Options{Files: f.o.Files, Pair: f.o.Pair, Magic: magic, Step: f.o.Step}, func(head []byte, _ int64, n int) error {
		if n != 0 {
			return fmt.Errorf("%w: a record of a store with a body of %d bytes", kv.ErrCorrupt, n)
		}
		return yield(head)
	})
	return err
}

// Append implements [Journal].
func (f *Filed) Append(batch []byte) (wait func() error, err error) {
	_, seq, err := f.journal.Append(batch, nil)
	if err != nil {
		return nil, err
	}
	return func() error { return f.journal.SyncTo(seq) }, nil
}

// due implements [compacter].
func (f *Filed) due(live int64) bool { return f.journal.Due(live, f.o.Slack) }

// compact implements [compacter].
func (f *Filed) compact(live kv.Snapshot) { f.journal.Compact(&source{live: live}) }

// compacter is a journal that grows with what it is given, and is told what of that is left.
type compacter interface {
	due(live int64) bool
	// compact takes over a snapshot of what all batches so far have made.
	compact(live kv.Snapshot)
}

// source is a snapshot as the batches that make it.
type source struct {
	live kv.Snapshot
	next []byte // the first key that is not written yet
}

// batchBytes is about how much of a snapshot is one batch.
const batchBytes = 32 << 10

// Next implements [journal.Source].
func (s *source) Next(to *journal.Copier, n int) (done bool, err error) {
	for n > 0 && !done {
		var b kv.Batch
		done = true
		err := s.live.Scan(s.next, nil, func(key, value []byte) bool {
			if len(b.Bytes()) >= min(n, batchBytes) {
				s.next, done = append(s.next[:0], key...), false
				return false
			}
			b.Put(key, value)
			return true
		})
		if err == nil && b.Len() > 0 {
			_, err = to.Put(b.Bytes(), nil)
		}
		if err != nil {
			return false, err
		}
		n -= len(b.Bytes())
	}
	return done, nil
}

// Moved implements [journal.Source]: records have no bodies.
func (s *source) Moved(int64, int64) {}

// Switch implements [journal.Source].
func (s *source) Switch(func(int64, []byte) error) error { return nil }

// Close implements [journal.Source].
func (s *source) Close() { _ = s.live.Close() }
