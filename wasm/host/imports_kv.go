package host

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"

	"github.com/sightline-dev/sightline/core/kv"
)

// Bounds of what an instance may hold open in the store.
const (
	maxScans     = 256
	maxSnapshots = 256
)

// errTooMany is the error of a guest that keeps opening scans or snapshots.
var errTooMany = errors.New("too many open scans or snapshots")

// reading is what a guest holds open in the store, by number.
type reading struct {
	last      uint32 // number given
	snapshots map[uint32]kv.Snapshot
	scans     map[uint32]*scan
}

// scan is a scan that is asked for its records a few at a time.
type scan struct {
	snapshot   uint32 // 0: of the store
	next       func() (key, value []byte, ok bool)
	stop       func()
	key, value []byte // the next record, while there is one; borrowed from the store until next
	more       bool
	err        error // what the store said at the end
}

// advance goes to the next record.
func (s *scan) advance() { s.key, s.value, s.more = s.next() }

// newScan opens a scan, which shows the store as it is now.
func newScan(r kv.Reader, snapshot uint32, lo, hi []byte, back bool) *scan {
	s := &scan{snapshot: snapshot}
	walk := r.Scan
	if back {
		walk = r.ScanBack
	}
	s.next, s.stop = iter.Pull2(func(yield func(key, value []byte) bool) { s.err = walk(lo, hi, yield) })
	s.advance()
	return s
}

// number is one that nothing has yet.
func (r *reading) number() uint32 {
	for {
		r.last = (r.last + 1) & math.MaxInt32
		if r.last != 0 && r.snapshots[r.last] == nil && r.scans[r.last] == nil {
			return r.last
		}
	}
}

// reader returns the snapshot with a number; 0: the store.
func (c *call) reader(snapshot uint32) (kv.Reader, error) {
	if c.in.lent.Store == nil {
		return nil, errNotLent
	}
	if snapshot == 0 {
		return c.in.lent.Store, nil
	}
	if s, ok := c.in.reading.snapshots[snapshot]; ok {
		return s, nil
	}
	return nil, kv.ErrClosed
}

// close ends all scans, then all snapshots.
func (r *reading) close() (err error) {
	for n, s := range r.scans {
		s.stop()
		delete(r.scans, n)
	}
	for n, s := range r.snapshots {
		err = errors.Join(err, s.Close())
		delete(r.snapshots, n)
	}
	return err
}

func kvGet(c *call) ([]byte, error) {
	key := c.bytes(1)
	r, err := c.reader(c.u32(0))
	if err != nil {
		return nil, err
	}
	return r.Get(key)
}

// bounds are those of a range, copied: a nil hi reaches to the end.
func (c *call) bounds(i int) (lo, hi []byte) {
	lo = append(lo, c.bytes(i)...)
	if c.u32(i+3) != math.MaxUint32 {
		hi = append([]byte{}, c.bytes(i+2)...)
	}
	return lo, hi
}

func kvScan(c *call) {
	lo, hi := c.bounds(1)
	r, err := c.reader(c.u32(0))
	if err == nil && len(c.in.reading.scans) >= maxScans {
		err = errTooMany
	}
	if err != nil {
		c.refuse(err)
		return
	}
	n := c.in.reading.number()
	c.in.reading.scans[n] = newScan(r, c.u32(0), lo, hi, c.u32(5) != 0)
	c.stack[0] = uint64(n)
}

// recordHead is what stands before a record's key: its length and the value's.
const recordHead = 8

func kvNext(c *call) {
	room := c.bytes(1)
	s, ok := c.in.reading.scans[c.u32(0)]
	if !ok {
		c.refuse(kv.ErrClosed)
		return
	}
	n := 0
	for ; s.more; s.advance() {
		size := recordHead + len(s.key) + len(s.value)
		if size > len(room)-n {
			if n == 0 {
				n = size // nothing is written: ask with this much
			}
			break
		}
		at := room[n:]
		binary.LittleEndian.PutUint32(at, uint32(len(s.key)))
		binary.LittleEndian.PutUint32(at[4:], uint32(len(s.value)))
		copy(at[recordHead+copy(at[recordHead:], s.key):], s.value)
		n += size
	}
	if n == 0 && s.err != nil {
		c.refuse(s.err)
		return
	}
	c.stack[0] = uint64(n)
}

func kvEnd(c *call) {
	if s, ok := c.in.reading.scans[c.u32(0)]; ok {
		s.stop()
		delete(c.in.reading.scans, c.u32(0))
	}
}

func kvSnapshot(c *call) {
	if c.in.lent.Store == nil || len(c.in.reading.snapshots) >= maxSnapshots {
		c.end(errTooMany) // the import has no way to say so
	}
	n := c.in.reading.number()
	c.in.reading.snapshots[n] = c.in.lent.Store.Snapshot()
	c.set(n)
}

func kvRelease(c *call) {
	n := c.u32(0)
	s, ok := c.in.reading.snapshots[n]
	if !ok {
		return
	}
	for number, open := range c.in.reading.scans {
		if open.snapshot == n {
			open.stop()
			delete(c.in.reading.scans, number)
		}
	}
	delete(c.in.reading.snapshots, n)
	if err := s.Close(); err != nil {
		c.in.log.Error("cannot close snapshot", "error", err)
	}
}

// batch is the one that parameters 0 and 1 say, held to what the instance may write.
func (c *call) batch() (*kv.Batch, error) {
	data := c.bytes(0)
	if c.in.lent.Store == nil {
		return nil, errNotLent
	}
	b, err := kv.ParseBatch(data)
	if err == nil {
		err = c.in.bounds.check(b)
	}
	return b, err
}

func kvApply(c *call) error {
	c.in.writes++
	b, err := c.batch()
	if err == nil {
		err = c.in.lent.Store.Apply(b)
	}
	if err == nil {
		c.in.rt.running.wrote(c.in, c.in.rt.o.Now())
	}
	return err
}

func kvCommit(c *call) error {
	c.in.writes++
	c.in.commits++
	b, err := c.batch()
	if err != nil {
		return err
	}
	wait, err := c.in.lent.Store.Commit(b)
	if err != nil {
		return err
	}
	return wait()
}

func kvRoom(c *call) error {
	if c.in.lent.Store == nil {
		return errNotLent
	}
	return c.in.lent.Store.Room()
}

// compacter is a store that keeps what was deleted until it compacts.
type compacter interface {
	Compact(ctx context.Context, lo, hi []byte) error
}

func kvCompact(c *call) error {
	lo, hi := c.bounds(0)
	if store, ok := c.in.lent.Store.(compacter); ok {
		return store.Compact(c.ctx, lo, hi)
	}
	return nil
}
