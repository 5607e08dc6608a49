package wire

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// MaxOps is the maximum number of operations in a block.
const MaxOps = 512

// maxLabels is the maximum number of labels of an operation that is written in columns. An operation with more labels uses formWhole.
const maxLabels = 128

// The columns of a block, numbered like their fields. A column of sizes has the lengths of the strings in the column after it. README.md
// specifies the contents.
const (
	colCount    = 1 // number of operations
	colSites    = 2
	colSeqs     = 3 // difference from the expected sequence: one more than the site's previous operation, or 1
	colMillis   = 4 // time in milliseconds
	colTicks    = 5 // difference from the expected tick: one more than the previous operation's in the same millisecond, or 0
	colBys      = 6 // indexes into colAsked
	colForms    = 7
	colAsked    = 8 // repeated: distinct values of By, ascending
	colMoreSize = 9
	colMore     = 10 // unknown fields of operations
	colWhole    = 11 // bodies encoded as in an operation, concatenated

	colDotSites = 16 // inputs that the bodies refer to
	colDotSeqs  = 17
	colLabels   = 18 // number of labels of a body
	colConcepts = 19 // indexes into colNames
	colValues   = 20
	colNames    = 21 // repeated: names of concepts, ascending
	colKinds    = 22 // content types, as indexes into colTypes
	colTypes    = 23 // repeated: content types, ascending

	colFlags    = 24 // flags of InputCreate bodies
	colIDSize   = 25
	colIDs      = 26
	colURLSize  = 27
	colURLs     = 28
	colCrops    = 29 // 4 × 8 bytes
	colMetaSize = 30
	colMeta     = 31
	colLongs    = 32 // millionths of a degree, zigzag
	colLats     = 33
	colGeos     = 34 // 2 × 8 bytes

	colCodes      = 40 // result codes of InputFetched bodies
	colFetched    = 41 // flags: bit 0 if the body has a blob
	colDetailSize = 42
	colDetails    = 43

	colRandom = 48 // first column of incompressible bytes
	colHexIDs = 48 // 16 bytes each
	colHosted = 49 // 16 bytes each
	colBlobs  = 50 // 32 bytes each, of InputCreate and InputFetched bodies

	columns = 51 // upper bound of the column numbers above
	colEnd  = 63 // number of columns before it, including colCount; the last field
)

// The forms of a body: formWhole is the operation's own encoding, the others are columns.
const (
	formWhole = iota
	formCreate
	formLabels
	formFetched
	formDelete
	formsEnd

	formMore = 1 << 3 // added to a form if the operation has unknown fields
)

// The flags of an InputCreate.
const (
	flagDuplicate = 1 << iota
	flagMerge
	flagBlob
	flagHosted
	flagHexID // if unset, the id is in colIDs
	flagCrop
	flagMeta
	flagGeo   // location as 2 floats, 16 bytes
	flagMicro // location in millionths of a degree
	flagsEnd
)

// EncodeOps returns a block with ops. It panics if there are more than MaxOps.
func EncodeOps(ops []log.Op) []byte {
	return encodeBlock(len(ops), func(i int) *log.Op { return &ops[i] })
}

// EncodeEntries returns a block with the operations of consecutive entries. It panics if there are more than MaxOps.
func EncodeEntries(entries []log.Entry) []byte {
	return encodeBlock(len(entries), func(i int) *log.Op { return &entries[i].Op })
}

func encodeBlock(n int, op func(int) *log.Op) []byte {
	if n > MaxOps {
		panic("wire: too many operations for a block")
	}
	b := block{callers: newNames(), concepts: newNames(), types: newNames()}
	for i := range n {
		o := op(i)
		b.callers.add(o.By)
		b.note(o, formOf(o))
	}
	b.callers.sort()
	b.concepts.sort()
	b.types.sort()
	var h heads
	for i := range n {
		o := op(i)
		h.add(&b, o)
		form := formOf(o)
		b.body(o, form)
		if len(o.Extra.Op) > 0 {
			form |= formMore
			b.raw(colMoreSize, colMore, o.Extra.Op)
		}
		b.int(colForms, uint64(form))
	}
	return b.encode(n)
}

// encode returns the block: its n operations as columns.
func (b *block) encode(n int) []byte {
	var e field.Encoder
	e.Uint(colCount, uint64(n))
	written := uint64(1) // starts at 1 to count colCount, so it is never 0
	var scratch []byte
	for c := range columns {
		switch c {
		case colAsked:
			texts(&e, c, b.callers.list)
		case colNames:
			texts(&e, c, b.concepts.list)
		case colTypes:
			texts(&e, c, b.types.list)
		default:
			scratch = appendInts(scratch[:0], b.ints[c])
			if scratch = append(scratch, b.bytes[c]...); len(scratch) > 0 {
				e.Raw(c, scratch)
				written++
			}
		}
	}
	e.Uint(colEnd, written)
	return e.Bytes(nil)
}

// block collects the columns of a block while it is encoded.
type block struct {
	ints                     [columns][]uint64
	bytes                    [columns][]byte
	callers, concepts, types *names
	scratch                  []byte
}

// names is a dictionary. It maps each string to its index among all strings in ascending order.
type names struct {
	place map[string]uint64
	list  []string
}

func newNames() *names { return &names{place: map[string]uint64{}} }

func (n *names) add(s string) {
	if _, exists := n.place[s]; !exists {
		n.place[s] = 0
		n.list = append(n.list, s)
	}
}

func (n *names) sort() {
	slices.Sort(n.list)
	for i, s := range n.list {
		n.place[s] = uint64(i)
	}
}

func (b *block) int(column int, v uint64) { b.ints[column] = append(b.ints[column], v) }

func (b *block) text(sizes, column int, s string) {
	b.int(sizes, uint64(len(s)))
	b.bytes[column] = append(b.bytes[column], s...)
}

func (b *block) raw(sizes, column int, p []byte) {
	b.int(sizes, uint64(len(p)))
	b.bytes[column] = append(b.bytes[column], p...)
}

// heads predicts the head of each operation from the previous operations, so that a block stores small differences.
type heads struct {
	sites  []siteNext
	millis uint64
	ticks  uint64
}

// siteNext is the next sequence that heads expects of a site.
type siteNext struct {
	site log.Site
	next uint64
}

// of returns the state of site. The first expected sequence is 1.
func (h *heads) of(site log.Site) *siteNext {
	for i := range h.sites {
		if h.sites[i].site == site {
			return &h.sites[i]
		}
	}
	h.sites = append(h.sites, siteNext{site: site, next: 1})
	return &h.sites[len(h.sites)-1]
}

// tick returns the tick that heads expects in millis.
func (h *heads) tick(millis uint64) uint64 {
	if millis == h.millis {
		return h.ticks
	}
	return 0
}

func (h *heads) add(b *block, o *log.Op) {
	millis, tick := uint64(o.At>>16), uint64(o.At&0xffff)
	b.int(colSites, uint64(o.Dot.Site))
	site := h.of(o.Dot.Site)
	b.int(colSeqs, zigzag(o.Dot.Seq-site.next))
	site.next = o.Dot.Seq + 1
	b.int(colMillis, millis)
	b.int(colTicks, zigzag(tick-h.tick(millis)))
	b.int(colBys, b.callers.place[o.By])
	h.millis, h.ticks = millis, tick+1
}

// formOf returns the form in which the body of o is written.
func formOf(o *log.Op) int {
	if len(o.Extra.Body) > 0 {
		return formWhole
	}
	switch body := o.Body.(type) {
	case *log.InputCreate:
		if plainLabels(body.Labels) && !body.ReadEXIF { // no flag has this field
			return formCreate
		}
	case *log.InputLabels:
		if plainLabels(body.Labels) {
			return formLabels
		}
	case *log.InputFetched:
		if body.Code >= 0 && body.Code <= math.MaxInt32 {
			return formFetched
		}
	case *log.InputDelete:
		return formDelete
	}
	return formWhole
}

func plainLabels(labels []log.Label) bool {
	return len(labels) <= maxLabels && !slices.ContainsFunc(labels, func(l log.Label) bool { return l.Value > log.True })
}

// note adds the concepts and content types of the body to the dictionaries.
func (b *block) note(o *log.Op, form int) {
	switch form {
	case formCreate:
		body := o.Body.(*log.InputCreate)
		b.noteLabels(body.Labels)
		b.types.add(body.ContentType)
	case formLabels:
		b.noteLabels(o.Body.(*log.InputLabels).Labels)
	case formFetched:
		b.types.add(o.Body.(*log.InputFetched).ContentType)
	}
}

func (b *block) noteLabels(labels []log.Label) {
	for i := range labels {
		b.concepts.add(labels[i].Concept)
	}
}

// body writes the body of o to the columns of form.
func (b *block) body(o *log.Op, form int) {
	switch form {
	case formCreate:
		b.create(o.Body.(*log.InputCreate))
	case formLabels:
		body := o.Body.(*log.InputLabels)
		b.dot(body.Input)
		b.labels(body.Labels)
	case formFetched:
		b.fetchResult(o.Body.(*log.InputFetched))
	case formDelete:
		b.dot(o.Body.(*log.InputDelete).Input)
	default:
		op := log.Op{Body: o.Body, Extra: log.Extra{Body: o.Extra.Body}}
		b.scratch = log.Encode(b.scratch[:0], &op)
		b.bytes[colWhole] = append(b.bytes[colWhole], b.scratch[1:]...) // drops the version byte
	}
}

func (b *block) dot(d log.Dot) {
	b.int(colDotSites, uint64(d.Site))
	b.int(colDotSeqs, d.Seq)
}

func (b *block) labels(labels []log.Label) {
	b.int(colLabels, uint64(len(labels)))
	for i := range labels {
		b.int(colConcepts, b.concepts.place[labels[i].Concept])
		b.int(colValues, uint64(labels[i].Value))
	}
}

func (b *block) fetchResult(f *log.InputFetched) {
	b.dot(f.Input)
	b.int(colCodes, uint64(f.Code))
	b.text(colDetailSize, colDetails, f.Detail)
	b.int(colKinds, b.types.place[f.ContentType])
	var flags uint64
	if !f.Blob.IsZero() {
		flags = 1
		b.bytes[colBlobs] = append(b.bytes[colBlobs], f.Blob[:]...)
	}
	b.int(colFetched, flags)
}

func (b *block) create(c *log.InputCreate) {
	flags := uint64(0)
	set := func(flag uint64, is bool) bool {
		if is {
			flags |= flag
		}
		return is
	}
	set(flagDuplicate, c.AllowDuplicate)
	set(flagMerge, c.MergeIfEqual)
	if set(flagBlob, !c.Blob.IsZero()) {
		b.bytes[colBlobs] = append(b.bytes[colBlobs], c.Blob[:]...)
	}
	if set(flagHosted, c.Hosted != [16]byte{}) {
		b.bytes[colHosted] = append(b.bytes[colHosted], c.Hosted[:]...)
	}
	if id, ok := hexID(c.ID); set(flagHexID, ok) {
		b.bytes[colHexIDs] = append(b.bytes[colHexIDs], id[:]...)
	} else {
		b.text(colIDSize, colIDs, c.ID)
	}
	b.text(colURLSize, colURLs, c.URL)
	b.int(colKinds, b.types.place[c.ContentType])
	b.labels(c.Labels)
	if set(flagCrop, c.Crop != raster.Crop{}) {
		b.floats(colCrops, c.Crop.Top, c.Crop.Left, c.Crop.Bottom, c.Crop.Right)
	}
	if set(flagMeta, c.Meta != nil) {
		b.raw(colMetaSize, colMeta, c.Meta)
	}
	if c.Geo != nil {
		long, ok := micro(c.Geo.Longitude)
		lat, also := micro(c.Geo.Latitude)
		if set(flagMicro, ok && also) {
			b.int(colLongs, zigzag(uint64(long)))
			b.int(colLats, zigzag(uint64(lat)))
		} else {
			set(flagGeo, true)
			b.floats(colGeos, c.Geo.Longitude, c.Geo.Latitude)
		}
	}
	b.int(colFlags, flags)
}

func (b *block) floats(column int, list ...float64) {
	for _, v := range list {
		b.bytes[column] = binary.LittleEndian.AppendUint64(b.bytes[column], math.Float64bits(v))
	}
}

// micro returns degree in millionths. It reports false if the conversion is not exact.
func micro(degree float64) (int64, bool) {
	if !(math.Abs(degree) <= 360) {
		return 0, false
	}
	m := int64(math.RoundToEven(float64(degree * 1e6)))
	return m, math.Float64bits(degrees(m)) == math.Float64bits(degree)
}

// degrees converts millionths to degrees. One division rounds the same on every machine.
func degrees(m int64) float64 { return float64(m) / 1e6 }

// hexID decodes an id of 32 lower-case hexadecimal digits. ok is false for any other id.
func hexID(id string) (b [16]byte, ok bool) {
	if len(id) != 2*len(b) {
		return b, false
	}
	_, err := hex.Decode(b[:], []byte(id))
	return b, err == nil && !strings.ContainsAny(id, "ABCDEF")
}

func texts(e *field.Encoder, number int, list []string) {
	for _, s := range list {
		e.Element(number, s)
	}
}
