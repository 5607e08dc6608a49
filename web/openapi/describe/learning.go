package describe

import "github.com/sightline-dev/sightline/core/training"

// judged is a concept with what a version says of an input.
var judged = list(ref("JudgedConcept"))

// inputFields are the members of an input.
func inputFields(more ...field) []field {
	return append([]field{
		always("id", id, ""),
		always("data", ref("InputData"), ""),
		always("created_at", when, ""),
		always("status", ref("Status"), ""),
	}, more...)
}

// seqUnsure are the fields of an operation whose sequence number may not be known any more.
func seqUnsure(fields []field) []field {
	for i := range fields {
		if fields[i].name == "seq" {
			fields[i] = maybe("seq", whole(), "Its place among the operations of the site, from 1; absent where that is not known any more.")
		}
	}
	return fields
}

// learning are the schemas of what helps people to teach a model and to see what it has learned.
var learning = []member{
	{"JudgedConcept", closed("", always("id", id, ""), always("name", text(), ""), always("value", share, ""))},
	{"TrainingSet", closed("What a training would learn from now.",
		always("inputs", whole(), "With a label for one of the concepts, their pictures analysed or on their way."),
		always("new_inputs", whole(), "Of them, those that the newest trained version has not learned from, or with other labels."),
		maybe("version_id", text(), "That version; absent where there is none."),
		maybe("concepts", list(closed("",
			always("id", id, ""), always("name", text(), ""),
			always("positives", whole(), "Inputs that are said to show it."), always("negatives", whole(), "Inputs that are said not to."))), "In the model's order."),
		maybe("advice", closed("The one thing that would help most; absent where nothing is amiss.",
			always("code", text(oneOf(adviceCodes...)), "`no_concepts`: the model has none. `no_positives`: no input is said to show a concept. "+
				"`one_class`: there is nothing to tell a concept from. `few_examples`: fewer than ten inputs show a concept. `unbalanced`: fewer than half of what is usual in the model."),
			maybe("concept_id", id, ""),
			maybe("missing", whole(), "How many more inputs that show it would do.")), ""))},
	{"NextInput", closed("An input of which nobody has said whether it shows a concept of the model.", inputFields(
		always("useful", closed("",
			always("score", share, "How much a label would teach, as far as can be told."),
			always("why", text(oneOf("uncertain", "different", "new")), "`uncertain`: the version is not sure of it. `different`: it is unlike what is labelled, and unlike those before it. `new`: that, and it came after the version was trained.")), ""),
		maybe("predicted", judged, "By the newest trained version, highest first; empty without one."))...)},
	{"VersionChange", closed("An input of which two versions say different things.",
		always("input", ref("Input"), ""),
		maybe("before", judged, "By the version that is compared with: the concepts that came or went."),
		maybe("after", judged, "By the version that the path names: the same concepts, as far as it has them."))},
	{"UsedConcept", closed("A concept and what it is used for.",
		always("id", id, ""), always("name", text(), "In the language asked for; own ones have one name."),
		maybe("app_id", hex32, "Of an own concept."),
		always("present", whole(), "Inputs that users said to show it."),
		always("absent", whole(), "Inputs that users said not to show it."),
		always("predicted", whole(), "Inputs that are predicted to show it: by the general model, or the newest trained version that has it."),
		maybe("models", list(id), "Ids of the application's own models that have it."))},
	{"PastOperation", closed("An operation that made or changed an input.", seqUnsure(operationFields(
		always("state", text(oneOf("queued", "sent", "confirmed")), "How far it is known to have come."),
		maybe("position", whole(), "Its entry in the log; absent where it has none yet, and at a copy where it is not known."),
		maybe("verdict", text(oneOf("superseded", "duplicate", "gone", "stale", "refused")), "What became of it, where it was not taken as it was meant."),
		maybe("remembered", boolean, "It is not there any more: the input alone remembers it, and of it what is still in force.")))...)},

	{"TrainingSetAnswer", answer("", always("training_set", ref("TrainingSet"), ""))},
	{"NextAnswer", answer("",
		always("total", whole(), "All such inputs that are analysed."),
		always("inputs", list(ref("NextInput")), "Most useful first."))},
	{"ComparisonAnswer", answer("",
		always("comparison", closed("",
			always("inputs", whole(), "Analysed inputs: all were compared."),
			always("changed", whole(), "Of them, those of which the versions say different things."),
			always("roc_auc", list(object{{"type", []string{"number", "null"}}}, size(2, 2)...), "Of the version that the path names, then of the other; null: it was not evaluated.")), ""),
		always("changes", list(ref("VersionChange")), "Those first whose values moved most."))},
	{"UsageAnswer", answer("",
		always("total", whole(), "Of all pages."),
		always("concepts", list(ref("UsedConcept")), "Own ones, then those of the general model; by how many inputs users said something of, by how many they are predicted of."))},
	{"HistoryAnswer", answer("",
		always("total", whole(), "Of all pages."),
		always("complete", boolean, "Whether these are all: not where the log was trimmed, and not at a copy, which keeps its own operations alone, and those until its origin's log is known to keep them. Then what the input remembers of the others is listed, too."),
		always("operations", list(ref("PastOperation")), "Newest first."))},
}

var adviceCodes = []string{
	string(training.NoConcepts), string(training.NoPositives), string(training.OneClass), string(training.FewExamples), string(training.Unbalanced),
}
