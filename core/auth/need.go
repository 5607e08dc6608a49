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
	// account that it belongs to.
	OfApplication Credential = iota
	// OfClient is the id and the secret of an application's client, by Basic authentication.
	OfClient
	// OfAccount is a session token. A key or an access token is refused, whatever its scopes.
	OfAccount
	// OfNobody: the request has no credential; its body has one.
	OfNobody
)

// Need is the credential and the scopes that a kind of call needs.
type Need struct {
	Asks   Credential
	Refuse Set // scopes: without one of these the call is refused
	Redact Set // without one of these, the answer omits the data of its kind
	Patch  Set // with these, a key needs none of the Adds of Refuse: older keys change so
}

// writing are the scopes of which a call has one among those without which it is refused when it changes an
// application.
const writing = PredictFeedback | SearchFeedback | InputsAdd | InputsPatch | InputsDelete | ConceptsAdd | ConceptsPatch |
	ModelsAdd | ModelsPatch | ModelsDelete | ModelsTrain | WorkflowsAdd | WorkflowsPatch | WorkflowsDelete

// Writes reports whether calls of the kind change an application.
func (n Need) Writes() bool { return n.Refuse&writing != 0 }

// The needs of each kind of call. Refuse and Redact together are the published list of its scopes. They are divided by a rule: a call is
// refused without a scope that permits its action, and without the Get of its subject, which is a large part of its answer. The Gets of
// other things only add to the answer.
var (
	// NeedPredict: the model is in the answer by its id and type alone without Models:Get. The
	// concepts of an output are what Predict is for, and stay.
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

	// NeedMetrics is for an evaluation, which has concepts and some inputs.
	NeedMetrics  = Need{Refuse: ModelsGet | ConceptsGet, Redact: InputsGet}
	NeedEvaluate = Need{Refuse: ModelsGet, Redact: ConceptsGet | InputsGet}

	NeedSearch         = Need{Refuse: Search | Predict | InputsGet, Redact: ConceptsGet | ModelsGet | WorkflowsGet}
	NeedDuplicates     = Need{Refuse: Search | InputsGet, Redact: ConceptsGet}
	NeedFeedback       = Need{Refuse: PredictFeedback}
	NeedSearchFeedback = Need{Refuse: Search | SearchFeedback}

	// NeedWorkflows: a step names its model by the id alone without Models:Get.
	NeedWorkflows       = Need{Refuse: WorkflowsGet, Redact: ModelsGet}
	NeedWorkflowsAdd    = Need{Refuse: WorkflowsAdd | WorkflowsGet, Redact: ModelsGet}
	NeedWorkflowsDelete = Need{Refuse: WorkflowsAdd | WorkflowsDelete | WorkflowsGet, Redact: ModelsGet}
	NeedWorkflowsRun    = Need{Refuse: Predict | WorkflowsGet, Redact: ModelsGet | ConceptsGet}

	// NeedNothing is for public data: any key may read them.
	NeedNothing = Need{}

	// NeedAll is for calls that show, or change, anything of the application.
	NeedAll = Need{Refuse: All}

	NeedClient  = Need{Asks: OfClient}
	NeedAccount = Need{Asks: OfAccount}
	NeedNobody  = Need{Asks: OfNobody}
)

// patched are the scopes that a Patch of the same family replaces.
const patched = InputsAdd | ConceptsAdd | ModelsAdd | ModelsTrain

// Check returns nil for a set that covers the call, else an error that wraps ErrInsufficient and
// names the fewest scopes that the set lacks for it.
func (n Need) Check(held Set) error {
	lacks := n.Refuse &^ held
	if n.Patch != 0 {
		if instead := (n.Refuse&^patched | n.Patch) &^ held; instead.size() < lacks.size() {
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

// Shows reports whether the answer to a call shows what a scope covers.
func (n Need) Shows(held, scope Set) bool { return n.Redact&scope == 0 || held.Has(scope) }

// led are the calls that a scope is taken for.
var led = map[Set]Need{
	Search: NeedSearch, SearchFeedback: NeedSearchFeedback,
	InputsAdd: NeedInputsAdd, InputsPatch: NeedInputsPatch, InputsDelete: NeedInputsDelete,
	ConceptsAdd: NeedConceptsAdd, ConceptsPatch: NeedConceptsPatch,
	ModelsAdd: NeedModelsAdd, ModelsPatch: NeedModelsPatch, ModelsDelete: NeedModelsDelete, ModelsTrain: NeedModelsTrain,
	WorkflowsAdd: NeedWorkflowsAdd, WorkflowsPatch: NeedWorkflows, WorkflowsDelete: NeedWorkflowsDelete,
}

// Needs returns the scopes, in the form of the wire, without which a key cannot do what people expect of the
// named scope. It is advice for a person who makes a key, not a rule. A Delete needs Add and Get, an
// Add its Get, and each what else refuses its calls.
func Needs(name string) []string {
	s := SetOf([]string{name})
	need := led[s]
	needed := need.Refuse &^ s
	if need.Patch != 0 {
		needed &^= patched
	}
	return needed.Names()
}
