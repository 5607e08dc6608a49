package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/wire"
)

// paper is a second decoder of blocks, written from README.md without code of package wire. It returns
// operations as bytes. It checks the decoder, and shows that the page is sufficient.
type paper struct {
	fields  map[protowire.Number][]byte
	lists   map[protowire.Number][]string
	numbers map[protowire.Number][]uint64
	n       int
}

var errPaper = errors.New("not as the page says")

// readPaper returns the encodings of a block's operations.
func readPaper(block []byte) (ops [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			ops, err = nil, fmt.Errorf("%w: %v", errPaper, p)
		}
	}()
	p := paper{fields: map[protowire.Number][]byte{}, lists: map[protowire.Number][]string{}, numbers: map[protowire.Number][]uint64{}}
	must(block[0] == 1)
	for rest := block[1:]; len(rest) > 0; {
		number, typ, n := protowire.ConsumeTag(rest)
		must(n > 0)
		rest = rest[n:]
		switch {
		case number == 1 || number == 63:
			v, n := protowire.ConsumeVarint(rest)
			must(n > 0)
			p.numbers[number], rest = []uint64{v}, rest[n:]
		default:
			v, n := protowire.ConsumeBytes(rest)
			must(typ == protowire.BytesType && n > 0)
			rest = rest[n:]
			if number == 8 || number == 21 || number == 23 {
				p.lists[number] = append(p.lists[number], string(v))
			} else {
				p.fields[number] = v
			}
		}
	}
	if count := p.numbers[1]; len(count) > 0 {
		p.n = int(count[0])
	}
	must(p.numbers[63][0] == uint64(1+len(p.fields)))
	return p.operations(), nil
}

func must(ok bool) {
	if !ok {
		panic("malformed")
	}
}

// column reads a column of n numbers for next.
func (p *paper) column(number protowire.Number, n int) []uint64 {
	b := p.fields[number]
	list := make([]uint64, n)
	p.numbers[number] = list
	if len(b) == 0 {
		return list
	}
	form, b := b[0], b[1:]
	varint := func() uint64 {
		v, n := binary.Uvarint(b)
		must(n > 0)
		b = b[n:]
		return v
	}
	values := list
	if form&4 != 0 {
		list[0] = varint()
		values = list[1:]
	}
	switch form & 3 {
	case 0:
		for i := 0; i < len(values); {
			v := varint()
			for range varint() {
				values[i] = v
				i++
			}
		}
	case 1:
		if len(values) == 0 {
			break
		}
		base := varint()
		width := int(b[0])
		b = b[1:]
		for i := range values {
			v := uint64(0)
			for bit := range width {
				at := i*width + bit
				v |= uint64(b[at/8]>>(at%8)&1) << bit
			}
			values[i] = base + v
		}
		b = b[(len(values)*width+7)/8:]
	default:
		for i := range values {
			values[i] = varint()
		}
	}
	must(len(b) == 0)
	if form&4 != 0 {
		for i := 1; i < n; i++ {
			list[i] = list[i-1] + unzig(list[i])
		}
	}
	return list
}

func unzig(v uint64) uint64 { return uint64(int64(v>>1) ^ -int64(v&1)) }

// next removes and returns the first number of a column.
func (p *paper) next(number protowire.Number) uint64 {
	v := p.numbers[number][0]
	p.numbers[number] = p.numbers[number][1:]
	return v
}

// take removes and returns the first n bytes of a column.
func (p *paper) take(number protowire.Number, n uint64) []byte {
	b := p.fields[number][:n]
	p.fields[number] = p.fields[number][n:]
	return b
}

// putUint appends a field in the encoding of core/log. The encoding omits zero fields.
func putUint(b []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func putFixed(b []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), v)
}

func putBytes(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

func putText(b []byte, number protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return putBytes(b, number, []byte(v))
}

func (p *paper) operations() (ops [][]byte) {
	sites, seqs, millis, ticks := p.column(2, p.n), p.column(3, p.n), p.column(4, p.n), p.column(5, p.n)
	bys, forms := p.column(6, p.n), p.column(7, p.n)
	count := map[uint64]int{}
	more := 0
	for _, f := range forms {
		count[f&7]++
		more += int(f >> 3)
	}
	p.prepare(count, more)
	expected := map[uint64]uint64{}
	var lastMillis, nextTick uint64
	for i := range p.n {
		first, seen := expected[sites[i]]
		if !seen {
			first = 1
		}
		seq := first + unzig(seqs[i])
		expected[sites[i]] = seq + 1
		if millis[i] != lastMillis {
			nextTick = 0
		}
		tick := nextTick + unzig(ticks[i])
		lastMillis, nextTick = millis[i], tick+1
		op := putUint(putUint([]byte{1}, 1, sites[i]), 2, seq)
		op = putFixed(op, 3, millis[i]<<16|tick)
		op = putText(op, 4, p.lists[8][bys[i]])
		op = p.body(op, forms[i]&7)
		if forms[i]&8 != 0 {
			op = append(op, p.take(10, p.next(9))...)
		}
		ops = append(ops, op)
	}
	return ops
}

// prepare reads the columns of the operations' bodies. count is the number of operations by kind.
func (p *paper) prepare(count map[uint64]int, more int) {
	p.column(9, more)
	creates, fetches := count[1], count[3]
	p.column(16, count[2]+fetches+count[4])
	p.column(17, count[2]+fetches+count[4])
	labels := 0
	for _, n := range p.column(18, creates+count[2]) {
		labels += int(n)
	}
	p.column(19, labels)
	p.column(20, labels)
	p.column(22, creates+fetches)
	flags := p.column(24, creates)
	with := func(flag uint64) (n int) {
		for _, f := range flags {
			if f&flag != 0 {
				n++
			}
		}
		return n
	}
	p.column(25, creates-with(16))
	p.column(27, creates)
	p.column(30, with(64))
	p.column(32, with(256))
	p.column(33, with(256))
	p.column(40, fetches)
	p.column(41, fetches)
	p.column(42, fetches)
}

func (p *paper) body(op []byte, form uint64) []byte {
	switch form {
	case 0:
		_, _, n := protowire.ConsumeField(p.fields[11])
		return append(op, p.take(11, uint64(n))...)
	case 1:
		return putBytes(op, 16, p.create())
	case 2:
		return putBytes(op, 18, p.labels(p.dot(nil), 2))
	case 3:
		b := putUint(p.dot(nil), 2, p.next(40))
		b = putText(b, 3, string(p.take(43, p.next(42))))
		if p.next(41) == 1 {
			b = putBytes(b, 4, p.take(50, 32))
		}
		return putBytes(op, 17, putText(b, 5, p.lists[23][p.next(22)]))
	case 4:
		return putBytes(op, 21, p.dot(nil))
	}
	panic("form")
}

func (p *paper) dot(b []byte) []byte {
	site, seq := p.next(16), p.next(17)
	if site == 0 && seq == 0 {
		return b
	}
	return putBytes(b, 1, putUint(putUint(nil, 1, site), 2, seq))
}

func (p *paper) labels(b []byte, number protowire.Number) []byte {
	for range p.next(18) {
		b = putBytes(b, number, putUint(putText(nil, 1, p.lists[21][p.next(19)]), 2, p.next(20)))
	}
	return b
}

func (p *paper) create() []byte {
	flags := p.next(24)
	var b []byte
	if flags&16 != 0 {
		b = putText(b, 1, hex.EncodeToString(p.take(48, 16)))
	} else {
		b = putText(b, 1, string(p.take(26, p.next(25))))
	}
	b = putText(b, 2, string(p.take(28, p.next(27))))
	b = putUint(putUint(b, 3, flags&1), 4, flags>>1&1)
	if flags&4 != 0 {
		b = putBytes(b, 5, p.take(50, 32))
	}
	b = putText(b, 6, p.lists[23][p.next(22)])
	if flags&8 != 0 {
		b = putBytes(b, 7, p.take(49, 16))
	}
	if flags&32 != 0 {
		b = putBytes(b, 8, p.doubles(29, 4))
	}
	b = p.labels(b, 9)
	if flags&64 != 0 {
		b = putBytes(b, 10, p.take(31, p.next(30)))
	}
	if flags&128 != 0 {
		b = putBytes(b, 11, p.doubles(34, 2))
	}
	if flags&256 != 0 {
		long, lat := float64(int64(unzig(p.next(32))))/1e6, float64(int64(unzig(p.next(33))))/1e6
		b = putBytes(b, 11, putFixed(putFixed(nil, 1, math.Float64bits(long)), 2, math.Float64bits(lat)))
	}
	return b
}

func (p *paper) doubles(number protowire.Number, n int) (b []byte) {
	for i := range n {
		b = putFixed(b, protowire.Number(i+1), binary.LittleEndian.Uint64(p.take(number, 8)))
	}
	return b
}

// againstPaper compares the operations that paper reads from a block with their encoding in core/log.
func againstPaper(t interface {
	Helper()
	Fatalf(string, ...any)
}, ops []log.Op,
) {
	t.Helper()
	got, err := readPaper(wire.EncodeOps(ops))
	if err != nil || len(got) != len(ops) {
		t.Fatalf("%d operations, %v, want %d", len(got), err, len(ops))
	}
	for i := range ops {
		if want := log.Encode(nil, &ops[i]); !bytes.Equal(want, got[i]) {
			t.Fatalf("operation %d is %x, want %x", i, got[i], want)
		}
	}
}

func TestSpecification(t *testing.T) {
	againstPaper(t, goldenOps())
	tr := newTraffic(10)
	ops := make([]log.Op, wire.MaxOps)
	kinds := []func() log.Op{tr.patch, tr.create, tr.fetch, tr.remove}
	for i := range ops {
		ops[i] = kinds[i*i%len(kinds)]()
	}
	againstPaper(t, ops)
	rapid.Check(t, func(t *rapid.T) {
		ops := make([]log.Op, rapid.IntRange(0, 12).Draw(t, "operations"))
		for i := range ops {
			ops[i] = anyOp(t)
		}
		againstPaper(t, ops)
	})
}

// TestSpecifiedExample compares the example of README.md, byte by byte, with the encoding.
func TestSpecifiedExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "sync", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "Three label changes, by `k`, are ")
	if !ok {
		t.Fatal("the page has no example")
	}
	size, text, _ := strings.Cut(text, " bytes:")
	text, _, _ = strings.Cut(text, "\n## ")
	var got []byte
	token := regexp.MustCompile(`^((?:[0-9a-f]{2})+|"[a-z]+")(?:\s|$)`)
	for line := range strings.Lines(text) {
		for line = strings.TrimSpace(line); ; {
			m := token.FindStringSubmatch(line)
			if m == nil {
				break
			}
			if word, ok := strings.CutPrefix(m[1], `"`); ok {
				got = append(got, strings.TrimSuffix(word, `"`)...)
			} else {
				b, _ := hex.DecodeString(m[1])
				got = append(got, b...)
			}
			rest := line[len(m[1]):]
			if line = strings.TrimLeft(rest, " "); len(rest)-len(line) > 2 {
				break // text further right is an explanation
			}
		}
	}
	at := func(millis uint64) log.HLC { return log.HLC(1_790_000_000_000+millis) << 16 }
	change := func(site log.Site, seq, input uint64, millis uint64, l log.Label) log.Op {
		return log.Op{Dot: log.Dot{Site: site, Seq: seq}, At: at(millis), By: "k", Body: &log.InputLabels{Input: log.Dot{Site: 1, Seq: input}, Labels: []log.Label{l}}}
	}
	want := wire.EncodeOps([]log.Op{
		change(2, 41, 300, 0, log.Label{Concept: "cat", Value: log.True}),
		change(2, 42, 7, 20, log.Label{Concept: "dog", Value: log.True}),
		change(3, 5, 9, 25, log.Label{Concept: "cat", Value: log.Removed}),
	})
	if !bytes.Equal(got, want) {
		t.Errorf("the page says\n%x, want\n%x", got, want)
	}
	if size != fmt.Sprint(len(want)) {
		t.Errorf("the page says %s bytes, want %d", size, len(want))
	}
}
