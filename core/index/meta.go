package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// Metadata is matched by its structure. Each pair of a pattern matches if a stored object, at any depth, has a member of that name whose
// value contains the pair's:
//
//	a scalar    equals it; numbers by value, so 1 is 1.0 and 1e0
//	an object   has every member of the pattern's, containing its value
//	a list      has, for every element of the pattern's, one that contains it, in any order
//
// If a pattern is not an object, the whole document must contain it.
//
// Terms find the documents. A document has, for each scalar and each container in it, one term for every suffix of the path to it. So a
// pattern finds its scalars at any depth:
//
//	{"a": {"b": [7]}}    a·b·[]·7   b·[]·7   a·{}   a·b·[]   b·[]
//
// A document with all of a pattern's terms contains the pattern, unless two members have one name or a list has two containers. Then the
// terms may come from different places, and the document itself is compared. A document with too long paths or too many terms has no
// terms and is always compared.
const (
	maxTokens   = 8
	maxTerms    = 512
	maxPatterns = 1000 // maximum number of members and elements of a pattern; it bounds the work for a document
)

// ErrPattern is returned by NewPattern for invalid JSON, and for JSON with too many members.
var ErrPattern = errors.New("malformed metadata pattern")

// Pattern is the pattern of a metadata clause. It is immutable.
type Pattern struct {
	text  string // the JSON
	root  pattern
	terms []term // terms that a matching document has, all of them
	deep  bool   // a path is too long for terms
}

// pattern is a value of a Pattern.
type pattern struct {
	kind    byte     // 'v' a scalar, 'o' an object, 'l' a list
	scalar  string   // canonical form of a scalar
	names   []string // names of an object's members
	values  []pattern
	scalars map[string]bool // scalars of a list; its containers are in values
}

// NewPattern reads a pattern. It copies json.
func NewPattern(json []byte) (*Pattern, error) {
	var doc jsonio.Doc
	if err := doc.Parse(json, jsonio.Limits{Members: maxPatterns}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPattern, err)
	}
	p := &Pattern{text: string(json), root: compile(doc.Root())}
	if p.root.kind == 'o' {
		for i, name := range p.root.names {
			p.collect(&p.root.values[i], appendName(nil, name), 1)
		}
		return p, nil
	}
	p.collect(&p.root, []byte{'^'}, 1)
	return p, nil
}

func compile(v jsonio.Value) pattern {
	p := pattern{kind: kindOf(v)}
	switch p.kind {
	case 'v':
		p.scalar = canonical(v)
	case 'o':
		for name, value := range v.Members() {
			p.names = append(p.names, name)
			p.values = append(p.values, compile(value))
		}
	default:
		p.scalars = map[string]bool{}
		for e := range v.Elems() {
			if kindOf(e) == 'v' {
				p.scalars[canonical(e)] = true
			} else {
				p.values = append(p.values, compile(e))
			}
		}
	}
	return p
}

// collect adds the terms of a value to p. path leads to the value and has the given number of tokens.
func (p *Pattern) collect(v *pattern, path []byte, tokens int) {
	if tokens > maxTokens {
		p.deep = true
		return
	}
	switch v.kind {
	case 'v':
		p.terms = append(p.terms, metaTerm(path, v.scalar))
		return
	case 'o':
		for i, name := range v.names {
			p.collect(&v.values[i], appendName(path[:len(path):len(path)], name), tokens+1)
		}
	default:
		path = append(path[:len(path):len(path)], '[')
		if tokens == maxTokens && len(v.scalars)+len(v.values) > 0 {
			p.deep = true
			return
		}
		for s := range v.scalars {
			p.terms = append(p.terms, metaTerm(path, s))
		}
		for i := range v.values {
			p.collect(&v.values[i], path, tokens+1)
		}
	}
	if len(v.values)+len(v.scalars) == 0 {
		p.terms = append(p.terms, metaTerm(path, string(v.kind)))
	}
}

// empty reports whether the pattern is {}, which everything contains.
func (p *Pattern) empty() bool { return p.root.kind == 'o' && len(p.root.names) == 0 }

// Match reports whether a document contains the pattern. nil means that there is no document. The document was checked when it was stored;
// a document that cannot be parsed contains nothing.
func (p *Pattern) Match(json []byte) bool {
	if p.empty() {
		return true
	}
	var doc jsonio.Doc
	if len(json) == 0 || doc.Parse(json, jsonio.Limits{}) != nil {
		return false
	}
	if p.root.kind != 'o' {
		return p.root.in(doc.Root())
	}
	for i, name := range p.root.names {
		if !somewhere(doc.Root(), name, &p.root.values[i]) {
			return false
		}
	}
	return true
}

// somewhere reports whether v or anything in it has a member called name whose value contains p.
func somewhere(v jsonio.Value, name string, p *pattern) bool {
	for n, member := range v.Members() {
		if n == name && p.in(member) || somewhere(member, name, p) {
			return true
		}
	}
	for e := range v.Elems() {
		if somewhere(e, name, p) {
			return true
		}
	}
	return false
}

// in reports whether v contains p.
func (p *pattern) in(v jsonio.Value) bool {
	if kindOf(v) != p.kind {
		return false
	}
	switch p.kind {
	case 'v':
		return canonical(v) == p.scalar
	case 'o':
		for i, name := range p.names {
			member := v.Get(name)
			if member.Kind() == jsonio.Absent || !p.values[i].in(member) {
				return false
			}
		}
		return true
	}
	found := map[string]bool{}
	for e := range v.Elems() {
		if len(p.scalars) > 0 && kindOf(e) == 'v' {
			if s := canonical(e); p.scalars[s] {
				found[s] = true
			}
		}
	}
	if len(found) < len(p.scalars) {
		return false
	}
	for i := range p.values {
		if !p.values[i].inElement(v) {
			return false
		}
	}
	return true
}

// inElement reports whether an element of v contains p.
func (p *pattern) inElement(v jsonio.Value) bool {
	for e := range v.Elems() {
		if p.in(e) {
			return true
		}
	}
	return false
}

// kindOf returns 'v' for a scalar, 'o' for an object, 'l' for a list.
func kindOf(v jsonio.Value) byte {
	switch v.Kind() {
	case jsonio.Object:
		return 'o'
	case jsonio.Array:
		return 'l'
	}
	return 'v'
}

// canonical returns the same text for equal scalars and different texts for different ones.
func canonical(v jsonio.Value) string { return string(appendCanonical(nil, v)) }

func appendCanonical(dst []byte, v jsonio.Value) []byte {
	raw := v.Raw()
	switch v.Kind() {
	case jsonio.String:
		if bytes.IndexByte(raw, '\\') < 0 {
			return append(append(dst, 's'), raw[1:len(raw)-1]...)
		}
		s, _ := v.Str()
		return append(append(dst, 's'), s...)
	case jsonio.Number:
		return appendNumber(dst, raw)
	}
	return append(dst, raw...) // true, false, null
}

// appendNumber appends the result of number. It appends integers in plain digits without calling number.
func appendNumber(dst, raw []byte) []byte {
	for _, c := range raw {
		if c < '0' || c > '9' {
			return append(dst, number(string(raw))...)
		}
	}
	significant := bytes.TrimRight(raw, "0")
	if len(significant) == 0 {
		return append(dst, "n0"...)
	}
	dst = append(append(append(dst, 'n'), significant...), 'e')
	return strconv.AppendInt(dst, int64(len(raw)-len(significant)), 10)
}

// number returns the canonical form of a number: "n", a sign, the digits from the first to the last that is not 0, "e" and the power of
// ten.
func number(text string) string {
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	digits, negative := strings.CutPrefix(digits, "-")
	integer, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(integer+fraction, "0")
	if digits == "" {
		return "n0"
	}
	shift := int64(0)
	if exponent != "" {
		e, err := strconv.ParseInt(exponent, 10, 48)
		if err != nil {
			return "n!" + text // the exponent is too large to compute with
		}
		shift = e
	}
	significant := strings.TrimRight(digits, "0")
	shift += int64(len(digits) - len(significant) - len(fraction))
	sign := ""
	if negative {
		sign = "-"
	}
	return "n" + sign + significant + "e" + strconv.FormatInt(shift, 10)
}

// appendName appends the token of a member's name. Other tokens are '[' for a list's element and '^' for the root.
func appendName(path []byte, name string) []byte {
	path = append(path, '.')
	path = binary.AppendUvarint(path, uint64(len(name)))
	return append(path, name...)
}

// metaTerm returns the term of the value at the end of a path.
func metaTerm(path []byte, value string) term {
	return hashTerm(kindMeta, string(path)+"="+value)
}

// String returns the pattern's JSON.
func (p *Pattern) String() string { return p.text }
