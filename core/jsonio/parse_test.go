package jsonio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func parse(t testing.TB, text string) Value {
	t.Helper()
	var d Doc
	if err := d.Parse([]byte(text), Limits{}); err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return d.Root()
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		text   string
		want   error
		offset int
		detail string
	}{
		{``, ErrSyntax, 0, "text ends, expected a value"},
		{`  `, ErrSyntax, 2, "text ends, expected a value"},
		{`{`, ErrSyntax, 1, "text ends, expected a name in quotes"},
		{`{"a"`, ErrSyntax, 4, "text ends, expected ':'"},
		{`{"a":`, ErrSyntax, 5, "text ends, expected a value"},
		{`{"a":1`, ErrSyntax, 6, "text ends, expected ',' or '}'"},
		{`{"a":1,}`, ErrSyntax, 7, `'}', expected a name in quotes`},
		{`{a:1}`, ErrSyntax, 1, `'a', expected a name in quotes`},
		{`{"a":1}}`, ErrSyntax, 7, `'}', expected end of text`},
		{"\ufeff", ErrSyntax, 3, "text ends, expected a value"},
		{"\ufeff\ufeff1", ErrSyntax, 3, `'\ufeff', expected a value`},
		{"1\ufeff", ErrSyntax, 1, `'\ufeff', expected end of text`},
		{`[1,]`, ErrSyntax, 3, `']', expected a value`},
		{`[1 2]`, ErrSyntax, 3, `'2', expected ',' or ']'`},
		{`[`, ErrSyntax, 1, "text ends, expected a value"},
		{`tru`, ErrSyntax, 0, "'t', expected a value"},
		{`nul`, ErrSyntax, 0, "'n', expected a value"},
		{`falsy`, ErrSyntax, 0, "'f', expected a value"},
		{`NaN`, ErrSyntax, 0, "'N', expected a value"},
		{`01`, ErrSyntax, 1, "'1', expected end of text"},
		{`-`, ErrSyntax, 1, "text ends, expected a digit"},
		{`+1`, ErrSyntax, 0, "'+', expected a value"},
		{`1.`, ErrSyntax, 2, "text ends, expected a digit"},
		{`.5`, ErrSyntax, 0, "'.', expected a value"},
		{`1e`, ErrSyntax, 2, "text ends, expected a digit"},
		{`1e+x`, ErrSyntax, 3, "'x', expected a digit"},
		{`"a`, ErrSyntax, 2, `text ends, expected '"'`},
		{"\"a\nb\"", ErrSyntax, 2, `'\n', expected an escape for a control character`},
		{`"\x"`, ErrSyntax, 2, `'x', expected an escape`},
		{`"\`, ErrSyntax, 2, "text ends, expected an escape"},
		{`"\u12"`, ErrSyntax, 1, `\u takes four hex digits`},
		{`"\u12`, ErrSyntax, 1, `\u takes four hex digits`},
		{`'a'`, ErrSyntax, 0, `'\'', expected a value`},
		{"[\xff]", ErrSyntax, 1, "byte 0xff, expected a value"},
		{"\"a\xff\"", ErrUTF8, 2, ""},
		{"\"\xc0\x80\"", ErrUTF8, 1, ""},
		{"\"\xed\xa0\x80\"", ErrUTF8, 1, ""},
		{"{\"\xff\":1}", ErrUTF8, 2, ""},
		{`"\ud800"`, ErrUTF8, 1, "half a surrogate pair"},
		{`"\udc00\ud800"`, ErrUTF8, 1, "half a surrogate pair"},
		{`"\ud800\u0041"`, ErrUTF8, 1, "half a surrogate pair"},
		{`{"a":1,"b":2,"a":3}`, ErrDuplicate, 13, `"a"`},
		{`{"a":1,"\u0061":3}`, ErrDuplicate, 7, `"a"`},
		{`[{"x":{"a":1,"a":1}}]`, ErrDuplicate, 13, `"a"`},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			var d Doc
			err := d.Parse([]byte(tt.text), Limits{})
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, tt.want) {
				t.Fatalf("Parse(%q) = %v, want %v", tt.text, err, tt.want)
			}
			if e.Offset != tt.offset || e.Detail != tt.detail {
				t.Errorf("Parse(%q) at byte %d, detail %q; want byte %d, %q", tt.text, e.Offset, e.Detail, tt.offset, tt.detail)
			}
			if d.Root().Kind() != Absent {
				t.Errorf("a refused text left a document")
			}
		})
	}
}

func TestParseManyMembers(t *testing.T) {
	var b strings.Builder
	b.WriteByte('{')
	for i := range 40 {
		fmt.Fprintf(&b, `"k%d":{"v":[%d]},`, i, i)
	}
	text := b.String()
	root := parse(t, text+`"last":1}`)
	if got := string(root.Get("k17").Get("v").Raw()); got != "[17]" {
		t.Errorf("k17.v = %s, want [17]", got)
	}
	if got := root.Get("last").Kind(); got != Number {
		t.Errorf("last is %v, want number", got)
	}
	var d Doc
	err := d.Parse([]byte(text+`"\u006b3":1}`), Limits{})
	if !errors.Is(err, ErrDuplicate) {
		t.Errorf("a name twice among 41 = %v, want %v", err, ErrDuplicate)
	}
	if err := d.Parse([]byte(text+`"K3":1}`), Limits{}); err != nil {
		t.Errorf("names in another case = %v, want none", err)
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	tests := []struct {
		name string
		text string
		l    Limits
		want error
	}{
		{"64 deep", nested(64), Limits{}, nil},
		{"65 deep", nested(65), Limits{}, ErrTooDeep},
		{"a million deep", strings.Repeat(`[`, 1e6), Limits{}, ErrTooDeep},
		{"objects deep", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), Limits{}, ErrTooDeep},
		{"side by side is not deep", "[" + strings.Repeat("[],", 99) + "[]]", Limits{Depth: 2}, nil},
		{"3 members", `{"a":[1,2]}`, Limits{Members: 3}, nil},
		{"4 members of 3", `{"a":[1,2,3]}`, Limits{Members: 3}, ErrTooMany},
		{"100,000 elements", "[" + strings.Repeat("0,", 99_999) + "0]", Limits{}, nil},
		{"100,001 elements", "[" + strings.Repeat("0,", 100_000) + "0]", Limits{}, ErrTooMany},
		{"bytes", `[ 1 ]`, Limits{Bytes: 5}, nil},
		{"a byte too many", `[ 1 ] `, Limits{Bytes: 5}, ErrTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d Doc
			if err := d.Parse([]byte(tt.text), tt.l); !errors.Is(err, tt.want) {
				t.Errorf("Parse = %v, want %v", err, tt.want)
			}
		})
	}
}

// TestByteOrderMark: a byte order mark before the text is ignored.
func TestByteOrderMark(t *testing.T) {
	if got, err := parse(t, "\ufeff {\"a\":7}").Get("a").Int(); err != nil || got != 7 {
		t.Errorf("a = %d, %v; want 7", got, err)
	}
}

func TestValue(t *testing.T) {
	root := parse(t, `{"s":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é","n":null,"t":true,"f":false,
		"i":20,"w":2.0e1,"x":1.5,"big":9223372036854775807,"huge":1e400,"far":1e16,
		"a":[1,[2],{"b":3}], "o" : { "k" : "v" }, "\u0065sc":4}`)
	if got, err := root.Get("s").Str(); err != nil || got != "a\"\\/\b\f\n\r\té😀é" {
		t.Errorf("s = %q, %v", got, err)
	}
	for name, want := range map[string]Kind{
		"n": Null, "t": True, "f": False, "i": Number, "a": Array, "o": Object, "s": String, "none": Absent, "S": Absent, "esc": Number,
	} {
		if got := root.Get(name).Kind(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]int64{"i": 20, "w": 20, "big": math.MaxInt64} {
		if got, err := root.Get(name).Int(); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"x", "huge", "far"} {
		if got, err := root.Get(name).Int(); !errors.Is(err, ErrNumber) {
			t.Errorf("Int of %s = %d, %v; want %v", name, got, err, ErrNumber)
		}
	}
	if _, err := root.Get("huge").Float(); !errors.Is(err, ErrNumber) {
		t.Errorf("Float of 1e400 = %v, want %v", err, ErrNumber)
	}
	if got, err := root.Get("x").Float(); err != nil || got != 1.5 {
		t.Errorf("x = %v, %v", got, err)
	}
	if got, err := root.Get("t").Bool(); err != nil || !got {
		t.Errorf("t = %v, %v", got, err)
	}
	if got, err := root.Get("f").Bool(); err != nil || got {
		t.Errorf("f = %v, %v", got, err)
	}
	if got := string(root.Get("o").Raw()); got != `{ "k" : "v" }` {
		t.Errorf("o = %s", got)
	}
	var elems []string
	for v := range root.Get("a").Elems() {
		elems = append(elems, string(v.Raw()))
	}
	if got := strings.Join(elems, "|"); got != `1|[2]|{"b":3}` || root.Get("a").Len() != 3 {
		t.Errorf("elements %s, length %d", got, root.Get("a").Len())
	}
	var names []string
	for name, v := range root.Members() {
		names = append(names, name)
		if v.Kind() == Absent {
			t.Errorf("member %s is absent", name)
		}
	}
	if got := strings.Join(names, " "); got != "s n t f i w x big huge far a o esc" {
		t.Errorf("names %s", got)
	}
}

// TestWrongKinds checks that no method of a value panics if the value has another kind.
func TestWrongKinds(t *testing.T) {
	values := []Value{{}}
	for _, text := range []string{`null`, `true`, `false`, `1`, `"s"`, `[1]`, `{"a":1}`} {
		values = append(values, parse(t, text))
	}
	for _, v := range values {
		k := v.Kind()
		if _, err := v.Str(); (err == nil) != (k == String) || err != nil && !errors.Is(err, ErrType) {
			t.Errorf("%v: Str = %v", k, err)
		}
		if _, err := v.Int(); (err == nil) != (k == Number) || err != nil && !errors.Is(err, ErrType) {
			t.Errorf("%v: Int = %v", k, err)
		}
		if _, err := v.Float(); (err == nil) != (k == Number) || err != nil && !errors.Is(err, ErrType) {
			t.Errorf("%v: Float = %v", k, err)
		}
		if _, err := v.Bool(); (err == nil) != (k == True || k == False) || err != nil && !errors.Is(err, ErrType) {
			t.Errorf("%v: Bool = %v", k, err)
		}
		if _, err := v.Base64(nil); k != String && !errors.Is(err, ErrType) {
			t.Errorf("%v: Base64 = %v", k, err)
		}
		if got := v.Get("a").Get("b"); got.Kind() != Absent {
			t.Errorf("%v: Get = %v", k, got.Kind())
		}
		for range v.Elems() {
			if k != Array {
				t.Errorf("%v has elements", k)
			}
		}
		for range v.Members() {
			if k != Object {
				t.Errorf("%v has members", k)
			}
		}
	}
}

func TestDocReuse(t *testing.T) {
	var d Doc
	long := []byte("[" + strings.Repeat("0,", 9_999) + "0]")
	if err := d.Parse(long, Limits{}); err != nil {
		t.Fatal(err)
	}
	if d.Reset(); d.Root().Kind() != Absent || cap(d.nodes) != 0 {
		t.Errorf("Reset kept %v and room for %d nodes", d.Root().Kind(), cap(d.nodes))
	}
	text := []byte(`{"inputs":[{"data":{"image":{"url":"http://a/b.jpg"}}}]}`)
	allocs := testing.AllocsPerRun(100, func() {
		if err := d.Parse(text, Limits{}); err != nil {
			t.Fatal(err)
		}
		d.Reset()
	})
	if allocs != 0 {
		t.Errorf("a small text allocates %v times, want 0", allocs)
	}
}

func TestPlain(t *testing.T) {
	base := bytes.Repeat([]byte("x"), 200)
	slow := func(b []byte) int {
		for i, c := range b {
			if c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
				return i
			}
		}
		return len(b)
	}
	for n := range 130 {
		for offset := range 5 {
			b := base[offset : offset+n]
			if got := plain(b); got != n {
				t.Fatalf("plain of %d plain bytes = %d", n, got)
			}
			for c := range 256 {
				if n == 0 {
					continue
				}
				at := (n*7 + c*13) % n
				old := b[at]
				b[at] = byte(c)
				last := b[n-1]
				b[n-1] = '"'
				if got, want := plain(b), slow(b); got != want {
					t.Fatalf("plain of %d bytes with 0x%02x at %d = %d, want %d", n, c, at, got, want)
				}
				if got, want := plainGeneric(b), slow(b); got != want {
					t.Fatalf("plainGeneric of %d bytes with 0x%02x at %d = %d, want %d", n, c, at, got, want)
				}
				b[n-1] = last
				b[at] = old
			}
		}
	}
}

// stricter reports whether err is one for which encoding/json may accept the text: it accepts duplicates and repairs strings.
func stricter(err error) bool {
	return errors.Is(err, ErrDuplicate) || errors.Is(err, ErrUTF8) || errors.Is(err, ErrTooDeep) ||
		errors.Is(err, ErrTooMany) || errors.Is(err, ErrTooLong)
}

// toAny returns the value that encoding/json would return, with json.Number for numbers.
func toAny(v Value) any {
	switch v.Kind() {
	case True, False:
		b, _ := v.Bool()
		return b
	case Number:
		return json.Number(v.Raw())
	case String:
		s, _ := v.Str()
		return s
	case Array:
		out := make([]any, 0, v.Len())
		for e := range v.Elems() {
			out = append(out, toAny(e))
		}
		return out
	case Object:
		out := make(map[string]any, v.Len())
		for name, e := range v.Members() {
			out[name] = toAny(e)
		}
		return out
	}
	return nil
}
