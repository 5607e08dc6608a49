package slim

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Sizes in bytes of structures of the Go runtime, for 64-bit pointers.
const (
	word        = 8
	headerSize  = 72 // runtime.pcHeader
	funcSize    = 44 // runtime._func without the offsets that follow it
	inlinedSize = 16 // runtime.inlinedCall
)

// Offsets in a runtime._func.
const (
	atStack   = 16 // pcsp
	atFile    = 20 // pcfile
	atLine    = 24 // pcln
	atCounted = 28 // npcdata
	atUnit    = 32 // cuOffset
	atStart   = 36 // startLine
	atOffsets = 43 // nfuncdata
)

// Indexes of a function's tables by instruction: internal/abi.PCDATA_*. Only the table of stack maps remains. The runtime reads the others
// for stack traces, or where signals stop goroutines, which WebAssembly does not have.
const (
	stackMapIndex = 1
	inlinedIndex  = 2
)

// Indexes of a function's data (internal/abi.FUNCDATA_*) that only stack traces read.
const (
	inlinedCalls = 3
	argInfo      = 5
	argLive      = 6
)

// noData is the offset of data that a function does not have. argsEnd is the last byte of the data of kind argInfo.
const (
	noData  = ^uint32(0)
	argsEnd = 0xff
)

// magic is the start of a pcHeader: the magic number since Go 1.20, two zeros, the minimum size of an instruction (1), the size of a
// pointer (8).
var magic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, word}

// tables are the function tables of an image. The slices are parts of the image.
type tables struct {
	functions uint64
	units     []byte // cutab
	files     []byte // filetab
	byPC      []byte // pctab
	funcs     []byte // pclntable: offsets of the functions, and then the functions
	data      []byte // go:func.*
}

// tables returns the function tables of an image. The error is ErrModule.
func (m image) tables() (t tables, err error) {
	at := bytes.Index(m, magic)
	if at < 0 || bytes.Contains(m[at+1:], magic) {
		return t, fmt.Errorf("%w: want one header of function tables", ErrModule)
	}
	h, err := m.part(uint64(at), headerSize)
	if err != nil {
		return t, err
	}
	u64 := binary.LittleEndian.Uint64
	t.functions = u64(h[8:])
	// The module data starts with a pointer to the header and a slice for each of its tables.
	starts := []uint64{uint64(at)}
	for field := 32; field < headerSize; field += word {
		starts = append(starts, uint64(at)+u64(h[field:]))
	}
	start := bytes.Index(m, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, starts[0]), starts[1]))
	if start < 0 {
		return t, fmt.Errorf("%w: no module data", ErrModule)
	}
	const dataField, words = 40, 42 // index of gofunc, and number of words of the fields up to epclntab
	d, err := m.part(uint64(start), words*word)
	if err != nil {
		return t, err
	}
	field := func(i int) uint64 { return u64(d[i*word:]) }
	for i, dst := range []*[]byte{nil, &t.units, &t.files, &t.byPC, &t.funcs} {
		if field(1+3*i) != starts[1+i] {
			return t, fmt.Errorf("%w: table %d is not where its header has it", ErrModule, i)
		}
		if dst == nil {
			continue
		}
		size := field(2 + 3*i)
		if dst == &t.units {
			size *= 4
		}
		if *dst, err = m.part(starts[1+i], size); err != nil {
			return t, err
		}
	}
	end := field(dataField + 1)
	if field(dataField) < starts[5] || end < field(dataField) {
		return t, fmt.Errorf("%w: no data of functions", ErrModule)
	}
	t.data, err = m.part(field(dataField), end-field(dataField))
	return t, err
}

// function is a runtime._func in the image with the offsets that follow it.
type function struct {
	fixed  []byte
	byPC   []byte // offsets in the tables by instruction
	byData []byte // offsets in the data
}

// function returns function i, counted from 0.
func (t *tables) function(i uint64) (f function, err error) {
	funcs := image(t.funcs)
	at, err := funcs.part(i*8+4, 4)
	if err != nil {
		return f, err
	}
	start := uint64(binary.LittleEndian.Uint32(at))
	if f.fixed, err = funcs.part(start, funcSize); err != nil {
		return f, err
	}
	n := 4 * uint64(binary.LittleEndian.Uint32(f.fixed[atCounted:]))
	if f.byPC, err = funcs.part(start+funcSize, n); err != nil {
		return f, err
	}
	f.byData, err = funcs.part(start+funcSize+n, 4*uint64(f.fixed[atOffsets]))
	return f, err
}

// cleaner clears the tables of stack traces.
type cleaner struct {
	tables
	byPC    []byte            // remaining tables by instruction, which replace the start of tables.byPC
	moved   map[uint32]uint32 // offsets in byPC by offsets in tables.byPC
	live    map[uint32]bool   // offsets of the data that remains
	dropped map[uint32]int    // size of the other data, by offset
}

// clear overwrites the tables that only stack traces read with zeros. It moves the remaining tables by instruction together.
func (m image) clear() error {
	t, err := m.tables()
	if err != nil {
		return err
	}
	c := cleaner{tables: t, byPC: []byte{0}, moved: map[uint32]uint32{0: 0}, live: map[uint32]bool{}, dropped: map[uint32]int{}}
	for i := range t.functions {
		f, err := t.function(i)
		if err != nil {
			return err
		}
		if err := c.function(f); err != nil {
			return err
		}
	}
	for at, size := range c.dropped {
		part, err := image(t.data).part(uint64(at), uint64(size))
		if err != nil {
			return err
		}
		if !c.live[at] { // functions share equal data
			clear(part)
		}
	}
	clear(t.units)
	clear(t.files)
	if len(c.byPC) > len(t.byPC) {
		return fmt.Errorf("%w: tables by instruction overlap", ErrModule)
	}
	clear(t.byPC[copy(t.byPC, c.byPC):])
	return nil
}

// function clears the references of f to the tables of stack traces, moves its other tables, and marks its data.
func (c *cleaner) function(f function) error {
	calls := 0
	if len(f.byPC) > 4*inlinedIndex {
		if at := binary.LittleEndian.Uint32(f.byPC[4*inlinedIndex:]); at != 0 {
			_, highest, err := c.measure(at)
			if err != nil {
				return err
			}
			calls = highest + 1
		}
	}
	if err := c.move(f.fixed[atStack:]); err != nil {
		return err
	}
	for _, at := range []int{atFile, atLine, atUnit, atStart} {
		clear(f.fixed[at:][:4])
	}
	for kind := range len(f.byPC) / 4 {
		offset := f.byPC[4*kind:][:4]
		if kind != stackMapIndex {
			clear(offset)
		} else if err := c.move(offset); err != nil {
			return err
		}
	}
	for kind := range len(f.byData) / 4 {
		if err := c.drop(kind, f.byData[4*kind:], calls); err != nil {
			return err
		}
	}
	return nil
}

// move copies the table by instruction at an offset to c.byPC, unless c.byPC has it, and sets the offset to its new position.
func (c *cleaner) move(offset []byte) error {
	at := binary.LittleEndian.Uint32(offset)
	to, ok := c.moved[at]
	if !ok {
		size, _, err := c.measure(at)
		if err != nil {
			return err
		}
		to = uint32(len(c.byPC))
		c.byPC = append(c.byPC, c.tables.byPC[at:][:size]...)
		c.moved[at] = to
	}
	binary.LittleEndian.PutUint32(offset, to)
	return nil
}

// drop marks the data of a kind at an offset for removal if only stack traces read it. Other data is kept. calls is the number of inlined
// calls of the function.
func (c *cleaner) drop(kind int, offset []byte, calls int) error {
	at := binary.LittleEndian.Uint32(offset)
	if at == noData {
		return nil
	}
	size := 0
	switch kind {
	case inlinedCalls:
		size = calls * inlinedSize
	case argInfo:
		var err error
		if size, err = c.arguments(at); err != nil {
			return err
		}
	case argLive:
	default:
		c.live[at] = true
		return nil
	}
	c.dropped[at] = max(size, c.dropped[at])
	binary.LittleEndian.PutUint32(offset, noData)
	return nil
}

// measure returns the size in bytes of the table by instruction at an offset, and its highest value. A table is pairs of differences: of
// the value, which starts at -1, and of the address. Only the first difference of the value may be 0: another one ends the table.
func (t *tables) measure(at uint32) (size, highest int, err error) {
	if uint64(at) > uint64(len(t.byPC)) {
		return 0, 0, fmt.Errorf("%w: no table by instruction at %d", ErrModule, at)
	}
	b := t.byPC[at:]
	value := -1
	highest = value
	for first := true; ; first = false {
		// The difference has the zigzag encoding of [binary.Varint].
		d, n := binary.Varint(b[size:])
		if n <= 0 {
			return 0, 0, fmt.Errorf("%w: the table by instruction at %d has no end", ErrModule, at)
		}
		size += n
		if d == 0 && !first {
			return size, highest, nil
		}
		value += int(d)
		highest = max(highest, value)
		if _, n = binary.Uvarint(b[size:]); n <= 0 {
			return 0, 0, fmt.Errorf("%w: the table by instruction at %d has no end", ErrModule, at)
		}
		size += n
	}
}

// arguments returns the size in bytes of the description of arguments at an offset.
func (t *tables) arguments(at uint32) (int, error) {
	if uint64(at) < uint64(len(t.data)) {
		if n := bytes.IndexByte(t.data[at:], argsEnd); n >= 0 {
			return n + 1, nil
		}
	}
	return 0, fmt.Errorf("%w: the arguments at %d have no end", ErrModule, at)
}
