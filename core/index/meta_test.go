package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/jsonio"
)

func TestPattern(t *testing.T) {
	tests := []struct {
		name          string
		stored, query string
		want          bool
	}{
		{"pair at the top", `{"k":"v"}`, `{"k":"v"}`, true},
		{"pair deeper", `{"a":{"k":"v"}}`, `{"k":"v"}`, true},
		{"pair in a list's object", `{"a":[1,{"k":"v"}]}`, `{"k":"v"}`, true},
		{"pair in lists of lists", `[[[{"k":"v"}]]]`, `{"k":"v"}`, true},
		{"other value", `{"k":"w"}`, `{"k":"v"}`, false},
		{"other name", `{"j":"v"}`, `{"k":"v"}`, false},
		{"name in other case", `{"K":"v"}`, `{"k":"v"}`, false},
		{"pairs in different places", `{"a":{"x":1},"b":{"y":2}}`, `{"x":1,"y":2}`, true},
		{"one of two pairs", `{"a":{"x":1}}`, `{"x":1,"y":2}`, false},
		{"nested from there", `{"z":{"a":{"b":1,"c":2}}}`, `{"a":{"b":1}}`, true},
		{"nested is structural", `{"a":{"x":{"b":1}}}`, `{"a":{"b":1}}`, false},
		{"nested in one object", `{"a":[{"b":1},{"c":2}]}`, `{"a":{"b":1}}`, false},
		{"members of two objects", `{"a":{"b":1},"x":{"a":{"c":2}}}`, `{"a":{"b":1,"c":2}}`, false},
		{"list subset", `{"k":[1,2,3]}`, `{"k":[3,1]}`, true},
		{"list with a stranger", `{"k":[1,2,3]}`, `{"k":[1,4]}`, false},
		{"list element twice", `{"k":[1]}`, `{"k":[1,1]}`, true},
		{"empty list", `{"k":[1]}`, `{"k":[]}`, true},
		{"empty list is a list", `{"k":1}`, `{"k":[]}`, false},
		{"empty object", `{"k":{"a":1}}`, `{"k":{}}`, true},
		{"empty object is an object", `{"k":[]}`, `{"k":{}}`, false},
		{"scalar is no list", `{"k":[1]}`, `{"k":1}`, false},
		{"list of objects", `{"k":[{"a":1,"b":2},{"c":3}]}`, `{"k":[{"c":3},{"b":2}]}`, true},
		{"list of objects crossed", `{"k":[{"a":1},{"b":2}]}`, `{"k":[{"a":1,"b":2}]}`, false},
		{"lists of lists", `{"k":[[1,2],[3]]}`, `{"k":[[3],[2]]}`, true},
		{"lists of lists crossed", `{"k":[[1,2],[3]]}`, `{"k":[[2,3]]}`, false},
		{"numbers by value", `{"k":1.0}`, `{"k":1}`, true},
		{"numbers by exponent", `{"k":1e2}`, `{"k":100.00}`, true},
		{"small exponent", `{"k":0.0015}`, `{"k":15E-4}`, true},
		{"negative zero", `{"k":-0.0}`, `{"k":0}`, true},
		{"sign", `{"k":-1}`, `{"k":1}`, false},
		{"beyond float64", `{"k":9007199254740993}`, `{"k":9007199254740992}`, false},
		{"huge exponents", `{"k":1e99999999999999999999}`, `{"k":1e99999999999999999999}`, true},
		{"number is no text", `{"k":"1"}`, `{"k":1}`, false},
		{"escapes", `{"\u006b":"\u0076"}`, `{"k":"v"}`, true},
		{"null", `{"k":null}`, `{"k":null}`, true},
		{"null is not absence", `{"j":null}`, `{"k":null}`, false},
		{"true", `{"k":true}`, `{"k":true}`, true},
		{"false is not true", `{"k":false}`, `{"k":true}`, false},
		{"everything", `{"k":1}`, `{}`, true},
		{"everything of nothing", ``, `{}`, true},
		{"nothing has no pair", ``, `{"k":1}`, false},
		{"whole list", `[1,2,3]`, `[3]`, true},
		{"whole list is not deeper", `{"k":[1,2,3]}`, `[3]`, false},
		{"whole scalar", `7`, `7.0`, true},
		{"deep", `{"x":` + nestJSON(12, `1`) + `}`, nestJSON(12, `1`), true},
		{"deep and other", `{"x":` + nestJSON(12, `1`) + `}`, nestJSON(12, `2`), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agree(t, []byte(tt.stored), []byte(tt.query))
			p, err := NewPattern([]byte(tt.query))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Match([]byte(tt.stored)); got != tt.want {
				t.Errorf("%s contains %s: %v, want %v", tt.stored, tt.query, got, tt.want)
			}
			if p.String() != tt.query {
				t.Errorf("String() = %s, want %s", p, tt.query)
			}
		})
	}
}

func nestJSON(depth int, value string) string {
	return strings.Repeat(`{"a":`, depth) + value + strings.Repeat("}", depth)
}

func TestPatternErrors(t *testing.T) {
	for _, query := range []string{"", "{", `{"a":1,"a":2}`, "[" + strings.Repeat("1,", 1001) + "1]"} {
		if _, err := NewPattern([]byte(query)); !errors.Is(err, ErrPattern) {
			t.Errorf("NewPattern(%.20q) = %v, want ErrPattern", query, err)
		}
	}
}

// TestWideDocument checks a document with more terms than the index stores.
func TestWideDocument(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	doc := []byte("{" + b.String()[1:] + "}")
	var m document
	if m.read(doc); !m.wide || len(m.terms.list) > 0 {
		t.Errorf("wide %v with %d terms, want wide without", m.wide, len(m.terms.list))
	}
	agree(t, doc, []byte(`{"k7":7}`))
}

// FuzzPattern compares the matcher with a matcher of encoding/json's values, and terms with the matcher.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":{"b":[7]}}`, `{"b":[7]}`},
		{`{"a":[{"b":1},{"b":2,"c":null}]}`, `{"a":[{"c":null}]}`},
		{`[1,[2,{"":"x"}],-0e5]`, `[[{"":"x"}],0]`},
		{nestJSON(10, `1`), nestJSON(3, `1`)},
		{`{"a":1e400}`, `{"a":10e399}`},
		{`"x"`, `"\u0078"`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, stored, query []byte) { agree(t, stored, query) })
}

// agree fails unless all ways of matching give the same result.
func agree(t *testing.T, stored, query []byte) {
	t.Helper()
	p, err := NewPattern(query)
	var doc jsonio.Doc
	if err != nil || doc.Parse(stored, jsonio.Limits{}) != nil {
		if err == nil && p.Match(stored) != p.empty() {
			t.Fatalf("%q, which is no document, contains %s", stored, query)
		}
		return
	}
	got := p.Match(stored)
	if want, ok := slowMatch(stored, query); ok && got != want {
		t.Fatalf("%s contains %s: %v, want %v", stored, query, got, want)
	}
	var m document
	m.read(stored)
	all := !p.deep
	for _, term := range p.terms {
		all = all && m.terms.has(term)
	}
	if got && !all && !m.wide {
		t.Fatalf("%s contains %s, but has not all of its terms", stored, query)
	}
	if !got && all && !m.wide && !m.ambiguous {
		t.Fatalf("%s does not contain %s, but has its terms and is not ambiguous", stored, query)
	}
}

// slowMatch is the definition of a match, on values of encoding/json. ok is false if it cannot compare a number.
func slowMatch(stored, query []byte) (match, ok bool) {
	s, ok1 := decode(stored)
	q, ok2 := decode(query)
	if !ok1 || !ok2 {
		return false, false
	}
	pairs, isObject := q.(map[string]any)
	if !isObject {
		return contains(s, q), true
	}
	for name, value := range pairs {
		if !anywhere(s, name, value) {
			return false, true
		}
	}
	return true, true
}

func decode(data []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	return v, canCompare(v)
}

// canCompare reports whether the numbers are small enough for big.Rat.
func canCompare(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		e, err := strconv.Atoi(exponent)
		return exponent == "" || err == nil && e > -1000 && e < 1000
	case []any:
		for _, e := range v {
			if !canCompare(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !canCompare(e) {
				return false
			}
		}
	}
	return true
}

func anywhere(s any, name string, value any) bool {
	switch s := s.(type) {
	case map[string]any:
		if member, ok := s[name]; ok && contains(member, value) {
			return true
		}
		for _, member := range s {
			if anywhere(member, name, value) {
				return true
			}
		}
	case []any:
		for _, e := range s {
			if anywhere(e, name, value) {
				return true
			}
		}
	}
	return false
}

func contains(s, q any) bool {
	switch q := q.(type) {
	case map[string]any:
		s, ok := s.(map[string]any)
		for name, value := range q {
			member, has := s[name]
			ok = ok && has && contains(member, value)
		}
		return ok
	case []any:
		s, ok := s.([]any)
		for _, value := range q {
			found := false
			for _, e := range s {
				found = found || contains(e, value)
			}
			ok = ok && found
		}
		return ok
	case json.Number:
		s, ok := s.(json.Number)
		if !ok {
			return false
		}
		a, _ := new(big.Rat).SetString(string(s))
		b, _ := new(big.Rat).SetString(string(q))
		return a.Cmp(b) == 0
	}
	return s == q
}
