package auth

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// ErrScope is returned for a scope that does not exist.
var ErrScope = errors.New("no such scope")

// Set is a set of scopes.
type Set uint32

// The scopes that a key can carry.
const (
	Predict Set = 1 << iota
	PredictFeedback
	Search
	SearchFeedback
	InputsAdd
	InputsGet
	InputsPatch
	InputsDelete
	ConceptsAdd
	ConceptsGet
	ConceptsPatch
	ModelsAdd
	ModelsGet
	ModelsPatch
	ModelsDelete
	ModelsTrain
	WorkflowsAdd
	WorkflowsGet
	WorkflowsPatch
	WorkflowsDelete

	// All is every scope, by its own name.
	All Set = 1<<iota - 1
)

// nameOfAll is the name of the scope that contains all others.
const nameOfAll = "All"

// scopes are the names of the scopes in requests and answers, All first. The others are in the order of their bits.
var scopes = []string{
	nameOfAll, "Predict", "Predict_Feedback", "Search", "Search_Feedback",
	"Inputs_Add", "Inputs_Get", "Inputs_Patch", "Inputs_Delete",
	"Concepts_Add", "Concepts_Get", "Concepts_Patch",
	"Models_Add", "Models_Get", "Models_Patch", "Models_Delete", "Models_Train",
	"Workflows_Add", "Workflows_Get", "Workflows_Patch", "Workflows_Delete",
}

// ScopeNames returns the names of all scopes that a key can have, "All" first. The caller owns the
// slice.
func ScopeNames() []string { return slices.Clone(scopes) }

// NormaliseScopes checks a list of scope names, with a colon or an underscore between their parts. It
// returns the names with underscores and without duplicates. An empty list is an error.
func NormaliseScopes(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		name = wire(strings.TrimSpace(name))
		if !slices.Contains(scopes, name) {
			return nil, fmt.Errorf("%q: %w; valid scopes are %s", name, ErrScope, strings.Join(scopes, ", "))
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no scopes given: %w; valid scopes are %s", ErrScope, strings.Join(scopes, ", "))
	}
	return out, nil
}

// wire returns a scope's name in the form of requests and answers: Inputs_Get for Inputs:Get.
func wire(name string) string { return strings.ReplaceAll(name, ":", "_") }

// displayName returns a scope's name in the form for users: Inputs:Get for Inputs_Get.
func displayName(name string) string { return strings.ReplaceAll(name, "_", ":") }

// SetOf returns the set of the named scopes. It ignores unknown names, which a newer program may have stored.
func SetOf(names []string) Set {
	var s Set
	for _, name := range names {
		switch i := slices.Index(scopes, wire(name)); {
		case i == 0:
			s = All
		case i > 0:
			s |= 1 << (i - 1)
		}
	}
	return s
}

// Has reports whether s contains all of t.
func (s Set) Has(t Set) bool { return s&t == t }

// size returns the number of scopes in a set.
func (s Set) size() int { return bits.OnesCount32(uint32(s)) }

// Names returns the names of the scopes in a set, in the form of requests. For a set with all scopes it returns only
// "All".
func (s Set) Names() []string {
	if s.Has(All) {
		return []string{nameOfAll}
	}
	names := make([]string, 0, s.size())
	for i, name := range scopes[1:] {
		if s.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names of the scopes in the form for users: "Inputs:Get, Concepts:Get".
func (s Set) String() string { return displayName(strings.Join(s.Names(), ", ")) }
