package api

import (
	"net/url"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/apps"
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/inputs"
	"github.com/sightline-dev/sightline/core/api/models"
	"github.com/sightline-dev/sightline/core/api/predict"
	"github.com/sightline-dev/sightline/core/api/replica"
	"github.com/sightline-dev/sightline/core/api/searches"
	"github.com/sightline-dev/sightline/core/api/workflows"
	"github.com/sightline-dev/sightline/core/auth"
)

// route is a row of the route table. A segment of its path in braces matches any one segment.
type route struct {
	call.Route
	segments []string
	handle   func(*call.Call) error

	// has reports whether the caller's cache has the answer of an admitted call. Such a call is neither counted nor limited, since the cache
	// asks at each use. nil: caches do not store the answers.
	has func(*call.Call) bool
}

func row(method, path, list string, need auth.Need, handle func(*call.Call) error) route {
	return route{Route: call.Route{Method: method, Path: path, List: list, Need: need}, segments: strings.Split(path[1:], "/"), handle: handle}
}

// cached returns the row of answers that a browser may store.
func (r route) cached(has func(*call.Call) bool) route {
	r.has = has
	return r
}

// routes are the endpoints of /v2 in the order of the interface's documentation. If two rows match, the first wins, so fixed paths come
// before paths with ids.
var routes = []route{
	row("POST", "/models/{model_id}/outputs", "outputs", auth.NeedPredict, predict.Outputs),
	row("POST", "/models/{model_id}/versions/{version_id}/outputs", "outputs", auth.NeedPredict, predict.Outputs),
	row("POST", "/models/{model_id}/activations", "outputs", auth.NeedPredict, predict.Activations),
	row("POST", "/inputs", "inputs", auth.NeedInputsAdd, inputs.Add),
	row("GET", "/inputs", "inputs", auth.NeedInputs, inputs.List),
	row("PATCH", "/inputs", "inputs", auth.NeedInputsPatch, inputs.Patch),
	row("DELETE", "/inputs", "", auth.NeedInputsDelete, inputs.DeleteMany),
	row("GET", "/inputs/status", "", auth.NeedInputs, inputs.Status),
	row("GET", "/inputs/{input_id}", "", auth.NeedInputs, inputs.Read),
	row("DELETE", "/inputs/{input_id}", "", auth.NeedInputsDelete, inputs.Delete),
	row("PATCH", "/inputs/{input_id}/data/concepts", "", auth.NeedInputsPatch, inputs.PatchConcepts),
	row("GET", "/inputs/{input_id}/outputs", "outputs", auth.NeedPredictions, inputs.Outputs),
	row("PATCH", "/inputs/{input_id}/outputs", "outputs", auth.NeedPredictionsPatch, inputs.PatchOutputs),
	row("GET", "/inputs/{input_id}/thumbnail", "", auth.NeedInputs, inputs.Thumbnail).cached(inputs.HasThumbnail),
	row("GET", "/inputs/{input_id}/rendition", "", auth.NeedInputs, inputs.Rendition).cached(inputs.HasRendition),
	row("GET", "/inputs/{input_id}/source", "", auth.NeedInputs, inputs.Source),
	row("GET", "/inputs/{input_id}/history", "operations", auth.NeedInputs, inputs.History),
	row("GET", "/inputs/{input_id}/duplicates", "duplicates", auth.NeedDuplicates, inputs.Duplicates),
	row("GET", "/duplicates", "groups", auth.NeedDuplicates, inputs.DuplicateGroups),
	row("POST", "/models/searches", "models", auth.NeedModels, models.Search),
	row("GET", "/models", "models", auth.NeedModels, models.List),
	row("POST", "/models", "", auth.NeedModelsAdd, models.Create),
	row("PATCH", "/models", "models", auth.NeedModelsPatch, models.Patch),
	row("DELETE", "/models", "", auth.NeedModelsDelete, models.DeleteMany),
	row("GET", "/models/{model_id}", "", auth.NeedModels, models.Read),
	row("DELETE", "/models/{model_id}", "", auth.NeedModelsDelete, models.Delete),
	row("GET", "/models/{model_id}/output_info", "", auth.NeedModels, models.OutputInfo),
	row("PATCH", "/models/{model_id}/output_info/data/concepts", "", auth.NeedModelsPatch, models.PatchConcepts),
	row("GET", "/models/{model_id}/inputs", "inputs", auth.NeedModelInputs, models.Inputs),
	row("GET", "/models/{model_id}/training_set", "", auth.NeedModelInputs, models.TrainingSet),
	row("GET", "/models/{model_id}/next", "inputs", auth.NeedModelInputs, models.Next),
	row("POST", "/models/{model_id}/feedback", "", auth.NeedFeedback, models.Feedback),
	row("POST", "/models/{model_id}/versions", "", auth.NeedModelsTrain, models.Train),
	row("GET", "/models/{model_id}/versions", "model_versions", auth.NeedModels, models.Versions),
	row("GET", "/models/{model_id}/versions/{version_id}", "", auth.NeedModels, models.Version),
	row("DELETE", "/models/{model_id}/versions/{version_id}", "", auth.NeedModelsDelete, models.DeleteVersion),
	row("GET", "/models/{model_id}/versions/{version_id}/output_info", "", auth.NeedModels, models.OutputInfo),
	row("GET", "/models/{model_id}/versions/{version_id}/inputs", "inputs", auth.NeedModelInputs, models.VersionInputs),
	row("POST", "/models/{model_id}/versions/{version_id}/feedback", "", auth.NeedFeedback, models.Feedback),
	row("POST", "/models/{model_id}/versions/{version_id}/metrics", "", auth.NeedEvaluate, models.Evaluate),
	row("GET", "/models/{model_id}/versions/{version_id}/metrics", "", auth.NeedMetrics, models.Metrics),
	row("GET", "/models/{model_id}/versions/{version_id}/comparison", "changes", auth.NeedModelInputs, models.Compare),
	row("POST", "/concepts/searches", "concepts", auth.NeedConceptsSearch, models.SearchConcepts),
	row("POST", "/concepts", "concepts", auth.NeedConceptsAdd, models.CreateConcepts),
	row("GET", "/concepts", "concepts", auth.NeedConcepts, models.ListConcepts),
	row("PATCH", "/concepts", "concepts", auth.NeedConceptsPatch, models.RenameConcepts),
	row("GET", "/concepts/usage", "concepts", auth.NeedConceptsUsage, models.ConceptUsage),
	row("GET", "/concepts/{concept_id}", "", auth.NeedConcepts, models.ReadConcept),
	row("DELETE", "/concepts/{concept_id}", "", auth.NeedConceptsPatch, models.DeleteConcept),
	row("POST", "/searches", "hits", auth.NeedSearch, searches.Run),
	row("POST", "/searches/summary", "", auth.NeedSearch, searches.Summarise),
	row("POST", "/searches/feedback", "", auth.NeedSearchFeedback, searches.Feedback),
	row("POST", "/workflows", "workflows", auth.NeedWorkflowsAdd, workflows.Create),
	row("GET", "/workflows", "workflows", auth.NeedWorkflows, workflows.List),
	row("GET", "/public_workflows", "workflows", auth.NeedNothing, workflows.ListPublic),
	row("GET", "/workflows/{workflow_id}", "", auth.NeedWorkflows, workflows.Read),
	row("DELETE", "/workflows/{workflow_id}", "", auth.NeedWorkflowsDelete, workflows.Delete),
	row("POST", "/workflows/{workflow_id}/results", "results", auth.NeedWorkflowsRun, workflows.Run),
	row("POST", "/token", "", auth.NeedClient, apps.IssueToken),
	row("POST", "/login", "", auth.NeedNobody, apps.Login),
	row("POST", "/users/{user_id}/apps", "apps", auth.NeedAccount, apps.CreateApp),
	row("GET", "/users/{user_id}/apps", "apps", auth.NeedAccount, apps.ListApps),
	row("GET", "/users/{user_id}/apps/{app_id}", "", auth.NeedAccount, apps.ReadApp),
	row("POST", "/users/{user_id}/keys", "keys", auth.NeedAccount, apps.CreateKey),
	row("GET", "/users/{user_id}/keys", "keys", auth.NeedAccount, apps.ListKeys),
	row("GET", "/scopes", "scopes", auth.NeedNothing, apps.ListScopes),
	row("GET", "/myscopes", "scopes", auth.NeedNothing, apps.ListMyScopes),
	row("GET", "/sync/status", "", auth.NeedAll, replica.Status),
	row("GET", "/sync/outbox", "operations", auth.NeedAll, replica.Outbox),
	row("GET", "/sync/devices", "devices", auth.NeedAll, replica.Devices),
	row("GET", "/sync/history", "operations", auth.NeedAll, inputs.Newest),
	row("GET", "/sync/conflicts", "conflicts", auth.NeedAll, replica.Conflicts),
	row("PATCH", "/sync/conflicts/{conflict_id}", "", auth.NeedAll, replica.Keep),
	row("DELETE", "/sync/conflicts/{conflict_id}", "", auth.NeedAll, replica.Dismiss),
}

// segments splits a path, which is still percent-encoded, before it decodes the parts. So an id may contain a slash. It omits empty
// parts, because slashes may be doubled or trailing. It returns nil for a path outside /v2 and for a badly encoded part.
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

// short removes the user and the application from the segments of a long path, and returns them as an address.
func short(parts []string) ([]string, call.Address) {
	if len(parts) > 4 && parts[0] == "users" && parts[2] == "apps" {
		return parts[4:], call.Address{Long: true, User: parts[1], App: parts[3]}
	}
	return parts, call.Address{}
}

// Writes reports whether a call changes an application. Hosts that are temporarily read-only use it.
func Writes(method, path string) bool {
	r, _, _, err := resolve(method, path)
	return err == nil && r.Method != "GET" && r.Need.Writes()
}

// Reads reports whether a call only reads, so that a host may repeat it. Searches, predictions and requests for access tokens only read; a
// repeated one may count again against a quota. Reads is not the opposite of [Writes], because neither includes calls that change an account,
// and unknown paths.
func Reads(method, path string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS":
		return true
	case "POST":
		r, _, _, err := resolve(method, path)
		return err == nil && !r.Need.Writes() && (r.Need.Credential == auth.OfApplication || r.Need.Credential == auth.OfClient)
	}
	return false
}

// place is the key under which places has the rows that a path may match. The first segment of every route is a fixed word.
type place struct {
	segments int
	first    string
}

var places = placesOf(routes)

// placesOf groups routes by place and keeps the order of the table.
func placesOf(all []route) map[place][]*route {
	at := map[place][]*route{}
	for i := range all {
		p := place{len(all[i].segments), all[i].segments[0]}
		at[p] = append(at[p], &all[i])
	}
	return at
}

// at returns the rows that the parts of a path may match.
func at(parts []string) []*route {
	if len(parts) == 0 {
		return nil
	}
	return places[place{len(parts), parts[0]}]
}

// resolve finds the route of a short or a long path.
func resolve(method, path string) (*route, map[string]string, call.Address, error) {
	parts, at := short(segments(path))
	matched, ids, err := find(method, parts)
	return matched, ids, at, err
}

// setRoute finds the route of a call and sets the call's Route, IDs and At.
func setRoute(x *call.Call, method, path string) (matched *route, err error) {
	if matched, x.IDs, x.At, err = resolve(method, path); matched != nil {
		x.Route = &matched.Route
	}
	return matched, err
}

// find returns the route of a request and its ids by name. The error is ErrPath or
// ErrMethod. With ErrMethod the route is one of the path's other routes, for its List.
func find(method string, parts []string) (*route, map[string]string, error) {
	var other *route
	for _, r := range at(parts) {
		ids, ok := r.match(parts)
		switch {
		case !ok:
		case r.Method == method:
			return r, ids, nil
		case other == nil:
			other = r
		}
	}
	if other != nil {
		return other, nil, &call.MethodError{Allowed: methods(parts)}
	}
	return nil, nil, call.NoPath
}

// methods returns the methods of a path, OPTIONS last.
func methods(parts []string) []string {
	var allowed []string
	for _, r := range at(parts) {
		if _, ok := r.match(parts); ok && !slices.Contains(allowed, r.Method) {
			allowed = append(allowed, r.Method)
		}
	}
	return append(allowed, "OPTIONS")
}

// match reports whether the route matches parts, which have the same number of segments, and returns the ids among them. It also
// accepts "version" for "versions", which one client sends.
func (r *route) match(parts []string) (ids map[string]string, ok bool) {
	for i, want := range r.segments {
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
	}
	return ids, true
}
