package log

// Subject is the kind of thing that an operation concerns. Its text is the noun for it.
type Subject string

// Kinds of things. Operations that concern no single thing, or no application, have none.
const (
	NoSubject       Subject = ""
	InputSubject    Subject = "input"
	ConceptSubject  Subject = "concept"
	ModelSubject    Subject = "model"
	WorkflowSubject Subject = "workflow"
)

// SubjectDot returns the dot by which a body names the thing that it concerns, or a zero dot.
func SubjectDot(body Body) Dot {
	_, dot := SubjectOf(body)
	return dot
}

// SubjectOf returns the kind of thing that a body concerns, and the dot by which the body names the thing. A body that makes the thing, or
// names it by its ID, has a zero dot.
func SubjectOf(body Body) (Subject, Dot) {
	switch b := body.(type) {
	case *InputCreate:
		return InputSubject, Dot{}
	case *InputFetched:
		return InputSubject, b.Input
	case *InputLabels:
		return InputSubject, b.Input
	case *InputMeta:
		return InputSubject, b.Input
	case *InputGeo:
		return InputSubject, b.Input
	case *InputDelete:
		return InputSubject, b.Input
	case *OutputsPatch:
		return InputSubject, b.Input
	case *ConceptCreate, *ConceptName, *ConceptDelete:
		return ConceptSubject, Dot{}
	case *ModelCreate:
		return ModelSubject, Dot{}
	case *ModelPatch:
		return ModelSubject, b.Model
	case *ModelDelete:
		return ModelSubject, b.Model
	case *VersionTrain:
		return ModelSubject, b.Model
	case *VersionResult:
		return ModelSubject, b.Model
	case *VersionDelete:
		return ModelSubject, b.Model
	case *WorkflowCreate:
		return WorkflowSubject, Dot{}
	case *WorkflowDelete:
		return WorkflowSubject, b.Workflow
	}
	return NoSubject, Dot{}
}
