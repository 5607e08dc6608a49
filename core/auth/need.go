package auth

import (
	"errors"
	"fmt"
)

// ErrInsufficient is returned for a key whose scopes do not cover a call.
var ErrInsufficient = errors.New("insufficient scopes")

// Credential is the kind of credential that a request must have.
type Credential int

const (
	// OfApplication is a key or an access token of an application, or a session token of the
	// account that owns the application.
	OfApplication Credential = iota
	// OfClient is the id and the secret of an application's client, in Basic authentication.
	OfClient
	// OfAccount is a session token. Keys and access tokens are refused, even with all scopes.
	OfAccount
	// OfNobody means that the request has no credential in its header. Its body has one.
	OfNobody
)

// Need is the credential and the scopes that an endpoint needs.
type Need struct {
	Credential Credential
	Refuse     Set // scopes without any of which the call is refused
	Redact     Set // scopes without which the answer omits the data of their kind
	Patch      Set // scopes that replace the Adds in Refuse, because older keys have the Adds only
}

// writing are the scopes that permit changes. An endpoint that changes an application has at least one of them
// in Refuse.
const writing = PredictFeedback | SearchFeedback | InputsAdd | InputsPatch | InputsDelete | ConceptsAdd | ConceptsPatch |
	ModelsAdd | ModelsPatch | ModelsDelete | ModelsTrain | WorkflowsAdd | WorkflowsPatch | WorkflowsDelete

// Writes reports whether the endpoint changes an application.
func (n Need) Writes() bool { return n.Refuse&writing != 0 }

// The needs of the endpoints. Refuse and Redact together are the published list of scopes. A rule divides them: a call is
// refused without a scope that permits its action, and without the Get of its subject, which is a large part of its answer. The Gets of
// other things only add to the answer.
var (
	// NeedPredict is for predict calls. Without Models:Get the answer shows only the id and type of the model. It
	// always shows the concepts of an output, since they are the purpose of Predict.
	NeedPredict = Need{Refuse: Predict, Redact: ModelsGet | ConceptsGet}

	NeedInputs       = Need{Refuse: InputsGet, Redact: ConceptsGet}
	NeedInputsAdd    = Need{Refuse: InputsAdd | InputsGet | Predict, Redact: ConceptsGet | ModelsGet | WorkflowsGet}
	NeedInputsPatch  = Need{Refuse: InputsAdd | InputsGet, Redact: ConceptsGet | ModelsGet, Patch: InputsPatch}
	NeedInputsDelete = Need{Refuse: InputsAdd | InputsDelete | InputsGet}

	// NeedPredictions is for the stored predictions of an input, which consist of concepts.
	NeedPredictions      = Need{Refuse: InputsGet | ConceptsGet, Redact: ModelsGet}
	NeedPredictionsPatch = Need{Refuse: InputsAdd | InputsGet | ConceptsGet, Redact: ModelsGet, Patch: InputsPatch}

	NeedConcepts       = Need{Refuse: ConceptsGet}
	NeedConceptsAdd    = Need{Refuse: ConceptsAdd | ConceptsGet}
	NeedConceptsPatch  = Need{Refuse: ConceptsAdd | ConceptsGet, Patch: ConceptsPatch}
	NeedConceptsSearch = Need{Refuse: ConceptsGet, Redact: ModelsGet | WorkflowsGet}
	NeedConceptsUsage  = Need{Refuse: ConceptsGet | InputsGet, Redact: ModelsGet}

	NeedModels       = Need{Refuse: ModelsGet, Redact: ConceptsGet}
	NeedModelsAdd    = Need{Refuse: ModelsAdd | ModelsGet | ModelsTrain, Redact: ConceptsGet}
	NeedModelsPatch  = Need{Refuse: ModelsAdd | ModelsGet | ModelsTrain, Redact: ConceptsGet, Patch: ModelsPatch}
	NeedModelsTrain  = Need{Refuse: ModelsAdd | ModelsGet | ModelsTrain, Redact: ConceptsGet | InputsGet}
	NeedModelsDelete = Need{Refuse: ModelsAdd | ModelsDelete | ModelsGet, Redact: ConceptsGet}
	NeedModelInputs  = Need{Refuse: ModelsGet | InputsGet, Redact: ConceptsGet}

	// NeedMetrics is for an evaluation, which shows concepts and some inputs.
	NeedMetrics  = Need{Refuse: ModelsGet | ConceptsGet, Redact: InputsGet}
	NeedEvaluate = Need{Refuse: ModelsGet, Redact: ConceptsGet | InputsGet}

	NeedSearch         = Need{Refuse: Search | Predict | InputsGet, Redact: ConceptsGet | ModelsGet | WorkflowsGet}
	NeedDuplicates     = Need{Refuse: Search | InputsGet, Redact: ConceptsGet}
	NeedFeedback       = Need{Refuse: PredictFeedback}
	NeedSearchFeedback = Need{Refuse: Search | SearchFeedback}

	// NeedWorkflows is for reading workflows. Without Models:Get a step shows only the id of its model.
	NeedWorkflows       = Need{Refuse: WorkflowsGet, Redact: ModelsGet}
	NeedWorkflowsAdd    = Need{Refuse: WorkflowsAdd | WorkflowsGet, Redact: ModelsGet}
	NeedWorkflowsDelete = Need{Refuse: WorkflowsAdd | WorkflowsDelete | WorkflowsGet, Redact: ModelsGet}
	NeedWorkflowsRun    = Need{Refuse: Predict | WorkflowsGet, Redact: ModelsGet | ConceptsGet}

	// NeedNothing is for public data, which any key may read.
	NeedNothing = Need{}

	// NeedAll is for calls that show or change arbitrary data of the application.
	NeedAll = Need{Refuse: All}

	NeedClient  = Need{Credential: OfClient}
	NeedAccount = Need{Credential: OfAccount}
	NeedNobody  = Need{Credential: OfNobody}
)

// patched are the scopes that a Patch scope of the same family replaces.
const patched = InputsAdd | ConceptsAdd | ModelsAdd | ModelsTrain

// Check returns nil if the scopes in keyScopes cover the call. Otherwise it returns an error that wraps ErrInsufficient and
// names the fewest missing scopes.
func (n Need) Check(keyScopes Set) error {
	lacks := n.Refuse &^ keyScopes
	if n.Patch != 0 {
		if instead := (n.Refuse&^patched | n.Patch) &^ keyScopes; instead.size() < lacks.size() {
			lacks = instead
		}
	}
	if lacks == 0 {
		return nil
	}
	if n.Refuse == All {
		lacks = All // one name instead of twenty
	}
	return fmt.Errorf("%w: the key lacks %v", ErrInsufficient, lacks)
}

// Shows reports whether the answer to a call shows the data that a scope covers.
func (n Need) Shows(keyScopes, scope Set) bool { return n.Redact&scope == 0 || keyScopes.Has(scope) }

// led are the calls for which a user chooses a scope.
var led = map[Set]Need{
	Search: NeedSearch, SearchFeedback: NeedSearchFeedback,
	InputsAdd: NeedInputsAdd, InputsPatch: NeedInputsPatch, InputsDelete: NeedInputsDelete,
	ConceptsAdd: NeedConceptsAdd, ConceptsPatch: NeedConceptsPatch,
	ModelsAdd: NeedModelsAdd, ModelsPatch: NeedModelsPatch, ModelsDelete: NeedModelsDelete, ModelsTrain: NeedModelsTrain,
	WorkflowsAdd: NeedWorkflowsAdd, WorkflowsPatch: NeedWorkflows, WorkflowsDelete: NeedWorkflowsDelete,
}

// SuggestedScopes returns the names of the other scopes without which a key cannot make the calls that users expect from the
// named scope. It is advice for a user who creates a key, not a rule. A Delete needs Add and Get, an
// Add its Get, and each needs the other scopes in Refuse of its calls.
func SuggestedScopes(name string) []string {
	s := SetOf([]string{name})
	need := led[s]
	needed := need.Refuse &^ s
	if need.Patch != 0 {
		needed &^= patched
	}
	return needed.Names()
}
