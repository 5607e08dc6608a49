package auth

import (
	"errors"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScopeNames(t *testing.T) {
	if n := bits.OnesCount32(uint32(All)); n != len(scopes)-1 {
		t.Fatalf("All has %d scopes, there are names for %d", n, len(scopes)-1)
	}
	for i, want := range map[string]Set{
		"Predict": Predict, "Search_Feedback": SearchFeedback, "Inputs:Get": InputsGet, "Concepts_Patch": ConceptsPatch,
		"Models_Train": ModelsTrain, "Workflows_Delete": WorkflowsDelete, "All": All, "Annotations_Get": 0, "": 0, "all": 0,
	} {
		if got := SetOf([]string{i}); got != want {
			t.Errorf("SetOf(%q) = %v, want %v", i, got, want)
		}
	}
	if got := (InputsGet | Predict).String(); got != "Predict, Inputs:Get" {
		t.Errorf("String = %q", got)
	}
	if got := (All &^ Predict).Names(); slices.Contains(got, nameOfAll) || len(got) != len(scopes)-2 {
		t.Errorf("all but one: %q", got)
	}
}

// TestSetsRoundTrip checks that a set equals the set of its names, in any order and form.
func TestSetsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Set(rapid.Uint32Range(0, uint32(All)).Draw(t, "set"))
		names := rapid.Permutation(s.Names()).Draw(t, "names")
		for i := range names {
			if rapid.Bool().Draw(t, "colon") {
				names[i] = displayName(names[i])
			}
		}
		if got := SetOf(names); got != s {
			t.Fatalf("SetOf(%q) = %v, want %v", names, got, s)
		}
	})
}

// needs has all needs by the subject of their calls.
var needs = map[string]Need{
	"predict": NeedPredict, "inputs": NeedInputs, "add": NeedInputsAdd, "patch": NeedInputsPatch, "delete": NeedInputsDelete,
	"predictions": NeedPredictions, "patch predictions": NeedPredictionsPatch, "concepts": NeedConcepts, "add concepts": NeedConceptsAdd,
	"patch concepts": NeedConceptsPatch, "search concepts": NeedConceptsSearch, "usage": NeedConceptsUsage, "models": NeedModels, "add models": NeedModelsAdd,
	"patch models": NeedModelsPatch, "train": NeedModelsTrain, "delete models": NeedModelsDelete, "model inputs": NeedModelInputs,
	"metrics": NeedMetrics, "evaluate": NeedEvaluate, "search": NeedSearch, "feedback": NeedFeedback, "search feedback": NeedSearchFeedback,
	"workflows": NeedWorkflows, "add workflows": NeedWorkflowsAdd, "delete workflows": NeedWorkflowsDelete, "run": NeedWorkflowsRun,
	"nothing": NeedNothing,
}

// TestPublishedNeeds compares the table with the published lists of needed scopes.
func TestPublishedNeeds(t *testing.T) {
	for name, want := range map[string]string{
		"predict":          "Predict, Models_Get, Concepts_Get",
		"add":              "Inputs_Add, Inputs_Get, Concepts_Get, Models_Get, Predict, Workflows_Get",
		"inputs":           "Inputs_Get, Concepts_Get",
		"model inputs":     "Inputs_Get, Concepts_Get, Models_Get",
		"patch":            "Inputs_Add, Inputs_Get, Concepts_Get, Models_Get",
		"delete":           "Inputs_Add, Inputs_Delete, Inputs_Get",
		"concepts":         "Concepts_Get",
		"add concepts":     "Concepts_Add, Concepts_Get",
		"patch concepts":   "Concepts_Add, Concepts_Get",
		"search concepts":  "Concepts_Get, Models_Get, Workflows_Get",
		"models":           "Models_Get, Concepts_Get",
		"add models":       "Models_Add, Models_Get, Models_Train, Concepts_Get",
		"patch models":     "Models_Add, Models_Get, Models_Train, Concepts_Get",
		"train":            "Models_Add, Models_Get, Models_Train, Concepts_Get, Inputs_Get",
		"delete models":    "Models_Add, Models_Delete, Models_Get, Concepts_Get",
		"search":           "Search, Predict, Inputs_Get, Concepts_Get, Models_Get, Workflows_Get",
		"feedback":         "Predict_Feedback",
		"search feedback":  "Search, Search_Feedback",
		"workflows":        "Workflows_Get, Models_Get",
		"add workflows":    "Workflows_Get, Models_Get, Workflows_Add",
		"delete workflows": "Workflows_Get, Models_Get, Workflows_Add, Workflows_Delete",
		"run":              "Predict, Workflows_Get, Models_Get, Concepts_Get",
		"nothing":          "",
	} {
		n := needs[name]
		if got := n.Refuse | n.Redact; got != SetOf(strings.Split(want, ", ")) {
			t.Errorf("%s needs %v, want %s", name, got, want)
		}
		if n.Refuse&n.Redact != 0 {
			t.Errorf("%s: %v both refuse and redact", name, n.Refuse&n.Redact)
		}
	}
}

// TestCheck checks for every need that a call is refused exactly if a refusing scope is missing. The error names missing scopes that
// suffice, and no smaller set of scopes suffices.
func TestCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for name, n := range needs {
			keyScopes := Set(rapid.Uint32Range(0, uint32(All)).Draw(t, "held"))
			allowed := func(keyScopes Set) bool {
				refuse := n.Refuse
				if n.Patch != 0 && keyScopes.Has(n.Patch) {
					refuse &^= InputsAdd | ConceptsAdd | ModelsAdd | ModelsTrain
				}
				return refuse&^keyScopes == 0
			}
			err := n.Check(keyScopes)
			if (err == nil) != allowed(keyScopes) || err != nil && !errors.Is(err, ErrInsufficient) {
				t.Fatalf("%s with %v: %v", name, keyScopes, err)
			}
			if err == nil {
				continue
			}
			_, list, _ := strings.Cut(err.Error(), "the key lacks ")
			missing := SetOf(strings.Split(list, ", "))
			if strings.Contains(list, "_") || missing&keyScopes != 0 || !allowed(keyScopes|missing) {
				t.Fatalf("%s with %v: %v", name, keyScopes, err)
			}
			useful := (n.Refuse | n.Patch) &^ keyScopes
			for some := useful; some != 0; some = (some - 1) & useful { // each subset of useful
				if bits.OnesCount32(uint32(some)) < bits.OnesCount32(uint32(missing)) && allowed(keyScopes|some) {
					t.Fatalf("%s with %v: %v, and %v suffices", name, keyScopes, err, some)
				}
			}
		}
	})
}

// TestCheckAll checks that the error of a call that needs All names All, not a list of all other scopes.
func TestCheckAll(t *testing.T) {
	err := NeedAll.Check(InputsGet)
	if err == nil || !strings.HasSuffix(err.Error(), "lacks All") || NeedAll.Check(All) != nil {
		t.Errorf("%v; with All: %v", err, NeedAll.Check(All))
	}
}

// TestNeeds compares the advised scopes with the published lists. A key with the advised scopes is not refused.
func TestNeeds(t *testing.T) {
	for name, want := range map[string][]string{
		"Predict": {}, "Inputs_Get": {}, "All": {}, "no scope": {},
		"Concepts_Add": {"Concepts_Get"}, "Concepts_Patch": {"Concepts_Get"}, "Inputs_Patch": {"Inputs_Get"},
		"Inputs_Add":       {"Predict", "Inputs_Get"},
		"Inputs_Delete":    {"Inputs_Add", "Inputs_Get"},
		"Models_Delete":    {"Models_Add", "Models_Get"},
		"Workflows_Add":    {"Workflows_Get"},
		"Workflows_Delete": {"Workflows_Add", "Workflows_Get"},
		"Search":           {"Predict", "Inputs_Get"},
		"Search_Feedback":  {"Search"},
	} {
		if got := SuggestedScopes(name); !slices.Equal(got, want) {
			t.Errorf("Needs(%q) = %q, want %q", name, got, want)
		}
	}
	for s, n := range led {
		if err := n.Check(s | SetOf(SuggestedScopes(s.Names()[0]))); err != nil {
			t.Errorf("%v with what it needs: %v", s, err)
		}
	}
}
