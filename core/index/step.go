package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// Step does a part of the index's postponed work: it updates about budget inputs in the graphs, and writes one block of columns. It reports
// whether there is more. It may run at the same time as searches and the writer, but not between the writer's Stage and ConfirmStage.
func (x *Index) Step(ctx context.Context, budget int) (more bool, err error) {
	x.step.Lock()
	defer x.step.Unlock()
	for _, sp := range x.all() {
		linked, err := x.stepGraph(ctx, sp, budget)
		if err != nil {
			return false, err
		}
		wrote, err := x.stepColumns(ctx, sp, linked)
		if err != nil {
			return false, err
		}
		if linked || wrote {
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

// stepColumns writes the columns of one block, or removes those of an empty one. While there is other work (busy), it looks for a block
// only when one more block is complete.
func (x *Index) stepColumns(ctx context.Context, sp *space, busy bool) (bool, error) {
	epoch := x.epochNow()
	snapshot := x.store.Snapshot()
	defer snapshot.Close()
	records := catalog.Read(snapshot, x.app)
	h, err := records.Header()
	if err != nil {
		return false, err
	}
	at := settledState{seq: h.Seq, block: h.Next / blockSize, known: true}
	if at == sp.settled || busy && sp.settled.known && at.block == sp.settled.block {
		return false, nil
	}
	findBlock := x.pendingBlock
	if x.bare {
		findBlock = x.freeBlock
	}
	number, empty, err := findBlock(snapshot, sp, h.Next)
	if err != nil {
		return false, err
	}
	if number < 0 {
		sp.settled = at
		return false, nil
	}
	var b kv.Batch
	if empty {
		sp.dropColumns(&b, uint32(number))
	} else if err := sp.writeColumns(ctx, &b, records, uint32(number)); err != nil {
		return false, err
	}
	if err := x.write(epoch, &b); err != nil && !errors.Is(err, errOutdated) {
		return false, err
	}
	return true, nil
}

// settledState is a state of an application in which no columns had to be written.
type settledState struct {
	seq   uint64 // sequence number of the last folded entry
	block uint32 // first block that is not complete
	known bool
}

// pendingBlock finds a block whose columns must be written or removed. It returns −1 if there is none.
func (x *Index) pendingBlock(r kv.Reader, sp *space, next uint32) (number int64, empty bool, err error) {
	tail, covered, err := sp.tail(r)
	if err != nil {
		return 0, false, err
	}
	waiting := map[uint32]bool{}
	err = catalog.Read(r, x.app).PendingInputs(func(ord uint32) bool {
		waiting[ord/blockSize] = true
		return true
	})
	if err != nil {
		return 0, false, err
	}
	for _, b := range blocksOf(tail.ToArray()) {
		complete := uint64(b.number+1)*blockSize <= uint64(next)
		if complete && (!waiting[b.number] || b.to-b.from >= lateBlock) {
			return int64(b.number), false, nil
		}
	}
	return sp.missingBlock(r, covered)
}

// freeBlock finds a block with columns, for an index that must have none. It returns −1 if there is none.
func (x *Index) freeBlock(r kv.Reader, sp *space, _ uint32) (number int64, empty bool, err error) {
	covered, err := sp.readCoverage(r)
	for b := range covered {
		return int64(b), true, err
	}
	return -1, false, err
}

// missingBlock finds a block with columns whose last input was deleted. It returns −1 if there is none.
func (s *space) missingBlock(r kv.Reader, covered coverage) (int64, bool, error) {
	analysed, err := bitmap(r, s.analysedKey())
	if err != nil {
		return 0, false, err
	}
	for k := range kv.All(r, s.section(spaceLost), &err) {
		number := lastNumber(k)
		if covered[number] != nil && !analysed.IntersectsWithInterval(uint64(number)*blockSize, uint64(number+1)*blockSize) {
			return int64(number), true, nil
		}
	}
	return -1, true, err
}

func (s *space) dropColumns(b *kv.Batch, number uint32) {
	for c := range s.Concepts {
		b.Delete(numberedKey(s.column(c), number))
	}
	b.Delete(numberedKey(s.section(spaceCovered), number))
	b.Delete(numberedKey(s.section(spaceLost), number))
}

// writeColumns writes the values of a block's inputs into columns.
func (s *space) writeColumns(ctx context.Context, b *kv.Batch, records catalog.Reader, number uint32) error {
	analysed, err := bitmap(records.KV(), s.analysedKey())
	if err != nil {
		return err
	}
	values := make([]float32, len(s.Concepts)*blockSize) // (concepts, blockSize)
	var covered mask
	it := analysed.Iterator()
	it.AdvanceIfNeeded(number * blockSize)
	for it.HasNext() && it.PeekNext()/blockSize == number {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ord := it.Next()
		d, err := s.derivedRecord(records, ord)
		if err != nil {
			return err
		}
		for c, v := range d.Values {
			values[c*blockSize+int(ord%blockSize)] = v
		}
		covered[ord%blockSize/64] |= 1 << (ord % 64)
	}
	column := make([]byte, 0, columnBytes)
	for c := range s.Concepts {
		column = column[:0]
		for _, v := range values[c*blockSize : (c+1)*blockSize] {
			column = binary.LittleEndian.AppendUint32(column, math.Float32bits(v))
		}
		b.Put(numberedKey(s.column(c), number), column)
	}
	bits := make([]byte, 0, blockSize/8)
	for _, w := range covered {
		bits = binary.LittleEndian.AppendUint64(bits, w)
	}
	b.Put(numberedKey(s.section(spaceCovered), number), bits)
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
