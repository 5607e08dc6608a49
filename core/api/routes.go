package api

import (
	"net/url"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/auth"
)

// route is one endpoint. A segment of its path in braces stands for any one segment.
type route struct {
	method string
	path   string // after /v2
	list   string // the list that is in every answer, errors included; empty: none
	need   auth.Need
	handle func(*Call) error
}

// routes is /v2 in the order of the interface's documentation. Where two rows match, the
// first wins, so fixed paths stand before those with ids.
var routes = []route{
	{"POST", "/models/{model_id}/outputs", "outputs", auth.NeedPredict, predictOutputs},
	{"POST", "/models/{model_id}/versions/{version_id}/outputs", "outputs", auth.NeedPredict, predictOutputs},
	{"POST", "/models/{model_id}/activations", "outputs", auth.NeedPredict, readActivations},
	{"POST", "/inputs", "inputs", auth.NeedInputsAdd, addInputs},
	{"GET", "/inputs", "inputs", auth.NeedInputs, listInputs},
	{"PATCH", "/inputs", "inputs", auth.NeedInputsPatch, patchInputs},
	{"DELETE", "/inputs", "", auth.NeedInputsDelete, deleteInputs},
	{"GET", "/inputs/status", "", auth.NeedInputs, inputsStatus},
	{"GET", "/inputs/{input_id}", "", auth.NeedInputs, readInput},
	{"DELETE", "/inputs/{input_id}", "", auth.NeedInputsDelete, deleteInput},
	{"PATCH", "/inputs/{input_id}/data/concepts", "", auth.NeedInputsPatch, patchConcepts},
	{"GET", "/inputs/{input_id}/outputs", "outputs", auth.NeedPredictions, readInputOutputs},
	{"PATCH", "/inputs/{input_id}/outputs", "outputs", auth.NeedPredictionsPatch, patchInputOutputs},
	{"GET", "/inputs/{input_id}/thumbnail", "", auth.NeedInputs, readThumbnail},
	{"GET", "/inputs/{input_id}/source", "", auth.NeedInputs, readSource},
	{"GET", "/inputs/{input_id}/history", "operations", auth.NeedInputs, readHistory},
	{"GET", "/inputs/{input_id}/duplicates", "duplicates", auth.NeedDuplicates, listDuplicates},
	{"GET", "/duplicates", "groups", auth.NeedDuplicates, listDuplicateGroups},
	{"POST", "/models/searches", "models", auth.NeedModels, searchModels},
	{"GET", "/models", "models", auth.NeedModels, listModels},
	{"POST", "/models", "", auth.NeedModelsAdd, createModel},
	{"PATCH", "/models", "models", auth.NeedModelsPatch, patchModels},
	{"DELETE", "/models", "", auth.NeedModelsDelete, deleteModels},
	{"GET", "/models/{model_id}", "", auth.NeedModels, readModel},
	{"DELETE", "/models/{model_id}", "", auth.NeedModelsDelete, deleteModel},
	{"GET", "/models/{model_id}/output_info", "", auth.NeedModels, readOutputInfo},
	{"PATCH", "/models/{model_id}/output_info/data/concepts", "", auth.NeedModelsPatch, patchModelConcepts},
	{"GET", "/models/{model_id}/inputs", "inputs", auth.NeedModelInputs, listModelInputs},
	{"GET", "/models/{model_id}/training_set", "", auth.NeedModelInputs, readTrainingSet},
	{"GET", "/models/{model_id}/next", "inputs", auth.NeedModelInputs, listNext},
	{"POST", "/models/{model_id}/feedback", "", auth.NeedFeedback, modelFeedback},
	{"POST", "/models/{model_id}/versions", "", auth.NeedModelsTrain, trainModel},
	{"GET", "/models/{model_id}/versions", "model_versions", auth.NeedModels, listVersions},
	{"GET", "/models/{model_id}/versions/{version_id}", "", auth.NeedModels, readVersion},
	{"DELETE", "/models/{model_id}/versions/{version_id}", "", auth.NeedModelsDelete, deleteVersion},
	{"GET", "/models/{model_id}/versions/{version_id}/output_info", "", auth.NeedModels, readOutputInfo},
	{"GET", "/models/{model_id}/versions/{version_id}/inputs", "inputs", auth.NeedModelInputs, listVersionInputs},
	{"POST", "/models/{model_id}/versions/{version_id}/feedback", "", auth.NeedFeedback, modelFeedback},
	{"POST", "/models/{model_id}/versions/{version_id}/metrics", "", auth.NeedEvaluate, evaluateVersion},
	{"GET", "/models/{model_id}/versions/{version_id}/metrics", "", auth.NeedMetrics, readMetrics},
	{"GET", "/models/{model_id}/versions/{version_id}/comparison", "changes", auth.NeedModelInputs, compareVersions},
	{"POST", "/concepts/searches", "concepts", auth.NeedConceptsSearch, searchConcepts},
	{"POST", "/concepts", "concepts", auth.NeedConceptsAdd, createConcepts},
	{"GET", "/concepts", "concepts", auth.NeedConcepts, listConcepts},
	{"PATCH", "/concepts", "concepts", auth.NeedConceptsPatch, renameConcepts},
	{"GET", "/concepts/usage", "concepts", auth.NeedConceptsUsage, conceptUsage},
	{"GET", "/concepts/{concept_id}", "", auth.NeedConcepts, readConcept},
	{"POST", "/searches", "hits", auth.NeedSearch, searchInputs},
	{"POST", "/searches/summary", "", auth.NeedSearch, summariseSearch},
	{"POST", "/searches/feedback", "", auth.NeedSearchFeedback, searchFeedback},
	{"POST", "/workflows", "workflows", auth.NeedWorkflowsAdd, createWorkflows},
	{"GET", "/workflows", "workflows", auth.NeedWorkflows, listWorkflows},
	{"GET", "/public_workflows", "workflows", auth.NeedNothing, listPublicWorkflows},
	{"GET", "/workflows/{workflow_id}", "", auth.NeedWorkflows, readWorkflow},
	{"DELETE", "/workflows/{workflow_id}", "", auth.NeedWorkflowsDelete, deleteWorkflow},
	{"POST", "/workflows/{workflow_id}/results", "results", auth.NeedWorkflowsRun, runWorkflow},
	{"POST", "/token", "", auth.NeedClient, issueToken},
	{"POST", "/login", "", auth.NeedNobody, login},
	{"POST", "/users/{user_id}/apps", "apps", auth.NeedAccount, createApp},
	{"GET", "/users/{user_id}/apps", "apps", auth.NeedAccount, listApps},
	{"GET", "/users/{user_id}/apps/{app_id}", "", auth.NeedAccount, readApp},
	{"POST", "/users/{user_id}/keys", "keys", auth.NeedAccount, createKey},
	{"GET", "/users/{user_id}/keys", "keys", auth.NeedAccount, listKeys},
	{"GET", "/scopes", "scopes", auth.NeedNothing, listScopes},
	{"GET", "/myscopes", "scopes", auth.NeedNothing, listMyScopes},
	{"GET", "/sync/status", "", auth.NeedAll, copyStatus},
	{"GET", "/sync/outbox", "operations", auth.NeedAll, listOutbox},
	{"GET", "/sync/conflicts", "conflicts", auth.NeedAll, listConflicts},
	{"DELETE", "/sync/conflicts/{conflict_id}", "", auth.NeedAll, dismissConflict},
}

// Limits of a call.
const (
	maxInputs      = 128  // inputs of one call that predicts, adds or changes some
	maxLabels      = 1000 // of one input, and of one item of a call
	maxConcepts    = 200  // of one output, by max_concepts
	shownConcepts  = 20   // of one output when max_concepts says nothing
	defaultPerPage = 20   // rows of a page
	maxPerPage     = 1000 // a larger per_page is taken as this
	maxIDBytes     = 128  // of an id
	maxNameBytes   = 1024 // of a concept's or a model's name
	maxIDs         = 1000 // of one call that deletes models
	maxURLBytes    = 8192 // of a picture's address
	maxSelected    = 1000 // select_concepts of one call

	maxActivatedInputs = 8  // of one call that asks where concepts are: a quarter of a megabyte each comes from the network
	maxActivations     = 20 // concepts of such a call

	maxModelConcepts  = 5000     // of one own model
	maxSettingBytes   = 64 << 10 // of one field of a model's output_config
	maxWorkflowInputs = 32       // of one workflow call
	maxWorkflowModels = 5        // of one workflow

	maxFeedbackBytes = 64 << 10 // of one piece of feedback

	maxPictureBytes = 20_000_000 // of one picture sent as base64
	maxVideoBytes   = 10_000_000 // of one video sent as base64

	maxVideos       = 4   // of one call
	maxFrames       = 600 // of the videos of one call, each of which may have an equal part of them
	defaultSampleMS = 1000
)

// segments splits a path, which is still percent-encoded, before it decodes the parts, so
// that an id may hold a slash. Empty parts are left out: slashes may be doubled or trail.
// It returns nil for what is not below /v2 and for a part that is badly encoded.
func segments(path string) []string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			continue
		}
		part, err := url.PathUnescape(part)
		if err != nil {
			return nil
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 || parts[0] != "v2" {
		return nil
	}
	return parts[1:]
}

// address is what the long form of a path names: everything of an application also stands
// after /v2/users/{user_id}/apps/{app_id}.
type address struct {
	long      bool
	user, app string
}

// me is the user of a path who is the one that asks.
const me = "me"

// short takes the long form's address off the segments of a path.
func short(parts []string) ([]string, address) {
	if len(parts) > 4 && parts[0] == "users" && parts[2] == "apps" {
		return parts[4:], address{true, parts[1], parts[3]}
	}
	return parts, address{}
}

// names reports whether a path leads to the application: a short one always does, a long one
// has to name it and its owner.
func (at address) names(app *Application) bool {
	return !at.long || app != nil && at.app == app.ID && (at.user == me || at.user == app.Owner && at.user != "")
}

// resolve finds the route of a path, in either form.
func resolve(method, path string) (*route, map[string]string, address, error) {
	parts, at := short(segments(path))
	matched, ids, err := find(method, parts)
	return matched, ids, at, err
}

// Writes reports whether a call changes an application: for hosts that let nothing be written for now.
func Writes(method, path string) bool {
	r, _, _, err := resolve(method, path)
	return err == nil && r.method != "GET" && r.need.Writes()
}

// errPath is the answer to what is not there, and to what is another's.
var errPath = &fault{ErrPath, "Check the url of your request."}

// find returns the route of a request and its ids by name. The error is ErrPath or
// ErrMethod; with ErrMethod the route is one of the path's, for its list.
func find(method string, parts []string) (*route, map[string]string, error) {
	var other *route
	for i := range routes {
		r := &routes[i]
		ids, ok := r.match(parts)
		switch {
		case !ok:
		case r.method == method:
			return r, ids, nil
		case other == nil:
			other = r
		}
	}
	if other != nil {
		return other, nil, refusef(ErrMethod, "Allowed methods: %s.", strings.Join(methods(parts), ", "))
	}
	return nil, nil, errPath
}

// methods lists what a path takes, OPTIONS last.
func methods(parts []string) []string {
	var allowed []string
	for i := range routes {
		if _, ok := routes[i].match(parts); ok && !slices.Contains(allowed, routes[i].method) {
			allowed = append(allowed, routes[i].method)
		}
	}
	return append(allowed, "OPTIONS")
}

// match reports whether the route stands for parts, and the ids among them. One client
// misspells "versions" in the singular.
func (r *route) match(parts []string) (ids map[string]string, ok bool) {
	if strings.Count(r.path, "/") != len(parts) {
		return nil, false
	}
	i := 0
	for want := range strings.SplitSeq(r.path[1:], "/") {
		part := parts[i]
		switch {
		case want[0] == '{':
			if ids == nil {
				ids = make(map[string]string, 2)
			}
			ids[want[1:len(want)-1]] = part
		case part != want && (want != "versions" || part != "version"):
			return nil, false
		}
		i++
	}
	return ids, true
}
