package kvtest

import (
	"errors"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/kv"
)

// ErrDisk is the error of reads of a [Failing] store.
var ErrDisk = errors.New("disk of the server")

// Failing is a store whose reads, and those of its snapshots, fail after a number of reads.
type Failing struct {
	kv.Store
	Left atomic.Int64 // number of reads that still succeed; negative once one has failed
	Once bool         // only one read fails, and later ones succeed
}

// NewFailing returns a store over another one. Reads succeed until the caller sets Left.
func NewFailing(store kv.Store) *Failing {
	f := &Failing{Store: store}
	f.Heal()
	return f
}

// Heal makes reads succeed again.
func (f *Failing) Heal() { f.Left.Store(1 << 40) }

func (f *Failing) over(r kv.Reader) failingReader { return failingReader{r, f} }

// Get implements [kv.Reader].
func (f *Failing) Get(key []byte) ([]byte, error) { return f.over(f.Store).Get(key) }

// Scan implements [kv.Reader].
func (f *Failing) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	return f.over(f.Store).Scan(lo, hi, yield)
}

// ScanBack implements [kv.Reader].
func (f *Failing) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	return f.over(f.Store).ScanBack(lo, hi, yield)
}

// Snapshot implements [kv.Store].
func (f *Failing) Snapshot() kv.Snapshot {
	s := f.Store.Snapshot()
	return failingSnapshot{f.over(s), s.Close}
}

// failingReader counts the reads of a store or of a snapshot.
type failingReader struct {
	r kv.Reader
	f *Failing
}

func (r failingReader) fails() bool {
	left := r.f.Left.Add(-1)
	return left == -1 || left < 0 && !r.f.Once
}

func (r failingReader) Get(key []byte) ([]byte, error) {
	if r.fails() {
		return nil, ErrDisk
	}
	return r.r.Get(key)
}

func (r failingReader) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	if r.fails() {
		return ErrDisk
	}
	return r.r.Scan(lo, hi, yield)
}

func (r failingReader) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	if r.fails() {
		return ErrDisk
	}
	return r.r.ScanBack(lo, hi, yield)
}

// failingSnapshot is a snapshot of a failing store.
type failingSnapshot struct {
	failingReader
	close func() error
}

func (s failingSnapshot) Close() error { return s.close() }
