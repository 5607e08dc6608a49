package describe

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/search"
)

// action returns the field that selects what a PATCH does with the values. note describes it.
func action(note string, values ...string) field {
	return maybe("action", text(oneOf(values...)), note)
}

const (
	threeActions = "`merge` (default) adds to existing values and changes them; `remove` removes the listed values; `overwrite` replaces " +
		"all existing values with the listed ones."
	twoActions   = "`merge` (default) sets values; `remove` removes the concepts."
	firstActions = "`merge_concepts` or `merge` (default), `delete_concepts` or `remove`, or `overwrite`."
)

func items(name string, least, maxItems int, note string) object {
	return withNote(list(ref(name), size(least, maxItems)...), note)
}

var pagination = maybe("pagination", ref("Pagination"), "Takes precedence over `page` and `per_page` in the query.")

var atMostVideos = fmt.Sprintf("At most %d of them videos, which have at most %d frames in equal parts.", call.MaxVideos, call.MaxFrames)

// extras is the member of requests that asks for members that the interface does not define.
var extras = maybe("show", list(text(oneOf(call.ShowWords...))), "Members that the answer has in addition: *Members on request*.")

var requests = []member{
	{"Pagination", record("",
		maybe("page", whole(), "Page number, starting at 1. Omitted or 0: the first page."),
		maybe("per_page", whole(), "Omitted or 0: 20. Values above 1000 count as 1000."))},
	{"EvaluateRequest", record("", extras)},
	{"ConceptRef", record("A concept by ID or, without an ID, by name.", maybe("id", text(), ""), maybe("name", text(), ""))},
	{"Label", record("A concept that a picture shows or does not show.",
		maybe("id", id, "A custom concept is created when it is first used. Public concept IDs start with `ai_`; they must exist."),
		maybe("name", id, "Used if id is absent."),
		maybe("value", truth(), "true (default): the picture shows the concept; false: it does not."))},
	{"PictureSource", record("Exactly one of url and base64.",
		maybe("url", text(member{"maxLength", call.MaxURLBytes}, eg("https://pictures.example/dragonfly.jpg")),
			"A public http or https URL. It must respond in time with a picture of at most 20 MB, or 64 MB of camera raw."),
		maybe("base64", text(),
			"The bytes of a picture of at most 20 MB: JPEG, PNG, TIFF, BMP, WebP, GIF, HEIC, AVIF or JPEG XL; or of a camera raw of at most 64 MB. A command line can hold about 195 KB of "+
				"base64; send larger pictures from a file."),
		maybe("crop", cropAsked,
			"The edges top, left, bottom, right, as fractions of the picture from its top left corner. Only the part inside is used. "+
				"Empty: the whole picture."))},
	{"VideoSource", record("Exactly one of url and base64. Videos have no crop.",
		maybe("url", text(member{"maxLength", call.MaxURLBytes}, eg("https://pictures.example/pond.mp4")),
			"A public http or https URL. It must respond in time with a video of at most 80 MB, unless the operator changed that."),
		maybe("base64", text(), fmt.Sprintf(
			"The bytes of a video of at most %d MB: MP4, MOV, 3GP, WebM, MKV, AVI, WMV, GIF or WebP. A still picture is a video of one frame.",
			call.MaxVideoBytes/1_000_000)))},
	{"PredictInput", record("",
		maybe("id", id, "Returned with the output."),
		always("data", record("Exactly one of image and video.", maybe("image", ref("PictureSource"), ""), maybe("video", ref("VideoSource"), "")), ""))},
	{"OutputConfigAsked", record("Settings for the outputs. For omitted fields, the settings of a custom model apply.",
		maybe("language", language,
			"Language of the names. Default: the application's. Only the general model supports languages other than English."),
		maybe("max_concepts", object{{"type", "integer"}, {"minimum", 0}, {"maximum", call.MaxConcepts}},
			"Maximum number of concepts. Omitted or 0: 20, or all of select_concepts."),
		maybe("min_value", share, "Concepts with a lower value are omitted."),
		maybe("select_concepts", list(ref("ConceptRef"), member{"maxItems", call.MaxSelected}),
			"Return only these concepts. Low values are included unless min_value is set."),
		maybe("sample_ms", object{{"type", "integer"}}, fmt.Sprintf(
			"Only for videos: milliseconds from one frame to the next, %d to %d. Default: %d. max_concepts, min_value and select_concepts "+
				"apply to each frame.", call.MinSampleMS, call.MaxSampleMS, call.DefaultSampleMS)))},
	{"PredictRequest", record("",
		always("inputs", items("PredictInput", 1, call.MaxInputs, atMostVideos), ""),
		maybe("model", record("", maybe("output_info", record("", maybe("output_config", ref("OutputConfigAsked"), "")), "")), ""))},

	{"GeoAsked", record("A location in degrees (SRID 4326), in `geo_point` or directly in `longitude` and `latitude`.",
		maybe("geo_point", record("", always("longitude", degrees(180), ""), always("latitude", degrees(90), "")), ""),
		maybe("longitude", degrees(180), ""), maybe("latitude", degrees(90), ""))},
	{"NewInput", record("",
		maybe("id", id, "Your ID for the input. Omitted: 32 hexadecimal digits are generated."),
		always("data", record("",
			always("image", object{{"allOf", []object{ref("PictureSource"), record("",
				maybe("allow_duplicate_url", truth(), "Add the input even if the application already has one with this URL."),
				maybe("read_exif", truth(), "An extension: the input gets the place that the EXIF or XMP of the picture's file has, unless the request has a geo. "+
					"For a URL it gets the place once the picture has been downloaded."),
				maybe("downloaded", truth(), "base64 is the picture at url, so the server does not download it again. For imports."))}}}, ""),
			maybe("concepts", items("Label", 0, call.MaxLabels, ""), ""),
			maybe("metadata", anything, "Any JSON of up to 64 KiB, 32 levels and 2000 fields and list elements. Searches can use it."),
			maybe("geo", ref("GeoAsked"), "")), ""))},
	{"AddInputs", record("", always("inputs", items("NewInput", 1, call.MaxInputs, ""), ""), extras)},
	{"PatchInputs", record("",
		always("inputs", list(record("",
			always("id", id, ""),
			maybe("data", record("",
				maybe("concepts", items("Label", 0, call.MaxLabels, ""), ""),
				maybe("metadata", anything, ""),
				maybe("geo", ref("GeoAsked"), "")), "")), size(1, call.MaxInputs)...), ""),
		action(threeActions, "merge", "remove", "overwrite"), extras)},
	{"PatchConcepts", record("", maybe("concepts", items("Label", 0, call.MaxLabels, ""), ""),
		action(firstActions, "merge_concepts", "delete_concepts", "merge", "remove", "overwrite"))},
	{"DeleteInputs", record("Either ids or delete_all.",
		maybe("ids", list(text()), "Unknown IDs are ignored."),
		maybe("delete_all", truth(), "Delete all inputs of the application."))},
	{"PatchOutputs", record("",
		always("outputs", list(record("", maybe("data", record("", maybe("concepts", list(record("",
			maybe("id", id, ""), maybe("name", id, "Used if id is absent."),
			maybe("value", object{{"type", []string{"boolean", "number"}}, {"minimum", 0}, {"maximum", 1}}, "Default: 1."))), "")), "")),
			member{"minItems", 1}), ""),
		action(twoActions, "merge", "remove"))},

	{"Settings", record("Stored with the model.",
		maybe("concepts_mutually_exclusive", truth(), "true: each picture shows only one of the concepts. Default: false."),
		maybe("closed_environment", truth(), "true: training does not use pictures of other things as negative examples. Default: false."),
		maybe("max_concepts", object{{"type", "integer"}, {"minimum", 0}, {"maximum", call.MaxConcepts}},
			"Maximum number of concepts in an output. Omitted or 0: 20."),
		maybe("min_value", share, "Minimum value of a concept in an output. Default: 0."),
		maybe("language", text(oneOf(append([]string{""}, languages...)...)), "Stored but not used; each call sets its language."),
		maybe("select_concepts", list(ref("ConceptRef"), member{"maxItems", call.MaxSelected}), ""),
		maybe("hyper_parameters", text(), hyper),
		maybe("hyper_params", object{{"type", "object"}}, structure),
		maybe("sample_ms", whole(), "Milliseconds from one frame of a video to the next."),
		maybe("existing_model_id", text(), "Stored but not used."),
		maybe("training_timeout", whole(), "Stored but not used."))},
	{"OutputInfoAsked", record("",
		maybe("data", record("", maybe("concepts", list(record("", always("id", id, "A custom concept is created when it is first used.")),
			member{"maxItems", call.MaxModelConcepts}), "")), ""),
		maybe("output_config", ref("Settings"), ""))},
	{"NewModel", record("",
		maybe("id", id, "Omitted: 32 hexadecimal digits are generated."),
		maybe("name", name, "Default: the ID."),
		maybe("output_info", ref("OutputInfoAsked"), ""))},
	{"CreateModel", record("The model, in `model` or as the only element of `models`.",
		maybe("model", ref("NewModel"), ""),
		maybe("models", items("NewModel", 1, 1, ""), ""),
		maybe("ids", list(id, size(1, call.MaxIDs)...),
			"Without model and models: deletes the models with these IDs, like DELETE /models."))},
	{"PatchModels", record("",
		always("models", list(record("", always("id", id, ""), maybe("name", name, ""), maybe("output_info", ref("OutputInfoAsked"), "")),
			size(1, call.MaxInputs)...), ""),
		action(threeActions+
			" The action applies to concepts. Names and settings are overwritten; `remove` resets the listed settings to their "+
			"defaults.", "merge", "remove", "overwrite"))},
	{"PatchModelConcepts", record("", always("concepts", list(record("", always("id", id, ""))), ""),
		action(firstActions, "merge_concepts", "delete_concepts", "merge", "remove", "overwrite"))},
	{"DeleteModels", record("An empty body deletes all models.",
		maybe("ids", list(id, size(1, call.MaxIDs)...), "Unknown IDs are ignored."),
		maybe("delete_all", truth(), "Delete all custom models of the application."))},
	{"ModelSearch", record("",
		maybe("model_query", record("",
			maybe("name", text(), "The exact name, or its start followed by `*`."),
			maybe("type", text(eg("concept")), "A type or type_ext of models. Omitted or `*`: any.")), "Omitted: all models."),
		pagination)},
	{"Feedback", record("Stored as sent, up to 64 KiB.", always("input", record("",
		maybe("id", text(), ""), maybe("data", object{{"type", "object"}}, "The correct result."),
		maybe("feedback_info", ref("FeedbackInfo"), "")), ""))},
	{"SearchFeedback", record("Stored as sent, up to 64 KiB.", always("input", record("",
		maybe("id", id, "ID of the input that the search returned."), always("feedback_info", ref("FeedbackInfo"), "")), ""))},
	{"FeedbackInfo", record("",
		maybe("event_type", text(eg("annotation", "search_click")), ""),
		maybe("output_id", text(), ""), maybe("search_id", text(), ""),
		maybe("end_user_id", text(), ""), maybe("session_id", text(), ""))},

	{"NewConcepts", record("", always("concepts", list(record("Requires id or name.",
		maybe("id", id, "Omitted: generated."), maybe("name", name, "Default: the ID."),
		maybe("language", language, "Language of the name. Default: the application's.")), size(1, call.MaxInputs)...), ""))},
	{"RenameConcepts", record("",
		always("concepts", list(record("", always("id", id, ""), always("name", name, ""),
			maybe("language", language, "The language of the name may be repeated. It cannot be changed.")), size(1, call.MaxInputs)...), ""),
		action("", "overwrite"))},
	{"ConceptSearch", record("",
		always("concept_query", record("",
			always("name", text(eg("dog*")), "The name, or its start followed by `*`. Case and accents are ignored."),
			maybe("language", language, "Default: the application's. Custom concepts are found in every language.")), ""),
		pagination)},
	{"Query", record("",
		maybe("ands", items("Clause", 0, search.MaxClauses,
			"An input must match all clauses. Without clauses, every input matches, in order of creation."), ""),
		maybe("language", language, "Language of the concept names in output clauses. Default: the application's."),
		maybe("min_score", share, "Minimum score. Hits with a lower score are omitted, on every page and in the summary. Default: 0."))},
	{"SearchRequest", record("",
		maybe("query", ref("Query"), ""),
		pagination, extras)},

	{"NewWorkflows", record("", always("workflows", list(record("",
		maybe("id", id, "Omitted: generated."),
		always("nodes", list(record("",
			maybe("id", id, "Default: the ID of the model."),
			always("model", record("", always("id", id, ""), maybe("model_version", record("", maybe("id", text(), "")),
				"Omitted: each call uses the latest trained version.")), "")),
			size(1, call.MaxWorkflowModels)...), "")), size(1, call.MaxInputs)...), ""))},
	{"RunWorkflow", record("",
		always("inputs", items("PredictInput", 1, call.MaxWorkflowInputs, atMostVideos), ""),
		maybe("output_config", ref("OutputConfigAsked"), "Applies to every model."))},

	{"Login", record("", always("email", text(), ""), always("password", text(), ""))},
	{"NewApps", record("", always("apps", list(record("",
		always("name", text(), ""),
		maybe("default_language", language, "Default: English. It cannot be changed later.")), size(1, 1)...), ""))},
	{"NewKeys", record("", always("keys", list(record("",
		maybe("description", text(), "A label for people; it does not identify the key."),
		always("scopes", list(text(eg("Inputs_Get")), member{"minItems", 1}),
			"As listed by GET /scopes. A colon is accepted instead of the underscore."),
		always("apps", list(record("", always("id", id, ""), maybe("user_id", text(), "ID of the account, or `me`.")), size(1, 1)...), "")), size(1, 1)...), ""))},
}

// clauses holds the schemas of the clauses of a search.
var clauses = []member{
	{"Clause", record(
		"One or more conditions, all of which must hold. `input` or `output` is required; if they contain no condition, every input matches.",
		maybe("input", ref("InputClause"), "Conditions on the stored data: ID, labels, metadata, URL, location."),
		maybe("output", ref("OutputClause"), "Conditions on the picture: predicted concepts, similarity."),
		maybe("negate", truth(), "true: the clause matches the inputs that it would not match otherwise."))},
	{"ClauseConcept", record("A concept by ID or by name.",
		maybe("id", text(), ""), maybe("name", text(eg("insect")), ""),
		maybe("value", truth(), "true (default): labelled or predicted as present; false: labelled or predicted as absent."))},
	{"InputClause", record("",
		maybe("id", text(), "The input with this ID."),
		maybe("data", record("",
			maybe("concepts", list(ref("ClauseConcept")), "Inputs with these labels."),
			maybe("metadata", anything,
				"Each name with its value must occur in the stored metadata, at any depth. A list must be a subset of the stored list."),
			maybe("image", record("", maybe("url", text(), "Inputs with this URL."), maybe("base64", text(),
				"Inputs whose picture has exactly these bytes.")), ""),
			maybe("geo", ref("GeoClause"), "")), ""))},
	{"GeoClause", record("Inputs within a radius of a point, or within a box. It filters and does not affect the ranking.",
		maybe("geo_point", record("", always("longitude", degrees(180), ""), always("latitude", degrees(90), "")), "The centre."),
		maybe("geo_limit", record("",
			always("type", text(oneOf("withinMiles", "withinKilometers", "withinDegrees", "withinRadians")), ""),
			maybe("value", number(member{"minimum", 0}), "The radius, along a great circle, in the unit of type.")), "Required with a centre."),
		maybe("geo_box", list(ref("GeoAsked"), size(2, 2)...), "Two opposite corners, in any order."),
		maybe("longitude", degrees(180), "The centre, without geo_point."), maybe("latitude", degrees(90), ""))},
	{"OutputClause", record("",
		maybe("data", record("", maybe("concepts", list(ref("ClauseConcept")),
			"Inputs for which these concepts are predicted as present or, with value false, as absent. Ranks by value.")), ""),
		maybe("input", record("Reverse image search with a picture, given by exactly one of id, url and base64. Ranks by similarity.",
			maybe("id", text(), "ID of a stored input."),
			maybe("data", record("", maybe("image", ref("PictureSource"), "")), "")), ""))},
}
