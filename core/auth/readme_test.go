package auth

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// calls has the need of each kind of call in README.md.
var calls = map[string]Need{
	"predict":                                NeedPredict,
	"add pictures":                           NeedInputsAdd,
	"read pictures, their status or history": NeedInputs,
	"change pictures":                        NeedInputsPatch,
	"delete pictures":                        NeedInputsDelete,
	"read predictions of a picture":          NeedPredictions,
	"correct predictions of a picture":       NeedPredictionsPatch,
	"find duplicates":                        NeedDuplicates,
	"search pictures":                        NeedSearch,
	"read or search concepts":                NeedConcepts,
	"read how often concepts are used":       NeedConceptsUsage,
	"create concepts":                        NeedConceptsAdd,
	"rename or delete concepts":              NeedConceptsPatch,
	"read or search models":                  NeedModels,
	"create or train a model":                NeedModelsAdd,
	"change a model":                         NeedModelsPatch,
	"delete models or versions":              NeedModelsDelete,
	"read the pictures of a model":           NeedModelInputs,
	"start an evaluation":                    NeedEvaluate,
	"read an evaluation":                     NeedMetrics,
	"send feedback on predictions":           NeedFeedback,
	"send feedback on a search":              NeedSearchFeedback,
	"read workflows":                         NeedWorkflows,
	"create workflows":                       NeedWorkflowsAdd,
	"delete workflows":                       NeedWorkflowsDelete,
	"run a workflow":                         NeedWorkflowsRun,
	"read or dismiss sync status, pending writes and conflicts": NeedAll,
}

// TestReadme checks the tables of README.md: the first lists all scopes and the scopes that each needs, and the second lists
// exactly the scopes without which a call is refused.
func TestReadme(t *testing.T) {
	if NeedModelsAdd.Refuse != NeedModelsTrain.Refuse || NeedConcepts.Refuse != NeedConceptsSearch.Refuse {
		t.Error("a row of README.md describes two calls with different needs")
	}
	var names []string
	for _, row := range rows(t, "scope") {
		names = append(names, wire(row[0]))
		if got, want := row[2], displayName(strings.Join(SuggestedScopes(wire(row[0])), ", ")); got != want {
			t.Errorf("%s also needs %q in README.md, want %q", row[0], got, want)
		}
	}
	if !slices.Equal(names, ScopeNames()) {
		t.Errorf("README.md has the scopes %q, want %q", names, ScopeNames())
	}
	described := rows(t, "call")
	for _, row := range described {
		need, ok := calls[row[0]]
		if !ok {
			t.Errorf("%q is not in calls", row[0])
		}
		for _, scopeNames := range choices(row[1]) {
			if err := need.Check(SetOf(scopeNames)); err != nil {
				t.Errorf("%s with %q: %v", row[0], scopeNames, err)
			}
			for i := range scopeNames {
				subset := SetOf(slices.Delete(slices.Clone(scopeNames), i, i+1))
				if scopeNames[i] != nameOfAll && need.Check(subset) == nil {
					t.Errorf("%s does not need %s", row[0], scopeNames[i])
				}
			}
		}
		scope, _, _ := strings.Cut(strings.TrimPrefix(row[2], "without "), ": ")
		if s := SetOf([]string{scope}); row[2] != "" && (s == 0 || !need.Redact.Has(s)) {
			t.Errorf("%s leaves nothing out without %s", row[0], scope)
		}
	}
	if len(described) != len(calls) {
		t.Errorf("README.md describes %d calls, want %d", len(described), len(calls))
	}
}

// rows returns the cells of a table in README.md, row by row. title is the title of its first column.
func rows(t *testing.T, title string) (cells [][]string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n| "+title+" |")
	if !ok {
		t.Fatalf("README.md has no table of %ss", title)
	}
	for i, line := range strings.Split(table, "\n") {
		if i < 2 {
			continue // the titles and the separator line
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		cells = append(cells, row)
	}
	return cells
}

// choices returns the sets of scopes that a list allows: "A, B or C + D" allows A with B, and A with C and D.
func choices(list string) [][]string {
	all := [][]string{nil}
	for part := range strings.SplitSeq(list, ", ") {
		var longer [][]string
		for choice := range strings.SplitSeq(part, " or ") {
			for _, scopeNames := range all {
				longer = append(longer, append(slices.Clone(scopeNames), strings.Split(choice, " + ")...))
			}
		}
		all = longer
	}
	return all
}
