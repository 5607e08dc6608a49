package openapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/web/openapi/describe"
)

var update = flag.Bool("update", false, "write describe/observed.json instead of comparing it; go generate must run after it")

const observedFile = "describe/observed.json"

// note adds an answer to seen[id], unless it already has an answer to this example.
func note(t *testing.T, seen map[string]describe.Observation, id, example string, answer []byte) {
	t.Helper()
	if !bytes.HasPrefix(answer, []byte("{")) {
		return // a picture
	}
	o := seen[id]
	if o.Answers == nil {
		o.Answers = map[string]json.RawMessage{}
	}
	if o.Answers[example] == nil {
		answer = bytes.ReplaceAll(answer, []byte("http://pictures.test/"), []byte("https://pictures.example/")) // the document's address
		o.Answers[example] = shortenLists(t, answer)
	}
	seen[id] = o
}

// readObserved returns the observations in the document.
func readObserved(t *testing.T) (all map[string]describe.Observation) {
	t.Helper()
	text, err := os.ReadFile(observedFile)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func writeObserved(t *testing.T, all map[string]describe.Observation) {
	t.Helper()
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(observedFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compareAnswers compares answers with those in the document. With -update, it writes them there instead.
func compareAnswers(t *testing.T, seen map[string]describe.Observation) {
	t.Helper()
	all := readObserved(t)
	for id, o := range seen {
		if *update {
			o.Failures = all[id].Failures
			all[id] = o
			continue
		}
		for name, answer := range o.Answers {
			if got := compact(t, all[id].Answers[name]); !bytes.Equal(got, answer) {
				t.Errorf("%s, %q: the document's answer is\n%s, want\n%s\n(go test ./web/openapi -update writes it)", id, name, got, answer)
			}
		}
	}
	if *update {
		writeObserved(t, all)
	}
}

// TestFailures compares the errors that the document lists for each operation with those of the transcripts.
func TestFailures(t *testing.T) {
	doc := load(t)
	seen := map[string][]describe.Failure{}
	add := func(id string, f describe.Failure) {
		i := slices.IndexFunc(seen[id], func(g describe.Failure) bool { return g.Code == f.Code })
		if i < 0 {
			seen[id] = append(seen[id], f)
			return
		}
		g := &seen[id][i]
		g.HTTP = max(g.HTTP, f.HTTP)
		if f.Details != "" && (g.Details == "" || len(f.Details) < len(g.Details)) {
			g.Details = f.Details
		}
	}
	for _, e := range transcripts(t) {
		op, _ := find(t, doc, &e)
		if op == nil {
			continue
		}
		var answer map[string]any
		if json.Unmarshal([]byte(e.Body), &answer) != nil {
			continue // a picture
		}
		statuses(answer, func(code int, details string, top bool) {
			failure, ofCall := fails(code)
			if !failure && !(ofCall && top && e.Status >= 400) {
				return
			}
			http := 0
			if top {
				http = e.Status
			}
			add(op.OperationID, describe.Failure{HTTP: http, Code: code, Details: details})
		})
	}
	all := readObserved(t)
	for id, failures := range seen {
		slices.SortFunc(failures, func(a, b describe.Failure) int { return cmp.Compare(a.Code, b.Code) })
		o := all[id]
		if *update {
			o.Failures = failures
			all[id] = o
		} else if !slices.Equal(o.Failures, failures) {
			t.Errorf("%s: the document lists the errors\n%v, want\n%v\n(go test ./web/openapi -update writes them, then go generate ./web/openapi)", id, o.Failures, failures)
		}
	}
	if *update {
		writeObserved(t, all)
	}
}

// fails reports whether a code is an error of a call or of an item, and whether a call can end with it.
func fails(code int) (failure, ofCall bool) {
	for _, c := range describe.Codes() {
		if c.Number == code {
			return c.HTTP >= 400 && code != 10020, c.HTTP != 0
		}
	}
	return false, false
}

// statuses calls yield with each status in an answer. top reports whether the status is the call's.
func statuses(v any, yield func(code int, details string, top bool)) {
	var walk func(v any, top bool)
	walk = func(v any, top bool) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item, false)
			}
		case map[string]any:
			for name, m := range v {
				if strings.HasPrefix(name, "model_version") {
					continue // the status of a version is not an error of the call
				}
				if s, ok := m.(map[string]any); ok && name == "status" {
					code, _ := s["code"].(float64)
					details, _ := s["details"].(string)
					yield(int(code), details, top)
				} else {
					walk(m, false)
				}
			}
		}
	}
	walk(v, true)
}

// shortenLists returns an answer with at most two items in each list, or four numbers, as a crop has. The members keep their order.
func shortenLists(t *testing.T, answer []byte) json.RawMessage {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	next := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		return token
	}
	var value func() string
	value = func() string {
		token := next()
		var items []string
		switch token {
		case json.Delim('{'):
			for d.More() {
				items = append(items, value()+":"+value())
			}
			next()
			return "{" + strings.Join(items, ",") + "}"
		case json.Delim('['):
			for d.More() {
				items = append(items, value())
			}
			next()
			limit := 2
			if len(items) > 0 && strings.Trim(items[0], "-0123456789.e+") == "" {
				limit = 4
			}
			return "[" + strings.Join(items[:min(limit, len(items))], ",") + "]"
		}
		text, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return json.RawMessage(value())
}

func compact(t *testing.T, text json.RawMessage) []byte {
	t.Helper()
	if text == nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
