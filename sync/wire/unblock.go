package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// DecodeOps returns the operations of a block. They borrow data. Errors: ErrFormat, ErrTooLarge.
func DecodeOps(data []byte) ([]log.Op, error) {
	u, err := open(data)
	if err != nil {
		return nil, err
	}
	ops := make([]log.Op, u.count)
	return ops, u.read(func(i int) *log.Op { return &ops[i] })
}

// DecodeEntries returns the log entries of a block. The first one has the sequence from + 1. They borrow data. Errors: ErrFormat,
// ErrTooLarge.
func DecodeEntries(data []byte, from uint64) ([]log.Entry, error) {
	u, err := open(data)
	if err != nil {
		return nil, err
	}
	entries := make([]log.Entry, u.count)
	for i := range entries {
		entries[i].Seq = from + 1 + uint64(i)
	}
	return entries, u.read(func(i int) *log.Op { return &entries[i].Op })
}

// unblock reads a block. It keeps the first error. Reads after an error return zero values.
type unblock struct {
	count   int
	columns [columns][]byte
	ints    [columns][]uint64 // unread numbers of the columns in load
	texts   [columns]string   // unread text of the columns in loadTexts
	err     error

	callers, concepts, types []string
	labels                   []log.Label // memory for the labels to come
	points                   []log.Point // memory for the points to come
}

// columnar has the fields of a block.
//
//field:fields get
//field:others Column
type columnar struct {
	count int    `wire:"1"`
	end   uint64 `wire:"63"` // 1 plus the number of columns in the block

	words   [columns]*dictionary // dictionaries, by column
	columns *[columns][]byte     // the other columns
	read    uint64               // number of columns that were read
}

// getColumn reads a column or a word of a dictionary. It rejects an unknown column, because that would hold a part of the operations.
func getColumn(d *field.Decoder, x *columnar) {
	if n := d.Number; n >= columns || x.columns[n] != nil {
		d.Malformed(fmt.Sprintf("column %d", n))
	} else if words := x.words[n]; words != nil {
		words.add(d.Raw())
	} else {
		x.columns[n] = d.Raw()
		x.read++
	}
}

// open splits a block into its columns.
func open(data []byte) (*unblock, error) {
	u := &unblock{}
	var callers, concepts, types dictionary
	x := columnar{columns: &u.columns, words: [columns]*dictionary{colAsked: &callers, colNames: &concepts, colTypes: &types}}
	d := field.Decode(data)
	getColumnar(d, &x)
	if x.end != x.read+1 {
		d.Malformed("block without an end")
	}
	if d.Err() != nil {
		return nil, d.Err()
	}
	if x.count > MaxOps {
		return nil, fmt.Errorf("%w: block of %d operations, at most %d", ErrTooLarge, x.count, MaxOps)
	}
	u.count, u.callers, u.concepts, u.types = x.count, callers.strings(), concepts.strings(), types.strings()
	return u, nil
}

// dictionary collects strings in one buffer.
type dictionary struct {
	all  []byte
	ends []int
}

func (d *dictionary) add(s []byte) {
	d.all = append(d.all, s...)
	d.ends = append(d.ends, len(d.all))
}

func (d *dictionary) strings() []string {
	all, list := string(d.all), make([]string, len(d.ends))
	at := 0
	for i, end := range d.ends {
		list[i], at = all[at:end], end
	}
	return list
}

func (u *unblock) fail(problem string) {
	if u.err == nil {
		u.err = fmt.Errorf("%w: %s", ErrFormat, problem)
	}
}

// read fills the operations. op returns the address of operation i.
func (u *unblock) read(op func(int) *log.Op) error {
	u.heads(op)
	u.bodies(op)
	for c := range columns {
		if u.err == nil && (len(u.columns[c]) > 0 || len(u.texts[c]) > 0) {
			u.fail(fmt.Sprintf("column %d is longer than the operations need", c))
		}
	}
	return u.err
}

// numbers reads a column of n numbers. It fails if one is above limit.
func (u *unblock) numbers(column, n int, limit uint64) []uint64 {
	list := make([]uint64, n)
	if u.err == nil {
		u.err = ints(list, u.columns[column])
	}
	u.columns[column] = nil
	for _, v := range list {
		if v > limit {
			u.fail(fmt.Sprintf("%d in column %d", v, column))
			clear(list)
			break
		}
	}
	return list
}

// load reads a column of n numbers, so that int can return them one by one.
func (u *unblock) load(column, n int, limit uint64) {
	u.ints[column] = u.numbers(column, n, limit)
}

// int returns the next number of a column that load has read.
func (u *unblock) int(column int) uint64 {
	list := u.ints[column]
	u.ints[column] = list[1:]
	return list[0]
}

// loadTexts reads a column of n strings and the column of their sizes, so that text can return them one by one.
func (u *unblock) loadTexts(sizes, column, n int) {
	u.load(sizes, n, math.MaxInt32)
	u.texts[column] = string(u.columns[column])
	u.columns[column] = nil
}

// text returns the next string of a column that loadTexts has read.
func (u *unblock) text(sizes, column int) string {
	n, s := u.int(sizes), u.texts[column]
	if n > uint64(len(s)) {
		u.fail(fmt.Sprintf("column %d is cut short", column))
		return ""
	}
	u.texts[column] = s[n:]
	return s[:n]
}

// raw returns the next n bytes of a column, or fewer after an error.
func (u *unblock) raw(column int, n uint64) []byte {
	p := u.columns[column]
	if n > uint64(len(p)) {
		u.fail(fmt.Sprintf("column %d is cut short", column))
		n = uint64(len(p))
	}
	u.columns[column] = p[n:]
	return p[:n:n]
}

// float returns the next eight bytes of a column as a number.
func (u *unblock) float(column int) float64 {
	var b [8]byte
	copy(b[:], u.raw(column, 8))
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

// name reads the next index in a dictionary and returns the string there.
func (u *unblock) name(column int, names []string) string {
	if place := u.int(column); place < uint64(len(names)) {
		return names[place]
	}
	u.fail(fmt.Sprintf("place in column %d", column))
	return ""
}

// heads reads the fields that all operations have.
func (u *unblock) heads(op func(int) *log.Op) {
	sites := u.numbers(colSites, u.count, math.MaxUint32)
	seqs := u.numbers(colSeqs, u.count, math.MaxUint64)
	millis := u.numbers(colMillis, u.count, 1<<48-1)
	ticks := u.numbers(colTicks, u.count, math.MaxUint64)
	u.load(colBys, u.count, math.MaxUint64)
	var h heads
	for i := range u.count {
		o := op(i)
		site := h.of(log.Site(sites[i]))
		o.Dot = log.Dot{Site: site.site, Seq: site.next + unzigzag(seqs[i])}
		site.next = o.Dot.Seq + 1
		tick := h.tick(millis[i]) + unzigzag(ticks[i])
		if tick > 0xffff {
			u.fail("tick of a clock")
			return
		}
		o.At = log.HLC(millis[i]<<16 | tick)
		h.millis, h.ticks = millis[i], tick+1
		o.By = u.name(colBys, u.callers)
	}
}

// bodies reads the bodies of the operations, and their unknown fields.
func (u *unblock) bodies(op func(int) *log.Op) {
	shapes := u.numbers(colForms, u.count, formMore|(formsEnd-1))
	var n [formsEnd]int
	more := 0
	for _, shape := range shapes {
		if shape&^formMore >= formsEnd {
			u.fail("form of a body")
			return
		}
		n[shape&^formMore]++
		more += int(shape / formMore)
	}
	u.load(colMoreSize, more, math.MaxInt32)
	creates := make([]log.InputCreate, n[formCreate])
	labels := make([]log.InputLabels, n[formLabels])
	fetches := make([]log.InputFetched, n[formFetched])
	deletes := make([]log.InputDelete, n[formDelete])
	u.prepare(&n)
	for i, shape := range shapes {
		if u.err != nil {
			return
		}
		o := op(i)
		switch shape &^ formMore {
		case formCreate:
			o.Body, creates = &creates[0], creates[1:]
			u.create(o.Body.(*log.InputCreate))
		case formLabels:
			o.Body, labels = &labels[0], labels[1:]
			*o.Body.(*log.InputLabels) = log.InputLabels{Input: u.dot(), Labels: u.takeLabels()}
		case formFetched:
			o.Body, fetches = &fetches[0], fetches[1:]
			u.fetchResult(o.Body.(*log.InputFetched))
		case formDelete:
			o.Body, deletes = &deletes[0], deletes[1:]
			o.Body.(*log.InputDelete).Input = u.dot()
		default:
			u.whole(o)
		}
		if shape&formMore != 0 {
			u.more(o)
		}
	}
}

// prepare loads the columns of the bodies. n is the number of bodies of each form.
func (u *unblock) prepare(n *[formsEnd]int) {
	dots := n[formLabels] + n[formFetched] + n[formDelete]
	u.load(colDotSites, dots, math.MaxUint32)
	u.load(colDotSeqs, dots, math.MaxUint64)
	u.prepareLabels(n[formCreate] + n[formLabels])
	u.load(colKinds, n[formCreate]+n[formFetched], math.MaxUint64)

	u.load(colCodes, n[formFetched], math.MaxInt32)
	u.load(colFetched, n[formFetched], 1)
	u.loadTexts(colDetailSize, colDetails, n[formFetched])

	u.load(colFlags, n[formCreate], flagsEnd-1)
	var hexIDs, meta, geo, micro int
	for _, flags := range u.ints[colFlags] {
		hexIDs += int(flags / flagHexID & 1)
		meta += int(flags / flagMeta & 1)
		geo += int(flags / flagGeo & 1)
		micro += int(flags / flagMicro & 1)
		if flags&flagGeo != 0 && flags&flagMicro != 0 {
			u.fail("two locations of an input")
		}
	}
	u.points = make([]log.Point, geo+micro)
	u.texts[colHexIDs] = hex.EncodeToString(u.raw(colHexIDs, 16*uint64(hexIDs)))
	u.loadTexts(colIDSize, colIDs, n[formCreate]-hexIDs)
	u.loadTexts(colURLSize, colURLs, n[formCreate])
	u.load(colMetaSize, meta, math.MaxInt32)
	u.load(colLongs, micro, math.MaxUint64)
	u.load(colLats, micro, math.MaxUint64)
}

// prepareLabels reads the labels of n bodies.
func (u *unblock) prepareLabels(n int) {
	u.load(colLabels, n, maxLabels)
	total := 0
	for _, v := range u.ints[colLabels] {
		total += int(v)
	}
	u.load(colConcepts, total, math.MaxUint64)
	values := u.numbers(colValues, total, uint64(log.True))
	u.labels = make([]log.Label, total)
	for i := range u.labels {
		u.labels[i] = log.Label{Concept: u.name(colConcepts, u.concepts), Value: log.Value(values[i])}
	}
}

func (u *unblock) dot() log.Dot {
	return log.Dot{Site: log.Site(u.int(colDotSites)), Seq: u.int(colDotSeqs)}
}

// takeLabels returns the labels of the next body, or nil if it has none.
func (u *unblock) takeLabels() []log.Label {
	n := u.int(colLabels)
	if n == 0 {
		return nil
	}
	list := u.labels[:n:n]
	u.labels = u.labels[n:]
	return list
}

func (u *unblock) blob() (h blob.Hash) {
	copy(h[:], u.raw(colBlobs, uint64(len(h))))
	return h
}

func (u *unblock) fetchResult(b *log.InputFetched) {
	b.Input, b.Code = u.dot(), int(u.int(colCodes))
	b.Detail = u.text(colDetailSize, colDetails)
	b.ContentType = u.name(colKinds, u.types)
	if u.int(colFetched) != 0 {
		b.Blob = u.blob()
	}
}

func (u *unblock) create(b *log.InputCreate) {
	flags := u.int(colFlags)
	b.AllowDuplicate, b.MergeIfEqual = flags&flagDuplicate != 0, flags&flagMerge != 0
	if flags&flagBlob != 0 {
		b.Blob = u.blob()
	}
	if flags&flagHosted != 0 {
		copy(b.Hosted[:], u.raw(colHosted, uint64(len(b.Hosted))))
	}
	if flags&flagHexID != 0 {
		all := u.texts[colHexIDs]
		b.ID, u.texts[colHexIDs] = all[:32], all[32:]
	} else {
		b.ID = u.text(colIDSize, colIDs)
	}
	b.URL = u.text(colURLSize, colURLs)
	b.ContentType = u.name(colKinds, u.types)
	b.Labels = u.takeLabels()
	if flags&flagCrop != 0 {
		b.Crop = raster.Crop{Top: u.float(colCrops), Left: u.float(colCrops), Bottom: u.float(colCrops), Right: u.float(colCrops)}
	}
	if flags&flagMeta != 0 {
		b.Meta = u.raw(colMeta, u.int(colMetaSize))
		if b.Meta == nil {
			b.Meta = []byte{} // present, but empty
		}
	}
	if flags&flagGeo != 0 {
		b.Geo = u.point(log.Point{Longitude: u.float(colGeos), Latitude: u.float(colGeos)})
	}
	if flags&flagMicro != 0 {
		b.Geo = u.point(log.Point{Longitude: u.degrees(colLongs), Latitude: u.degrees(colLats)})
	}
}

func (u *unblock) point(is log.Point) *log.Point {
	p := &u.points[0]
	*p, u.points = is, u.points[1:]
	return p
}

func (u *unblock) degrees(column int) float64 { return degrees(int64(unzigzag(u.int(column)))) }

// whole reads a body that has the same encoding as in an operation: the field of its kind.
func (u *unblock) whole(o *log.Op) {
	number, _, n := protowire.ConsumeField(u.columns[colWhole])
	if n < 0 || number < firstKind {
		u.fail("body as a whole")
		return
	}
	alone, err := log.Decode(append([]byte{field.Version}, u.raw(colWhole, uint64(n))...))
	if err != nil {
		u.fail("body as a whole")
		return
	}
	o.Body, o.Extra.Body = alone.Body, alone.Extra.Body
}

// Numbers of an operation's fields: numbers below firstMore are known fields, and numbers of bodies start at firstKind.
const (
	firstMore = 5
	firstKind = 16
)

// more reads the unknown fields of an operation. It rejects a known field among them, because the operation would then change when it is
// read from a log.
func (u *unblock) more(o *log.Op) {
	o.Extra.Op = u.raw(colMore, u.int(colMoreSize))
	if len(o.Extra.Op) == 0 {
		o.Extra.Op = nil
	}
	for d := field.Fields(o.Extra.Op); ; {
		if !d.Next() {
			if d.Err() != nil {
				u.fail("unknown field")
			}
			return
		}
		if d.Number < firstMore {
			u.fail("field of an operation twice")
			return
		}
	}
}
