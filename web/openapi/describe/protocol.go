package describe

import "strconv"

// syncCall is a call of the sync protocol. Package sync/feed answers it, so the table of core/api does not list it.
type syncCall struct {
	method, path string // after /v2
	id           string
	summary      string
	note         string
	parameters   []string // names, among those of the components
	request      object   // content; nil: there is no body
	answers      []reply
	open         bool // asks for no credential
}

// reply is an answer to a call that succeeds.
type reply struct {
	http    int
	note    string
	content object // nil: no body
}

// syncType is the media type of the protocol's messages.
const syncType = "application/vnd.sightline.sync"

// message is the content of a message of the protocol. sync/README.md lists its fields.
func message(name string) object {
	return object{{syncType, object{{"schema", text(member{"format", "binary"}, member{"description", "The message " + name + " of sync/README.md."})}}}}
}

// octets is a picture, an object or a chunk.
var octets = object{{"application/octet-stream", object{{"schema", text(member{"format", "binary"})}}}}

// appQuery is the query parameter that names an application.
var appQuery = []string{"sync_app"}

// versionedQuery are the parameters of a call that names an application and the version of the protocol.
var versionedQuery = []string{"sync_protocol", "sync_app"}

// calls are the calls of the protocol, in the order of sync/README.md.
var calls = []syncCall{
	{
		method: "POST", path: "/sync/session", id: "beginSyncSession", summary: "Start a session",
		note: "The replica reports what it is and what it stores. " +
			"For each application, it tells the replica to pull the log, to take a snapshot, to pause, or to erase its data.",
		parameters: []string{"sync_device"}, request: message("Session"), answers: []reply{{200, "Success.", message("SessionReply")}},
	},
	{
		method: "GET", path: "/sync/changes", id: "readSyncChanges", summary: "Pull the log",
		note: "Frames with the entries of the log after a cursor. Data that an entry needs comes before the entry. " +
			"With `live`, the call waits for more. A WebSocket on the same path sends the same frames as binary messages.",
		parameters: []string{
			"sync_protocol", "sync_app", "sync_opening", "sync_epoch", "sync_since", "sync_chain", "sync_register", "sync_live", "sync_vectors", "sync_only", "sync_device",
		},
		answers: []reply{{200, "A stream of frames.", object{
			{syncType, object{{"schema", text(member{"format", "binary"}, member{"description", "The frames of sync/README.md."})}}},
		}}},
	},
	{
		method: "POST", path: "/sync/push", id: "pushSyncOperations", summary: "Push operations",
		note: "The operations of a replica, in sequence. The origin skips those that it already has, so sending them again is safe. " +
			"It accepts all of them or the first ones. If an operation names a missing picture, the answer is the refusal `blobs` of " +
			"sync/README.md: upload the picture and push again.",
		parameters: versionedQuery, request: message("Push"), answers: []reply{{200, "Success.", message("Pushed")}},
	},
	{
		method: "POST", path: "/sync/back", id: "giveSyncBack", summary: "Give back entries",
		note: "Entries that the origin's log lacks after a restore, or because its disk went back in time, as a replica has kept them. The " +
			"origin appends the operations that it lacks. It lists as conflicts those without an effect or without their picture.",
		parameters: versionedQuery, request: message("Back"), answers: []reply{{200, "Success.", message("TakenBack")}},
	},
	{
		method: "GET", path: "/sync/snapshot", id: "readSyncSnapshot", summary: "Get the manifest of a snapshot",
		note:       "The snapshot that `name` names, while the origin stores it, or a new one.",
		parameters: []string{"sync_protocol", "sync_app", "sync_opening", "sync_vectors", "sync_name", "sync_least"}, answers: []reply{{200, "Success.", message("Manifest")}},
	},
	{
		method: "GET", path: "/sync/snapshot/{hash}", id: "readSyncChunk", summary: "Get a chunk of a snapshot",
		note:       "A chunk, or an object that versions name. 404 if the origin no longer stores it: then get the newest manifest.",
		parameters: versionedQuery, answers: []reply{{200, "The whole content.", octets}, {206, "The part that `Range` requests.", octets}},
	},
	{
		method: "GET", path: "/sync/digest", id: "readSyncDigest", summary: "Get the digest of the state",
		note:       "For comparing states.",
		parameters: []string{"sync_protocol", "sync_app", "sync_at"}, answers: []reply{{200, "Success.", message("Digest")}},
	},
	{
		method: "POST", path: "/sync/dates", id: "readSyncDates", summary: "Get dates of pictures",
		note:       "For derived records of an earlier release, at most 512.",
		parameters: appQuery, request: message("DatesRequest"), answers: []reply{{200, "Success.", message("Dates")}},
	},
	{
		method: "POST", path: "/sync/blobs/have", id: "haveSyncBlobs", summary: "Check which pictures are stored",
		note:       "Pictures of an application, by hash. A hash gives no access: pictures of other applications count as missing.",
		parameters: appQuery, request: message("HaveRequest"), answers: []reply{{200, "Success.", message("HaveReply")}},
	},
	{
		method: "GET", path: "/sync/blobs/{hash}", id: "readSyncBlob", summary: "Get a picture or an object",
		parameters: appQuery, answers: []reply{{200, "The whole content.", octets}, {206, "The part that `Range` requests.", octets}},
	},
	{
		method: "PUT", path: "/sync/blobs/{hash}", id: "putSyncBlob", summary: "Upload a picture or an object",
		note: "The whole content or, with `Content-Range`, one piece after another. It is visible only when it is complete and its hash " +
			"is right.",
		parameters: appQuery, request: octets, answers: []reply{{200, "Already stored.", nil}, {201, "Upload complete.", nil}, {202, "Upload incomplete.", message("HaveReply")}},
	},
	{
		method: "GET", path: "/sync/keys", id: "readSyncKeys", summary: "Get application record and keys",
		note: "The register: what a replica needs of its application's record and keys. Deleted keys are absent. " +
			"After tokens were revoked, the client has another generation than the tokens.",
		parameters: []string{"sync_app", "sync_since"}, answers: []reply{{200, "Success.", message("AppRecord")}, {204, "Not changed.", nil}},
	},
	{
		method: "POST", path: "/sync/enrol", id: "enrolEdge", summary: "Enrol an edge", open: true,
		note:    "Uses the token that the operator received. Repeating the call with the same key returns the same answer; another key is rejected.",
		request: object{{jsonType, object{{"schema", ref("Enrolment")}}}}, answers: []reply{{200, "Success.", object{{jsonType, object{{"schema", ref("EnrolledAnswer")}}}}}},
	},
}

// refusals are the HTTP statuses with which any call of the protocol may refuse a request: see sync/README.md, Errors.
var refusals = []int{400, 401, 403, 404, 409, 410, 413, 426, 429, 500, 503}

// item returns the call as an operation of the document.
func (c *syncCall) item() object {
	o := object{
		{"tags", []string{"Sync protocol"}},
		{"summary", c.summary},
		{"description", c.note},
		{"operationId", c.id},
	}
	security := append(credentials(nil), object{{"edge", []string{}}})
	if c.open {
		security = []object{}
	}
	o = o.with(member{"security", security})
	if len(c.parameters) > 0 {
		var list []object
		for _, name := range c.parameters {
			list = append(list, object{{"$ref", "#/components/parameters/" + name}})
		}
		o = o.with(member{"parameters", list})
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

// refused is the protocol's answer to a request that it refuses.
var refused = object{
	{
		"description",
		"A message Refusal if `Accept` or `Content-Type` has the media type of the protocol; its code determines what the replica does " +
			"next. Otherwise the same error as JSON. `Retry-After` is the number of seconds to wait.",
	},
	{"content", object{message("Refusal")[0], {jsonType, object{{"schema", ref("Error")}}}}},
}

// sixteenBytes are 16 bytes in hexadecimal digits.
var sixteenBytes = text(member{"pattern", "^[0-9a-f]{32}$"})

// syncParameters are the parameters in the headers, queries and paths of the protocol's calls.
var syncParameters = object{
	{"sync_protocol", object{
		{"name", "Sync-Protocol"},
		{"in", "header"},
		{"required", true},
		{"description", "Version of the protocol. Otherwise the answer is 426 with the refusal `protocol`."},
		{"schema", text(oneOf("2"))},
	}},
	inQuery("sync_app", "app", true, "ID of the application.", hex32),
	inQuery("sync_opening", "opening", false,
		"Opening of the log in the replica's session. If the log has another one, the answer is 409 with the refusal `epoch`.", sixteenBytes),
	inQuery("sync_epoch", "epoch", false, "Epoch of the entry at the cursor, in hexadecimal digits. Omitted: start at the beginning.", sixteenBytes),
	inQuery("sync_since", "since", false, "Return what follows this entry.", whole()),
	inQuery("sync_chain", "chain", false, "Digest of the log up to the cursor, in hexadecimal digits.", sixteenBytes),
	inQuery("sync_only", "only", false, "`entries`: no register and no data that entries need.", text(oneOf("entries"))),
	inQuery("sync_least", "least", false, "Entry that the snapshot must include.", whole()),
	inQuery("sync_register", "register", false, "Entry of the control log that the replica's register is from.", whole()),
	inQuery("sync_live", "live", false,
		"`0`: return the existing entries. `poll`: the same, but wait up to 25 s if there are none. `stream`: continue with new entries, "+
			"for up to an hour.", text(oneOf("0", "poll", "stream"))),
	inQuery("sync_device", "device", false, "Kind and ID of the replica, by which GET /sync/devices lists its contacts. Edges omit it.",
		text(member{"pattern", "^(page|folder)-[0-9a-f]{32}$"})),
	inQuery("sync_vectors", "vectors", false, "`q16`: include the results of analysing pictures.", text(oneOf("none", "q16"))),
	inQuery("sync_name", "name", false, "Name of the snapshot.", text(member{"pattern", "^[0-9a-f]{64}$"})),
	inQuery("sync_at", "at", false,
		"Entry of the log. If the state is at another entry, the answer has no digest. Omitted: the current entry.", whole()),
	inPath("hash", "SHA-256 in hexadecimal digits.", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
	inPath("conflict_id", "ID of the conflict: writer and sequence number of the operation, or the ID of the contradiction.", "2-17"),
}

func inQuery(key, name string, required bool, note string, schema object) member {
	return member{key, object{
		{"name", name}, {"in", "query"}, {"required", required}, {"description", note}, {"schema", schema},
	}}
}
