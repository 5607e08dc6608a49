package log

// Kind identifies a kind of body. Its value is the number of the field that contains the body in an operation. The number of a removed
// kind is never reused.
type Kind uint32

func (u *Unknown) kind() Kind { return u.Kind }

// OnlyDeletes reports whether a body only deletes.
func OnlyDeletes(body Body) bool {
	switch body.(type) {
	case *InputDelete, *InputDeleteAll, *ModelDelete, *ModelDeleteAll, *VersionDelete, *WorkflowDelete, *ConceptDelete, *KeyDelete, *AppDelete,
		*TokensRevoke, *EdgeRevoke:
		return true
	}
	return false
}
