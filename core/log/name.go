package log

// kindNames are the kinds as people are shown them: the body's name, and that of nothing else.
var kindNames = map[Kind]string{
	kindInputCreate:    "input_create",
	kindInputFetched:   "input_fetched",
	kindInputLabels:    "input_labels",
	kindInputMeta:      "input_meta",
	kindInputGeo:       "input_geo",
	kindInputDelete:    "input_delete",
	kindInputDeleteAll: "input_delete_all",
	kindOutputsPatch:   "outputs_patch",
	kindConceptCreate:  "concept_create",
	kindConceptName:    "concept_name",
	kindModelCreate:    "model_create",
	kindModelPatch:     "model_patch",
	kindModelDelete:    "model_delete",
	kindModelDeleteAll: "model_delete_all",
	kindVersionTrain:   "version_train",
	kindVersionResult:  "version_result",
	kindVersionDelete:  "version_delete",
	kindWorkflowCreate: "workflow_create",
	kindWorkflowDelete: "workflow_delete",
	kindFeedback:       "feedback",
	kindHorizon:        "horizon",
	kindNetworkSwitch:  "network_switch",
	kindRefused:        "refused",
	kindRules:          "rules",
	kindAppCreate:      "app_create",
	kindKeyCreate:      "key_create",
	kindKeyDelete:      "key_delete",
	kindAppChange:      "app_change",
	kindAppDelete:      "app_delete",
	kindClientSet:      "client_set",
	kindTokensRevoke:   "tokens_revoke",
	kindEdgeCreate:     "edge_create",
	kindEdgeEnrolled:   "edge_enrolled",
	kindEdgeRevoke:     "edge_revoke",
	kindSiteLease:      "site_lease",
	kindSitesSkip:      "sites_skip",
	kindTokenKeys:      "token_keys",
}

// String returns the kind's name, such as "input_labels"; "unknown" for one of a later version.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "unknown"
}

// KindOf is the kind of a body.
func KindOf(b Body) Kind { return b.kind() }
