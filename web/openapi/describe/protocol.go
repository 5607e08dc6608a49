package describe

import "strconv"

// call is a call of the sync protocol, which is no endpoint of core/api: package sync/feed answers it.
type call struct {
	method, path string // after /v2
	id           string
	summary      string
	note         string
	query        []string // names of the parameters, among those of the components
	request      object   // content; nil: there is no body
	answers      []reply
	open         bool // asks for no credential
}

// reply is what a call answers when it goes well.
type reply struct {
	http    int
	note    string
	content object // nil: no body
}

// syncType is the media type of the protocol's messages.
const syncType = "application/vnd.sightline.sync"

// message is a message of the protocol, whose fields sync/README.md has.
func message(name string) object {
	return object{{syncType, object{{"schema", text(member{"format", "binary"}, member{"description", "A message " + name + ", as sync/README.md has it."})}}}}
}

// octets is a picture, an object or a chunk.
var octets = object{{"application/octet-stream", object{{"schema", text(member{"format", "binary"})}}}}

// named are what names an application in the query.
var named = []string{"sync_app", "sync_partition"}

// calls are those of the protocol, in the order of sync/README.md.
var calls = []call{
	{
		method: "POST", path: "/sync/session", id: "beginSyncSession", summary: "Begin a session",
		note:    "What a replica is and has, and what it gets: a site to write as, and for each application whether it pulls on, takes a snapshot, or empties what it holds.",
		request: message("Session"), answers: []reply{{200, "Done.", message("Offered")}},
	},
	{
		method: "GET", path: "/sync/changes", id: "readSyncChanges", summary: "Pull the log",
		note: "Frames of the log behind a cursor, and of what its entries need, which is in front of them. With `live` it waits for more. A WebSocket of the same path has " +
			"the same frames as binary messages.",
		query: []string{"sync_app", "sync_partition", "sync_epoch", "sync_since", "sync_register", "sync_live", "sync_vectors"},
		answers: []reply{{200, "A stream of frames.", object{
			{syncType, object{{"schema", text(member{"format", "binary"}, member{"description", "Frames, as sync/README.md has them."})}}},
		}}},
	},
	{
		method: "POST", path: "/sync/push", id: "pushSyncOperations", summary: "Push operations",
		note: "A replica's own operations, in their sequence. Those that are there are passed over, so sending again is free; what is accepted is always a beginning. " +
			"Operations that name a picture which is missing are answered with the refusal `blobs` of sync/README.md, and pushed again when it has been put.",
		query: named, request: message("Push"), answers: []reply{{200, "Done.", message("Pushed")}},
	},
	{
		method: "GET", path: "/sync/snapshot", id: "readSyncSnapshot", summary: "Read a snapshot's manifest",
		note:  "Of the one that is named, while it is held, or of one that is made now.",
		query: []string{"sync_app", "sync_partition", "sync_vectors", "sync_name"}, answers: []reply{{200, "Done.", message("Manifest")}},
	},
	{
		method: "GET", path: "/sync/snapshot/{hash}", id: "readSyncChunk", summary: "Read a chunk of a snapshot",
		note:  "Or an object that versions name. 404 when it is held no longer: then the newest manifest is asked for.",
		query: named, answers: []reply{{200, "All of it.", octets}, {206, "What `Range` asked for.", octets}},
	},
	{
		method: "GET", path: "/sync/digest", id: "readSyncDigest", summary: "Read a node of the tree of digests",
		note:  "To compare states by, and to repair what differs.",
		query: []string{"sync_app", "sync_partition", "sync_at", "sync_prefix", "sync_values"}, answers: []reply{{200, "Done.", message("Digests")}},
	},
	{
		method: "POST", path: "/sync/blobs/have", id: "haveSyncBlobs", summary: "Ask which pictures are there",
		note:  "Of an application, by their hashes. A hash is no capability: what the application does not have is not there.",
		query: named, request: message("Have"), answers: []reply{{200, "Done.", message("Had")}},
	},
	{
		method: "GET", path: "/sync/blobs/{hash}", id: "readSyncBlob", summary: "Read a picture or an object",
		query: named, answers: []reply{{200, "All of it.", octets}, {206, "What `Range` asked for.", octets}},
	},
	{
		method: "PUT", path: "/sync/blobs/{hash}", id: "putSyncBlob", summary: "Put a picture or an object",
		note:  "Whole, or with `Content-Range` in pieces, each where the ones before end. Nothing is seen before it is whole and its hash is right.",
		query: named, request: octets, answers: []reply{{200, "It was there.", nil}, {201, "It is whole.", nil}, {202, "More is missing.", message("Had")}},
	},
	{
		method: "GET", path: "/sync/keys", id: "readSyncKeys", summary: "Read the register",
		note:  "What a copy needs to know of its application's record and keys. A key that was deleted is missing, and tokens that were revoked have another generation than the client has here.",
		query: []string{"sync_app", "sync_partition", "sync_since"}, answers: []reply{{200, "Done.", message("Register")}, {204, "It has not changed.", nil}},
	},
	{
		method: "POST", path: "/sync/enrol", id: "enrolEdge", summary: "Enrol an edge", open: true,
		note:    "With the token that its operator was given. Again with the same key the answer is the same; another key is refused.",
		request: object{{jsonType, object{{"schema", ref("Enrolment")}}}}, answers: []reply{{200, "Done.", object{{jsonType, object{{"schema", ref("EnrolledAnswer")}}}}}},
	},
}

// refusals are what every call of the protocol may answer instead: see sync/README.md, Errors.
var refusals = []int{400, 401, 403, 404, 409, 410, 413, 426, 429, 500, 503}

// item is the call as an operation of the document.
func (c *call) item() object {
	o := object{
		{"tags", []string{"Sync"}},
		{"summary", c.summary},
		{"description", c.note},
		{"operationId", c.id},
	}
	security := append(credentials(nil), object{{"edge", []string{}}})
	if c.open {
		security = []object{}
	}
	o = o.with(member{"security", security})
	if len(c.query) > 0 {
		var query []object
		for _, name := range c.query {
			query = append(query, object{{"$ref", "#/components/parameters/" + name}})
		}
		o = o.with(member{"parameters", query})
	}
	if c.request != nil {
		o = o.with(member{"requestBody", object{{"required", true}, {"content", c.request}}})
	}
	var answers object
	for _, a := range c.answers {
		r := object{{"description", a.note}}
		if a.content != nil {
			r = r.with(member{"content", a.content})
		}
		answers = answers.with(member{strconv.Itoa(a.http), r})
	}
	for _, http := range refusals {
		answers = answers.with(member{strconv.Itoa(http), object{{"$ref", "#/components/responses/Refused"}}})
	}
	return o.with(member{"responses", answers})
}

// refused is the answer of the protocol to what cannot be.
var refused = object{
	{"description", "A Refusal where `Accept` or `Content-Type` has the protocol's media type, whose code says what the replica does then; " +
		"else the same in the interface's form. `Retry-After` says how many seconds to wait."},
	{"content", object{message("Refusal")[0], {jsonType, object{{"schema", ref("Error")}}}}},
}

// syncParameters are what calls of the protocol have in their queries and paths.
var syncParameters = object{
	inQuery("sync_app", "app", true, "The application's id.", hex32),
	inQuery("sync_partition", "p", false, "A partition: an application has one, 0.", whole(member{"default", 0})),
	inQuery("sync_epoch", "epoch", false, "Of the log that the cursor is of, in hexadecimal digits; without: from the beginning.", text(member{"pattern", "^[0-9a-f]{32}$"})),
	inQuery("sync_since", "since", false, "The entry behind which to begin.", whole()),
	inQuery("sync_register", "register", false, "The entry of the control log that the register is of which is there.", whole()),
	inQuery("sync_live", "live", false, "`0` what there is; `poll` likewise, and with nothing new it waits at most 25 s; `stream` on and on.", text(oneOf("0", "poll", "stream"))),
	inQuery("sync_vectors", "vectors", false, "`q16`: what analysing pictures gave comes along.", text(oneOf("none", "q16"))),
	inQuery("sync_name", "name", false, "Name of a snapshot.", text(member{"pattern", "^[0-9a-f]{64}$"})),
	inQuery("sync_at", "at", false, "The entry that the state is of, while that tree is held.", whole()),
	inQuery("sync_prefix", "prefix", false, "The node: 0 to 4 digits.", text(member{"pattern", "^[0-9a-f]{0,4}$"})),
	inQuery("sync_values", "values", false, "`1`: of a node of 4 digits the values come along.", text(oneOf("0", "1"))),
	inPath("hash", "SHA-256 in hexadecimal digits.", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
	inPath("conflict_id", "A conflict's id: its operation's site and sequence.", "2-17"),
}

func inQuery(key, name string, required bool, note string, schema object) member {
	return member{key, object{
		{"name", name}, {"in", "query"}, {"required", required}, {"description", note}, {"schema", schema},
	}}
}
