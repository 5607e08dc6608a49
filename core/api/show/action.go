package show

import (
	"maps"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
)

// Action is the effect of a PATCH on its list.
type Action int

const (
	Merge     Action = iota // add or change
	Remove                  // remove
	Overwrite               // replace the list
)

// ReadAction reads the action of a PATCH. An absent action is Merge.
func ReadAction(x *call.Call, known map[string]Action) (Action, error) {
	name, err := x.Body.Text("action")
	if err != nil {
		return 0, call.Refuse(call.ErrAction, err)
	}
	a, ok := known[name]
	if !ok && name != "" {
		return 0, call.Refusef(call.ErrAction, "action: %q must be one of %s.", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return a, nil
}

// Actions are the actions of most calls, by name.
var Actions = map[string]Action{"merge": Merge, "remove": Remove, "overwrite": Overwrite}

// ConceptActions are the actions of the calls from 2016, which change the concepts of one thing.
var ConceptActions = map[string]Action{
	"merge_concepts": Merge, "delete_concepts": Remove, "merge": Merge, "remove": Remove, "overwrite": Overwrite,
}
