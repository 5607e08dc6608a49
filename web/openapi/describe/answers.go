package describe

import (
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/train"
)

// schemas returns the schemas of the document.
func schemas() object {
	all := object{{"Status", statusSchema()}, {"Error", errorSchema()}}
	for _, group := range [][]member{pictures, models, activations, evaluations, learning, others, finding, answers, accounts, copies, requests, clauses, enrolment} {
		all = append(all, group...)
	}
	return all
}

// lists holds the names of the lists in answers. An error answer contains the list of its endpoint, too, but empty.
var lists = []string{"outputs", "inputs", "models", "model_versions", "concepts", "hits", "workflows", "results", "apps", "keys", "scopes", "operations", "conflicts", "devices", "changes", "duplicates", "groups"}

func errorSchema() object {
	fields := make([]field, len(lists))
	for i, name := range lists {
		fields[i] = maybe(name, object{{"type", "array"}, {"maxItems", 0}}, "")
	}
	return answer("A call that failed as a whole. If its response has a list, the list is present and empty.", fields...)
}

// public is the description of app_id in answers.
const public = "ID of the application. For public resources `null`, or `main` for requests with `X-Clarifai-Client`; the operator can set one of them for all requests."

var pictures = []member{
	{"Image", closedRecord("A picture.",
		maybe("url", address, "The URL from the request. A picture sent as base64 has a URL on this server that cannot be guessed."),
		maybe("crop", crop, "The edges top, left, bottom, right, as fractions of the picture from its top left corner."),
		maybe("sha256", text(member{"pattern", "^[0-9a-f]{64}$"}), "SHA-256 of the bytes of the stored picture, if `show` has `sha256` and the status is 30000."))},
	{"Video", closedRecord("A video.",
		maybe("url", text(eg("https://pictures.example/pond.mp4")), "The URL from the request. A video sent as base64 has a URL on this server that cannot be guessed."))},
	{"GeoPoint", closedRecord("A location in degrees (SRID 4326).",
		always("longitude", degrees(180), ""), always("latitude", degrees(90), ""))},
	{"Geo", closedRecord("", always("geo_point", ref("GeoPoint"), ""))},
	{"ConceptValue", closedRecord("A concept with a value.",
		always("id", text(eg("ai_2k5mzj3r")), "Public concept IDs start with `ai_`."),
		always("name", text(eg("insect")), "In the requested language. Custom concepts have one name for all languages."),
		always("value", share, "Probability from 0 to 1. For labels: 1 present, 0 absent."),
		always("app_id", appID, public))},
	{"InputData", closedRecord("",
		always("image", ref("Image"), ""),
		maybe("concepts", list(ref("ConceptValue")), "Labels set by users. Omitted if there are none, or if the key cannot read concepts."),
		maybe("metadata", anything, "Any JSON, as sent."),
		maybe("geo", ref("Geo"), ""),
		maybe("taken", ref("Taken"), "Date of the picture: `show=taken`. Omitted if its file has none, and until the file has been read."))},
	{"Taken", closedRecord("The time that the camera showed, which no server's or reader's time zone changes.",
		always("local", text(eg("2019-07-21T23:06:38")), "Local wall time. A date without a time is at 12:00:00."),
		maybe("offset", object{{"type", "integer"}, {"minimum", -960}, {"maximum", 960}}, "Minutes east of UTC. Omitted if the file has none."),
		always("source", text(oneOf("exif")), "`exif`: from the metadata of the picture's file."))},
	{"Input", closedRecord("A picture stored in the application.",
		always("id", id, "ID chosen by the caller, or 32 generated hexadecimal digits."),
		always("data", ref("InputData"), ""),
		always("created_at", when, ""),
		always("status", ref("Status"),
			"30001 until the picture has been downloaded and analysed, then 30000 or the code of an error. In responses to PATCH: 30200."))},
	{"InputItem", closedRecord("Result for one input of an add or patch call: the input, or the error in status. Rejected inputs have no created_at.",
		always("id", text(), "The ID from the request, or a generated one."),
		always("data", ref("InputData"), ""),
		maybe("created_at", when, ""),
		always("status", ref("Status"), ""))},
	{"PredictedInput", closedRecord("The input that an output belongs to.",
		always("id", id, "The ID from the request, or a generated one."),
		always("data", closedRecord("Exactly one of image and video.", maybe("image", ref("Image"), ""), maybe("video", ref("Video"), "")), ""))},
	{"Counts", closedRecord("Number of inputs by processing status.",
		always("processed", whole(), "Inputs with status 30000."), always("to_process", whole(), "Inputs with status 30001."), always("errors", whole(), "Inputs with any other status."))},
	{"Source", closedRecord("Data for exports that no other response contains.",
		maybe("url", address, "URL that the input was added with."),
		maybe("picture", address, "URL of the stored picture on this server."),
		maybe("content_type", text(eg("image/jpeg")), ""),
		maybe("sha256", text(member{"pattern", "^[0-9a-f]{64}$"}), "SHA-256 of the picture's bytes."),
		maybe("edits", list(closedRecord("", always("id", id, "ID of the concept."), always("value", share, ""), maybe("removed", boolean, ""))),
			"Corrections of its predictions. Omitted if the key cannot read concepts."))},
	{"Hit", closedRecord("A search result: an input and its score.",
		always("score", number(),
			"1 if the search only filters. Otherwise how well the input matches, at most 1. Hits are sorted by it, best first."),
		always("input", ref("Input"), ""))},
}

var models = []member{
	{"Concept", closedRecord("A concept.",
		always("id", text(eg("ai_2k5mzj3r")), "Public concept IDs start with `ai_`."),
		always("name", text(eg("insect")), ""),
		always("value", number(), "Always 1."),
		always("created_at", when, ""),
		maybe("updated_at", when, "Only in search responses, and only if the app_id of public concepts is `null`."),
		always("language", language, "Language of the name."),
		always("app_id", appID, public))},
	{"OutputConfig", closedRecord("The settings of a custom model.",
		always("concepts_mutually_exclusive", boolean, "true: each picture shows only one of the concepts."),
		always("closed_environment", boolean, "true: training does not use pictures of other things as negative examples."),
		always("max_concepts", whole(), "Maximum number of concepts in an output. 0 means 20."),
		always("min_value", share, "Minimum value of a concept in an output."),
		maybe("language", language, ""),
		maybe("hyper_parameters", text(), hyper),
		maybe("hyper_params", anything, structure),
		maybe("select_concepts", list(closedRecord("", maybe("id", text(), ""), maybe("name", text(), ""))), ""),
		maybe("sample_ms", whole(), "Milliseconds from one frame of a video to the next."),
		maybe("existing_model_id", text(), "Stored but not used."),
		maybe("training_timeout", whole(), "Stored but not used."))},
	{"OutputInfo", closedRecord("",
		always("message", text(), "Names the call that returns the concepts."),
		always("type", modelType, ""), always("type_ext", text(eg("concept")), "More specific type."),
		maybe("output_config", ref("OutputConfig"), "Only of custom models."))},
	{"OutputInfoConcepts", closedRecord("",
		maybe("data", closedRecord("", always("concepts", list(ref("Concept"), member{"minItems", 1}), "")),
			"Omitted if the model has no concepts or the key cannot read them."),
		always("type", modelType, ""), always("type_ext", text(eg("concept")), "More specific type."),
		maybe("output_config", ref("OutputConfig"), "Only of custom models."))},
	{"Model", modelSchema("OutputInfo", "A model without its concepts.", maybe)},
	{"ModelInTraining", modelSchema("OutputInfo", "A model without its concepts, with the version whose training was started.", always)},
	{"ModelConcepts", modelSchema("OutputInfoConcepts", "A model with its concepts.", maybe)},
	{"ModelName", closedRecord("Model as shown to a key without `Models:Get`.",
		always("id", id, ""),
		always("output_info", closedRecord("", always("type", modelType, ""), always("type_ext", text(eg("concept")), "More specific type.")), ""))},
	{"ModelVersion", closedRecord("Result of one training.", versionFields(
		maybe("progress", share,
			"Progress of the training. Present only if `show` has `progress`, while the answering server trains the version, and not in lists. "+
				"An extension of Sightline."))...)},
	{"OutputData", closedRecord("The prediction. Empty for an input that failed.", append(predicted[:len(predicted):len(predicted)],
		maybe("frames", list(ref("Frame"), member{"minItems", 1}), "Only of a video, instead of the other fields: its frames in order."))...)},
	{"Frame", closedRecord("Prediction for a frame of a video.",
		always("frame_info", closedRecord("", always("index", whole(), "Number of the frame, from 0."),
			always("time", whole(), "Milliseconds after the first frame of the video: index times sample_ms.")), ""),
		always("data", closedRecord("As for a picture: the frame on screen at this time.", predicted...), ""))},
	{"Color", closedRecord("",
		always("raw_hex", hex, "The colour in the picture."),
		always("w3c", closedRecord("", always("hex", hex, ""), always("name", text(eg("WhiteSmoke")), "")), "The most similar named colour."),
		always("value", share, "Share of the picture."))},
	{"Output", closedRecord("Prediction of a model for one input.",
		always("id", hex32, ""),
		always("status", ref("Status"), "Status of this input: 10000, or why it was not analysed."),
		always("created_at", when, ""),
		always("model", anyOf(ref("Model"), ref("ModelName")), ""),
		always("input", ref("PredictedInput"), ""),
		always("data", ref("OutputData"), ""))},
}

// predicted holds the fields of a prediction for a picture, or for a frame of a video.
var predicted = []field{
	maybe("concepts", list(ref("ConceptValue")), "Highest value first."),
	maybe("colors", list(ref("Color")), "Largest share of the picture first."),
	maybe("embeddings", list(closedRecord("", always("vector", list(number()), ""), always("num_dimensions", whole(), ""))),
		"Vectors that are close together for pictures that look alike."),
}

var (
	modelType = text(oneOf("concept", "color", "embed"))
	hex       = text(member{"pattern", "^#[0-9a-f]{6}$"}, eg("#f5f5f5"))
)

// modelSchema returns the schema of a model. version makes its field model_version.
func modelSchema(info, note string, version func(name string, schema object, note string) field) object {
	return closedRecord(note,
		always("id", id, ""),
		always("name", name, ""),
		always("created_at", when, ""),
		always("app_id", appID, public),
		always("output_info", ref(info), ""),
		version("model_version", ref("ModelVersion"),
			"The version named in the path; otherwise, in predictions, the version that predicts; otherwise the latest."),
		maybe("display_name", text(), "Only of public models."))
}

func versionFields(more ...field) []field {
	return append([]field{
		always("id", text(), ""),
		always("created_at", when, ""),
		always("status", ref("Status"), "21102: not trained. 21103: queued. 21100: trained; details if no input has a label for the model's concepts. 21110 to 21115: why the training failed."),
		maybe("active_concept_count", whole(), "Omitted if there are none."),
		maybe("digest", hex64,
			"SHA-256 of all that the training learned from. It is equal for equal trainings, on every host. Present in answers about "+
				"the versions of a model, if `show` has `digest` and the version is trained. The hashed bytes, with numbers in four bytes, lowest first: the text "+
				"`sightline training 1` and a line feed; the number of the training code; the network's hash (32 bytes); "+
				"`concepts_mutually_exclusive` and `closed_environment`, each one byte, 1 for true; the promised precision as an IEEE 754 double, lowest byte first; the number of concepts, then for each, "+
				"in the order of the model, the length of its ID and the ID; the SHA-256 of the network's background embeddings, of no "+
				"bytes in a closed environment; the number of inputs, then for each, ascending, the SHA-256 of its embedding (516 bytes), "+
				"a byte for each concept (1: labelled true, 255: labelled false, 0: neither), and 1 if it is labelled true with another "+
				"concept, else 0. An extension of Sightline."),
	}, more...)
}

var evaluations = []member{
	{"EvaluatedVersion", closedRecord("A version with its evaluation.", versionFields(
		always("metrics", ref("Metrics"), ""),
		maybe("total_input_count", whole(), "Number of labelled inputs that the version was trained and evaluated on."))...)},
	{"Metrics", closedRecord("Evaluation on pictures that the model was not trained on, by cross-validation during the training.",
		always("status", ref("Status"), "21300: evaluated. 21302 or 21303: not evaluated, and the other fields are omitted."),
		maybe("summary", closedRecord("Means (`avg`) and standard deviations (`std`) over the evaluated concepts.",
			always("macro_avg_roc_auc", share, ""), always("macro_std_roc_auc", number(), ""),
			always("macro_avg_f1_score", share, ""), always("macro_std_f1_score", number(), ""),
			always("macro_avg_precision", share, ""), always("macro_avg_recall", share, "")), ""),
		maybe("confusion_matrix", closedRecord(
			"For each concept (`actual`): the share of its inputs that the model predicts as each concept (`predicted`). "+
				"A concept is predicted if its value reaches its cut-off. A wrong prediction counts as a confusion with a label that was "+
				"not predicted, if the input has one.",
			always("matrix", list(closedRecord(
				"Without `actual`: wrong predictions beyond the labels, and inputs without both. Without `predicted`: labels that were not predicted.",
				maybe("predicted", text(), "ID of a concept."), maybe("actual", text(), "ID of a concept."), always("value", share, ""))), ""),
			always("concept_ids", list(text()), "")), ""),
		maybe("label_counts", closedRecord("", always("positive_label_counts", list(closedRecord("",
			always("concept_name", text(), ""), maybe("count", whole(), "Omitted if 0."))), "")), ""),
		maybe("binary_metrics", list(closedRecord("Evaluation of one concept.",
			always("num_pos", whole(), ""), always("num_neg", whole(), ""), always("num_tot", whole(), ""),
			always("roc_auc", share, ""), always("f1", share, ""),
			always("concept", ref("Concept"), ""),
			always("roc_curve", closedRecord("Points of the curve by falling threshold. Versions trained by older releases have no thresholds.",
				always("fpr", curve, "False positive rates."), always("tpr", curve, "True positive rates."), always("thresholds", curve, "")), ""),
			always("precision_recall_curve", closedRecord(
				"Points of the curve by falling threshold. Versions trained by older releases have one point.",
				always("recall", curve, ""), always("precision", curve, ""), always("thresholds", curve, "")), ""))), ""),
		maybe("test_set", list(closedRecord("An input whose label to check: the version disagrees with it by more than chance. At most 20, the most doubtful first. Only labels "+
			"of concepts with at least `min_checked_pictures` pictures are listed.",
			always("id", id, ""), always("url", address, ""),
			always("predicted_concepts", list(ref("ConceptValue")),
				"By a model that was not trained on the input. First the concept in question, then the concept with the highest value, if "+
					"that is a different one."),
			always("ground_truth_concepts", list(ref("ConceptValue")),
				"The label for the concept in question, or the value that follows from other labels; then the other labels, present ones "+
					"first."))), ""),
		maybe("sightline", ref("MetricsExtension"), "Fields that the interface does not define. Present only if `show` has `sightline`."))},
	{"MetricsExtension", closedRecord("Further figures of the same evaluation.",
		always("folds", whole(),
			"Number of parts that the labelled inputs are divided into. Each part is evaluated by a model trained on the others."),
		always("inputs", whole(), "Number of labelled inputs that all metrics are computed from."),
		always("other_inputs", whole(), "Number of those that have labels for concepts of other models only."),
		maybe("promised_precision", share,
			"Precision that a cut-off promises for new pictures. Omitted for versions trained by older releases, whose cut-offs have the highest F1."),
		always("min_checked_pictures", whole(),
			"Number of inputs labelled with a concept from which `test_set` lists labels of it. With fewer, a model disagrees with correct labels "+
				"too often."),
		always("concepts", list(closedRecord("In the order of `binary_metrics`.",
			always("id", text(), "ID of the concept."),
			maybe("cut_off", share,
				"Lowest value that supports the promised precision. If none does: the value that supports the highest precision. Omitted if the "+
					"concept was not evaluated, and for versions trained by older releases."),
			maybe("precision", share, "Share of the inputs predicted as present that show the concept. Omitted like `cut_off`."),
			maybe("recall", share, "Share of the inputs showing the concept that are predicted as present. Omitted like `cut_off`."),
			maybe("supported_precision", share,
				"Precision at the cut-off that cross-validation supports with a confidence of 90 %, if at most one in ten pictures shows the concept. "+
					"Below `promised_precision` the cut-off does not keep its promise; more labelled inputs help."),
			maybe("against_background", boolean,
				"No input is labelled as not showing the concept, so its negatives are pictures of the server, which `inputs` does not count."))), ""),
		always("confusion_counts", list(whole()), "Number of inputs of each entry of `confusion_matrix`, in its order."),
		maybe("since", closedRecord("How the training set differs from that of the version trained before it. Omitted for the first version.",
			always("version_id", text(), "ID of the version trained before."),
			always("new_inputs", whole(), "Number of inputs that are not in the training set of the version before."),
			always("corrected_inputs", whole(),
				"Number of inputs in both training sets for which a label was changed or removed; only concepts of both versions count. "+
					"Additional labels do not count.")), ""))},
}

var curve = list(share, member{"maxItems", train.MaxCurve})

const hyper = "A JSON object as text. `precision`, from 0.5 to 0.99, is the precision that the cut-offs of new versions promise; by default 0.9. " +
	"Other members are stored but not used."

const structure = "The same as hyper_parameters, as an object. Each of the two forms replaces the other, and an answer has the form that was sent."

var others = []member{
	{"WorkflowNode", closedRecord("One model of a workflow.",
		always("id", id, ""),
		always("model", closedRecord("",
			always("id", id, ""),
			maybe("model_version", closedRecord("", always("id", text(), "")), "Present if the version is fixed.")), ""))},
	{"Workflow", closedRecord("Models that run on the same pictures.", append(workflowFields, always("nodes", list(ref("WorkflowNode")), ""))...)},
	{"WorkflowSummary", closedRecord("A workflow without its models.", workflowFields...)},
	{"WorkflowResult", closedRecord("Predictions of the models for one input.",
		always("status", ref("Status"), ""),
		always("input", ref("PredictedInput"), ""),
		always("outputs", list(ref("Output")), "In the order of the workflow's models."))},
}

var workflowFields = []field{
	always("id", id, ""), always("app_id", appID, public), always("created_at", when, ""),
}

// answers holds the schemas of complete answers: of successful calls, and of calls that return a status for each item.
var answers = []member{
	{"Done", answer("The call succeeded. The response has no other content.")},
	{"OutputsAnswer", answer("", always("outputs", list(ref("Output")), "One for each input, in the order of the request."))},
	{"StoredOutputsAnswer", answer("", always("outputs", list(ref("Output"), member{"maxItems", 1}),
		"Empty until the input has been analysed."))},
	{"InputAnswer", answer("", always("input", ref("Input"), ""))},
	{"InputsAnswer", answer("", always("inputs", list(ref("Input")), ""))},
	{"InputItemsAnswer", answer("", always("inputs", list(ref("InputItem")), "In the order of the request."))},
	{"CountsAnswer", answer("", always("counts", ref("Counts"), ""))},
	{"SourceAnswer", answer("", always("source", ref("Source"), ""))},
	{"ModelAnswer", answer("", always("model", ref("Model"), ""))},
	{"TrainingAnswer", answer("", always("model", ref("ModelInTraining"), ""))},
	{"CreatedModelAnswer", anyOf(ref("ModelAnswer"), ref("Done")).with(member{
		"description",
		"The model. If models were deleted, only the status.",
	})},
	{"ModelConceptsAnswer", answer("", always("model", ref("ModelConcepts"), ""))},
	{"ModelsAnswer", answer("", always("models", list(ref("Model")), ""))},
	{"ModelVersionAnswer", answer("", always("model_version", ref("ModelVersion"), ""))},
	{"ModelVersionsAnswer", answer("", always("model_versions", list(ref("ModelVersion")), "Newest first."))},
	{"MetricsAnswer", answer("", always("model_version", ref("EvaluatedVersion"), ""))},
	{"ConceptAnswer", answer("", always("concept", ref("Concept"), ""))},
	{"ConceptsAnswer", answer("", always("concepts", list(ref("Concept")), ""))},
	{"HitsAnswer", answer("", always("id", hex32, "ID of the search, for feedback."), always("hits", list(ref("Hit")), "Best first."))},
	{"WorkflowAnswer", answer("", always("workflow", ref("Workflow"), ""))},
	{"WorkflowsAnswer", answer("", always("workflows", list(ref("Workflow")), ""))},
	{"ResultsAnswer", answer("",
		always("workflow", ref("WorkflowSummary"), ""), always("results", list(ref("WorkflowResult")),
			"One for each input, in the order of the request."))},
}

// accounts holds the schemas of answers about tokens, sessions, applications and keys.
var accounts = []member{
	{"App", closedRecord("An application.",
		always("id", hex32, ""),
		always("name", text(), ""),
		always("default_language", language, "Cannot be changed."),
		maybe("user_id", text(), "ID of the owner's account. Omitted if the operator created the application."),
		always("created_at", when, ""),
		maybe("local_only", boolean, "Sync does not send the application to edges, pages or other replicas. Omitted if false."))},
	{"Key", closedRecord("An API key.",
		always("id", text(),
			"In the response that creates the key: the key itself, 32 hexadecimal digits. In lists: the first 16 digits of its hash."),
		maybe("description", text(), ""),
		always("scopes", list(ref("Scope")), ""),
		always("apps", list(closedRecord("", always("id", hex32, ""), always("user_id", text(), "")), size(1, 1)...),
			"The one application that the key belongs to."),
		always("created_at", when, ""))},
	{"Scope", text(oneOf(auth.ScopeNames()...), member{
		"description",
		"Descriptions write `Inputs_Get` as Inputs:Get. `All` includes all scopes.",
	})},
	{"TokenAnswer", answer("",
		always("access_token", text(member{"minLength", 10}), ""),
		always("expires_in", object{{"type", "integer"}, {"minimum", 1}}, "Lifetime of the token in seconds."),
		always("scope", text(), "The same for every token."))},
	{"LoginAnswer", answer("",
		always("session_token", text(), "Send it in the header X-Clarifai-Session-Token."),
		always("v2_user_id", text(), "ID of the account, for paths. `me` means the same."))},
	{"AppAnswer", answer("", always("app", ref("App"), ""))},
	{"AppsAnswer", answer("", always("apps", list(ref("App")), ""))},
	{"KeysAnswer", answer("", always("keys", list(ref("Key")), ""))},
	{"ScopesAnswer", answer("", always("scopes", list(ref("Scope")), ""), always("app", ref("App"),
		"The application that the credential belongs to."))},
}
