package hosted

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/origin/server/location"
)

const (
	pieceBytes = 64 << 10         // bytes of a file that are read and checked together
	maxPlans   = 32 << 20         // bytes of memory of all plans
	planBytes  = 300              // bytes of a plan without its checksums and edits, with its place in the cache
	maxWait    = 10 * time.Second // maximum time that a reader waits for a plan
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// key identifies a plan.
type key struct {
	hash    blob.Hash
	reduced bool // the place is removed
}

// plan has the facts about a file that a reader of a part needs. It never changes.
type plan struct {
	size  int64
	sums  []uint32        // CRC-32C of each piece of the stored file
	edits []location.Edit // in order; none for the original
}

// newPlan returns the plan of a file with the given bytes.
func newPlan(ctx context.Context, data []byte, reduced bool) (*plan, error) {
	p := &plan{size: int64(len(data)), sums: make([]uint32, 0, (len(data)+pieceBytes-1)/pieceBytes)}
	for rest := data; len(rest) > 0; rest = rest[min(pieceBytes, len(rest)):] {
		p.sums = append(p.sums, crc32.Checksum(rest[:min(pieceBytes, len(rest))], castagnoli))
	}
	if !reduced {
		return p, nil
	}
	var err error
	p.edits, err = location.Edits(ctx, data)
	return p, err
}

// bytes returns the memory of a plan.
func (p *plan) bytes() int64 { return planBytes + 4*int64(cap(p.sums)) + location.Bytes(p.edits) }

// plans makes plans and keeps the most recently used ones.
type plans struct {
	blobs   Blobs
	places  *shares.Shares // plans made at once, by account
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	known  map[key]*list.Element
	recent *list.List // of *keptPlan, most recently used first
	bytes  int64      // memory of the known plans
	making map[key]*making
}

// keptPlan is a plan in memory.
type keptPlan struct {
	key
	*plan
}

// making is a plan in progress. It is cancelled when its last reader has left.
type making struct {
	readers int // guarded by plans.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when plan and err are set
	plan    *plan
	err     error
}

func newPlans(blobs Blobs, makers int) *plans {
	p := &plans{
		blobs: blobs, places: shares.New(int64(max(1, makers)), 1),
		known: map[key]*list.Element{}, recent: list.New(), making: map[key]*making{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// close cancels the plans in progress and waits for them.
func (p *plans) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.running.Wait()
}

// find returns the plan if it is in memory, or nil.
func (p *plans) find(k key) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findLocked(k)
}

func (p *plans) findLocked(k key) *plan {
	e := p.known[k]
	if e == nil {
		return nil
	}
	p.recent.MoveToFront(e)
	return e.Value.(*keptPlan).plan
}

// get returns the plan of a file of an account, and makes it if necessary. It waits for at most maxWait, then the error is api.ErrBusy.
// If the stored bytes do not have their hash, the error is blob.ErrCorrupt.
func (p *plans) get(ctx context.Context, owner string, k key) (*plan, error) {
	p.mu.Lock()
	if known := p.findLocked(k); known != nil {
		p.mu.Unlock()
		return known, nil
	}
	m := p.making[k]
	if err := p.ctx.Err(); m == nil && err != nil {
		p.mu.Unlock()
		return nil, err
	}
	if m == nil {
		m = &making{done: make(chan struct{})}
		var work context.Context
		work, m.cancel = context.WithCancel(p.ctx)
		p.making[k] = m
		p.running.Go(func() { p.finish(k, m, work, owner) })
	}
	m.readers++
	p.mu.Unlock()
	defer p.leave(k, m)

	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case <-m.done:
		return m.plan, m.err
	case <-waiting.Done():
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: the plan of a hosted file takes too long", api.ErrBusy)
}

// leave uncounts a reader. The last one cancels a plan in progress, so that the next reader starts a new one.
func (p *plans) leave(k key, m *making) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.readers--; m.readers == 0 {
		m.cancel()
		if p.making[k] == m {
			delete(p.making, k)
		}
	}
}

// finish makes a plan and keeps it. A panic on the bytes of a file becomes an error of its readers.
func (p *plans) finish(k key, m *making, ctx context.Context, owner string) {
	func() {
		defer func() {
			if v := recover(); v != nil {
				m.err = fmt.Errorf("plan of %v: panic: %v\n%s", k.hash, v, debug.Stack())
			}
		}()
		m.plan, m.err = p.make(ctx, k, owner)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.err == nil && p.known[k] == nil {
		p.keep(k, m.plan)
	}
	if p.making[k] == m {
		delete(p.making, k)
	}
	close(m.done)
}

// make reads a file and returns its plan. Only as many files are in memory as there are places.
func (p *plans) make(ctx context.Context, k key, owner string) (*plan, error) {
	if err := p.places.Acquire(ctx, owner, 1); err != nil {
		return nil, err
	}
	defer p.places.Release(owner, 1)
	data, err := p.blobs.Get(ctx, k.hash)
	if err != nil {
		return nil, err
	}
	return newPlan(ctx, data, k.reduced)
}

// keep stores a plan, and drops those that were not used for the longest time. The caller holds mu.
func (p *plans) keep(k key, made *plan) {
	p.known[k] = p.recent.PushFront(&keptPlan{k, made})
	for p.bytes += made.bytes(); p.bytes > maxPlans; {
		last := p.recent.Remove(p.recent.Back()).(*keptPlan)
		delete(p.known, last.key)
		p.bytes -= last.plan.bytes()
	}
}

// partReader reads a part of a file, a piece at a time.
type partReader struct {
	file    blob.ReaderAt
	hash    blob.Hash
	plan    *plan
	at, end int64   // the unread bytes of the part
	piece   *[]byte // buffer of the current piece; nil: none
	ready   []byte  // unread bytes of the current piece
}

// pieces are the buffers of readers.
var pieces = sync.Pool{New: func() any { b := make([]byte, pieceBytes); return &b }}

// Read implements [io.Reader]. If a piece is damaged, none of its bytes are returned, and the error is blob.ErrCorrupt.
func (r *partReader) Read(b []byte) (int, error) {
	if err := r.load(); err != nil {
		return 0, err
	}
	n := copy(b, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// SupportsBodyWriteTo makes the library call WriteTo, which needs no second buffer.
func (r *partReader) SupportsBodyWriteTo() bool { return true }

// WriteTo implements [io.WriterTo].
func (r *partReader) WriteTo(w io.Writer) (total int64, err error) {
	for {
		if err := r.load(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
		n, err := w.Write(r.ready)
		r.ready = r.ready[n:]
		if total += int64(n); err != nil {
			return total, err
		}
	}
}

// load reads the next piece if the current one has no unread bytes.
func (r *partReader) load() error {
	if len(r.ready) > 0 {
		return nil
	}
	if r.at >= r.end {
		return io.EOF
	}
	if r.piece == nil {
		r.piece = pieces.Get().(*[]byte)
	}
	i := r.at / pieceBytes
	start := i * pieceBytes
	b := (*r.piece)[:min(pieceBytes, r.plan.size-start)]
	if n, err := r.file.ReadAt(b, start); n < len(b) {
		return fmt.Errorf("%v: %w", r.hash, cmp.Or(notEOF(err), blob.ErrCorrupt))
	}
	if crc32.Checksum(b, castagnoli) != r.plan.sums[i] {
		return fmt.Errorf("%v: %w", r.hash, blob.ErrCorrupt)
	}
	location.Apply(r.plan.edits, b, start)
	to := min(int64(len(b)), r.end-start)
	r.ready, r.at = b[r.at-start:to], start+to
	return nil
}

// notEOF returns err unless it is io.EOF: a file that is too short is damaged.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Close implements [io.Closer].
func (r *partReader) Close() error {
	if r.piece != nil {
		pieces.Put(r.piece)
		r.piece, r.ready = nil, nil
	}
	return r.file.Close()
}
