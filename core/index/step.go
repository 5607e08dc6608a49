package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// Step does a part of the index's postponed work: it updates about budget inputs in the graphs, and writes one block of columns. It reports
// whether there is more. It may run at the same time as searches and the writer, but not between the writer's Stage and ConfirmStage.
func (x *Index) Step(ctx context.Context, budget int) (more bool, err error) {
	x.step.Lock()
	defer x.step.Unlock()
	for _, sp := range x.all() {
		unlinked, err := x.stepGraph(ctx, sp, budget)
		if err != nil {
			return false, err
		}
		wrote, err := x.stepColumns(ctx, sp, pressure(unlinked))
		if err != nil {
			return false, err
		}
		if unlinked || wrote {
			return true, nil
		}
	}
	return false, nil
}

// errOutdated ends a step if the writer has deleted the data that it read.
var errOutdated = errors.New("index has changed")

// write applies a step's batch unless everything was deleted since its epoch.
func (x *Index) write(epoch uint64, b *kv.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	x.commit.Lock()
	defer x.commit.Unlock()
	if x.epochNow() != epoch {
		return errOutdated
	}
	return x.store.Apply(b)
}

func (x *Index) epochNow() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.epoch
}

// lateBlock is the number of inputs from which a block gets columns although other inputs of it wait for downloads.
const lateBlock = 256

// maxLag is the number of blocks without columns up to which the writer leaves the columns to Step. A search reads one record for each of
// their inputs that it needs.
const maxLag = 2

// KeepUp writes the columns of at most two blocks if those of many are missing, because inputs come faster than Step runs. The writer calls it
// after ConfirmStage. KeepUp leaves an error to the next Step, which meets it again.
func (x *Index) KeepUp() {
	for _, sp := range x.all() {
		for range 2 { // a batch completes at most one
			if !sp.due.isLong() || !x.step.TryLock() { // a running Step writes columns itself
				break
			}
			wrote, err := x.stepColumns(context.Background(), sp, busy)
			if !wrote || err != nil {
				sp.due.postpone()
			}
			x.step.Unlock()
		}
	}
}

// dueBlocks holds the blocks whose inputs have changed since their columns were found complete.
type dueBlocks struct {
	mu     sync.Mutex
	blocks *roaring.Bitmap // nil: every block
	long   uint64          // number of blocks above which the writer helps
}

// add adds blocks. A nil set means every block.
func (d *dueBlocks) add(blocks *roaring.Bitmap) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if blocks == nil || d.blocks == nil {
		d.blocks = nil
		return
	}
	d.blocks.Or(blocks)
}

// take removes all blocks and returns them. next is the next ordinal.
func (d *dueBlocks) take(next uint32) *roaring.Bitmap {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.blocks
	if taken != nil && taken.GetCardinality() <= maxLag {
		d.long = 0
	}
	if d.blocks = roaring.New(); taken == nil {
		taken = roaring.New()
		taken.AddRange(0, uint64(next)/blockSize+1)
	}
	return taken
}

// isLong reports whether many blocks are due.
func (d *dueBlocks) isLong() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.blocks == nil || d.blocks.GetCardinality() > max(d.long, maxLag)
}

// postpone makes isLong false until more blocks are due: those of now wait for downloads.
func (d *dueBlocks) postpone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocks != nil {
		d.long = d.blocks.GetCardinality() + maxLag
	}
}

// pressure reports whether a step of the columns shares its time with other work.
type pressure bool

const (
	idle pressure = false
	busy pressure = true
)

// stepColumns writes the columns of one due block, or removes those of an empty one. While there is other work, it leaves a block alone that
// would get the columns of few inputs.
func (x *Index) stepColumns(ctx context.Context, sp *space, p pressure) (wrote bool, err error) {
	epoch := x.epochNow()
	h, err := x.now().Header()
	if err != nil {
		return false, err
	}
	due := sp.due.take(h.Next) // before the snapshot, which then shows the changes of these blocks
	defer func() { sp.due.add(due) }()
	snapshot := x.store.Snapshot()
	defer snapshot.Close()
	records := catalog.Read(snapshot, x.app)
	if h, err = records.Header(); err != nil {
		return false, err
	}
	for it := due.Clone().Iterator(); it.HasNext(); {
		number := it.Next()
		state, err := x.blockState(records, sp, number, h.Next, p)
		if err != nil {
			return false, err
		}
		if state == blockWaits {
			continue
		}
		var b kv.Batch
		switch state {
		case blockEmpty:
			sp.dropColumns(&b, number)
		case blockLate:
			err = sp.writeColumns(ctx, &b, records, number)
		}
		if err == nil {
			err = x.write(epoch, &b)
		}
		if err != nil {
			if errors.Is(err, errOutdated) {
				err = nil
			}
			return true, err
		}
		if due.Remove(number); state != blockDone {
			return true, nil
		}
	}
	return false, nil
}

// blockState is the work that a block needs.
type blockState int

const (
	blockDone  blockState = iota // nothing
	blockWaits                   // columns, but not yet
	blockLate                    // columns
	blockEmpty                   // its columns must be removed
)

// blockState compares the analysed inputs of a block with those in its columns. next is the next ordinal.
func (x *Index) blockState(records catalog.Reader, sp *space, number, next uint32, p pressure) (blockState, error) {
	value, err := kv.Find(records.KV(), numberedKey(sp.section(spaceCovered), number))
	if err != nil {
		return 0, err
	}
	var covered mask
	if value != nil {
		if err := covered.decode(value); err != nil {
			return 0, err
		}
	}
	analysed, err := sp.analysedOf(records.KV(), number)
	if err != nil {
		return 0, err
	}
	late := 0
	for i := range analysed {
		late += bits.OnesCount64(analysed[i] &^ covered[i])
	}
	end := uint64(number+1) * blockSize
	switch {
	case value != nil && (x.bare || analysed == mask{}):
		return blockEmpty, nil
	case x.bare || late == 0:
		return blockDone, nil
	case end > uint64(next):
		return blockWaits, nil
	case late >= lateBlock:
		return blockLate, nil
	case p == busy:
		return blockWaits, nil
	}
	state := blockLate
	err = records.PendingInputs(number*blockSize, func(ord uint32) bool {
		if uint64(ord) < end {
			state = blockWaits
		}
		return false
	})
	return state, err
}

// analysedOf returns the analysed inputs of a block.
func (s *space) analysedOf(r kv.Reader, number uint32) (mask, error) {
	const blocks = chunkSize / blockSize // in a chunk
	var c chunk
	value, err := kv.Find(r, numberedKey(s.analysedKey(), number/blocks))
	if err == nil && value != nil {
		err = c.decode(value)
	}
	var m mask
	copy(m[:], c[int(number%blocks)*len(m):])
	return m, err
}

func (s *space) dropColumns(b *kv.Batch, number uint32) {
	for c := range s.Concepts {
		b.Delete(numberedKey(s.column(c), number))
	}
	b.Delete(numberedKey(s.section(spaceCovered), number))
}

// writeColumns writes the values of a block's inputs into columns.
func (s *space) writeColumns(ctx context.Context, b *kv.Batch, records catalog.Reader, number uint32) error {
	covered, err := s.analysedOf(records.KV(), number)
	if err != nil {
		return err
	}
	values := make([]float32, len(s.Concepts)*blockSize) // (concepts, blockSize)
	for i := range uint32(blockSize) {
		if !covered.has(i) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d, err := s.derivedRecord(records, number*blockSize+i)
		if err != nil {
			return err
		}
		for c, v := range d.Values {
			values[c*blockSize+int(i)] = v
		}
	}
	column := make([]byte, 0, columnBytes)
	for c := range s.Concepts {
		column = column[:0]
		for _, v := range values[c*blockSize : (c+1)*blockSize] {
			column = binary.LittleEndian.AppendUint32(column, math.Float32bits(v))
		}
		b.Put(numberedKey(s.column(c), number), column)
	}
	b.Put(numberedKey(s.section(spaceCovered), number), covered.encode())
	return nil
}

// derivedRecord returns the derived record of an analysed input.
func (s *space) derivedRecord(records catalog.Reader, ord uint32) (catalog.DerivedData, error) {
	in, err := records.Input(ord)
	if err != nil {
		return catalog.DerivedData{}, err
	}
	d, err := records.DerivedOfInput(s.Base, &in)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && len(d.Values) != len(s.Concepts) {
		err = fmt.Errorf("derived record of input %d: %w", ord, ErrCorrupt)
	}
	return d, err
}
