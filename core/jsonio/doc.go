// Package jsonio reads and writes the JSON of /v2. All hosts have one parser, with limits, so that origin, edge and browser accept and
// refuse the same bytes.
//
// [Doc.Parse] checks the whole text once and leaves a flat list of nodes: one for each value and one for each member name. Each node is a
// range of the text. It has the place where its value ends in the list, so a reader skips values that it does not need:
//
//	text   {"model":{"id":"m"},"inputs":[…]}
//	nodes  object  "model" object "id" "m"   "inputs" array …
//	       next ──────────────────────────────────────────────▶ end
//	               next ───────────────────▶ next ────────────▶
//
// Parsing copies nothing: strings are unescaped on request, numbers stay text until a checked conversion, and [Value.Raw] returns any
// value's own bytes. Eight megabytes of tiny objects cost the text and a bounded list, not a tree of maps.
//
// The grammar is that of RFC 8259. Parse is stricter than encoding/json. It refuses, with the byte's offset:
//
//   - a name twice in one object, compared after unescaping; names match in exact case
//   - bytes that are not UTF-8, and \u escapes of half a surrogate pair
//   - more than [Limits] allows of bytes, depth, or members and elements together
//
// The writer appends to one buffer. Numbers have strconv's shortest form, and strings escape only what they must, so every host writes the
// same bytes.
//
// The one-pass list of ranges is an idea of Lemire and Langdale's simdjson (arXiv:1902.08318). The package is not a general decoder: it
// has no reflection and no tags.
package jsonio
