package describe

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Observation holds answers of a server to the calls of one operation. The tests of package openapi write observed.json
// (go test ./web/openapi -update), so a server has returned every answer and every error in the document.
type Observation struct {
	Answers  map[string]json.RawMessage `json:"answers,omitempty"`  // by the name of the request's example; "" if it has none
	Failures []Failure                  `json:"failures,omitempty"` // in ascending order of code, one for each code
}

// Failure is an error that an operation returns in a transcript of package api.
type Failure struct {
	HTTP    int    `json:"http"` // 0: only items of calls had the error
	Code    int    `json:"code"`
	Details string `json:"details,omitempty"` // the shortest details of an answer with the code
}

//go:embed observed.json
var observedJSON []byte

// readObserved returns the observations by the ID of the operation.
func readObserved() (all map[string]Observation, err error) {
	err = json.Unmarshal(observedJSON, &all)
	return all, err
}

// examplesOf returns media, the media type of a successful answer, with the answers as examples. An answer has the name of its request's
// example, so Swagger UI shows the two together. examplesOf returns an error if an example has no answer.
func (o *Observation) examplesOf(op *operation, media object) (object, error) {
	if len(op.examples) == 0 {
		if answer := o.Answers[""]; answer != nil {
			media = media.with(member{"example", answer})
		}
		return media, nil
	}
	var examples object
	for _, e := range op.examples {
		answer := o.Answers[e.name]
		if answer == nil {
			return nil, fmt.Errorf("observed.json has no answer to the example %q", e.name)
		}
		examples = append(examples, member{e.name, object{{"value", answer}}})
	}
	return media.with(member{"examples", examples}), nil
}

// general holds the codes of errors that every call can return. The document's introduction describes them.
var general = []int{11001, 11002, 11005, 11006, 11007, 11009, 39998, 40030, 40032, 40033, 99009}

// failuresOf returns a list of the operation's errors in Markdown, without the general errors. It is empty if there are no others.
func (o *Observation) failuresOf() string {
	var b strings.Builder
	for _, f := range o.Failures {
		i := slices.IndexFunc(codes, func(c Code) bool { return c.Number == f.Code })
		if i < 0 || slices.Contains(general, f.Code) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("**What can go wrong**\n")
		}
		place := "status of an item"
		if f.HTTP != 0 {
			place = "HTTP " + strconv.Itoa(f.HTTP)
		}
		fmt.Fprintf(&b, "\n- `%d` %s (%s).", f.Code, strings.TrimSuffix(codes[i].Text, "."), place)
		if codes[i].Note != "" {
			b.WriteString(" " + codes[i].Note)
		}
		if f.Details != "" {
			b.WriteString(" Example of details: “" + escape(f.Details) + "”")
		}
	}
	return b.String()
}

// escape returns text, with the characters escaped that have a meaning in Markdown.
func escape(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`", "[", `\[`).Replace(text)
}
