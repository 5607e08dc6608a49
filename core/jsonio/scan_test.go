package jsonio_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// scanTarget has variables of all kinds. The tags are for encoding/json, which decodes the same input as the oracle.
type scanTarget struct {
	Text  string  `json:"text"`
	Flag  bool    `json:"flag"`
	Count int     `json:"count"`
	Small int8    `json:"small"`
	Large int64   `json:"large"`
	Part  float32 `json:"part"`
	Share float64 `json:"share"`
	List  []int   `json:"list"`
}

func (s *scanTarget) vars() []jsonio.Var {
	return []jsonio.Var{
		{Name: "text", To: &s.Text},
		{Name: "flag", To: &s.Flag},
		{Name: "count", To: &s.Count},
		{Name: "small", To: &s.Small},
		{Name: "large", To: &s.Large},
		{Name: "part", To: &s.Part},
		{Name: "share", To: &s.Share},
		{Name: "list", To: func(v jsonio.Value) (err error) {
			s.List, err = jsonio.ScanList(v, func(v jsonio.Value, to *int) error {
				n, err := v.Int()
				*to = int(n)
				return err
			})
			return err
		}},
	}
}

func TestScan(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"text":"é\n","flag":true,"count":-7,"small":-128,"large":-9223372036854775808,"part":0.1,"share":1e-7,"list":[1,2]}`,
		`{"text":null,"flag":null,"count":null,"list":null}`,
		`{"other":{"text":"inner"},"list":[],"text":"x"}`,
		`[]`, `{"text":1}`, `{"flag":"true"}`, `{"count":1.5}`, `{"small":128}`, `{"small":-129}`, `{"large":9223372036854775808}`, `{"share":"1"}`,
		`{"list":{}}`, `{"list":[1,"2"]}`,
	} {
		var d jsonio.Doc
		if err := d.Parse([]byte(text), jsonio.Limits{}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var got, want scanTarget
		err, wrong := d.Root().Scan(got.vars()...), json.Unmarshal([]byte(text), &want)
		if (err == nil) != (wrong == nil) {
			t.Errorf("%s: %v; encoding/json: %v", text, err, wrong)
		}
		if err != nil {
			if !errors.Is(err, jsonio.ErrType) && !errors.Is(err, jsonio.ErrNumber) {
				t.Errorf("%s: %v is not an error of a conversion", text, err)
			}
			continue
		}
		if list := want.List; !slices.Equal(got.List, list) || (got.List == nil) != (list == nil) {
			t.Errorf("%s: list %#v, want %#v", text, got.List, list)
		}
		got.List, want.List = nil, nil
		if g, w := mustMarshal(t, got), mustMarshal(t, want); g != w {
			t.Errorf("%s: %s, want %s", text, g, w)
		}
	}
}

// TestScanAll: ScanAll rejects a member without a variable. Scan skips it.
func TestScanAll(t *testing.T) {
	var d jsonio.Doc
	if err := d.Parse([]byte(`{"text":"a","count":1}`), jsonio.Limits{}); err != nil {
		t.Fatal(err)
	}
	var text string
	var count int
	all := []jsonio.Var{{Name: "text", To: &text}, {Name: "count", To: &count}}
	if err := d.Root().ScanAll(all...); err != nil || text != "a" || count != 1 {
		t.Errorf("%q, %d, %v", text, count, err)
	}
	if err := d.Root().ScanAll(all[:1]...); !errors.Is(err, jsonio.ErrUnknown) {
		t.Errorf("a member without a variable: %v", err)
	}
}

func mustMarshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
