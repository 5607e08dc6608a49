package catalog

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

func path(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}

// stampedWrite is a write with its stamp. parseWrite reads it from a stamp and "path=json", "path-" or "path+json", as in "3 a.b=1".
type stampedWrite struct {
	at log.Stamp
	w  log.MetaWrite
}

func parseWrite(t testing.TB, s string) stampedWrite {
	t.Helper()
	at := log.Stamp{At: log.HLC(s[0] - '0'), Writer: 1}
	s = s[2:]
	i := strings.IndexAny(s, "=-+")
	w := log.MetaWrite{Path: path(s[:i])}
	switch s[i] {
	case '-':
		w.Action = log.MetaRemove
		return stampedWrite{at, w}
	case '+':
		w.Action = log.MetaAppend
	}
	w.JSON = []byte(s[i+1:])
	return stampedWrite{at, w}
}

func TestMetaWrites(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"none", nil, ``},
		{"as it came", []string{`1 ={ "b" : 1.0, "a": [ ] }`}, `{ "b" : 1.0, "a": [ ] }`},
		{"scalar", []string{`1 =null`}, `null`},
		{"below", []string{`1 ={"b": 1.0 ,"a":{ "x":2}}`, `2 a.y=3`}, `{"b":1.0,"a":{"x":2,"y":3}}`},
		{"untouched values keep their bytes", []string{`1 ={"b":{ "k" : 1e2 },"a":1}`, `2 a=2`}, `{"b":{ "k" : 1e2 },"a":2}`},
		{"new names follow in their order", []string{`1 ={"z":1}`, `2 c=1`, `3 b=1`}, `{"z":1,"b":1,"c":1}`},
		{"older below newer", []string{`3 a={"k":1}`, `2 a.b=1`}, `{"a":{"k":1}}`},
		{"newer above older", []string{`2 a.b=1`, `3 a={"k":1}`}, `{"a":{"k":1}}`},
		{"newer below stays", []string{`3 a.b=1`, `2 a={"k":1}`}, `{"a":{"k":1,"b":1}}`},
		{"older same", []string{`3 a=1`, `2 a=2`}, `{"a":1}`},
		{"removed", []string{`1 ={"a":1,"b":2}`, `2 a-`}, `{"b":2}`},
		{"removed is not nothing", []string{`1 ={"a":1}`, `2 a-`}, `{}`},
		{"removal of nothing", []string{`2 a.b-`}, ``},
		{"removed, then older", []string{`3 a-`, `2 a=1`}, ``},
		{"root removed", []string{`1 ={"a":1}`, `2 -`}, ``},
		{"root removed, then written", []string{`1 ={"a":1}`, `2 -`, `3 b=1`}, `{"b":1}`},
		{"object over scalar", []string{`1 ={"a":5}`, `2 a.b=1`}, `{"a":{"b":1}}`},
		{"removal below a scalar", []string{`1 ={"a":5}`, `2 a.b-`}, `{"a":5}`},
		{"object over list", []string{`1 =[1]`, `2 a=1`}, `{"a":1}`},
		{"names with signs", []string{`1 ={"a/b":{"\"":1}}`, `2 a/b.c=2`}, `{"a/b":{"\"":1,"c":2}}`},
		{"same stamp, later wins", []string{`2 a.b=1`, `2 a=2`}, `{"a":2}`},
		{"same stamp, below", []string{`2 a={"c":1}`, `2 a.b=2`}, `{"a":{"c":1,"b":2}}`},
		{"appended", []string{`1 ={"l":[ 1 ]}`, `2 l+[2,3]`, `3 l+[ 4 ]`}, `{"l":[1,2,3,4]}`},
		{"appended to nothing", []string{`2 l+[2]`}, `{"l":[2]}`},
		{"appended to a scalar", []string{`1 l=1`, `2 l+[2]`}, `{"l":[2]}`},
		{"appended to the empty", []string{`1 l=[]`, `2 l+[2]`}, `{"l":[2]}`},
		{"nothing appended", []string{`1 l=[1]`, `2 l+[ ]`}, `{"l":[1]}`},
		{"appended in the log's order", []string{`1 l=[1]`, `5 l+[2]`, `3 l+[3]`}, `{"l":[1,2,3]}`},
		{"set before an append that came first", []string{`1 l=[1]`, `5 l+[2]`, `3 l=[9]`}, `{"l":[1,2]}`},
		{"append below a newer value", []string{`1 a.l=[1]`, `5 a={}`, `3 a.l+[2]`}, `{"a":{}}`},
		{"append to a newer removal", []string{`1 l=[1]`, `5 l-`, `3 l+[2]`}, ``},
		{"root list", []string{`1 =[1]`, `2 +[2]`}, `[1,2]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Meta
			for _, s := range tt.writes {
				x := parseWrite(t, s)
				if _, err := m.Write(x.w, x.at); err != nil {
					t.Fatal(err)
				}
			}
			if got := string(m.JSON()); got != tt.want {
				t.Errorf("JSON = %s, want %s", got, tt.want)
			}
			for horizon := range log.HLC(7) {
				collected := slices.Clone(m)
				collected.collect(horizon)
				if got := string(collected.JSON()); got != tt.want {
					t.Errorf("below the horizon %d collected: JSON = %s, want %s", horizon, got, tt.want)
				}
				for _, p := range collected {
					if p.Removed && p.At.At < horizon {
						t.Errorf("below the horizon %d stays the removal %v", horizon, p)
					}
				}
			}
		})
	}
}

func TestMetaRefuses(t *testing.T) {
	deep := slices.Repeat([]string{"a"}, maxPath)
	tests := []struct {
		w    log.MetaWrite
		want error
	}{
		{log.MetaWrite{JSON: []byte(`{`)}, jsonio.ErrSyntax},
		{log.MetaWrite{JSON: nil}, jsonio.ErrSyntax},
		{log.MetaWrite{JSON: []byte(`{"a":1,"a":2}`)}, jsonio.ErrDuplicate},
		{log.MetaWrite{JSON: []byte(`{}`), Action: log.MetaAppend}, jsonio.ErrType},
		{log.MetaWrite{JSON: []byte(`[]`), Action: 9}, jsonio.ErrType},
		{log.MetaWrite{Path: append(deep, "a"), JSON: []byte(`1`)}, jsonio.ErrTooDeep},
		{log.MetaWrite{Path: deep, JSON: []byte(`{"a":{}}`)}, jsonio.ErrTooDeep},
	}
	for _, tt := range tests {
		m := Meta{{JSON: []byte(`{"k":1}`), At: log.Stamp{At: 1}}}
		changed, err := m.Write(tt.w, log.Stamp{At: 2})
		if changed || !errors.Is(err, tt.want) || string(m.JSON()) != `{"k":1}` {
			t.Errorf("Write(%v) = %v, %v, want %v", tt.w, changed, err, tt.want)
		}
	}
	var m Meta
	if _, err := m.Write(log.MetaWrite{Path: deep, JSON: []byte(`{}`)}, log.Stamp{At: 2}); err != nil {
		t.Errorf("the deepest path: %v", err)
	}
}

// TestMetaOrder applies sets and removals of random paths in random orders. The metadata is the same each time. It equals a plain document
// after the surviving writes, oldest first.
func TestMetaOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		values := rapid.SampledFrom([]string{`1`, `"x"`, `{}`, `{"a":{"b":2},"c":3}`, `[1]`, `{"b":{"c":{"a":1}}}`})
		writes := make([]stampedWrite, rapid.IntRange(1, 12).Draw(t, "writes"))
		for i := range writes {
			w := log.MetaWrite{Path: rapid.SliceOfN(names, 0, 3).Draw(t, "path"), Action: log.MetaRemove}
			if rapid.IntRange(0, 3).Draw(t, "set") > 0 {
				w.Action, w.JSON = log.MetaSet, []byte(values.Draw(t, "value"))
			}
			writes[i] = stampedWrite{log.Stamp{At: log.HLC(i + 1), Writer: 1}, w}
		}
		var want Meta
		for _, x := range writes {
			if _, err := want.Write(x.w, x.at); err != nil {
				t.Fatal(err)
			}
		}
		plain := plainly(writes)
		if got := unmarshal(t, want.JSON()); !reflect.DeepEqual(got, plain) {
			t.Fatalf("JSON = %s, want %v", want.JSON(), plain)
		}
		shuffled := rapid.Permutation(writes).Draw(t, "order")
		var got Meta
		for _, x := range shuffled {
			if _, err := got.Write(x.w, x.at); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(normal(got), normal(want)) {
			t.Fatalf("in another order %+v, want %+v", got, want)
		}
	})
}

// normal replaces empty paths by nil.
func normal(m Meta) Meta {
	m = slices.Clone(m)
	for i := range m {
		if len(m[i].Path) == 0 {
			m[i].Path = nil
		}
	}
	return m
}

func unmarshal(t *rapid.T, data []byte) any {
	if data == nil {
		return nothing{}
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

type nothing struct{}

// plainly applies the writes that no later write supersedes to a plain document, oldest first.
func plainly(writes []stampedWrite) any {
	var doc any = nothing{}
	for i, x := range writes {
		if slices.ContainsFunc(writes[i+1:], func(y stampedWrite) bool {
			return slices.Equal(y.w.Path, x.w.Path) || below(x.w.Path, y.w.Path)
		}) {
			continue
		}
		var v any = nothing{}
		if x.w.Action == log.MetaSet {
			if err := json.Unmarshal(x.w.JSON, &v); err != nil {
				panic(err)
			}
		}
		doc = writeAt(doc, x.w.Path, v)
	}
	return doc
}

func writeAt(doc any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	m, ok := doc.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	m = maps.Clone(m)
	var below any = nothing{}
	if have, ok := m[path[0]]; ok {
		below = have
	}
	below = writeAt(below, path[1:], v)
	if _, isNothing := below.(nothing); isNothing {
		delete(m, path[0])
		if !ok {
			return doc // nothing to remove
		}
		return m
	}
	m[path[0]] = below
	return m
}

// TestManyWrites writes a document of ten thousand members, one leaf at a time.
func TestManyWrites(t *testing.T) {
	var m Meta
	rng, writes := rand.New(rand.NewPCG(1, 1)), 10_000
	if testing.Short() {
		writes = 2000
	}
	for i := range writes {
		name := string(rune('a' + rng.IntN(26)))
		w := log.MetaWrite{Path: []string{name, string(rune('a' + i%26)), string(rune(0x4e00 + i))}, JSON: []byte(`1`)}
		if _, err := m.Write(w, log.Stamp{At: log.HLC(i)}); err != nil {
			t.Fatal(err)
		}
	}
	var v map[string]map[string]map[string]int
	if err := json.Unmarshal(m.JSON(), &v); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range v {
		for _, b := range a {
			n += len(b)
		}
	}
	if n != writes {
		t.Errorf("%d members, want %d", n, writes)
	}
}
