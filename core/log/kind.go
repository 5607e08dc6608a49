package log

// Kind identifies a kind of body. Its value is the number of the field that contains the body in an operation. The number of a removed
// kind is never reused.
type Kind uint32

func (u *Unknown) kind() Kind { return u.Kind }
