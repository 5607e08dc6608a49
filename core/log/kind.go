package log

// Kind is the number of a kind of body: the field that holds it in an operation. Numbers are
// never used again.
type Kind uint32

// The kinds.
const (
	kindInputCreate    Kind = 16
	kindInputFetched   Kind = 17
	kindInputLabels    Kind = 18
	kindInputMeta      Kind = 19
	kindInputGeo       Kind = 20
	kindInputDelete    Kind = 21
	kindInputDeleteAll Kind = 22
	kindOutputsPatch   Kind = 23
	kindConceptCreate  Kind = 32
	kindConceptName    Kind = 33
	kindModelCreate    Kind = 34
	kindModelPatch     Kind = 35
	kindModelDelete    Kind = 36
	kindModelDeleteAll Kind = 37
	kindVersionTrain   Kind = 38
	kindVersionResult  Kind = 39
	kindVersionDelete  Kind = 40
	kindWorkflowCreate Kind = 48
	kindWorkflowDelete Kind = 49
	kindFeedback       Kind = 50
	kindHorizon        Kind = 51
	kindNetworkSwitch  Kind = 52
	kindRefused        Kind = 53
	kindRules          Kind = 54
	kindAppCreate      Kind = 64
	kindKeyCreate      Kind = 65
	kindKeyDelete      Kind = 66
	kindAppChange      Kind = 67
	kindAppDelete      Kind = 68
	kindClientSet      Kind = 69
	kindTokensRevoke   Kind = 70
	kindEdgeCreate     Kind = 71
	kindEdgeEnrolled   Kind = 72
	kindEdgeRevoke     Kind = 73
	kindSiteLease      Kind = 74
	kindSitesSkip      Kind = 75
	kindTokenKeys      Kind = 76
)

func (*InputCreate) kind() Kind    { return kindInputCreate }
func (*InputFetched) kind() Kind   { return kindInputFetched }
func (*InputLabels) kind() Kind    { return kindInputLabels }
func (*InputMeta) kind() Kind      { return kindInputMeta }
func (*InputGeo) kind() Kind       { return kindInputGeo }
func (*InputDelete) kind() Kind    { return kindInputDelete }
func (*InputDeleteAll) kind() Kind { return kindInputDeleteAll }
func (*OutputsPatch) kind() Kind   { return kindOutputsPatch }
func (*ConceptCreate) kind() Kind  { return kindConceptCreate }
func (*ConceptName) kind() Kind    { return kindConceptName }
func (*ModelCreate) kind() Kind    { return kindModelCreate }
func (*ModelPatch) kind() Kind     { return kindModelPatch }
func (*ModelDelete) kind() Kind    { return kindModelDelete }
func (*ModelDeleteAll) kind() Kind { return kindModelDeleteAll }
func (*VersionTrain) kind() Kind   { return kindVersionTrain }
func (*VersionResult) kind() Kind  { return kindVersionResult }
func (*VersionDelete) kind() Kind  { return kindVersionDelete }
func (*WorkflowCreate) kind() Kind { return kindWorkflowCreate }
func (*WorkflowDelete) kind() Kind { return kindWorkflowDelete }
func (*Feedback) kind() Kind       { return kindFeedback }
func (*Horizon) kind() Kind        { return kindHorizon }
func (*NetworkSwitch) kind() Kind  { return kindNetworkSwitch }
func (*Refused) kind() Kind        { return kindRefused }
func (*Rules) kind() Kind          { return kindRules }
func (*AppCreate) kind() Kind      { return kindAppCreate }
func (*KeyCreate) kind() Kind      { return kindKeyCreate }
func (*KeyDelete) kind() Kind      { return kindKeyDelete }
func (*AppChange) kind() Kind      { return kindAppChange }
func (*AppDelete) kind() Kind      { return kindAppDelete }
func (*ClientSet) kind() Kind      { return kindClientSet }
func (*TokensRevoke) kind() Kind   { return kindTokensRevoke }
func (*EdgeCreate) kind() Kind     { return kindEdgeCreate }
func (*EdgeEnrolled) kind() Kind   { return kindEdgeEnrolled }
func (*EdgeRevoke) kind() Kind     { return kindEdgeRevoke }
func (*SiteLease) kind() Kind      { return kindSiteLease }
func (*SitesSkip) kind() Kind      { return kindSitesSkip }
func (*TokenKeys) kind() Kind      { return kindTokenKeys }
func (u *Unknown) kind() Kind      { return u.Kind }
