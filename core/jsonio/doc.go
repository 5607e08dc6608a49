// Package jsonio reads and writes the JSON of /v2: one parser for every host, with
// limits, so that origin, edge and browser accept and refuse the same bytes.
//
// [Doc.Parse] checks the whole text once and leaves a flat list of nodes, one per
// value and one per member name, each a range of the text. A node knows where its
// value ends in the list, so a reader steps over what it does not want:
//
//	text   {"model":{"id":"m"},"inputs":[…]}
//	nodes  object  "model" object "id" "m"   "inputs" array …
//	       next ──────────────────────────────────────────────▶ end
//	               next ───────────────────▶ next ────────────▶
//
// Nothing is copied while parsing: strings are unescaped when asked for, numbers stay
// text until a checked conversion, and any value's own bytes are at hand ([Value.Raw]).
// Eight megabytes of tiny objects cost the text and a bounded list, not a tree of maps.
//
// The grammar is RFC 8259's and stricter than encoding/json. Parse refuses, with the byte's offset:
//
//   - a name twice in one object, compared after unescaping; names match in exact case
//   - bytes that are not UTF-8, and \u escapes of half a surrogate pair
//   - more than [Limits] allows of bytes, depth, or members and elements together
//
// The writer appends to one buffer. Numbers are strconv's shortest form and strings
// escape only what they must, so every host writes the same bytes.
//
// The one-pass list of ranges is an idea of Lemire and Langdale's simdjson (arXiv:1902.08318). The package is not a general decoder: it
// has no reflection and no tags.
package jsonio
