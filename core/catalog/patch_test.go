package catalog

import (
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

func TestPatch(t *testing.T) {
	tests := []struct{ stored, patch, merge, overwrite, remove string }{
		// Objects are merged recursively. Two merges give the union.
		{``, `{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`{"a":{"x":1}}`, `{"a":{"y":{"z":2}}}`, `{"a":{"x":1,"y":{"z":2}}}`, `{"a":{"x":1,"y":{"z":2}}}`, `{"a":{"x":1,"y":{"z":2}}}`},
		// Scalars replace any value.
		{`{"a":{"x":1}}`, `{"a":"s"}`, `{"a":"s"}`, `{"a":"s"}`, `{"a":"s"}`},
		{`{"a":5}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`},
		// A null changes nothing.
		{`{"a":1}`, `{"a":null,"b":{"c":null}}`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, `null`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		// Lists.
		{`{"l":[1]}`, `{"l":[2,3]}`, `{"l":[1,2,3]}`, `{"l":[2,3]}`, `{"l":[1,2,3]}`},
		{`{}`, `{"l":[2]}`, `{"l":[2]}`, `{"l":[2]}`, `{"l":[2]}`},
		{`{"l":1}`, `{"l":[2]}`, `{"l":[2]}`, `{"l":[2]}`, `{"l":[2]}`},
		{`{"l":[1]}`, `{"l":[]}`, `{"l":[]}`, `{"l":[]}`, `{"l":[1]}`},
		{
			`{"l":[{"id":"a"},{"id":"b","v":1}]}`, `{"l":[{"id":"a"}]}`,
			`{"l":[{"id":"a"},{"id":"b","v":1},{"id":"a"}]}`, `{"l":[{"id":"a"}]}`, `{"l":[{"id":"b","v":1}]}`,
		},
		{`{"l":[{"id":"b"}]}`, `{"l":[{"id":"a"}]}`, `{"l":[{"id":"b"},{"id":"a"}]}`, `{"l":[{"id":"a"}]}`, `{"l":[{"id":"b"}]}`},
		{`{}`, `{"l":[{"id":"a"}]}`, `{"l":[{"id":"a"}]}`, `{"l":[{"id":"a"}]}`, `{}`},
		// Booleans.
		{`{"a":{"b":1},"c":2}`, `{"a":true}`, `{"a":true,"c":2}`, `{"a":true,"c":2}`, `{"c":2}`},
		{`{"a":1}`, `{"a":false}`, `{"a":false}`, `{"a":false}`, `{"a":false}`},
		// Empty objects replace a value within a request. An empty request changes nothing.
		{`{"a":{"b":1}}`, `{"a":{}}`, `{"a":{}}`, `{"a":{}}`, `{"a":{"b":1}}`},
		{`{"a":1}`, `{}`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		// Metadata that is not an object.
		{`[1]`, `[2]`, `[1,2]`, `[2]`, `[1,2]`},
		{`1`, `"s"`, `"s"`, `"s"`, `"s"`},
	}
	actions := []struct {
		name   string
		writes func(stored, patch []byte) ([]log.MetaWrite, error)
	}{{"merge", MergeWrites}, {"overwrite", OverwriteWrites}, {"remove", RemoveWrites}}
	for _, tt := range tests {
		for i, want := range []string{tt.merge, tt.overwrite, tt.remove} {
			var m Meta
			var stored []byte
			if tt.stored != "" {
				stored = []byte(tt.stored)
				m = Meta{{JSON: stored, At: log.Stamp{At: 1}}}
			}
			writes, err := actions[i].writes(stored, []byte(tt.patch))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range writes {
				if _, err := m.Write(w, log.Stamp{At: 2}); err != nil {
					t.Fatal(err)
				}
			}
			if got := string(m.JSON()); got != want {
				t.Errorf("%s of %s into %s = %s, want %s", actions[i].name, tt.patch, tt.stored, got, want)
			}
		}
	}
	if _, err := MergeWrites(nil, []byte(`{`)); !errors.Is(err, jsonio.ErrSyntax) {
		t.Errorf("a patch that is not JSON: %v", err)
	}
	if _, err := MergeWrites([]byte(`{`), []byte(`{}`)); !errors.Is(err, jsonio.ErrSyntax) {
		t.Errorf("stored metadata that is not JSON: %v", err)
	}
}
