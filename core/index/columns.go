package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

const columnBytes = 4 * blockSize

// coverage holds the inputs with values in the columns, by block.
type coverage map[uint32]*mask

// mask holds inputs of a block as bits.
type mask [blockSize / 64]uint64

// has reports whether an input of the block is in m; a nil mask is empty.
func (m *mask) has(ord uint32) bool { return m != nil && m[ord%blockSize/64]>>(ord%64)&1 == 1 }

// full reports whether every input of the block is in m.
func (m *mask) full() bool {
	if m == nil {
		return false
	}
	for _, word := range m {
		if word != math.MaxUint64 {
			return false
		}
	}
	return true
}

// decode reads a stored mask.
func (m *mask) decode(value []byte) error {
	if len(value) != blockSize/8 {
		return fmt.Errorf("coverage of %d bytes: %w", len(value), ErrCorrupt)
	}
	for i := range m {
		m[i] = binary.LittleEndian.Uint64(value[8*i:])
	}
	return nil
}

// encode returns the stored form.
func (m *mask) encode() []byte {
	out := make([]byte, 0, blockSize/8)
	for _, w := range m {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// readCoverage reads the coverage of a space.
func (s *space) readCoverage(r kv.Reader) (coverage, error) {
	out := coverage{}
	prefix := s.section(spaceCovered)
	var failed error
	for k, value := range kv.WithPrefix(r, prefix, &failed) {
		b := new(mask)
		if err := b.decode(value); err != nil {
			return nil, err
		}
		out[lastNumber(k)] = b
	}
	return out, failed
}

// fill sets the values of a general model's concept: from its column, and from the derived records of inputs that the column lacks. The
// ordinals must be ascending.
func (v *View) fill(place int, out InputValues) error {
	covered, err := v.space.readCoverage(v.kv)
	if err != nil {
		return err
	}
	if len(covered) == 0 {
		return v.fillFromRecords(place, out)
	}
	blocks := blocksOf(out.Ords)
	if len(blocks) == 0 {
		return nil
	}
	for _, b := range blocks {
		mask := covered[b.number]
		if mask.full() {
			continue
		}
		for i := b.from; i < b.to; i++ {
			if mask.has(out.Ords[i]) {
				continue
			}
			if out.Values[i], err = v.derivedValue(out.Ords[i], place); err != nil {
				return err
			}
		}
	}
	prefix := v.space.column(place)
	if span := int(blocks[len(blocks)-1].number-blocks[0].number) + 1; 4*len(blocks) >= span {
		return v.scanColumn(prefix, blocks, covered, out)
	}
	for _, b := range blocks {
		if covered[b.number] == nil {
			continue
		}
		column, err := v.kv.Get(numberedKey(prefix, b.number))
		if err == nil {
			err = b.take(out, column, covered)
		}
		if err != nil {
			return fmt.Errorf("column %d of block %d: %w", place, b.number, err)
		}
	}
	return nil
}

// many is the divisor for reading all records: for 1/many of the analysed inputs or more, one pass is faster than a read of each.
const many = 8

// fillFromRecords sets the values from the derived records. It reads few inputs one by one, and many in one pass.
func (v *View) fillFromRecords(place int, out InputValues) error {
	analysed, err := v.AnalysedInputs()
	if err != nil {
		return err
	}
	if many*uint64(len(out.Ords)) < analysed.GetCardinality() {
		for i, ord := range out.Ords {
			if out.Values[i], err = v.derivedValue(ord, place); err != nil {
				return err
			}
		}
		return nil
	}
	left := len(out.Ords)
	err = v.records.EachDerived(v.space.Base, func(ord uint32, m catalog.DerivedContent) bool {
		if i, ok := slices.BinarySearch(out.Ords, ord); ok && len(m.Values) == 4*len(v.space.Concepts) {
			out.Values[i] = math.Float32frombits(binary.LittleEndian.Uint32(m.Values[4*place:]))
			left--
		}
		return left > 0
	})
	if err == nil && left > 0 {
		err = fmt.Errorf("derived records of %d inputs: %w", left, ErrCorrupt)
	}
	return err
}

// scanColumn sets the values of the blocks in one pass over the column.
func (v *View) scanColumn(prefix []byte, blocks []block, covered coverage, out InputValues) error {
	blocks = slices.DeleteFunc(blocks, func(b block) bool { return covered[b.number] == nil })
	if len(blocks) == 0 {
		return nil
	}
	var failed error
	last := blocks[len(blocks)-1].number
	for k, column := range kv.Range(v.kv, numberedKey(prefix, blocks[0].number), numberedKey(prefix, last+1), &failed) {
		number := lastNumber(k)
		if len(blocks) == 0 || blocks[0].number < number {
			break
		}
		if blocks[0].number == number {
			if err := blocks[0].take(out, column, covered); err != nil {
				return err
			}
			blocks = blocks[1:]
		}
	}
	if failed == nil && len(blocks) > 0 {
		failed = fmt.Errorf("block %d has no column: %w", blocks[0].number, ErrCorrupt)
	}
	return failed
}

// take sets the values of those inputs of one block that are in its column.
func (b block) take(out InputValues, column []byte, covered coverage) error {
	if len(column) != columnBytes {
		return fmt.Errorf("column's block of %d bytes: %w", len(column), ErrCorrupt)
	}
	mask := covered[b.number]
	ords, values := out.Ords[b.from:b.to], out.Values[b.from:b.to]
	if mask.full() {
		for i, ord := range ords {
			values[i] = columnValue(column, ord)
		}
		return nil
	}
	for i, ord := range ords {
		if mask.has(ord) {
			values[i] = columnValue(column, ord)
		}
	}
	return nil
}

// columnValue returns the value of one input in a block of a column.
func columnValue(column []byte, ord uint32) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(column[4*(ord%blockSize):]))
}

// block is a run of ordinals within one block of the columns.
type block struct {
	number   uint32
	from, to int // range of indexes in the list of ordinals
}

// blocksOf splits ascending ordinals into blocks.
func blocksOf(ords []uint32) []block {
	var out []block
	for from := 0; from < len(ords); {
		number := ords[from] / blockSize
		to := from + sort.Search(len(ords)-from, func(i int) bool { return ords[from+i]/blockSize > number })
		out = append(out, block{number, from, to})
		from = to
	}
	return out
}
