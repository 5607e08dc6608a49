// Package describe generates the OpenAPI 3.1 document of /v2. Only go generate and tests run it. A server embeds the generated document
// (package openapi).
//
//	core/api's table of endpoints: scopes ─┐
//	operations.go ─────────────────────────┤
//	requests.go, answers.go, status.go, … ─┼── Document ── go generate ── openapi.json ── GET /openapi.json
//	observed.json: answers of a server ────┘
//
// The operations and schemas are written by hand, because the handlers, too, read and write JSON by hand. Tests compare the document with
// the code: it has exactly the operations in the table of endpoints and the codes in core/api's source. Every exchange in core/api's
// transcripts must match it. The schemas of answers are closed, so a test fails if a handler adds a member.
package describe

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Document returns the content of openapi.json: indented JSON that ends with a line feed. All calls return the same bytes.
func Document() ([]byte, error) {
	paths, err := paths()
	if err != nil {
		return nil, err
	}
	doc := object{
		{"openapi", "3.1.0"},
		{"info", object{
			{"title", "Sightline"},
			{"version", "2"},
			{"summary", "Image recognition, custom training and visual search."},
			{"description", introduction()},
			{"license", object{{"name", "Apache 2.0"}, {"identifier", "Apache-2.0"}}},
		}},
		{"servers", []object{
			{{"url", "/v2"}, {"description", "The application that the credential belongs to."}},
			{
				{"url", "/v2/users/{user_id}/apps/{app_id}"},
				{"description", "The same application, named in the path."},
				{"variables", object{
					{"user_id", object{{"default", "me"}, {"description", "ID of the account, or `me`."}}},
					{"app_id", object{{"default", "main"}, {"description", "ID of the application."}}},
				}},
			},
		}},
		{"security", credentials(nil)},
		{"tags", tags()},
		{"paths", paths},
		{"components", object{
			{"securitySchemes", schemes},
			{"parameters", parameters},
			{"headers", headers},
			{"responses", responses()},
			{"schemas", schemas()},
		}},
	}
	return encode(doc)
}

// headers holds the shared headers of answers.
var headers = object{
	{"CallsLeft", object{
		{"description", "Number of calls that the account may still make. Omitted if the number is unlimited."},
		{"schema", whole()},
	}},
	{"Durability", object{
		{"description", "Where the written data is durable. `origin`: in the application's log at the origin. " +
			"`local`: at a replica, which stores it until the origin has it. Omitted if nothing was written."},
		{"schema", text(oneOf("origin", "local"))},
	}},
	{"Operations", object{
		{"description", "At a replica: the operations that the call created, as `writer:first-last`. GET /sync/outbox lists them. " +
			"If several calls write at the same time, the range can include operations of other calls. If the writer changed during the " +
			"call, there is a part for each writer, with a comma between them."},
		{"schema", text(member{"pattern", "^[0-9a-f]+:[0-9]+-[0-9]+(,[0-9a-f]+:[0-9]+-[0-9]+)*$"}, eg("5d1c94018f9a7f02:17-19"))},
	}},
	{"Notice", object{
		{"description", "Notices about a successful call: a JSON list in ASCII, of at most 4 KB. `at` is the place in the request, and `text` a " +
			"sentence, for example about a concept name that nobody knows. Omitted if there is none."},
		{"schema", text(eg(`[{"at":"per_page","text":"1000 is the maximum."}]`))},
	}},
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{m.name, m.value} {
			if j == 1 {
				b.WriteByte(':')
			}
			text, err := compact(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// with returns a copy of o with more members at its end.
func (o object) with(more ...member) object { return append(o[:len(o):len(o)], more...) }

// compact returns v as JSON, without escaping < and &.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func encode(doc object) ([]byte, error) {
	text, err := compact(doc)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
