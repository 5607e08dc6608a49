package apitest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const written = `set public-app-id main
set max-bytes 7

# Two lines
# of words.
POST /v2/models?page=2&x=%20
Authorization: Key 123
{"a":
 {"b":1}}

200
{"x":[{"y":1},
 {"y":2}]}

GET /v2

404
`

func TestParse(t *testing.T) {
	tr, err := Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Settings["public-app-id"] != "main" || tr.Settings["max-bytes"] != "7" || len(tr.Exchanges) != 2 {
		t.Fatalf("%+v", tr)
	}
	first, second := tr.Exchanges[0], tr.Exchanges[1]
	r := first.Request
	if r.Method != "POST" || r.Path != "/v2/models" || r.Query != "page=2&x=%20" || r.Authorization != "Key 123" || string(r.Body) != "{\"a\":\n {\"b\":1}}" {
		t.Errorf("request %+v, body %q", r, r.Body)
	}
	if first.Status != 200 || first.Body != "{\"x\":[{\"y\":1},\n {\"y\":2}]}" || second.Status != 404 || second.Body != "" || len(second.Request.Body) != 0 {
		t.Errorf("responses %+v, %+v", first, second)
	}
	if got := tr.Format(); got != written {
		t.Errorf("Format = %q, want %q", got, written)
	}
}

func TestParseNewRequests(t *testing.T) {
	tr, err := Parse("GET /a\n\nGET /b\n\n200\n{}\n\nGET /c\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tr.Exchanges {
		got = append(got, e.Request.Path)
	}
	if strings.Join(got, " ") != "/a /b /c" || tr.Exchanges[0].Status != 0 || tr.Exchanges[1].Status != 200 {
		t.Errorf("%v, %+v", got, tr.Exchanges)
	}
	if _, err := Parse("GET\n\n200\n"); !errors.Is(err, ErrTranscript) {
		t.Errorf("a line without a path: %v", err)
	}
}

func TestFold(t *testing.T) {
	body := `{"a":[{"b":"},{"},{"c":"\\"},{"d":"\"},{"}],"e":[{},[],{}]}`
	want := "{\"a\":[{\"b\":\"},{\"},\n {\"c\":\"\\\\\"},\n {\"d\":\"\\\"},{\"}],\"e\":[{},[],{}]}"
	got := breakLines([]byte(body))
	if got != want {
		t.Errorf("Fold = %s, want %s", got, want)
	}
	if !json.Valid([]byte(got)) || strings.ReplaceAll(got, "\n ", "") != body {
		t.Errorf("Fold changes more than line ends: %s", got)
	}
}
