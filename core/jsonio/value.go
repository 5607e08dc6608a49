package jsonio

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is one value of a [Doc]. The zero Value is absent. Every method accepts an absent value, so a path of [Value.Get] needs no checks
// in between.
type Value struct {
	d *Doc
	i int32
}

func (v Value) node() *node { return &v.d.nodes[v.i] }

// Kind returns the kind, [Absent] for the zero Value.
func (v Value) Kind() Kind {
	if v.d == nil {
		return Absent
	}
	return v.node().kind
}

// Offset returns the offset of the value's first byte in the text.
func (v Value) Offset() int {
	if v.d == nil {
		return 0
	}
	return int(v.node().start)
}

// Raw returns the value's own bytes, quotes and brackets included, borrowed from the text. It returns nil for an absent value.
func (v Value) Raw() []byte {
	if v.d == nil {
		return nil
	}
	n := v.node()
	return v.d.data[n.start:n.end:n.end]
}

// Len returns the number of members or elements, 0 for other kinds.
func (v Value) Len() int {
	if v.d == nil {
		return 0
	}
	return int(v.node().count)
}

// Get returns the member called name. It returns an absent value if v is not an object or has no such member. It compares the members one
// after another.
func (v Value) Get(name string) Value {
	if v.Kind() != Object {
		return Value{}
	}
	for i, end := v.i+1, v.node().next; i < end; i = v.d.nodes[i+1].next {
		if v.d.isString(i, name) {
			return Value{d: v.d, i: i + 1}
		}
	}
	return Value{}
}

// Elems yields the elements of an array in order; nothing for other kinds.
func (v Value) Elems() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		for i, end := v.i+1, v.node().next; i < end; i = v.d.nodes[i].next {
			if !yield(Value{d: v.d, i: i}) {
				return
			}
		}
	}
}

// Members yields the members of an object in the text's order; nothing for other kinds.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for i, end := v.i+1, v.node().next; i < end; i = v.d.nodes[i+1].next {
			if !yield(v.d.str(int(i)), Value{d: v.d, i: i + 1}) {
				return
			}
		}
	}
}

// Str returns a string's text, unescaped. Errors: [ErrType].
func (v Value) Str() (string, error) {
	if v.Kind() != String {
		return "", v.typeError(String)
	}
	return v.d.str(int(v.i)), nil
}

// Bool returns true or false. Errors: [ErrType].
func (v Value) Bool() (bool, error) {
	switch v.Kind() {
	case True:
		return true, nil
	case False:
		return false, nil
	}
	return false, fmt.Errorf("%w: %s, expected true or false", ErrType, v.Kind())
}

// Int returns an integer in any notation (20, 20.0, 2e1). Errors: [ErrType]; [ErrNumber] in an *[Error] for a fraction, for a number
// beyond int64, and for one beyond 2^53 that is not written as plain digits.
func (v Value) Int() (int64, error) {
	if v.Kind() != Number {
		return 0, v.typeError(Number)
	}
	text := string(v.Raw())
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || !bytes.ContainsAny(v.Raw(), ".eE") {
		return 0, &Error{Offset: v.Offset(), Err: ErrNumber, Detail: "expected an integer"}
	}
	return int64(f), nil
}

// Float returns the nearest float64. Errors: [ErrType]; [ErrNumber] in an *[Error]
// for a number beyond the largest float64.
func (v Value) Float() (float64, error) {
	if v.Kind() != Number {
		return 0, v.typeError(Number)
	}
	f, err := strconv.ParseFloat(string(v.Raw()), 64)
	if err != nil {
		return 0, &Error{Offset: v.Offset(), Err: ErrNumber}
	}
	return f, nil
}

// Float32 returns the nearest float32. Errors: [ErrType]; [ErrNumber] in an *[Error] for a number beyond the largest float32.
func (v Value) Float32() (float32, error) {
	if v.Kind() != Number {
		return 0, v.typeError(Number)
	}
	f, err := strconv.ParseFloat(string(v.Raw()), 32)
	if err != nil {
		return 0, &Error{Offset: v.Offset(), Err: ErrNumber}
	}
	return float32(f), nil
}

// Base64 decodes a string of base64 and appends the bytes to dst. The string uses the standard alphabet or, throughout, the URL one. It
// may lack padding, and Base64 skips line ends. It may be a data URL of one of the given media types, each of which ends with a slash, such
// as "image/". Errors: [ErrType]; [ErrBase64] in an *[Error], whose offset counts from the start of the string's content.
func (v Value) Base64(dst []byte, types ...string) ([]byte, error) {
	if v.Kind() != String {
		return dst, v.typeError(String)
	}
	n := v.node()
	text := v.d.data[n.start+1 : n.end-1]
	if n.escaped {
		text = appendUnescaped(make([]byte, 0, len(text)), text)
	}
	head := dataHead(text, types)
	out, at := appendBase64(dst, text[head:])
	if at >= 0 {
		return dst, &Error{Offset: head + at, Err: ErrBase64}
	}
	return out, nil
}

// maxDataHead is the maximum length of the part of a data URL before the base64.
const maxDataHead = 128

// dataHead returns the length of the part before the base64, in a data URL of one of the types (RFC 2397), and 0 for other text.
func dataHead(text []byte, types []string) int {
	head, _, ok := bytes.Cut(text[:min(len(text), maxDataHead)], []byte(","))
	lower := strings.ToLower(string(head))
	if !ok || !strings.HasSuffix(lower, ";base64") || !slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(lower, "data:"+t) }) {
		return 0
	}
	return len(head) + 1
}

func (v Value) typeError(want Kind) error {
	return fmt.Errorf("%w: %s, expected %s", ErrType, v.Kind(), want)
}

// str returns the text of the string at node i.
func (d *Doc) str(i int) string {
	n := &d.nodes[i]
	text := d.data[n.start+1 : n.end-1]
	if !n.escaped {
		return string(text)
	}
	return string(appendUnescaped(make([]byte, 0, len(text)), text))
}

func (d *Doc) isString(i int32, s string) bool {
	n := &d.nodes[i]
	if !n.escaped {
		return string(d.data[n.start+1:n.end-1]) == s
	}
	return d.str(int(i)) == s
}
