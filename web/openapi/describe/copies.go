package describe

// operationFields are what is told of an operation of a copy's own.
func operationFields(more ...field) []field {
	return append([]field{
		always("site", whole(), "Who made it: the copy's own number."),
		always("seq", whole(), "Its place among the operations of the site, from 1."),
		always("at", when, "By the copy's clock."),
		maybe("by", text(), "The start of the key's hash, `token` or `session`; absent of what the copy did itself."),
		always("kind", text(eg("input_labels")), "What it does."),
		maybe("input_id", id, "The input that it is about, also when that is gone."),
		maybe("concept_id", id, ""),
		maybe("model_id", id, ""),
		maybe("version_id", text(), ""),
		maybe("workflow_id", id, ""),
		always("content", ref("OperationContent"), ""),
	}, more...)
}

// copies are the schemas of what a copy tells of itself.
var copies = []member{
	{"Copy", closed("Where a copy stands with its origin. What waits is counted as no further than it is known to be.",
		always("app_id", hex32, ""),
		maybe("origin", text(eg("https://sightline.example")), "The origin's address."),
		always("phase", text(oneOf("stopped", "unreachable", "connecting", "rebasing", "pulling", "paused", "current", "purged")), "What is being done: `current` is when the origin was heard of and nothing is missing."),
		always("site", whole(), "The copy's own number; 0: it has none yet, and writes nothing."),
		always("cursor", whole(), "The last entry of the origin's log that is here."),
		always("head", whole(), "The last entry that the origin has told of."),
		maybe("contact", when, "When the origin last answered at all."),
		maybe("as_of", when, "When it last said that there is no more than what is here."),
		always("queued", whole(), "Operations that are here alone, as far as is known."),
		always("sent", whole(), "Operations that the origin says its log has."),
		always("conflicts", whole(), "Operations that were not taken as they were meant, and were not dismissed."),
		maybe("denied", text(), "Why the origin lets the copy in no more."),
		maybe("problem", text(), "What goes wrong."),
		maybe("retry", when, "When the next try is made."))},
	{"Operation", closed("An operation of the copy's own that its origin's log has not brought back yet.", operationFields(
		always("state", text(oneOf("queued", "sent")), ""))...)},
	{"Conflict", closed("An operation of the copy's own that the log did not take as it was meant.", append([]field{
		always("id", text(eg("2-17")), "Site and sequence, for DELETE."),
	}, operationFields(
		always("verdict", text(oneOf("superseded", "duplicate", "gone", "stale", "refused")), ""),
		always("reason", text(), "Why, in a sentence."),
		always("position", whole(), "The entry of the origin's log that the verdict is of."))...)...)},
	{"OperationContent", closed("All that an operation says, by its kind.",
		maybe("url", address, "Of a new input."),
		maybe("hosted", text(), "Of a new input: where its picture lies, while it is here."),
		maybe("sha256", text(), "Of a picture."),
		maybe("content_type", text(), "Of a picture."),
		maybe("crop", crop, ""),
		maybe("concepts", list(ref("OperationConcept")), "Labels; a model's concepts; corrected values."),
		maybe("added_concepts", list(ref("OperationConcept")), "Of a change of a model."),
		maybe("removed_concepts", list(ref("OperationConcept")), "Of a change of a model."),
		maybe("metadata", anything, "Of a new input: its metadata. Of a change: a list of what was done at which path."),
		maybe("geo", object{{"anyOf", []object{ref("Geo"), {{"type", "null"}}}}}, "null: the place was taken away."),
		maybe("allow_duplicate_url", boolean, ""),
		maybe("merge_if_equal", boolean, ""),
		maybe("barrier", boolean, "Of a deletion of all: what was made before it elsewhere, and comes later, goes too."),
		maybe("status", ref("Status"), "Of a download or a training."),
		maybe("manifest", text(), "Of a trained version: SHA-256 of what says how it came about."),
		maybe("name", text(), "Of a concept or a model."),
		maybe("language", text(), "Of a concept's name."),
		maybe("output_config", list(closed("", always("name", text(), ""), always("value", anything, "null: back to the default."))), "Settings of a model."),
		maybe("nodes", list(closed("", maybe("id", text(), ""), maybe("model_id", text(), ""), maybe("version_id", text(), ""))), "Of a workflow."),
		maybe("feedback", anything, ""),
		maybe("reason", text(), "Of an operation that stands in the place of one that was lost."),
		maybe("number", whole(), "Of a kind that is none of an application's, or of a later version."),
		maybe("data", text(member{"contentEncoding", "base64"}), "The operation as it is kept, where it holds what is not known here."))},
	{"OperationConcept", closed("",
		always("id", id, ""),
		maybe("name", text(), ""),
		maybe("value", object{{"type", []string{"number", "null"}}}, "Whether it is there, or how sure that is; null: what was said of it was taken back."))},
	{"CopyAnswer", answer("", always("copy", ref("Copy"), ""))},
	{"OutboxAnswer", answer("", always("operations", list(ref("Operation")), "Oldest first."))},
	{"ConflictsAnswer", answer("", always("conflicts", list(ref("Conflict")), "Oldest first."))},
	{"EnrolledAnswer", answer("", always("edge", closed("",
		always("id", text(), ""), always("name", text(), ""), always("site", whole(), ""), always("apps", list(hex32), "")), ""))},
}

// enrolment is what an edge sends once.
var enrolment = []member{
	{"Enrolment", record("",
		always("token", text(), "That `sightline edge create` printed."),
		always("key", text(member{"pattern", "^[0-9a-f]{64}$"}), "The edge's public Ed25519 key."),
		always("signature", text(member{"pattern", "^[0-9a-f]{128}$"}), "By that key, over `sightline enrol 1`, a line feed and the token."))},
}
