package describe

import (
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/train"
)

// schemas are the components of the document: what answers show, then what requests say.
func schemas() object {
	all := object{{"Status", statusSchema()}, {"Error", errorSchema()}}
	for _, group := range [][]member{pictures, models, activations, evaluations, learning, others, finding, answers, accounts, copies, requests, clauses, enrolment} {
		all = append(all, group...)
	}
	return all
}

// lists are the names of the lists that error answers keep, empty.
var lists = []string{"outputs", "inputs", "models", "model_versions", "concepts", "hits", "workflows", "results", "apps", "keys", "scopes", "operations", "conflicts", "changes", "duplicates", "groups"}

func errorSchema() object {
	fields := make([]field, len(lists))
	for i, name := range lists {
		fields[i] = maybe(name, object{{"type", "array"}, {"maxItems", 0}}, "")
	}
	return answer("A call that failed as a whole. Where the answer would hold a list, the list is there and empty.", fields...)
}

// public says of an app_id what null means.
const public = "The application's; for what is public `null`, or `main` where the server is set so."

var pictures = []member{
	{"Image", closed("A picture.",
		maybe("url", address, "As it was given. A picture that came as base64 has an address of this server, which nobody can guess."),
		maybe("crop", crop, "Edges as fractions of the picture from its top left corner: top, left, bottom, right."))},
	{"GeoPoint", closed("A place (SRID 4326).",
		always("longitude", degrees(180), ""), always("latitude", degrees(90), ""))},
	{"Geo", closed("", always("geo_point", ref("GeoPoint"), ""))},
	{"ConceptValue", closed("A concept with a value.",
		always("id", text(eg("ai_2k5mzj3r")), "Those of public concepts begin with `ai_`."),
		always("name", text(eg("insect")), "In the language asked for; the application's own concepts have one name."),
		always("value", share, "A probability; of what a user said 1, it is there, or 0, it is not."),
		always("app_id", appID, public))},
	{"InputData", closed("",
		always("image", ref("Image"), ""),
		maybe("concepts", list(ref("ConceptValue")), "What users said it shows; absent where they said nothing or the key may not read concepts."),
		maybe("metadata", anything, "Any JSON, as it was given."),
		maybe("geo", ref("Geo"), ""))},
	{"Input", closed("A picture of the application's index.",
		always("id", id, "The caller's own, or 32 hexadecimal digits."),
		always("data", ref("InputData"), ""),
		always("created_at", when, ""),
		always("status", ref("Status"), "30001 until the picture has been fetched and analysed, then 30000 or what went wrong. After a PATCH: 30200."))},
	{"InputItem", closed("An input of a call that adds or changes some: as it is now, or, without created_at, why it was refused.",
		always("id", text(), "As it was sent, or made up."),
		always("data", ref("InputData"), ""),
		maybe("created_at", when, ""),
		always("status", ref("Status"), ""))},
	{"PredictedInput", closed("The input of an output.",
		always("id", id, "As it was given, or made up."),
		always("data", closed("", always("image", ref("Image"), "")), ""))},
	{"Counts", closed("How many inputs there are, by what became of their pictures.",
		always("processed", whole(), "At 30000."), always("to_process", whole(), "At 30001."), always("errors", whole(), "At any other code."))},
	{"Source", closed("What an export needs of an input and no other answer has.",
		maybe("url", address, "By which the input was given."),
		maybe("picture", address, "Where the picture is kept here."),
		maybe("content_type", text(eg("image/jpeg")), ""),
		maybe("sha256", text(member{"pattern", "^[0-9a-f]{64}$"}), "Of the picture's bytes."),
		maybe("edits", list(closed("", always("id", id, "The concept's."), always("value", share, ""), maybe("removed", boolean, ""))),
			"What was changed in its predictions; absent where the key may not read concepts."))},
	{"Hit", closed("An input that a search found.",
		always("score", number(), "1 where the search only filters; otherwise how well the input fits, 1 at most and best first."),
		always("input", ref("Input"), ""))},
}

var models = []member{
	{"Concept", closed("A concept.",
		always("id", text(eg("ai_2k5mzj3r")), "Those of public concepts begin with `ai_`."),
		always("name", text(eg("insect")), ""),
		always("value", number(), "Always 1."),
		always("created_at", when, ""),
		maybe("updated_at", when, "In searches alone, and not where public concepts belong to `main`."),
		always("language", language, "Of the name."),
		always("app_id", appID, public))},
	{"OutputConfig", closed("The settings of an own model.",
		always("concepts_mutually_exclusive", boolean, "One picture shows only one of the concepts."),
		always("closed_environment", boolean, "Training takes no pictures of other things as examples of what the concepts are not."),
		always("max_concepts", whole(), "Of an output; 0: the default."),
		always("min_value", share, "Of a concept in an output."),
		maybe("language", language, ""),
		maybe("hyper_parameters", text(), "As it was given."),
		maybe("select_concepts", list(closed("", maybe("id", text(), ""), maybe("name", text(), ""))), ""),
		maybe("sample_ms", whole(), "As it was given."),
		maybe("existing_model_id", text(), "As it was given."),
		maybe("training_timeout", whole(), "As it was given."))},
	{"OutputInfo", closed("",
		always("message", text(), "Where the concepts are to be had."),
		always("type", modelType, ""), always("type_ext", text(eg("concept")), "A finer name of the type."),
		maybe("output_config", ref("OutputConfig"), "Of own models."))},
	{"OutputInfoConcepts", closed("",
		maybe("data", closed("", always("concepts", list(ref("Concept"), member{"minItems", 1}), "")),
			"Absent when the model has no concepts or the key may not read them."),
		always("type", modelType, ""), always("type_ext", text(eg("concept")), "A finer name of the type."),
		maybe("output_config", ref("OutputConfig"), "Of own models."))},
	{"Model", modelSchema("OutputInfo", "A model, its concepts left out.")},
	{"ModelConcepts", modelSchema("OutputInfoConcepts", "A model with its concepts.")},
	{"ModelName", closed("All that a key without `Models:Get` learns of a model.",
		always("id", id, ""),
		always("output_info", closed("", always("type", modelType, ""), always("type_ext", text(eg("concept")), "A finer name of the type.")), ""))},
	{"ModelVersion", closed("What one training made of a model.", versionFields(
		maybe("progress", share, "How far its training is, while it goes on where this is answered: of one version, not in lists. Our own."))...)},
	{"OutputData", closed("What the model says. Empty for an input that failed.",
		maybe("concepts", list(ref("ConceptValue")), "By value, descending."),
		maybe("colors", list(ref("Color")), "By share of the picture, descending."),
		maybe("embeddings", list(closed("", always("vector", list(number()), ""), always("num_dimensions", whole(), ""))),
			"Points that lie close together for pictures that look alike."))},
	{"Color", closed("",
		always("raw_hex", hex, "As it is in the picture."),
		always("w3c", closed("", always("hex", hex, ""), always("name", text(eg("WhiteSmoke")), "")), "The named colour next to it."),
		always("value", share, "Of the picture."))},
	{"Output", closed("What a model says of one input.",
		always("id", hex32, ""),
		always("status", ref("Status"), "Of this input: 10000, or why it was not analysed."),
		always("created_at", when, ""),
		always("model", anyOf(ref("Model"), ref("ModelName")), ""),
		always("input", ref("PredictedInput"), ""),
		always("data", ref("OutputData"), ""))},
}

var (
	modelType = text(oneOf("concept", "color", "embed"))
	hex       = text(member{"pattern", "^#[0-9a-f]{6}$"}, eg("#f5f5f5"))
)

func modelSchema(info, note string) object {
	return closed(note,
		always("id", id, ""),
		always("name", name, ""),
		always("created_at", when, ""),
		always("app_id", appID, public),
		always("output_info", ref(info), ""),
		maybe("model_version", ref("ModelVersion"), "The version that the path names, or the one that predicts, or the newest."),
		maybe("display_name", text(), "Of public models."))
}

func versionFields(more ...field) []field {
	return append([]field{
		always("id", text(), ""),
		always("created_at", when, ""),
		always("status", ref("Status"), "21102 not trained, 21103 queued, 21100 trained; 21110 to 21115 say why a training failed."),
		maybe("active_concept_count", whole(), "Absent when there are none."),
	}, more...)
}

var evaluations = []member{
	{"EvaluatedVersion", closed("A version and how well it does.", versionFields(
		always("metrics", ref("Metrics"), ""),
		maybe("total_input_count", whole(), "Inputs with a label for any of the concepts."),
		maybe("since", closed("How what it learned from differs from what the version trained before it did; absent of the first.",
			always("version_id", text(), "The version before."),
			always("new_inputs", whole(), "Inputs that the version before did not learn from."),
			always("corrected_inputs", whole(), "Inputs of both with a label, for a concept of both, that was changed or taken back. One that only got a further label is none.")), ""))...)},
	{"Metrics", closed("How well a version does on pictures that it has not seen: found by cross-validation within the training.",
		always("status", ref("Status"), "21300, then all the rest is there; 21302 or 21303, then nothing is."),
		maybe("folds", whole(), "How many parts the labelled inputs were cut into: each is judged by what was learned from the others."),
		maybe("summary", closed("Means over the concepts.",
			always("macro_avg_roc_auc", share, ""), always("macro_std_roc_auc", number(), ""),
			always("macro_avg_f1_score", share, ""), always("macro_std_f1_score", number(), ""),
			always("macro_avg_precision", share, ""), always("macro_avg_recall", share, "")), ""),
		maybe("confusion_matrix", closed("For each concept what share of the inputs that show it are taken for what: the one with the highest value of those that reach their cut_off.",
			always("matrix", list(closed("Without actual: inputs that show none of the concepts; without predicted: taken for none.",
				maybe("predicted", text(), "A concept's id."), maybe("actual", text(), "A concept's id."), always("value", share, ""), always("count", whole(), ""))), ""),
			always("concept_ids", list(text()), "")), ""),
		maybe("label_counts", closed("", always("positive_label_counts", list(closed("",
			always("concept_name", text(), ""), maybe("count", whole(), "Absent when 0."))), "")), ""),
		maybe("binary_metrics", list(closed("How well one concept is told.",
			always("num_pos", whole(), ""), always("num_neg", whole(), ""), always("num_tot", whole(), ""),
			always("roc_auc", share, ""), always("f1", share, ""),
			maybe("cut_off", share, "The value from which it is best taken for present, by the highest F1; absent where it was not evaluated, and of versions trained by older programs."),
			maybe("at_cut_off", closed("What taking it for present from cut_off on gives; absent where there is none, and of versions trained by older programs.",
				always("precision", share, "The share of the inputs taken for it that show it."),
				always("recall", share, "The share of the inputs that show it which are taken for it.")), ""),
			maybe("roc", list(list(share, size(2, 2)...), member{"maxItems", train.MaxROC}), "The ROC curve's corners: false alarms, then what is found; with cut_off."),
			always("concept", ref("Concept"), ""),
			always("precision_recall_curve", closed("At the one threshold that counts as present.",
				always("recall", list(share), ""), always("precision", list(share), ""), always("thresholds", list(share), "")), ""))), ""),
		maybe("test_set", list(closed("An input worth a look: the version disagrees with its label.",
			always("id", id, ""), always("url", address, ""),
			always("predicted_concepts", list(ref("ConceptValue")), "By a head that has not seen it: of the concept that is judged, then of the one that it is taken for, where that is another."),
			always("ground_truth_concepts", list(ref("ConceptValue")), "What users say of the concept that is judged, or what follows from it, then of the others: what it shows first."))), ""))},
}

var others = []member{
	{"WorkflowNode", closed("One model of a workflow.",
		always("id", id, ""),
		always("model", closed("",
			always("id", id, ""),
			maybe("model_version", closed("", always("id", text(), "")), "Where the version is fixed.")), ""))},
	{"Workflow", closed("Models that look at the same pictures.", append(workflowFields, always("nodes", list(ref("WorkflowNode")), ""))...)},
	{"WorkflowSummary", closed("A workflow without its models.", workflowFields...)},
	{"WorkflowResult", closed("What the models say of one input.",
		always("status", ref("Status"), ""),
		always("input", ref("PredictedInput"), ""),
		always("outputs", list(ref("Output")), "In the order of the workflow's models."))},
}

var workflowFields = []field{
	always("id", id, ""), always("app_id", appID, public), always("created_at", when, ""),
}

// answers are whole answers that calls make when they go well, or when each item goes its own way.
var answers = []member{
	{"Done", answer("The call was done; there is nothing else to say.")},
	{"OutputsAnswer", answer("", always("outputs", list(ref("Output")), "One for each input, in their order."))},
	{"StoredOutputsAnswer", answer("", always("outputs", list(ref("Output"), member{"maxItems", 1}), "None until the input has been analysed."))},
	{"InputAnswer", answer("", always("input", ref("Input"), ""))},
	{"InputsAnswer", answer("", always("inputs", list(ref("Input")), ""))},
	{"InputItemsAnswer", answer("", always("inputs", list(ref("InputItem")), "In the order of the request."))},
	{"CountsAnswer", answer("", always("counts", ref("Counts"), ""))},
	{"SourceAnswer", answer("", always("source", ref("Source"), ""))},
	{"ModelAnswer", answer("", always("model", ref("Model"), ""))},
	{"CreatedModelAnswer", anyOf(ref("ModelAnswer"), ref("Done")).with(member{"description", "The model; the status alone where models were deleted."})},
	{"ModelConceptsAnswer", answer("", always("model", ref("ModelConcepts"), ""))},
	{"ModelsAnswer", answer("", always("models", list(ref("Model")), ""))},
	{"ModelVersionAnswer", answer("", always("model_version", ref("ModelVersion"), ""))},
	{"ModelVersionsAnswer", answer("", always("model_versions", list(ref("ModelVersion")), "Newest first."))},
	{"MetricsAnswer", answer("", always("model_version", ref("EvaluatedVersion"), ""))},
	{"ConceptAnswer", answer("", always("concept", ref("Concept"), ""))},
	{"ConceptsAnswer", answer("", always("concepts", list(ref("Concept")), ""))},
	{"HitsAnswer", answer("", always("id", hex32, "The search's, for feedback."), always("hits", list(ref("Hit")), "Best first."))},
	{"WorkflowAnswer", answer("", always("workflow", ref("Workflow"), ""))},
	{"WorkflowsAnswer", answer("", always("workflows", list(ref("Workflow")), ""))},
	{"ResultsAnswer", answer("",
		always("workflow", ref("WorkflowSummary"), ""), always("results", list(ref("WorkflowResult")), "One for each input, in their order."))},
}

// accounts are the schemas of tokens, sessions, applications and keys.
var accounts = []member{
	{"App", closed("An application.",
		always("id", hex32, ""),
		always("name", text(), ""),
		always("default_language", language, "Never changes."),
		maybe("user_id", text(), "Its owner; absent where the operator made it."),
		always("created_at", when, ""))},
	{"Key", closed("An API key.",
		always("id", text(), "Of a new key: the key itself, 32 hexadecimal digits. In lists: the first 16 of its hash."),
		maybe("description", text(), ""),
		always("scopes", list(ref("Scope")), ""),
		always("apps", list(closed("", always("id", hex32, ""), always("user_id", text(), "")), size(1, 1)...), "Its one application."),
		always("created_at", when, ""))},
	{"Scope", text(oneOf(auth.ScopeNames()...), member{"description", "`Inputs_Get` is what texts call Inputs:Get. `All` is all of them."})},
	{"TokenAnswer", answer("",
		always("access_token", text(member{"minLength", 10}), ""),
		always("expires_in", object{{"type", "integer"}, {"minimum", 1}}, "Seconds that the token lives."),
		always("scope", text(), "The same for every token."))},
	{"LoginAnswer", answer("",
		always("session_token", text(), "For the header X-Clarifai-Session-Token."),
		always("v2_user_id", text(), "The account's id, for paths; `me` means the same."))},
	{"AppAnswer", answer("", always("app", ref("App"), ""))},
	{"AppsAnswer", answer("", always("apps", list(ref("App")), ""))},
	{"KeysAnswer", answer("", always("keys", list(ref("Key")), ""))},
	{"ScopesAnswer", answer("", always("scopes", list(ref("Scope")), ""), always("app", ref("App"), "The application that the credential belongs to."))},
}
