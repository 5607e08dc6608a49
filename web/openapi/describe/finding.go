package describe

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/search"
)

// finding are the schemas of what a search comes to as a whole.
var finding = []member{
	{"SummaryAsked", record("What to tell of all the matches; what is not named is not told.",
		maybe("scores", record("How the scores lie.",
			maybe("bins", object{{"type", "integer"}, {"minimum", 1}, {"maximum", search.MaxBins}}, "Absent: 60.")), ""),
		maybe("days", record("How many inputs are of which day.",
			maybe("utc_offset", object{{"type", "integer"}, {"minimum", -1440}, {"maximum", 1440}}, "Minutes east of Greenwich; absent: 0.")), ""),
		maybe("places", record("Where the inputs are, those close together as one.",
			maybe("zoom", object{{"type", "integer"}, {"minimum", 0}, {"maximum", search.MaxZoom}}, "As of web maps: the world is 256·2^zoom pixels wide. Absent: 0."),
			maybe("box", list(number(), size(4, 4)...), "South, west, north, east: places outside are left out. West may be the greater: then it goes over 180°.")), ""))},
	{"SummaryRequest", record("",
		maybe("query", ref("Query"), ""),
		maybe("summary", ref("SummaryAsked"), "Absent: the number of matches alone."))},
	{"CutOff", closed("A score from which hits are likely what was looked for.",
		always("value", share, ""),
		always("source", text(oneOf(string(search.FromBackground), string(search.FromLabels), string(search.FromEvaluation), string(search.FromRule))),
			"`labels`: how alike pictures with and without a common concept of the application's own are; `background`: how alike unrelated pictures are; "+
				"`evaluation`: how well the newest version tells the concept; `rule`: 0.3, from which a concept counts as predicted."),
		always("examples", whole(), "Pictures, or judgements, that it was learned from; 0 of a rule."))},
	{"Scores", closed("How many matches have which score.",
		always("from", number(), "Where the first bin begins."), always("to", number(), "Where the last bin ends."),
		always("counts", list(whole(), member{"maxItems", search.MaxBins}), "Of bins of equal width."),
		maybe("cut_off", ref("CutOff"), "Of several clauses their product; absent with a negated one, and where there is nothing to learn from."))},
	{"Summary", closed("What all the matches of a search come to.",
		always("matching", whole(), "How many match every clause. A clause by likeness matches every analysed input."),
		maybe("scores", ref("Scores"), "Absent where the search only filters."),
		maybe("days", list(closed("", always("day", text(member{"format", "date"}), ""), always("count", object{{"type", "integer"}, {"minimum", 1}}, ""))), "Newest first."),
		maybe("places", list(closed("An input, or several close together.",
			always("latitude", degrees(90), "Of several, of their middle."), always("longitude", degrees(180), ""),
			always("count", object{{"type", "integer"}, {"minimum", 1}}, ""), maybe("input_id", id, "Where there is one."))),
			fmt.Sprintf("The largest first, %d at most: where more are apart at this zoom, those of a lower one.", search.MaxPlaces)))},
	{"Tier", text(oneOf(search.Tiers[:]...), member{"description", "`same_file`: equal bytes and crop. `re_encoded`: one picture saved again. `similar`: alike."})},
	{"Duplicate", closed("An input that may be another's picture.",
		always("input", ref("Input"), ""), always("score", share, "Likeness; 1 of the same file."), always("tier", ref("Tier"), ""))},
	{"DuplicateGroup", closed("Inputs that may be one picture.",
		always("tier", ref("Tier"), ""),
		always("count", object{{"type", "integer"}, {"minimum", 2}}, "How many they are."),
		always("inputs", list(closed("", always("input", ref("Input"), ""), always("score", share, "Likeness to the first.")), member{"maxItems", search.MaxMembers}),
			fmt.Sprintf("In the order of creation, the first %d of them.", search.MaxMembers)))},
	{"DuplicatesAnswer", answer("", always("duplicates", list(ref("Duplicate")), "The closest first."))},
	{"DuplicateGroupsAnswer", answer("",
		always("total", whole(), "Groups that are known."),
		always("examined", whole(), "Inputs whose neighbours have been looked for; 0 where only the same files were asked for."),
		always("of", whole(), "Inputs whose neighbours are to be looked for."),
		always("groups", list(ref("DuplicateGroup")), "The closest tier first."))},
	{"SummaryAnswer", answer("", always("summary", ref("Summary"), ""))},
}
