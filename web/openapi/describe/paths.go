package describe

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
)

// operation is one endpoint.
type operation struct {
	method, path string // path without /v2
	id, tag      string
	summary      string
	note         string
	request      string // schema of the body; empty: the service ignores the body
	idle         bool   // the body is optional although there is a schema
	examples     []example
	answer       string   // schema of a successful answer
	items        string   // schema of an answer with a status for each item: 207 if some failed, 400 if all failed; empty: items have no status
	picture      bool     // the answer is a JPEG instead
	page         bool     // the operation reads page and per_page
	writes       bool     // the operation fails when the disk is full
	short        bool     // the operation has no form below an application's long path
	query        []object // parameters of the query, except page and per_page
}

// example is a body of a request.
type example struct {
	name string // lower-case words
	body string // JSON
}

var braces = regexp.MustCompile(`\{(\w+)\}`)

// paths returns the operations by path, in the order of the table.
func paths() (object, error) {
	var all object
	needs := map[string]api.Endpoint{}
	for _, e := range api.Endpoints() {
		needs[e.Method+" "+e.Path] = e
	}
	observed, err := readObserved()
	if err != nil {
		return nil, fmt.Errorf("observed.json: %w", err)
	}
	add := func(path, method string, short bool, body object) {
		i := slices.IndexFunc(all, func(m member) bool { return m.name == path })
		if i < 0 {
			i = len(all)
			all = append(all, member{path, item(path, short)})
		}
		item, _ := all[i].value.(object)
		all[i].value = item.with(member{strings.ToLower(method), body})
	}
	for _, op := range operations {
		need, ok := needs[op.method+" "+op.path]
		if !ok {
			return nil, fmt.Errorf("%s %s: no such endpoint", op.method, op.path)
		}
		seen := observed[op.id]
		body, err := op.body(&need, &seen)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", op.method, op.path, err)
		}
		add(op.path, op.method, op.short, body)
	}
	for _, c := range calls {
		add(c.path, c.method, true, c.item())
	}
	return all, nil
}

// item returns the members of a path before its operations: the IDs in the path, and the server if the path has no long form.
func item(path string, short bool) object {
	var item object
	if short {
		item = append(item, member{"servers", []object{{{"url", "/v2"}}}})
	}
	var ids []object
	for _, m := range braces.FindAllStringSubmatch(path, -1) {
		ids = append(ids, object{{"$ref", "#/components/parameters/" + m[1]}})
	}
	if len(ids) > 0 {
		item = append(item, member{"parameters", ids})
	}
	return item
}

// queryParameter returns a parameter of an operation's query.
func queryParameter(name string, schema object, note string) object {
	return object{{"name", name}, {"in", "query"}, {"description", note}, {"schema", schema}}
}

func (op *operation) body(need *api.Endpoint, seen *Observation) (object, error) {
	o := object{
		{"tags", []string{op.tag}},
		{"summary", op.summary},
		{"description", paragraphs(op.note, scopesOf(need), seen.failuresOf())},
		{"operationId", op.id},
		{"security", credentials(need)},
	}
	if need.Credential == auth.OfApplication {
		o = o.with(member{"x-scopes", object{
			{"required", colons(need.Required)}, {"redacted", colons(need.Redacted)}, {"instead", colons(need.Patch)},
		}})
	}
	parameters := op.query
	if op.page && op.method == "GET" {
		parameters = append([]object{{{"$ref", "#/components/parameters/page"}}, {{"$ref", "#/components/parameters/per_page"}}}, op.query...)
	}
	if len(parameters) > 0 {
		o = o.with(member{"parameters", parameters})
	}
	if op.request != "" {
		content := object{{"schema", ref(op.request)}}
		if len(op.examples) > 0 {
			var examples object
			for _, e := range op.examples {
				if !json.Valid([]byte(e.body)) {
					return nil, fmt.Errorf("example %q is no JSON", e.name)
				}
				examples = append(examples, member{e.name, object{{"value", json.RawMessage(e.body)}}})
			}
			content = content.with(member{"examples", examples})
		}
		o = o.with(member{"requestBody", object{{"required", !op.idle}, {"content", object{{jsonType, content}}}}})
	}
	responses, err := op.responses(need.Credential, seen)
	if err != nil {
		return nil, err
	}
	return o.with(member{"responses", responses}), nil
}

// paragraphs joins those of texts that are not empty.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n")
}

// responses returns the possible answers of the operation, by HTTP status.
func (op *operation) responses(credential auth.Credential, seen *Observation) (object, error) {
	var all object
	if op.picture {
		all = object{{"200", object{
			{"description", "A JPEG."},
			{"content", object{{"image/jpeg", object{}}}},
		}}, {"304", object{{"description", "`If-None-Match` contains the tag of the JPEG."}}}}
	} else {
		media, err := seen.examplesOf(op, object{{"schema", ref(op.answer)}})
		if err != nil {
			return nil, err
		}
		all = object{{"200", object{{"description", "Success."}, {"content", object{{jsonType, media}}}}}}
	}
	if headers := op.headers(credential); len(headers) > 0 {
		good, _ := all[0].value.(object)
		all[0].value = good.with(member{"headers", headers})
	}
	if op.items != "" {
		some := jsonResponse("Some items failed. Each item has its own status.", ref(op.items))
		if op.logs() {
			some = some.with(member{"headers", durable})
		}
		all = all.with(member{"207", some})
	}
	for _, f := range failures {
		if !op.mayFail(f.http, credential) {
			continue
		}
		r := object{{"$ref", "#/components/responses/" + f.name}}
		if f.http == 400 && op.items != "" && op.method != "GET" {
			r = jsonResponse("The request is malformed, or all items failed (10020) and each has its own status.", anyOf(ref("Error"), ref(op.items)))
		}
		all = all.with(member{strconv.Itoa(f.http), r})
	}
	return all, nil
}

// callsLeft are the headers of an answer to a call that may count against a limit.
var callsLeft = object{{"X-Sightline-Calls-Left", object{{"$ref", "#/components/headers/CallsLeft"}}}}

// durable are the headers of an answer to a call that has written.
var durable = object{
	{"X-Sightline-Durability", object{{"$ref", "#/components/headers/Durability"}}},
	{"X-Sightline-Operations", object{{"$ref", "#/components/headers/Operations"}}},
}

// headers returns the headers of a successful answer.
func (op *operation) headers(credential auth.Credential) (all object) {
	if credential == auth.OfApplication {
		all = callsLeft.with(member{"X-Sightline-Notice", object{{"$ref", "#/components/headers/Notice"}}})
	}
	if op.logs() {
		all = all.with(durable...)
	}
	return all
}

// logs reports whether the operation writes into the application's log. Most operations that need disk space do.
func (op *operation) logs() bool {
	switch op.id {
	case "predict", "predictWithVersion", "readActivations", "runWorkflow", "dismissConflict":
		return false
	}
	return op.writes
}

func jsonResponse(note string, schema object) object {
	return object{{"description", note}, {"content", object{{jsonType, object{{"schema", schema}}}}}}
}

// mayFail reports whether the operation can fail with an HTTP status.
func (op *operation) mayFail(http int, credential auth.Credential) bool {
	open := credential == auth.OfNobody || credential == auth.OfClient // the operation needs no account, so no account's calls are counted
	switch http {
	case 400:
		return op.page || op.method != "GET" || credential == auth.OfApplication // with a session, the call must name the application
	case 402, 403:
		return !open
	case 404:
		return !op.short || braces.MatchString(op.path) // an application of another account counts as missing, too
	case 405:
		return false // 405 concerns the path, not one of its operations
	case 413:
		return op.method != "GET"
	case 507:
		return op.writes
	}
	return true
}

// show is the parameter of operations whose answers have members on request.
var show = object{{"$ref", "#/components/parameters/show"}}

// parameters are the shared parameters: paging, and the ids in paths, by their names in the paths.
var parameters = object{
	{"page", object{
		{"name", "page"},
		{"in", "query"},
		{"description", "Page number, starting at 1. Pages after the last are empty."},
		{"schema", object{{"type", "integer"}, {"minimum", 0}, {"default", 1}}},
	}},
	{"per_page", object{
		{"name", "per_page"},
		{"in", "query"},
		{"description", fmt.Sprintf("Number of rows on a page. Values above %d count as %[1]d.", call.MaxPerPage)},
		{"schema", object{{"type", "integer"}, {"minimum", 0}, {"default", call.DefaultPerPage}}},
	}},
	{"show", object{
		{"name", "show"},
		{"in", "query"},
		{"description", "Members that the answer has in addition, separated by commas: *Members on request*."},
		{"style", "form"},
		{"explode", false},
		{"schema", list(text(oneOf(call.ShowWords...)))},
	}},
	inPath("model_id", "ID of a model, not its name. Write `/` in an ID as `%2F`.", "aaa03c23b3724a16a56b629203edc62c"),
	inPath("version_id", "ID of a model version.", "aa9ca48295b37401f8af92ad1af0d91d"),
	inPath("input_id", "ID of an input. Write `/` in an ID as `%2F`.", "dragonfly"),
	inPath("concept_id", "ID of a concept. Write `/` in an ID as `%2F`.", "ai_2k5mzj3r"),
	inPath("workflow_id", "ID of a workflow. `General` is public.", "General"),
	inPath("user_id", "ID of the account, or `me`.", "me"),
	inPath("app_id", "ID of an application.", "00000000000000010000000000000002"),
}.with(syncParameters...)

func inPath(name, note, example string) member {
	return member{name, object{
		{"name", name},
		{"in", "path"},
		{"required", true},
		{"description", note},
		{"schema", text()},
		{"example", example},
	}}
}

// schemes are the kinds of credentials.
var schemes = object{
	{"key", object{
		{"type", "apiKey"},
		{"in", "header"},
		{"name", "Authorization"},
		{
			"description",
			"`Key ` and an API key of 32 hexadecimal digits. Create keys on the page of the application. " +
				"A key has the scopes chosen for it and does not expire.",
		},
	}},
	{"token", object{
		{"type", "http"},
		{"scheme", "bearer"},
		{"bearerFormat", "JWT"},
		{"description", "An access token from POST /token."},
	}},
	{"session", object{
		{"type", "apiKey"},
		{"in", "header"},
		{"name", "X-Clarifai-Session-Token"},
		{
			"description",
			"A session token from POST /login. The path must name the application, unless the account has only one. " +
				"If Authorization is sent too, it takes precedence.",
		},
	}},
	{"edge", object{
		{"type", "apiKey"},
		{"in", "header"},
		{"name", "Authorization"},
		{
			"description",
			"`Edge `, the ID of an edge, the time in milliseconds and the edge's signature of the request; see sync/README.md. " +
				"Only for calls of the sync protocol.",
		},
	}},
	{"client", object{
		{"type", "http"},
		{"scheme", "basic"},
		{"description", "Client ID and client secret of an application. Only for POST /token."},
	}},
}

// credentials returns the ways to authenticate a call. If need is nil, they are those of an application's call.
func credentials(need *api.Endpoint) []object {
	scopes := []string{}
	if need != nil {
		scopes = colons(need.Required)
		switch need.Credential {
		case auth.OfClient:
			return []object{{{"client", scopes}}}
		case auth.OfAccount:
			return []object{{{"session", scopes}}}
		case auth.OfNobody:
			return []object{}
		}
	}
	return []object{{{"key", scopes}}, {{"token", scopes}}, {{"session", scopes}}}
}

// scopesOf describes the scopes that an endpoint needs.
func scopesOf(need *api.Endpoint) string {
	if need.Credential != auth.OfApplication {
		return ""
	}
	if len(need.Required) == 0 {
		return "No scope is required."
	}
	words := "Required scopes: " + quoteScopes(need.Required) + "."
	if len(need.Patch) > 0 {
		words += " A key with " + quoteScopes(need.Patch) + " does not need the scopes to add and to train."
	}
	if len(need.Redacted) > 0 {
		words += " Optional scopes: " + quoteScopes(need.Redacted) + ". Without them, the response omits the fields that they cover."
	}
	return words
}

func quoteScopes(names []string) string { return "`" + strings.Join(colons(names), "`, `") + "`" }

// colons returns scopes in the notation of the API.
func colons(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.Replace(name, "_", ":", 1)
	}
	return out
}
