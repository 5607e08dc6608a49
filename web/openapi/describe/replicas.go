package describe

// operationFields returns the fields of an operation, followed by more. seq is the field of the sequence number; some answers may omit it.
func operationFields(seq field, more ...field) []field {
	return append([]field{
		always("writer", text(eg("41a0c8e2b7d93f50")), "Its maker, a replica or the origin: 16 hexadecimal digits, or a decimal number below 4294967296."),
		seq,
		always("at", when, "Time at which it was made, by the clock of the writer."),
		maybe("by", text(), "Author: the start of the API key's hash, `token` or `session`. Omitted if the writer made the operation by itself."),
		always("kind", text(eg("input_labels")), "Kind of operation."),
		maybe("input_id", id, "ID of the affected input, even if that was deleted."),
		maybe("concept_id", id, ""),
		maybe("model_id", id, ""),
		maybe("version_id", text(), ""),
		maybe("workflow_id", id, ""),
		always("content", ref("OperationContent"), ""),
	}, more...)
}

const seqNote = "Sequence number among the operations of the writer, starting at 1."

const verdicts = "`superseded`: a later write took precedence. `duplicate`: the ID or URL is already in use. " +
	"`gone`: its target was deleted or does not exist. `stale`: the operation is too old. `refused`: the origin rejected it."

// copies holds the schemas of a replica's sync status, outbox and conflicts.
var copies = []member{
	{"Copy", closedRecord("Sync status of a replica. Counts are lower bounds of progress.",
		always("app_id", hex32, ""),
		maybe("origin", text(eg("https://sightline.example")), "URL of the origin."),
		always("phase", text(oneOf("stopped", "unreachable", "connecting", "rebasing", "pulling", "paused", "current", "purged")),
			"Current activity. `stopped`: sync does not run. `unreachable`: there is no connection to the origin. "+
				"`connecting`: a session is being started. `rebasing`: a snapshot is being downloaded. `pulling`: the log is being "+
				"downloaded. `paused`: a newer version of this program is needed. `current`: up to date. "+
				"`purged`: the replica may no longer store the application."),
		always("cursor", whole(), "Last entry of the origin's log applied here."),
		always("head", whole(), "Last entry announced by the origin."),
		maybe("contact", when, "When the origin last responded."),
		maybe("as_of", when, "When the replica was last known to be up to date."),
		always("queued", whole(), "Number of operations not yet known to be at the origin."),
		always("sent", whole(), "Number of operations that the origin acknowledged and its log has not confirmed yet."),
		always("conflicts", whole(), "Number of conflicts that nobody has dismissed or decided."),
		maybe("denied", text(), "Why the origin denies access."),
		maybe("problem", text(), "Current error."),
		maybe("limit", text(eg("Calls")), "Limit of the origin because of which the operations cannot be sent now. `Calls`: the account has no calls left."),
		maybe("retry", when, "When sync tries again."))},
	{"Operation", closedRecord("A pending operation: made at this replica and not yet confirmed by the origin's log.", operationFields(always("seq", whole(), seqNote),
		always("state", text(oneOf("queued", "sent")), "`queued`: not yet known to be at the origin. `sent`: acknowledged by the origin."))...)},
	{"Conflict", closedRecord("An operation of this replica that was not applied as intended.", append([]field{
		always("id", text(eg("2-17")), "Writer and sequence number, for DELETE /sync/conflicts/{conflict_id}."),
	}, operationFields(always("seq", whole(), seqNote),
		always("verdict", text(oneOf("superseded", "duplicate", "gone", "stale", "refused")), verdicts),
		always("reason", text(), "The reason, in a sentence."),
		always("position", whole(), "Entry of the origin's log that the verdict belongs to."))...)...)},
	{"Contradiction", closedRecord("A label, a name, a part of metadata or a place that several replicas or the origin set without knowing of each other's "+
		"values, or an input that was deleted by somebody who had not seen its last change. The last value serves until somebody decides.",
		always("id", text(eg("c-9f86d081884c7d65")), "The same at every replica and at the origin, for PATCH and DELETE /sync/conflicts/{conflict_id}."),
		always("verdict", text(oneOf("contradiction")), ""),
		always("field", text(oneOf("label", "name", "metadata", "place", "deletion")), ""),
		maybe("written", text(oneOf("label", "metadata", "place")), "Deletion: what was changed before it."),
		maybe("input_id", id, ""),
		maybe("concept_id", id, ""),
		maybe("model_id", id, ""),
		maybe("path", list(text()), "Metadata: names of the members, from the outermost."),
		always("reason", text(), "The reason, in a sentence."),
		always("values", list(closedRecord("",
			maybe("value", anything, "Label: 1 present, 0 absent. null: it was removed."),
			maybe("deleted", boolean, "The input was deleted."),
			maybe("serves", boolean, "This is the current value."),
			always("at", when, "Time at which it was set, by the clock of the writer."),
			always("writer", text(eg("41a0c8e2b7d93f50")), "As in an operation."),
			maybe("by", text(), "As in an operation. Omitted if this host does not know it."))), "Oldest first, in the order of the origin's log."))},
	{"KeepValue", record("", always("keep", whole(), "Index of the value in `values`, starting at 0."))},
	{"OperationContent", closedRecord("Content of the operation; fields depend on kind.",
		maybe("url", address, "New input: its URL."),
		maybe("hosted", text(), "New input: URL of its picture on this server, while the picture is stored."),
		maybe("sha256", text(), "SHA-256 of the picture."),
		maybe("content_type", text(), "Media type of the picture."),
		maybe("crop", crop, ""),
		maybe("concepts", list(ref("OperationConcept")), "Labels, concepts of a model or corrected values."),
		maybe("added_concepts", list(ref("OperationConcept")), "Change of a model: the added concepts."),
		maybe("removed_concepts", list(ref("OperationConcept")), "Change of a model: the removed concepts."),
		maybe("metadata", anything,
			"New input: its metadata. Change of metadata: a list of changes, each with path, action (`set`, `remove` or `append`) and value."),
		maybe("geo", object{{"anyOf", []object{ref("Geo"), {{"type", "null"}}}}}, "null: the location was removed."),
		maybe("allow_duplicate_url", boolean, ""),
		maybe("read_exif", boolean, "New input: it gets the place that its picture's file has."),
		maybe("merge_if_equal", boolean, ""),
		maybe("barrier", boolean, "Deletion of all inputs: also deletes inputs that were created elsewhere before it and arrive later."),
		maybe("status", ref("Status"), "Status of a download or a training."),
		maybe("manifest", text(), "Trained version: SHA-256 of the manifest that describes the training."),
		maybe("name", text(), "Name of a concept or a model."),
		maybe("language", text(), "Language of a concept's name."),
		maybe("output_config", list(closedRecord("", always("name", text(), ""), always("value", anything, "null: reset to the default."))), "Settings of a model."),
		maybe("nodes", list(closedRecord("", maybe("id", text(), ""), maybe("model_id", text(), ""), maybe("version_id", text(), ""))), "Nodes of a workflow."),
		maybe("feedback", anything, ""),
		maybe("reason", text(), "Rejected operation: why the origin rejected it. The log does not have its content."),
		maybe("number", whole(), "Number of the kind, if this version does not know the kind."),
		maybe("data", text(member{"contentEncoding", "base64"}),
			"The operation as stored, if it contains something that this version does not know."))},
	{"OperationConcept", closedRecord("",
		always("id", id, ""),
		maybe("name", text(), ""),
		maybe("value", object{{"type", []string{"number", "null"}}},
			"1 present, 0 absent, or the corrected probability. null: the label or correction was removed."))},
	{"CopyAnswer", answer("", always("copy", ref("Copy"), ""))},
	{"OutboxAnswer", answer("", always("operations", list(ref("Operation")), "Oldest first."))},
	{"ConflictsAnswer", answer("", always("dropped", whole(), "Number of the oldest contradictions that left the list, because there were more than 10,000."),
		always("conflicts", list(anyOf(ref("Conflict"), ref("Contradiction"))), "Operations first, then contradictions. Each oldest first."))},
	{"EnrolledAnswer", answer("", always("edge", closedRecord("",
		always("id", text(), ""), always("name", text(), ""), always("site", whole(), ""), always("apps", list(hex32), "")), ""))},
}

// enrolment holds the schema of the request that an edge sends once, to enrol at its origin.
var enrolment = []member{
	{"Enrolment", record("",
		always("token", text(), "The token that `sightline edge create` printed."),
		always("key", text(member{"pattern", "^[0-9a-f]{64}$"}), "The edge's public Ed25519 key."),
		always("signature", text(member{"pattern", "^[0-9a-f]{128}$"}),
			"Signature by that key over `sightline enrol 1`, a line feed and the token."))},
}
