package describe

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/search"
)

// finding holds the schemas of summaries of a search, suggested cut-offs and duplicates.
var finding = []member{
	{"SummaryAsked", record("Which aggregates to return; others are omitted.",
		maybe("scores", record("Distribution of scores.",
			maybe("bins", object{{"type", "integer"}, {"minimum", 1}, {"maximum", search.MaxBins}}, "Number of bins. Default: 60.")), ""),
		maybe("days", record("Inputs per day.",
			maybe("utc_offset", object{{"type", "integer"}, {"minimum", -1440}, {"maximum", 1440}},
				"Time zone, in minutes east of UTC. Default: 0.")), ""),
		maybe("places", record("Input locations, clustered.",
			maybe("zoom", object{{"type", "integer"}, {"minimum", 0}, {"maximum", search.MaxZoom}},
				"Zoom level as in web maps: the world is 256·2^zoom pixels wide. Default: 0."),
			maybe("box", list(number(), size(4, 4)...),
				"South, west, north, east, in degrees. Locations outside are omitted. If west is greater than east, the box crosses the "+
					"180° meridian.")), ""))},
	{"SummaryRequest", record("",
		maybe("query", ref("Query"), ""),
		maybe("summary", ref("SummaryAsked"), "Omitted: only the number of matches."))},
	{"CutOff", closedRecord("Suggested minimum score of relevant results.",
		always("value", share, ""),
		always("source", text(oneOf(string(search.FromBackground), string(search.FromPairs), string(search.FromLabels), string(search.FromEvaluation), string(search.FromRule))),
			"Source of the value. `labels`: the similarity of pictures with and without a common custom concept. "+
				"`pairs`: pairs of labelled pictures, measured with the network. "+
				"`background`: the similarity of unrelated pictures. `evaluation`: the evaluation of the latest version that predicts the "+
				"concept. `rule`: 0.3, the value from which a concept counts as predicted."),
		always("examples", whole(), "Number of pictures, or of labels, that it is derived from; 0 for a rule."))},
	{"Scores", closedRecord("Number of matches by score.",
		always("from", number(), "Lower bound of the first bin."), always("to", number(), "Upper bound of the last bin."),
		always("counts", list(whole(), member{"maxItems", search.MaxBins}), "Number of matches in each bin. All bins have the same width."),
		maybe("cut_off", ref("CutOff"),
			"With several clauses, the product of their cut-offs. Omitted if a clause is negated, or if there is no data to derive it from."))},
	{"Summary", closedRecord("Aggregates over all matches of a search.",
		always("matching", whole(), "Number of inputs that match all clauses and reach `min_score`. A similarity clause matches every analysed input."),
		maybe("scores", ref("Scores"), "Omitted if the search only filters."),
		maybe("days", list(closedRecord("", always("day", text(member{"format", "date"}), ""), always("count", object{{"type", "integer"}, {"minimum", 1}}, ""))), "Newest first."),
		maybe("places", list(closedRecord("An input, or a cluster of inputs close together.",
			always("latitude", degrees(90), "For a cluster, the centre of its inputs."), always("longitude", degrees(180), ""),
			always("count", object{{"type", "integer"}, {"minimum", 1}}, ""), maybe("input_id", id, "Present if there is only one input."))),
			fmt.Sprintf("Largest first, at most %d. If there are more, those of a lower zoom level are returned.", search.MaxPlaces)))},
	{"Tier", text(oneOf(search.Tiers[:]...), member{
		"description",
		"`same_file`: equal bytes and crop. `re_encoded`: one picture saved again. `similar`: likely the same scene.",
	})},
	{"Duplicate", closedRecord("An input that may have the same picture as another.",
		always("input", ref("Input"), ""), always("score", share, "Similarity; 1 for the same file."), always("tier", ref("Tier"), ""))},
	{"DuplicateGroup", closedRecord("Inputs that may have the same picture.",
		always("tier", ref("Tier"), ""),
		always("count", object{{"type", "integer"}, {"minimum", 2}}, "Number of inputs in the group."),
		always("inputs", list(closedRecord("", always("input", ref("Input"), ""), always("score", share, "Similarity to the first input.")), member{"maxItems", search.MaxMembers}),
			fmt.Sprintf("The first %d inputs of the group, in order of creation.", search.MaxMembers)))},
	{"DuplicatesAnswer", answer("", always("duplicates", list(ref("Duplicate")), "Closest first."))},
	{"DuplicateGroupsAnswer", answer("",
		always("total", whole(), "Number of groups found so far."),
		always("examined", whole(), "Number of inputs whose neighbours have been searched; 0 if only `same_file` is requested."),
		always("of", whole(), "Number of inputs whose neighbours must be searched."),
		always("groups", list(ref("DuplicateGroup")), "Closest tier first."))},
	{"SummaryAnswer", answer("", always("summary", ref("Summary"), ""))},
}
