package describe

import "github.com/sightline-dev/sightline/core/training"

// judged is the schema of a list of concepts, each with the value that a model version predicts for one input.
var judged = list(ref("JudgedConcept"))

// learning holds the schemas of answers about training sets, inputs to label next, differences between versions, the use of concepts, and
// the history of an input.
var learning = []member{
	{"JudgedConcept", closedRecord("", always("id", id, ""), always("name", text(), ""), always("value", share, ""))},
	{"TrainingSet", closedRecord("The current training set.",
		always("inputs", whole(), "Number of inputs with a label for one of the concepts, analysed or pending."),
		always("new_inputs", whole(),
			"Number of those that the latest trained version was not trained on, or was trained on with other labels."),
		maybe("version_id", text(), "ID of that version. Omitted if there is none."),
		maybe("concepts", list(closedRecord("",
			always("id", id, ""), always("name", text(), ""),
			always("positives", whole(), "Number of inputs labelled as present."), always("negatives", whole(), "Number of inputs labelled as absent."))), "In the model's order."),
		maybe("advice", closedRecord("The most useful improvement; omitted if there is none.",
			always("code", text(oneOf(adviceCodes...)),
				"`no_concepts`: the model has no concepts. `no_positives`: no input is labelled as present for a concept. "+
					"`one_class`: there are no examples of anything other than the concept. `few_examples`: fewer than ten inputs show a "+
					"concept. `unbalanced`: fewer than half as many inputs show a concept as usual in the model."),
			maybe("concept_id", id, ""),
			maybe("missing", whole(), "Number of further inputs showing the concept that would be enough.")), ""))},
	{"NextInput", closedRecord("An input without a label for any concept of the model.",
		always("id", id, ""),
		always("data", ref("InputData"), ""),
		always("created_at", when, ""),
		always("status", ref("Status"), ""),
		always("useful", closedRecord("",
			always("score", share, "Estimated value of labelling this input, 0 to 1: the part of the unlabelled inputs that it represents."),
			always("why", text(oneOf("uncertain", "different", "new")),
				"`uncertain`: the latest trained version is unsure about it. `different`: it differs from the labelled inputs and from "+
					"those before it. `new`: like `different`, and it was added after the training of the version was requested.")), ""),
		maybe("predicted", judged, "Predictions of the latest trained version, highest value first. Empty if there is none."))},
	{"VersionChange", closedRecord("An input for which two versions predict different concepts.",
		always("input", ref("Input"), ""),
		maybe("before", judged, "The concepts that changed, with the values of the version compared with."),
		maybe("after", judged, "The same concepts, with the values of the version in the path. Concepts that it lacks are omitted."))},
	{"UsedConcept", closedRecord("A concept and how it is used.",
		always("id", id, ""), always("name", text(), "In the requested language. Custom concepts have one name for all languages."),
		maybe("app_id", hex32, "Only of custom concepts."),
		always("present", whole(), "Number of inputs labelled as present."),
		always("absent", whole(), "Number of inputs labelled as absent."),
		always("predicted", whole(),
			"Number of inputs predicted to show it, by the general model or by the latest trained version that has it."),
		maybe("models", list(id), "IDs of the custom models that have it."))},
	{"PastOperation", closedRecord("An operation that created, changed or deleted an input.", operationFields(
		maybe("seq", whole(), seqNote+" Omitted if it is no longer known."),
		always("state", text(oneOf("queued", "sent", "confirmed")),
			"`queued`: not yet known to be at the origin. `sent`: acknowledged by the origin. `confirmed`: in the origin's log."),
		maybe("position", whole(), "Its entry in the log. Omitted if it has none yet and, at a replica, if the entry is unknown."),
		maybe("verdict", text(oneOf("superseded", "duplicate", "gone", "stale", "refused")),
			"Present if the operation was not applied as intended. "+verdicts),
		maybe("remembered", boolean,
			"The operation itself is no longer stored. It is reconstructed from the input, as far as it still has an effect."))...)},

	{"TrainingSetAnswer", answer("", always("training_set", ref("TrainingSet"), ""))},
	{"NextAnswer", answer("",
		always("total", whole(), "Number of all such inputs that are analysed."),
		always("inputs", list(ref("NextInput")), "Most useful first."))},
	{"ComparisonAnswer", answer("",
		always("comparison", closedRecord("",
			always("inputs", whole(), "Number of analysed inputs; all of them were compared."),
			always("changed", whole(), "Number of inputs for which the versions predict different concepts."),
			always("roc_auc", list(object{{"type", []string{"number", "null"}}}, size(2, 2)...),
				"Mean ROC AUC of the version in the path, then of the other version. null: not evaluated.")), ""),
		always("changes", list(ref("VersionChange")), "Largest changes of values first."))},
	{"UsageAnswer", answer("",
		always("total", whole(), "Number of rows on all pages."),
		always("concepts", list(ref("UsedConcept")),
			"Custom concepts, then those of the general model. Each group is sorted by the number of labelled inputs, then by the number "+
				"of predicted inputs."))},
	{"HistoryAnswer", answer("",
		always("total", whole(), "Number of rows on all pages."),
		always("complete", boolean,
			"Whether the list has all operations. It is false if the log was trimmed, for a deleted input, and at a replica: a replica stores "+
				"only its own operations, until they are known to be in the origin's log. The other operations are then reconstructed from the "+
				"input, with `remembered`."),
		always("operations", list(ref("PastOperation")), "Newest first."))},
}

var adviceCodes = []string{
	string(training.NoConcepts), string(training.NoPositives), string(training.OneClass), string(training.FewExamples), string(training.Unbalanced),
}
