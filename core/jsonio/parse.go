package jsonio

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind uint8

// Kinds of values. Absent is the kind of a member that the object does not have.
const (
	Absent Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"absent", "null", "false", "true", "number", "string", "array", "object"}[k]
}

// node is one value, or one member name (kind String, its value is the next node).
type node struct {
	start, end int32 // range of the text, quotes included
	next       int32 // index of the node after this value and all inside it
	count      int32 // members or elements
	kind       Kind
	escaped    bool // a string with at least one backslash
}

// Doc is a parsed text. It borrows the text, and the next Parse reuses its memory: Doc and its Values are valid until either changes.
// Concurrent reads are safe, concurrent calls of Parse are not.
type Doc struct {
	data  []byte
	nodes []node
	seen  map[string]struct{} // names of one large object
}

// Root returns the value of the whole text. It is absent if nothing was parsed.
func (d *Doc) Root() Value {
	if len(d.nodes) == 0 {
		return Value{}
	}
	return Value{d: d, i: 0}
}

// Parse checks data and makes it the document. Time and memory are proportional to the length of data, whatever its content. After an error
// the document is empty.
//
// Errors, each an *[Error]: [ErrSyntax], [ErrDuplicate], [ErrUTF8], [ErrTooLong],
// [ErrTooDeep], [ErrTooMany].
func (d *Doc) Parse(data []byte, l Limits) error {
	l = l.withDefaults()
	d.data, d.nodes = data, d.nodes[:0]
	if len(data) > l.Bytes {
		d.data = nil
		return &Error{Offset: l.Bytes, Err: ErrTooLong, Detail: fmt.Sprintf("at most %d bytes", l.Bytes)}
	}
	p := parser{doc: d, data: data, left: l.Members, depth: l.Depth}
	pos, err := p.document()
	if err != nil {
		d.data, d.nodes = nil, d.nodes[:0]
		if e, ok := err.(*Error); ok && e.Offset < 0 {
			e.Offset = pos
		}
		return err
	}
	return nil
}

// maxKeptNodes is the maximum length of the list that a Doc keeps for its next text: 100 KiB.
const maxKeptNodes = 4096

// Reset releases the text, and the list of nodes if it has grown large.
func (d *Doc) Reset() {
	d.data, d.seen = nil, nil
	if cap(d.nodes) > maxKeptNodes {
		d.nodes = nil
	}
	d.nodes = d.nodes[:0]
}

type parser struct {
	doc   *Doc
	data  []byte
	left  int // members still allowed
	depth int // levels still allowed
}

// byteOrderMark is U+FEFF in UTF-8. Clients on Windows write it before a text, and RFC 8259 allows parsers to ignore it.
var byteOrderMark = []byte("\ufeff")

func (p *parser) document() (int, error) {
	start := 0
	if bytes.HasPrefix(p.data, byteOrderMark) {
		start = len(byteOrderMark)
	}
	pos, err := p.value(p.space(start))
	if err != nil {
		return pos, err
	}
	if pos = p.space(pos); pos < len(p.data) {
		return pos, p.syntax(pos, "end of text")
	}
	return pos, nil
}

// syntax returns an error that names the character at pos and the expected text.
func (p *parser) syntax(pos int, want string) error {
	if pos >= len(p.data) {
		return &Error{Offset: len(p.data), Err: ErrSyntax, Detail: "text ends, expected " + want}
	}
	r, n := utf8.DecodeRune(p.data[pos:])
	if r == utf8.RuneError && n == 1 {
		return &Error{Offset: pos, Err: ErrSyntax, Detail: fmt.Sprintf("byte 0x%02x, expected %s", p.data[pos], want)}
	}
	return &Error{Offset: pos, Err: ErrSyntax, Detail: fmt.Sprintf("%q, expected %s", r, want)}
}

func (p *parser) space(pos int) int {
	for pos < len(p.data) {
		switch p.data[pos] {
		case ' ', '\n', '\r', '\t':
			pos++
		default:
			return pos
		}
	}
	return pos
}

// value parses the value that starts at pos and returns the position after it.
func (p *parser) value(pos int) (int, error) {
	if pos >= len(p.data) {
		return pos, p.syntax(pos, "a value")
	}
	switch c := p.data[pos]; {
	case c == '"':
		return p.string(pos)
	case c == '{' || c == '[':
		return p.nest(pos, c)
	case c == '-' || c >= '0' && c <= '9':
		return p.number(pos)
	case c == 't':
		return p.literal(pos, "true", True)
	case c == 'f':
		return p.literal(pos, "false", False)
	case c == 'n':
		return p.literal(pos, "null", Null)
	}
	return pos, p.syntax(pos, "a value")
}

// nest parses an object or array, one level deeper.
func (p *parser) nest(pos int, open byte) (int, error) {
	if p.depth == 0 {
		return pos, &Error{Offset: pos, Err: ErrTooDeep}
	}
	p.depth--
	at := len(p.doc.nodes)
	p.add(node{start: int32(pos)})
	var count int
	var err error
	if open == '{' {
		pos, count, err = p.object(at, pos+1)
	} else {
		pos, count, err = p.array(pos + 1)
	}
	if err != nil {
		return pos, err
	}
	p.depth++
	n := &p.doc.nodes[at]
	n.end, n.next, n.count, n.kind = int32(pos), int32(len(p.doc.nodes)), int32(count), Array
	if open == '{' {
		n.kind = Object
	}
	return pos, nil
}

func (p *parser) object(at, pos int) (end, count int, err error) {
	pos = p.space(pos)
	if pos < len(p.data) && p.data[pos] == '}' {
		return pos + 1, 0, nil
	}
	for {
		if p.left--; p.left < 0 {
			return pos, 0, &Error{Offset: pos, Err: ErrTooMany}
		}
		if pos >= len(p.data) || p.data[pos] != '"' {
			return pos, 0, p.syntax(pos, "a name in quotes")
		}
		if pos, err = p.string(pos); err != nil {
			return pos, 0, err
		}
		if pos = p.space(pos); pos >= len(p.data) || p.data[pos] != ':' {
			return pos, 0, p.syntax(pos, "':'")
		}
		if pos, err = p.value(p.space(pos + 1)); err != nil {
			return pos, 0, err
		}
		count++
		pos = p.space(pos)
		switch {
		case pos < len(p.data) && p.data[pos] == ',':
			pos = p.space(pos + 1)
		case pos < len(p.data) && p.data[pos] == '}':
			return pos + 1, count, p.unique(at, count)
		default:
			return pos, 0, p.syntax(pos, "',' or '}'")
		}
	}
}

func (p *parser) array(pos int) (end, count int, err error) {
	pos = p.space(pos)
	if pos < len(p.data) && p.data[pos] == ']' {
		return pos + 1, 0, nil
	}
	for {
		if p.left--; p.left < 0 {
			return pos, 0, &Error{Offset: pos, Err: ErrTooMany}
		}
		if pos, err = p.value(pos); err != nil {
			return pos, 0, err
		}
		count++
		pos = p.space(pos)
		switch {
		case pos < len(p.data) && p.data[pos] == ',':
			pos = p.space(pos + 1)
		case pos < len(p.data) && p.data[pos] == ']':
			return pos + 1, count, nil
		default:
			return pos, 0, p.syntax(pos, "',' or ']'")
		}
	}
}

// smallObject is the maximum number of members whose names are compared in pairs.
const smallObject = 12

// unique returns an error if two of the count names of the object at node at are equal.
func (p *parser) unique(at, count int) error {
	d := p.doc
	if count < 2 {
		return nil
	}
	if count <= smallObject {
		var names [smallObject]int
		for i, k := at+1, 0; k < count; k++ {
			for _, earlier := range names[:k] {
				if d.sameString(earlier, i) {
					return p.duplicate(i)
				}
			}
			names[k] = i
			i = int(d.nodes[i+1].next)
		}
		return nil
	}
	if d.seen == nil {
		d.seen = make(map[string]struct{})
	}
	clear(d.seen)
	for i, k := at+1, 0; k < count; k++ {
		name := d.str(i)
		if _, dup := d.seen[name]; dup {
			return p.duplicate(i)
		}
		d.seen[name] = struct{}{}
		i = int(d.nodes[i+1].next)
	}
	return nil
}

func (p *parser) duplicate(i int) error {
	name := p.doc.str(i)
	if len(name) > 64 {
		name = name[:64]
	}
	return &Error{Offset: int(p.doc.nodes[i].start), Err: ErrDuplicate, Detail: fmt.Sprintf("%q", name)}
}

func (d *Doc) sameString(i, j int) bool {
	a, b := &d.nodes[i], &d.nodes[j]
	if !a.escaped && !b.escaped {
		return bytes.Equal(d.data[a.start:a.end], d.data[b.start:b.end])
	}
	return d.str(i) == d.str(j)
}

func (p *parser) literal(pos int, word string, k Kind) (int, error) {
	if len(p.data)-pos < len(word) || string(p.data[pos:pos+len(word)]) != word {
		return pos, p.syntax(pos, "a value")
	}
	p.leaf(pos, pos+len(word), k, false)
	return pos + len(word), nil
}

// number parses -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
func (p *parser) number(pos int) (int, error) {
	start := pos
	if p.data[pos] == '-' {
		pos++
	}
	if pos < len(p.data) && p.data[pos] == '0' {
		pos++
	} else if end := p.digits(pos); end > pos {
		pos = end
	} else {
		return pos, p.syntax(pos, "a digit")
	}
	if pos < len(p.data) && p.data[pos] == '.' {
		end := p.digits(pos + 1)
		if end == pos+1 {
			return end, p.syntax(end, "a digit")
		}
		pos = end
	}
	if pos < len(p.data) && (p.data[pos] == 'e' || p.data[pos] == 'E') {
		pos++
		if pos < len(p.data) && (p.data[pos] == '+' || p.data[pos] == '-') {
			pos++
		}
		end := p.digits(pos)
		if end == pos {
			return end, p.syntax(end, "a digit")
		}
		pos = end
	}
	p.leaf(start, pos, Number, false)
	return pos, nil
}

func (p *parser) digits(pos int) int {
	for pos < len(p.data) && p.data[pos] >= '0' && p.data[pos] <= '9' {
		pos++
	}
	return pos
}

func (p *parser) leaf(start, end int, k Kind, escaped bool) {
	p.add(node{start: int32(start), end: int32(end), next: int32(len(p.doc.nodes) + 1), kind: k, escaped: escaped})
}

func (p *parser) add(n node) { p.doc.nodes = append(p.doc.nodes, n) }
